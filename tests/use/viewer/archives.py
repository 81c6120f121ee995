"""Archives for the viewer's tests."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest

END_MS = 1_770_000_000_000
HOURS = 1 / 3


def write_demo(folder: Path, node: str = "demo-1", containers: int = 8, hours: float = HOURS) -> Path:
    write_node(DemoRequest(folder, hours, containers, 7, END_MS, node), "0", lambda _: None)
    return folder


def write_foreign(path: Path, pods: Sequence[str]) -> None:
    """Somebody else's file: a minute of one gauge for each pod, no sidecar, names as they like."""
    rows = [
        (END_MS - 60_000 + second * 1000, f"{place:064x}", pod, float(second))
        for place, pod in enumerate(pods)
        for second in range(60)
    ]
    columns = {
        "time": pa.array([row[0] for row in rows]).cast(pa.timestamp("ms")),
        "metric_name": pa.array(["things"] * len(rows)),
        "value": pa.array([row[3] for row in rows]),
        "l_container_id": pa.array([row[1] for row in rows]),
        "l_pod_name": pa.array([row[2] for row in rows]),
    }
    pq.write_table(pa.table(columns), path)
