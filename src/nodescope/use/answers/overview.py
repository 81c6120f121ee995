"""How the nodes are in four tiles: CPU, memory, pressure, containers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count, render_quantity
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import QueryLine
from nodescope.read.series_name import Subject, name_of, scope_of
from nodescope.use.answers.axis import Floats
from nodescope.use.answers.container_table import NO_FILTER, Filter
from nodescope.use.answers.containers import Life, group_lives
from nodescope.use.answers.events import read_happenings
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.ranked.outer import keep_outer
from nodescope.use.answers.ranked.ranking import shorten
from nodescope.use.answers.ranked.span_use import UNKNOWN_SIZE, NodeSize
from nodescope.use.answers.snapshots import NodeFolders, ServedNode, View

SPARK_POINTS = 60
# A figure "now" is the mean of so much before the end of the range: one second alone is noise.
NOW_MS = 60_000
AT_END = "in the last minute"
# PSI's three; the one that hurts most is shown.
RESOURCES = ("memory", "cpu", "io")


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure over the range, and out of what it is."""

    spark: Floats
    of: float | None = None
    value: float | None = None
    """At the end of the range: the mean of its last minute. None: not measured then."""


@dataclass(frozen=True, slots=True)
class PressurePeak:
    """The largest sample of the range: of which resource, whose, and between which moments it was."""

    value: float
    resource: str
    whose: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure at the end of the range, its curve, and a sentence."""

    id: str
    title: str
    curve: Curve
    unit: str
    sentence: str
    resource: str = ""
    """Of pressure: memory, cpu or io; empty where it was not measured."""
    whose: str = ""
    """Of pressure: the container or node that waits most."""
    peak: PressurePeak | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    tiles: tuple[Tile, ...]
    restarts: int
    oom_kills: int
    at_ms: int = 0
    """The end of the minute that the figures are of."""
    whose: str = ""
    """`3 containers` where a filter chose some; empty of whole nodes."""


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


@dataclass(frozen=True, slots=True)
class Looked:
    """What the tiles are read from."""

    view: View
    span: TimeRange
    lives: tuple[Life, ...] | None = None
    """Those that a filter admits; None: whole nodes."""

    @property
    def last_minute(self) -> TimeRange:
        """Up to the end of the range, or of the data where that is earlier."""
        ends = [node.to_ms for node in self.view.nodes if node.to_ms is not None]
        to_ms = max(self.span.from_ms, min(self.span.to_ms, max(ends, default=self.span.to_ms)))
        return TimeRange(max(self.span.from_ms, to_ms - NOW_MS + 1), to_ms)

    def at_end(self) -> "Looked":
        return replace(self, span=self.last_minute)

    def listed(self, node: ServedNode) -> list[Subject]:
        if self.lives is None:
            return list(node.listed)
        return [life.subject for life in self.lives if life.node == node.name]

    def read(self, node: ServedNode, metric: str, series: int = 1, scope: str = "") -> list[QueryLine]:
        """In SPARK_POINTS buckets; nothing where the node does not have it."""
        try:
            span = shorten(self.span, series)
            lines = self.view.query(node, metric, None, span, SPARK_POINTS, scope=scope).lines
        except RequestRejected:
            return []
        if self.lives is None or scope:
            return lines
        admitted = {one.identity for one in self.listed(node)}
        return [line for line in lines if line.subject.identity in admitted]


def read_overview(view: View, span: TimeRange, wanted: Filter = NO_FILTER) -> Overview:
    lives = None if wanted.is_empty else tuple(filter_lives(view.lives(span), wanted))
    looked = Looked(view, span, lives)
    ids = None if lives is None else {life.id for life in lives}
    kinds = [happening.kind for _, happening in read_happenings(view, span, ids)]
    restarts, kills = kinds.count("restart"), kinds.count("oom")
    tiles = (
        usage_tile(looked, "CPU", "cores", "CPU use", read_cpu),
        memory_tile(looked),
        pressure_tile(looked),
        containers_tile(looked, restarts, kills),
    )
    whose = "" if lives is None else render_count(len(group_lives(lives)), "container")
    return Overview(tiles, restarts, kills, looked.last_minute.to_ms, whose)


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


def last_of(values: Floats) -> float | None:
    """The newest that was measured."""
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else None


def mean_of(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


# -- CPU and memory -----------------------------------------------------------------


def usage_tile(looked: Looked, title: str, unit: str, what: str, read: Callable[..., Curve]) -> Tile:
    """So much in use of so much; of containers where the node itself was not measured, or a filter chose some."""
    curves = [read(looked, node) for node in looked.view.nodes]
    ends = [mean_of(read(looked.at_end(), node).spark) for node in looked.view.nodes]
    known = [value for value in ends if value is not None]
    totals = [curve.of for curve in curves if curve.of is not None]
    curve = Curve(
        add_curves([one.spark for one in curves]),
        sum(totals) if totals else None,
        sum(known) if known else None,
    )
    if curve.value is None:
        sentence = f"{what} was not measured {'in' if not len(curve.spark) else 'at the end of'} this range."
    elif curve.of is None:
        sentence = f"Containers use {render_quantity(curve.value, unit)} {AT_END}."
    else:
        # Cores are named once: 1.5 of 8 cores.
        used = render_quantity(curve.value, "" if unit == "cores" else unit)
        sentence = f"{used} of {render_quantity(curve.of, unit)} in use {AT_END}."
    return Tile(title.lower(), title, curve, unit, sentence)


def memory_tile(looked: Looked) -> Tile:
    """With what the kernel can reclaim beside it: that is not counted as in use."""
    tile = usage_tile(looked, "memory", "bytes", "Memory", read_memory)
    at_end = looked.at_end()
    reclaimable = mean_of(add_curves([read_reclaimable(at_end, node) for node in looked.view.nodes]))
    if tile.curve.of is None or tile.curve.value is None or not reclaimable:
        return tile
    words = f"{tile.sentence} {render_quantity(reclaimable, 'bytes')} more can be reclaimed."
    return replace(tile, sentence=words)


def read_reclaimable(looked: Looked, node: ServedNode) -> Floats:
    """Page cache and kernel memory that the kernel could give back: available, but not free."""
    names = ("memory.MemAvailable", "memory.MemFree")
    available, free = (add_lines(looked.read(node, name, 1, "node")) for name in names)
    return available - free if len(available) == len(free) else np.empty(0)


def read_cpu(looked: Looked, node: ServedNode) -> Curve:
    """Cores in use; where the node's own CPUs were not read, what containers use."""
    cores = count_cores(node)
    is_whole = looked.lives is None and cores is not None
    # Six modes of every core are read for it.
    lines = looked.read(node, "cpu", 6 * (cores or 1), "node") if is_whole else []
    if cores and lines:
        return Curve(np.clip(add_lines(lines), 0, cores), float(cores))
    lines = looked.read(node, "cpu", len(node.listed))
    return Curve(add_lines(choose_adding(lines)))


