"""Who used the GPUs: time of each process on each GPU, added up by workload."""

from collections.abc import Sequence

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import QueryLine
from nodescope.use.answers.incidents.table import Floats, NodeTable, WorkloadRow
from nodescope.use.answers.snapshots import ServedNode, View

PROCESS_TIME = "gpu.process.utilization"
# The drivers count in percent of one GPU.
PERCENT = 0.01

Owner = tuple[str, str, str]
"""Namespace, pod, container."""


def add_gpu_use(table: NodeTable, view: View, node: ServedNode, span: TimeRange) -> None:
    """As one more signal; nothing where no driver names processes, or none of them is in a container."""
    if PROCESS_TIME not in node.metrics:
        return
    try:
        steps = max(1, -(-(span.to_ms - span.from_ms) // table.step_ms))
        lines = view.query(node, PROCESS_TIME, None, span, steps).lines
    except RequestRejected:
        return
    places = place_owners(table.rows)
    used = np.full((len(table.rows), steps), np.nan)
    for line in lines:
        row = places.get(owner_of(line))
        if row is not None:
            add_line(used[row], line, table)
            gpus = table.gpus.get(row, frozenset())
            table.gpus[row] = gpus | {line.subject.label("l_gpu") or ""}
    if np.isfinite(used).any():
        table.signals["gpu"] = used


def place_owners(rows: Sequence[WorkloadRow]) -> dict[Owner, int]:
    return {
        (life.namespace, life.pod, life.container_name): place
        for place, row in enumerate(rows)
        for life in row.lives
        if life.pod
    }


def owner_of(line: QueryLine) -> Owner:
    """As the agent found it by the process' cgroup; empty of a process in no container."""
    namespace, pod, container = (
        line.subject.label(name) or "" for name in ("l_namespace", "l_pod_name", "l_container_name")
    )
    return namespace, pod, container


def add_line(used: Floats, line: QueryLine, table: NodeTable) -> None:
    """Added to what other processes of the workload used in the same steps."""
    good = np.isfinite(line.points.mean)
    step = ((line.points.time_ms[good] - table.start_ms) // table.step_ms).clip(0, len(used) - 1)
    total = np.bincount(step, line.points.mean[good] * PERCENT, len(used))
    count = np.bincount(step, minlength=len(used))
    seen = count > 0
    used[seen] = np.nan_to_num(used[seen]) + total[seen] / count[seen]
