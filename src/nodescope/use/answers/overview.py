"""How the nodes are in four tiles: CPU, memory, pressure, containers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count, render_quantity
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import QueryLine
from nodescope.read.series_name import name_of, scope_of
from nodescope.use.answers.axis import Floats
from nodescope.use.answers.events import read_happenings
from nodescope.use.answers.ranked.ranking import shorten
from nodescope.use.answers.ranked.span_use import UNKNOWN_SIZE, NodeSize
from nodescope.use.answers.snapshots import NodeFolders, ServedNode, View

SPARK_POINTS = 60
# PSI's three; the one that hurts most is shown.
RESOURCES = ("memory", "cpu", "io")


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure over the range, and out of what it is."""

    spark: Floats
    of: float | None = None

    @property
    def value(self) -> float | None:
        """The newest."""
        known = self.spark[np.isfinite(self.spark)]
        return float(known[-1]) if len(known) else None


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure now, its curve, and a sentence."""

    id: str
    title: str
    curve: Curve
    unit: str
    sentence: str
    resource: str = ""
    """Of pressure: memory, cpu or io; empty where it was not measured."""
    whose: str = ""
    """Of pressure: the container or node that waits most."""


@dataclass(frozen=True, slots=True)
class Overview:
    tiles: tuple[Tile, ...]
    restarts: int
    oom_kills: int


@dataclass(frozen=True, slots=True)
class About:
    """What a node's data is."""

    node: str
    version: str
    from_ms: int | None
    to_ms: int | None
    containers: int
    problems: tuple[str, ...] = ()
    """Files that are not served, and why."""
    size: NodeSize = UNKNOWN_SIZE
    ahead_seconds: float | None = None
    """How far its clock is ahead of another; None where it was not measured."""
    ahead_of: str = ""
    """Whose clock the other is."""


def read_overview(view: View, span: TimeRange) -> Overview:
    kinds = [happening.kind for _, happening in read_happenings(view, span)]
    restarts, kills = kinds.count("restart"), kinds.count("oom")
    tiles = (
        usage_tile(view, span, "CPU", "cores", "CPU use", read_cpu),
        memory_tile(view, span),
        pressure_tile(view, span),
        containers_tile(view.nodes, span, restarts, kills),
    )
    return Overview(tiles, restarts, kills)


def read_lines(
    view: View, node: ServedNode, metric: str, span: TimeRange, series: int = 1, scope: str = ""
) -> list[QueryLine]:
    """In SPARK_POINTS buckets; nothing where the node does not have it."""
    try:
        return view.query(node, metric, None, shorten(span, series), SPARK_POINTS, scope=scope).lines
    except RequestRejected:
        return []


def add_lines(lines: Sequence[QueryLine]) -> Floats:
    """
    The sum of all series in each bucket; a bucket that nobody measured is NaN.

    A series counts by its share of the bucket's samples: a job of five seconds is a twelfth of a minute.
    """
    if not lines:
        return np.empty(0)
    # A range of a minute is answered in samples: as many moments as the longest series has.
    longest = max((line.points.time_ms for line in lines), key=len)
    size = len(longest)
    total, most = np.zeros(size), np.zeros(size)
    for line in lines:
        places = np.searchsorted(longest, line.points.time_ms).clip(0, size - 1)
        good = np.isfinite(line.points.mean)
        count = line.points.count[good].astype(float)
        np.add.at(total, places[good], line.points.mean[good] * count)
        np.maximum.at(most, places[good], count)
    found: Floats = np.divide(total, most, out=np.full(size, np.nan), where=most > 0)
    return found


def add_curves(curves: Sequence[Floats]) -> Floats:
    """Of several nodes; their ends are aligned, as the ends of their ranges are."""
    size = max((len(one) for one in curves), default=0)
    padded = [np.concatenate([np.full(size - len(one), np.nan), one]) for one in curves if len(one)]
    if not padded:
        return np.empty(0)
    stacked = np.stack(padded)
    return np.where(np.isfinite(stacked).any(axis=0), np.nansum(stacked, axis=0), np.nan)


# -- CPU and memory -----------------------------------------------------------------


def usage_tile(
    view: View, span: TimeRange, title: str, unit: str, what: str, read: Callable[..., Curve]
) -> Tile:
    """So much in use of so much; of containers where the node itself was not measured."""
    curves = [read(view, node, span) for node in view.nodes]
    totals = [curve.of for curve in curves if curve.of is not None]
    curve = Curve(add_curves([one.spark for one in curves]), sum(totals) if totals else None)
    if curve.value is None:
        sentence = f"{what} was not measured in this range."
    elif curve.of is None:
        sentence = f"Containers use {render_quantity(curve.value, unit)}."
    else:
        # Cores are named once: 1.5 of 8 cores.
        used = render_quantity(curve.value, "" if unit == "cores" else unit)
        sentence = f"{used} of {render_quantity(curve.of, unit)} in use."
    return Tile(title.lower(), title, curve, unit, sentence)