def read_memory(looked: Looked, node: ServedNode) -> Curve:
    if looked.lives is None:
        names = ("memory", "memory_limit")
        used, total = (add_lines(looked.read(node, name, 2, "node")) for name in names)
        if np.isfinite(used).any() and np.isfinite(total).any():
            return Curve(used, float(np.nanmax(total)))
    return Curve(add_lines(choose_adding(looked.read(node, "memory", len(node.listed)))))


def choose_adding(lines: Sequence[QueryLine]) -> list[QueryLine]:
    """Those that may be added up: containers, or services that are not inside one another."""
    containers = [line for line in lines if scope_of(line.subject) == "container"]
    return containers or keep_outer(lines, lambda line: line.subject)


def count_cores(node: ServedNode) -> int | None:
    count = sum(1 for one in node.subjects.values() if scope_of(one) == "cpu")
    return count or None


def read_memory_total(view: View, node: ServedNode) -> float | None:
    if node.to_ms is None:
        return None
    span = TimeRange(node.to_ms - NOW_MS, node.to_ms)
    total = add_lines(Looked(view, span).read(node, "memory.MemTotal"))
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


@dataclass(frozen=True, slots=True)
class Stalled:
    """How long tasks of one series waited for one resource."""

    resource: str
    whose: str
    spark: Floats
    now: float | None
    peak: PressurePeak | None


