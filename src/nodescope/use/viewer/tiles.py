"""/api/summary: four tiles that say how the node is, before the first click."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count, render_quantity
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import Engine, QueryLine
from nodescope.read.series_name import name_of, scope_of
from nodescope.use.viewer.events import happened
from nodescope.use.viewer.ranking import shorten
from nodescope.use.viewer.render import Json, number, numbers
from nodescope.use.viewer.snapshots import ServedNode

Floats = NDArray[np.float64]
SPARK_POINTS = 60
# PSI's three; the one that hurts most is shown.
RESOURCES = ("memory", "cpu", "io")


@dataclass(slots=True)
class TileValue:
    """A figure now, out of what, and its curve over the range."""

    spark: Floats
    of: float | None = None

    @property
    def value(self) -> float | None:
        known = self.spark[np.isfinite(self.spark)]
        return float(known[-1]) if len(known) else None


def answer_summary(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Json:
    events = happened(nodes, span, None)
    restarts = sum(1 for _, one in events if one.kind == "restart")
    kills = sum(1 for _, one in events if one.kind == "oom")
    return {
        "tiles": [
            cpu_tile(engine, nodes, span),
            memory_tile(engine, nodes, span),
            pressure_tile(engine, nodes, span),
            containers_tile(nodes, span, restarts, kills),
        ],
        "restarts": restarts,
        "oom_kills": kills,
    }


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


def curve(lines: Sequence[QueryLine]) -> Floats:
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


def render(tile_id: str, title: str, tile: TileValue, unit: str, sentence: str, **more: str | None) -> Json:
    return {
        "id": tile_id,
        "title": title,
        "value": number(tile.value),
        "of": number(tile.of),
        "unit": unit,
        "sentence": sentence,
        "spark": numbers(tile.spark),
        **more,
    }


# -- CPU ----------------------------------------------------------------------------


def cpu_tile(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Json:
    tiles = [node_cpu(engine, node, span) for node in nodes]
    cores = [tile.of for tile in tiles if tile.of is not None]
    tile = TileValue(add_curves([tile.spark for tile in tiles]), sum(cores) if cores else None)
    if tile.value is None:
        return render("cpu", "CPU", tile, "cores", "CPU use was not measured in this range.")
    if tile.of is None:
        return render("cpu", "CPU", tile, "cores", f"Containers use {render_quantity(tile.value, 'cores')}.")
    words = f"{render_quantity(tile.value, '')} of {render_quantity(tile.of, 'cores')} in use."
    return render("cpu", "CPU", tile, "cores", words)


def node_cpu(engine: Engine, node: ServedNode, span: TimeRange) -> TileValue:
    """Cores in use; where the node's own CPUs were not read, what containers use."""
    cores = count_cores(node)
    # Six modes of every core are read for it.
    lines = read_lines(engine, node, "cpu", span, 6 * (cores or 1), "node") if cores else []
    if cores and lines:
        return TileValue(np.clip(curve(lines), 0, cores), float(cores))
    lines = read_lines(engine, node, "cpu", span, len(node.listed))
    return TileValue(curve([line for line in lines if scope_of(line.subject) == "container"] or lines))


def count_cores(node: ServedNode) -> int | None:
    count = sum(1 for one in node.subjects.values() if scope_of(one) == "cpu")
    return count or None


# -- memory -------------------------------------------------------------------------


def memory_tile(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Json:
    used, totals = [], []
    for node in nodes:
        mine, total = (
            curve(read_lines(engine, node, name, span, 2, "node")) for name in ("memory", "memory_limit")
        )
        if np.isfinite(mine).any() and np.isfinite(total).any():
            used.append(mine)
            totals.append(float(np.nanmax(total)))
        else:
            used.append(curve(read_lines(engine, node, "memory", span, len(node.listed))))
    tile = TileValue(add_curves(used), float(np.nansum(totals)) if totals else None)
    if tile.value is None:
        return render("memory", "memory", tile, "bytes", "Memory was not measured in this range.")
    if tile.of is None:
        return render(
            "memory", "memory", tile, "bytes", f"Containers use {render_quantity(tile.value, 'bytes')}."
        )
    words = f"{render_quantity(tile.value, 'bytes')} of {render_quantity(tile.of, 'bytes')} in use."
    return render("memory", "memory", tile, "bytes", words)


def read_memory_total(engine: Engine, node: ServedNode) -> float | None:
    if node.to_ms is None:
        return None
    total = curve(read_lines(engine, node, "memory.MemTotal", TimeRange(node.to_ms - 60_000, node.to_ms)))
    known = total[np.isfinite(total)]
    return float(known[-1]) if len(known) else None


# -- pressure -----------------------------------------------------------------------


def pressure_tile(engine: Engine, nodes: Sequence[ServedNode], span: TimeRange) -> Json:
    """Of memory, CPU and I/O the one that stalls most now; of several nodes the worst."""
    worst: tuple[float, str, TileValue, str] | None = None
    for node in nodes:
        for resource in RESOURCES:
            whose, line = "", first(read_lines(engine, node, f"pressure_{resource}", span, 1, "node"))
            if line is None:
                line = worst_of(read_lines(engine, node, f"pressure_{resource}", span, len(node.listed)))
                whose = name_of(line.subject) if line else ""
            if line is None:
                continue
            # A tick read a little late has a little more than its time.
            tile = TileValue(np.minimum(line.points.mean, 1.0), 1.0)
            if tile.value is not None and (worst is None or tile.value > worst[0]):
                worst = (tile.value, resource, tile, whose or (node.name if len(nodes) > 1 else ""))
    if worst is None:
        return render(
            "pressure", "pressure", TileValue(np.empty(0)), "ratio", "Pressure was not measured here."
        )
    value, resource, tile, whose = worst
    of = f" in {whose}" if whose else ""
    sentence = f"Tasks wait for {resource} {render_quantity(value, 'ratio')} of the time{of}."
    return render("pressure", "pressure", tile, "ratio", sentence, resource=resource, whose=whose or None)


def first(lines: Sequence[QueryLine]) -> QueryLine | None:
    return lines[0] if lines else None


def worst_of(lines: Sequence[QueryLine]) -> QueryLine | None:
    """The series that is highest at its end."""
    return max(lines, key=lambda line: TileValue(line.points.mean).value or 0.0, default=None)


# -- containers ---------------------------------------------------------------------


def containers_tile(nodes: Sequence[ServedNode], span: TimeRange, restarts: int, kills: int) -> Json:
    """How many were alive in each bucket, by their first and last sight."""
    edges = np.linspace(span.from_ms, span.to_ms, SPARK_POINTS)
    alive = np.zeros(SPARK_POINTS)
    scopes = set()
    for node in nodes:
        for subject in node.listed:
            scopes.add(scope_of(subject))
            alive += (edges >= subject.first_ms) & (edges <= subject.last_ms + 1000)
    what = "containers" if "container" in scopes or not scopes else "services"
    tile = TileValue(alive)
    sentence = (
        f"{alive[-1]:.0f} {what}, {render_count(restarts, 'restart')}, {render_count(kills, 'OOM kill')}."
    )
    return render("containers", what, tile, "count", sentence)