def memory_tile(view: View, span: TimeRange) -> Tile:
    """With what the kernel can reclaim beside it: that is not counted as in use."""
    tile = usage_tile(view, span, "memory", "bytes", "Memory", read_memory)
    reclaimable = Curve(add_curves([read_reclaimable(view, node, span) for node in view.nodes])).value
    if tile.curve.of is None or not reclaimable:
        return tile
    words = f"{tile.sentence} {render_quantity(reclaimable, 'bytes')} more can be reclaimed."
    return replace(tile, sentence=words)


def read_reclaimable(view: View, node: ServedNode, span: TimeRange) -> Floats:
    """Page cache and kernel memory that the kernel could give back: available, but not free."""
    names = ("memory.MemAvailable", "memory.MemFree")
    available, free = (add_lines(read_lines(view, node, name, span, 1, "node")) for name in names)
    return available - free if len(available) == len(free) else np.empty(0)


def read_cpu(view: View, node: ServedNode, span: TimeRange) -> Curve:
    """Cores in use; where the node's own CPUs were not read, what containers use."""
    cores = count_cores(node)
    # Six modes of every core are read for it.
    lines = read_lines(view, node, "cpu", span, 6 * (cores or 1), "node") if cores else []
    if cores and lines:
        return Curve(np.clip(add_lines(lines), 0, cores), float(cores))
    lines = read_lines(view, node, "cpu", span, len(node.listed))
    return Curve(add_lines([line for line in lines if scope_of(line.subject) == "container"] or lines))


def read_memory(view: View, node: ServedNode, span: TimeRange) -> Curve:
    used, total = (
        add_lines(read_lines(view, node, name, span, 2, "node")) for name in ("memory", "memory_limit")
    )
    if np.isfinite(used).any() and np.isfinite(total).any():
        return Curve(used, float(np.nanmax(total)))
    return Curve(add_lines(read_lines(view, node, "memory", span, len(node.listed))))


def count_cores(node: ServedNode) -> int | None:
    count = sum(1 for one in node.subjects.values() if scope_of(one) == "cpu")
    return count or None


def read_memory_total(view: View, node: ServedNode) -> float | None:
    if node.to_ms is None:
        return None
    total = add_lines(read_lines(view, node, "memory.MemTotal", TimeRange(node.to_ms - 60_000, node.to_ms)))
    known = total[np.isfinite(total)]
    return float(known[-1]) if len(known) else None


def know_size(folders: NodeFolders, view: View, node: ServedNode) -> NodeSize:
    """Memory is read once a file: every page begins with this answer, and the size of a node hardly changes."""
    newest = node.catalog.entries[-1].path.name if node.catalog.entries else ""
    known = folders.memory_totals.get(node.name)
    if known is None or known[0] != newest:
        total = read_memory_total(view, node)
        if total is None:
            return NodeSize(count_cores(node))
        known = folders.memory_totals[node.name] = (newest, total)
    return NodeSize(count_cores(node), known[1])


# -- pressure -----------------------------------------------------------------------


def pressure_tile(view: View, span: TimeRange) -> Tile:
    """Of memory, CPU and I/O the one that stalls most now; of several nodes the worst."""
    worst: tuple[float, str, Curve, str] | None = None
    for node, resource in product(view.nodes, RESOURCES):
        metric, whose = f"pressure_{resource}", node.name if len(view.nodes) > 1 else ""
        lines = read_lines(view, node, metric, span, 1, "node")[:1]
        if not lines:
            lines = read_lines(view, node, metric, span, len(node.listed))
            lines.sort(key=lambda line: -(Curve(line.points.mean).value or 0.0))
            whose = name_of(lines[0].subject) if lines else ""
        for line in lines[:1]:
            # A tick read a little late has a little more than its time.
            curve = Curve(np.minimum(line.points.mean, 1.0), 1.0)
            if curve.value is not None and (worst is None or curve.value > worst[0]):
                worst = (curve.value, resource, curve, whose)
    if worst is None:
        return Tile("pressure", "pressure", Curve(np.empty(0)), "ratio", "Pressure was not measured here.")
    value, resource, curve, whose = worst
    of = f" in {whose}" if whose else ""
    sentence = f"Tasks wait for {resource} {render_quantity(value, 'ratio')} of the time{of}."
    return Tile("pressure", "pressure", curve, "ratio", sentence, resource, whose)


# -- containers ---------------------------------------------------------------------


def containers_tile(nodes: Sequence[ServedNode], span: TimeRange, restarts: int, kills: int) -> Tile:
    """How many were alive in each bucket, by their first and last sight."""
    edges = np.linspace(span.from_ms, span.to_ms, SPARK_POINTS)
    alive = np.zeros(SPARK_POINTS)
    scopes = set()
    for node in nodes:
        for subject in node.listed:
            scopes.add(scope_of(subject))
            alive += (edges >= subject.first_ms) & (edges <= subject.last_ms + 1000)
    what = "containers" if "container" in scopes or not scopes else "services"
    tile = Curve(alive)
    sentence = (
        f"{alive[-1]:.0f} {what}, {render_count(restarts, 'restart')}, {render_count(kills, 'OOM kill')}."
    )
    return Tile("containers", what, tile, "count", sentence)
