"""A node over a span in figures, read from its archive and live tail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_name, clean_text
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.read.query.engine import QueryLine
from nodescope.read.series_name import name_of
from nodescope.use.answers.clocks import ITS_FILES, NodeClock, describe_skew, find_ahead
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import read_happenings
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.incidents.incident import IncidentList
from nodescope.use.answers.incidents.sentence import render_incident
from nodescope.use.answers.overview import (
    RESOURCES,
    SPARK_POINTS,
    Looked,
    count_cores,
    last_of,
    read_cpu,
    read_memory,
)
from nodescope.use.answers.ranked.ranking import rank
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.workloads import group_workloads

MOST_NAMED = 3
# A container whose last sample is so near the end of the span was there at the end.
THERE_MS = 30_000
FILESYSTEM_LEFT, FILESYSTEM_SIZE = "filesystem.available", "filesystem.size"


@dataclass(frozen=True, slots=True)
class WorkloadUse:
    """What one workload used over the span, all its pods together."""

    workload: str
    value: float | None
    share: float | None
    """Of the node; None where its size is not known."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """Figures of a node over a span; what was not measured is None."""

    node: str
    from_ms: int
    to_ms: int
    cores: float | None
    memory_bytes: float | None
    is_cpu_whole: bool
    """False where the node's own CPU time was not read: CPU is then that of its containers."""
    pods: int
    containers: int
    """There at the end of the span, as the pods."""
    workloads: int
    """There at any time in the span."""
    cpu_mean: float | None
    cpu_most: float | None
    """Of the sixtieth of the span that was busiest."""
    memory_mean: float | None
    """In use: what is not available."""
    memory_last: float | None
    pressure_cpu: float | None
    pressure_memory: float | None
    pressure_io: float | None
    disk: str
    """The fullest file system; empty where none was measured."""
    disk_used: float | None
    """Of it, as a share."""
    disk_left: float | None
    """Bytes."""
    restarts: int
    oom_kills: int
    busiest: tuple[WorkloadUse, ...]
    largest: tuple[WorkloadUse, ...]
    """By memory."""
    incidents: tuple[str, ...]
    unseen: tuple[str, ...] = ()


def summarize_nodes(
    view: View, span: TimeRange, check: Callable[[], None] = lambda: None
) -> list[NodeSummary]:
    return [summarize_node(view, node, span, check) for node in view.nodes if node.to_ms is not None]


def summarize_node(view: View, node: ServedNode, span: TimeRange, check: Callable[[], None]) -> NodeSummary:
    span = TimeRange(max(span.from_ms, node.from_ms or 0), min(span.to_ms, node.to_ms or span.to_ms))
    cores = float(counted) if (counted := count_cores(node)) else None
    looked = Looked(view, span)
    cpu, memory = read_cpu(looked, node), read_memory(looked, node)
    check()
    lives = [life for life in view.lives(span) if life.node == node.name]
    there = [life for life in lives if life.last_ms >= span.to_ms - THERE_MS]
    kinds = [one.kind for where, one in read_happenings(view, span) if where is node]
    disk, used, left = find_fullest(view, node, span)
    pressure = [mean_of_lines(looked.read(node, f"pressure_{one}", 1, "node")) for one in RESOURCES]
    check()
    busiest, largest = (
        rank_use(view, lives, metric, span, whole)
        for metric, whole in (("cpu", cores), ("memory", memory.of))
    )
    check()
    found = list_incidents(narrow(view, node), span, None, check)
    by_resource = dict(zip(RESOURCES, pressure))
    return NodeSummary(
        node.name,
        span.from_ms,
        span.to_ms,
        cores,
        memory.of,
        cpu.of is not None,
        len({life.subject.label("l_pod_uid") or life.pod for life in there if life.pod}),
        len(there),
        len(group_workloads(lives)),
        known(cpu.spark, np.mean),
        known(cpu.spark, np.max),
        known(memory.spark, np.mean),
        last_of(memory.spark),
        by_resource["cpu"],
        by_resource["memory"],
        by_resource["io"],
        disk,
        used,
        left,
        kinds.count("restart"),
        kinds.count("oom"),
        busiest,
        largest,
        tuple(clean_text(render_incident(one), 400) for each in found for one in each.incidents[:MOST_NAMED]),
        (*list_clock(node), *list_early(found, span), *list_unseen(cpu.of, memory.of, by_resource, disk)),
    )