def pressure_tile(looked: Looked) -> Tile:
    """Of memory, CPU and I/O the one that stalls most at the end; the peak of the range beside it."""
    found = [
        one
        for node, resource in product(looked.view.nodes, RESOURCES)
        for one in read_stalls(looked, node, resource)
    ]
    peaks = [one.peak for one in found if one.peak is not None]
    if not peaks:
        return Tile("pressure", "pressure", Curve(np.empty(0)), "ratio", "Pressure was not measured here.")
    peak = max(peaks, key=lambda one: one.value)
    worst = max(
        found, key=lambda one: (-1.0 if one.now is None else one.now, one.peak.value if one.peak else 0.0)
    )
    curve = Curve(np.minimum(worst.spark, 1.0), 1.0, worst.now)
    sentence = f"{render_now(worst)} {render_peak(peak)}"
    return Tile("pressure", "pressure", curve, "ratio", sentence, worst.resource, worst.whose, peak)


def render_now(worst: Stalled) -> str:
    if worst.now is None:
        return "Pressure was not measured at the end of this range."
    of = f" in {worst.whose}" if worst.whose else ""
    return f"Tasks wait for {worst.resource} {render_quantity(worst.now, 'ratio')} of the time{of} {AT_END}."


def render_peak(peak: PressurePeak) -> str:
    of = f" in {peak.whose}" if peak.whose else ""
    return f"The most in the range is {render_quantity(peak.value, 'ratio')} for {peak.resource}{of}."


def read_stalls(looked: Looked, node: ServedNode, resource: str) -> list[Stalled]:
    """Of the node as a whole, or else of each container; a container that is gone has no pressure now."""
    metric = f"pressure_{resource}"
    of_node = looked.read(node, metric, 1, "node")[:1] if looked.lives is None else []
    if of_node:
        ends = looked.at_end().read(node, metric, 1, "node")[:1]
        whose = node.name if len(looked.view.nodes) > 1 else ""
        return [make_stalled(resource, whose, of_node[0], mean_of(ends[0].points.mean) if ends else None)]
    series = len(node.listed)
    ends = looked.at_end().read(node, metric, series)
    now = {line.subject.identity: mean_of(line.points.mean) for line in ends}
    return [
        make_stalled(resource, name_of(line.subject), line, now.get(line.subject.identity))
        for line in looked.read(node, metric, series)
    ]


def make_stalled(resource: str, whose: str, line: QueryLine, now: float | None) -> Stalled:
    """A tick read a little late has a little more than its time."""
    points = line.points
    known = np.flatnonzero(np.isfinite(points.maximum))
    peak = None
    if len(known):
        place = known[int(np.argmax(points.maximum[known]))]
        from_ms = int(points.time_ms[place])
        width_ms = int(points.time_ms[1] - points.time_ms[0]) if len(points.time_ms) > 1 else 0
        peak = PressurePeak(
            min(1.0, float(points.maximum[place])), resource, whose, from_ms, from_ms + width_ms
        )
    return Stalled(resource, whose, points.mean, None if now is None else min(1.0, now), peak)


# -- containers ---------------------------------------------------------------------


def containers_tile(looked: Looked, restarts: int, kills: int) -> Tile:
    """How many were alive in each bucket, by their first and last sight."""
    edges = np.linspace(looked.span.from_ms, looked.last_minute.to_ms, SPARK_POINTS)
    alive = np.zeros(SPARK_POINTS)
    scopes = set()
    for node in looked.view.nodes:
        for subject in looked.listed(node):
            scopes.add(scope_of(subject))
            alive += (edges >= subject.first_ms) & (edges <= subject.last_ms + 1000)
    what = "containers" if "container" in scopes or not scopes else "services"
    tile = Curve(alive, None, float(alive[-1]))
    words = f"{render_count(restarts, 'restart')}, {render_count(kills, 'OOM kill')}"
    return Tile("containers", what, tile, "count", f"{alive[-1]:.0f} {what}, {words}.")
