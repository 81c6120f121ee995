"""A node made of a few files, for sources of hardware counters."""

from pathlib import Path
from typing import Any

from nodescope.base.block import Block
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.pcm.source import PcmSource


def make_context(folder: Path, faults: dict[str, int] | None = None, **settings: Any) -> Context:
    root = NodeRoot(folder, faults)
    return Context(root, Descriptors(64), Settings(**settings), ContainerNames(root), LiveContainers())


def make_pcm(**settings: Any) -> PcmSource:
    """A source that is only asked to parse; its server is never reached."""
    return PcmSource(make_context(Path("/nonexistent"), pcm_url="http://127.0.0.1:1", **settings))


def write_files(folder: Path, files: dict[str, object]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{content}\n")


def value(block: Block, name: str, row: int = 0) -> float:
    return float(block.values[row, block.table.columns[name]])