def narrow(view: View, node: ServedNode) -> View:
    return View(view.engine, view.snapshot, (node,))


def known(values: Floats, reduce: Callable[[Floats], np.floating]) -> float | None:
    good = values[np.isfinite(values)]
    return float(reduce(good)) if len(good) else None


def mean_of_lines(lines: Sequence[QueryLine]) -> float | None:
    """Of the first, in shares of time; a tick read a little late has a little more than its time."""
    mean = known(lines[0].points.mean, np.mean) if lines else None
    return None if mean is None else min(1.0, mean)


def find_fullest(view: View, node: ServedNode, span: TimeRange) -> tuple[str, float | None, float | None]:
    """(name, share in use, bytes left) at the end of the span; the fullest of all file systems."""
    left, size = (read_last(view, node, name, span) for name in (FILESYSTEM_LEFT, FILESYSTEM_SIZE))
    rows = [(1 - left[name] / size[name], name) for name in left if size.get(name, 0.0) > 0]
    if not rows:
        return "", None, None
    share, name = max(rows)
    return clean_name(name), share, left[name]


def read_last(view: View, node: ServedNode, metric: str, span: TimeRange) -> dict[str, float]:
    try:
        lines = view.query(node, metric, None, span, SPARK_POINTS).lines
    except RequestRejected:
        return {}
    good = ((line, line.points.mean[np.isfinite(line.points.mean)]) for line in lines)
    return {
        line.subject.label("l_device") or name_of(line.subject): float(one[-1])
        for line, one in good
        if len(one)
    }


def rank_use(
    view: View, lives: Sequence[Life], metric: str, span: TimeRange, whole: float | None
) -> tuple[WorkloadUse, ...]:
    """What was used over the span, whoever was there for how long; the most first."""
    order = rank(view, lives, metric, span)
    rows = []
    for one in group_workloads([life for life in lives if life.id in order.figures]):
        used = sum(order.figures[life.id].over_span for life in one.lives)
        rows.append(WorkloadUse(clean_name(one.full_name), used, used / whole if whole else None))
    return tuple(sorted(rows, key=lambda row: (-(row.value or 0.0), row.workload))[:MOST_NAMED])


def list_early(found: Sequence[IncidentList], span: TimeRange) -> list[str]:
    """From when on incidents were looked for, where the span is too long for all of it."""
    starts = [one.from_ms for one in found if one.from_ms > span.from_ms]
    return [f"incidents before {render_moment(max(starts))}: the span is too long for them"] if starts else []


def list_clock(node: ServedNode) -> list[str]:
    """Whether the node's own times are right."""
    line = describe_skew(node.name, NodeClock(node.to_ms or 0, find_ahead(node) or 0.0, ITS_FILES), 0)
    return [line] if line else []


def list_unseen(
    cpu: float | None, memory: float | None, pressure: dict[str, float | None], disk: str
) -> list[str]:
    missing = [f"{name} pressure" for name, value in pressure.items() if value is None]
    missing += [] if cpu else ["the CPU time of the node itself (that of its containers stands for it)"]
    missing += [] if memory else ["the memory of the node itself (that of its containers stands for it)"]
    missing += [] if disk else ["file systems"]
    lines = [f"not measured: {', '.join(missing)}"] if missing else []
    return [
        *lines,
        "the kernel's version: archives do not have it; the agent's /metrics does (node_uname_info)",
    ]
