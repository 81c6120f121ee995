"""Archives for the viewer's tests."""

from pathlib import Path

from nodescope.keep.demo import Wish, write_node

END_MS = 1_770_000_000_000
HOURS = 1 / 3


def write_demo(folder: Path, node: str = "demo-1", containers: int = 8, hours: float = HOURS) -> Path:
    write_node(Wish(folder, hours, containers, 7, END_MS, node), "0", lambda _: None)
    return folder
