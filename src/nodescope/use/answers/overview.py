"""How the nodes are in four tiles: CPU, memory, pressure, containers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count, render_quantity
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import Engine, QueryLine
from nodescope.read.series_name import name_of, scope_of
from nodescope.use.answers.events import list_happenings
from nodescope.use.answers.ranking import shorten
from nodescope.use.answers.snapshots import ServedNode, View

Floats = NDArray[np.float64]
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


def read_overview(view: View, span: TimeRange) -> Overview:
    engine, nodes = view.engine, view.nodes
    kinds = [one.kind for one in list_happenings(nodes, span)]
    restarts, kills = kinds.count("restart"), kinds.count("oom")
    tiles = (
        cpu_tile(engine, nodes, span),
        memory_tile(engine, nodes, span),
        pressure_tile(engine, nodes, span),
        containers_tile(nodes, span, restarts, kills),
    )
    return Overview(tiles, restarts, kills)


def read_lines(
    engine: Engine, node: ServedNode, metric: str, span: TimeRange, series: int = 1, scope: str | None = None
) -> list[QueryLine]:
    """In SPARK_POINTS buckets; nothing where the node does not have it."""
    if node.to_ms is None:
        return []
    looked = shorten(span, series)
    try:
        return engine.query(
            node.catalog,
            metric,
            None,
            looked.from_ms,
            looked.to_ms,
            SPARK_POINTS,
            tail=node.tail,
            scope=scope,
        ).lines
    except RequestRejected:
        return []


def add_lines(lines: Sequence[QueryLine]) -> Floats:
    """The sum of all series in each bucket; a bucket that nobody measured is NaN."""
    if not lines:
        return np.empty(0)
    size = max(len(line.points.mean) for line in lines)
    # A range of a minute is answered in samples: as many moments as the longest series has.
    longest = max(lines, key=lambda line: len(line.points.mean)).points.time_ms
    total, seen = np.zeros(size), np.zeros(size, bool)
    for line in lines:
        places = np.searchsorted(longest, line.points.time_ms).clip(0, size - 1)
        good = np.isfinite(line.points.mean)
        np.add.at(total, places[good], line.points.mean[good])
        seen[places[good]] = True
    return np.where(seen, total, np.nan)


def add_curves(curves: Sequence[Floats]) -> Floats:
    """Of several nodes; their ends are aligned, as the ends of their ranges are."""
    size = max((len(one) for one in curves), default=0)
    padded = [np.concatenate([np.full(size - len(one), np.nan), one]) for one in curves if len(one)]
    if not padded:
        return np.empty(0)
    stacked = np.stack(padded)
    return np.where(np.isfinite(stacked).any(axis=0), np.nansum(stacked, axis=0), np.nan)


# -- CPU ----------------------------------------------------------------------------


def cpu_tile(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Tile:
    curves = [node_cpu(engine, node, span) for node in nodes]
    cores = [one.of for one in curves if one.of is not None]
    curve = Curve(add_curves([one.spark for one in curves]), sum(cores) if cores else None)
    return usage_tile("cpu", "CPU", curve, "cores", "CPU use")


def usage_tile(tile_id: str, title: str, curve: Curve, unit: str, what: str) -> Tile:
    """So much in use of so much; of containers where the node itself was not measured."""
    if curve.value is None:
        sentence = f"{what} was not measured in this range."
    elif curve.of is None:
        sentence = f"Containers use {render_quantity(curve.value, unit)}."
    else:
        # Cores are named once: 1.5 of 8 cores.
        used = render_quantity(curve.value, "" if unit == "cores" else unit)
        sentence = f"{used} of {render_quantity(curve.of, unit)} in use."
    return Tile(tile_id, title, curve, unit, sentence)


def node_cpu(engine: Engine, node: ServedNode, span: TimeRange) -> Curve:
    """Cores in use; where the node's own CPUs were not read, what containers use."""
    cores = count_cores(node)
    # Six modes of every core are read for it.
    lines = read_lines(engine, node, "cpu", span, 6 * (cores or 1), "node") if cores else []
    if cores and lines:
        return Curve(np.clip(add_lines(lines), 0, cores), float(cores))
    lines = read_lines(engine, node, "cpu", span, len(node.listed))
    return Curve(add_lines([line for line in lines if scope_of(line.subject) == "container"] or lines))


def count_cores(node: ServedNode) -> int | None:
    count = sum(1 for one in node.subjects.values() if scope_of(one) == "cpu")
    return count or None


# -- memory -------------------------------------------------------------------------


def memory_tile(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Tile:
    used, totals = [], []
    for node in nodes:
        mine, total = (
            add_lines(read_lines(engine, node, name, span, 2, "node")) for name in ("memory", "memory_limit")
        )
        if np.isfinite(mine).any() and np.isfinite(total).any():
            used.append(mine)
            totals.append(float(np.nanmax(total)))
        else:
            used.append(add_lines(read_lines(engine, node, "memory", span, len(node.listed))))
    curve = Curve(add_curves(used), float(np.nansum(totals)) if totals else None)
    return usage_tile("memory", "memory", curve, "bytes", "Memory")


def read_memory_total(engine: Engine, node: ServedNode) -> float | None:
    if node.to_ms is None:
        return None
    total = add_lines(read_lines(engine, node, "memory.MemTotal", TimeRange(node.to_ms - 60_000, node.to_ms)))
    known = total[np.isfinite(total)]
    return float(known[-1]) if len(known) else None


# -- pressure -----------------------------------------------------------------------


def pressure_tile(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Tile:
    """Of memory, CPU and I/O the one that stalls most now; of several nodes the worst."""
    worst: tuple[float, str, Curve, str] | None = None
    for node in nodes:
        for resource in RESOURCES:
            whose, line = "", first(read_lines(engine, node, f"pressure_{resource}", span, 1, "node"))
            if line is None:
                line = worst_of(read_lines(engine, node, f"pressure_{resource}", span, len(node.listed)))
                whose = name_of(line.subject) if line else ""
            if line is None:
                continue
            # A tick read a little late has a little more than its time.
            tile = Curve(np.minimum(line.points.mean, 1.0), 1.0)
            if tile.value is not None and (worst is None or tile.value > worst[0]):
                worst = (tile.value, resource, tile, whose or (node.name if len(nodes) > 1 else ""))
    if worst is None:
        return Tile("pressure", "pressure", Curve(np.empty(0)), "ratio", "Pressure was not measured here.")
    value, resource, tile, whose = worst
    of = f" in {whose}" if whose else ""
    sentence = f"Tasks wait for {resource} {render_quantity(value, 'ratio')} of the time{of}."
    return Tile("pressure", "pressure", tile, "ratio", sentence, resource, whose)


def first(lines: Sequence[QueryLine]) -> QueryLine | None:
    return lines[0] if lines else None


def worst_of(lines: Sequence[QueryLine]) -> QueryLine | None:
    """The series that is highest at its end."""
    return max(lines, key=lambda line: Curve(line.points.mean).value or 0.0, default=None)


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
