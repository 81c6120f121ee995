"""
What the wall can show: each measure with its unit, from when on it is harm, and its values from a node's cells.

A measure is a share (0 to 1) or a count. Shares have a fixed scale, so that
the same colour means the same on every node and in every range.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.use.answers.axis import Floats
from nodescope.use.answers.minutes.node_minutes import CellRequest
from nodescope.use.cluster.grid import MEASURED, Cells, NodeCells

PLACE = {name: place for place, name in enumerate(MEASURED)}
RESOURCES = ("memory", "cpu", "io")
# A finding that nobody has to get up for is not on the wall.
TOLD = frozenset({"kill", "hurt"})


@dataclass(frozen=True, slots=True)
class Drawn:
    """The cells of one node, in a range."""

    node: NodeCells
    cells: CellRequest
    values: Cells
    largest_cores: float
    """Of all nodes: the whole, where a node's own size is not known."""

    def row(self, name: str) -> Floats:
        found: Floats = self.values[PLACE[name]].astype(np.float64)
        return found

    def count(self, moments_ms: NDArray[np.int64]) -> Floats:
        """How many of these moments are in each cell; NaN where the node was not measured."""
        places = (moments_ms - self.cells.from_ms) // self.cells.step_ms
        inside = places[(places >= 0) & (places < self.cells.number)]
        counted = np.bincount(inside, minlength=self.cells.number)
        known = np.isfinite(self.values).any(axis=0) | (counted > 0)
        return np.where(known, counted, np.nan)


@dataclass(frozen=True, slots=True)
class Measure:
    """One choice of the wall."""

    id: str
    title: str
    unit: str
    full: float
    """The end of the scale."""
    harm: float
    """From here on it hurts."""
    help: str
    read: Callable[[Drawn], Floats]


def read_cpu(drawn: Drawn) -> Floats:
    return drawn.row("cpu") / (drawn.node.cores or drawn.largest_cores or np.nan)


def read_memory(drawn: Drawn) -> Floats:
    return drawn.row("memory") / (drawn.node.memory_bytes or np.nan)


def read_pressure(drawn: Drawn) -> Floats:
    """Of the three resources the one that tasks waited for most."""
    rows = [drawn.row(f"pressure_{one}") for one in RESOURCES]
    return np.fmax(np.fmax(rows[0], rows[1]), rows[2])


def read_findings(drawn: Drawn) -> Floats:
    """How many were open in each cell."""
    cells = drawn.cells
    starts = cells.from_ms + np.arange(cells.number) * cells.step_ms
    found = np.zeros(cells.number)
    for one in drawn.node.findings.values():
        if one.severity in TOLD:
            open_until = one.ended_ms or 2**62
            found += (starts + cells.step_ms > one.onset_ms) & (starts <= open_until)
    return np.where(np.isfinite(drawn.values).any(axis=0) | (found > 0), found, np.nan)


def read_restarts(drawn: Drawn) -> Floats:
    return drawn.count(np.array([key[0] for key in drawn.node.events], np.int64))


MEASURES: Mapping[str, Measure] = {
    one.id: one
    for one in (
        Measure("cpu", "CPU", "ratio", 1.0, 0.9, "Share of the node's cores in use.", read_cpu),
        Measure("memory", "memory", "ratio", 1.0, 0.9, "Share of the node's memory in use.", read_memory),
        Measure(
            "pressure",
            "pressure",
            "ratio",
            0.5,
            0.2,
            "Share of time that tasks waited for memory, CPU or I/O: the worst of the three.",
            read_pressure,
        ),
        Measure(
            "throttled",
            "throttling",
            "ratio",
            1.0,
            0.25,
            "Share of its periods in which the container that was throttled most ran out of its CPU limit.",
            lambda drawn: drawn.row("throttled"),
        ),
        Measure(
            "gpu",
            "GPU",
            "ratio",
            1.0,
            2.0,
            "Share of time in which the node's GPUs computed, their mean.",
            lambda drawn: drawn.row("gpu"),
        ),
        Measure(
            "findings",
            "findings",
            "count",
            4.0,
            1.0,
            "Open findings of the node's watcher that somebody should know of.",
            read_findings,
        ),
        Measure(
            "restarts",
            "restarts and kills",
            "count",
            5.0,
            1.0,
            "Containers that were started again, or killed for memory.",
            read_restarts,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Level:
    """One row of cells in three numbers; zeros where nothing was measured."""

    mean: float
    most: float
    place: int
    """The first cell with the most."""
    measured: int
    """Cells with a value."""


def measure_levels(drawn: Sequence[Drawn]) -> tuple[Floats, list[dict[str, Level]]]:
    """
    Of nodes in one range: by node, measure and cell the values; and of each node its levels, those of single resources too.

    A zoom tells a thousand rows: all at once takes a fifth of the time that one after the other does.
    """
    waits = [f"pressure_{one}" for one in RESOURCES]
    rows = [[*(one.read(each) for one in MEASURES.values()), *map(each.row, waits)] for each in drawn]
    if not rows:
        return np.zeros((0, 0, 0)), []
    values = np.array(rows)
    known = np.isfinite(values)
    counts = known.sum(axis=2)
    means = np.where(known, values, 0.0).sum(axis=2) / np.maximum(counts, 1)
    places = np.where(known, values, -np.inf).argmax(axis=2)
    mosts = np.where(counts > 0, np.take_along_axis(values, places[:, :, None], 2)[:, :, 0], 0.0)
    columns = (one.tolist() for one in (means, mosts, places, counts))
    names = [*MEASURES, *waits]
    return values, [dict(zip(names, map(Level, *node))) for node in zip(*columns)]
