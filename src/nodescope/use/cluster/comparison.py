"""
Two nodes in one range, or two ranges of one node or of all: what differs, the largest difference first.

Levels are means of the cells that the wall is drawn from; workloads are
those of the table of workloads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_quantity
from nodescope.base.text import clean_text, hint_nearest
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.minutes.node_minutes import CellRequest
from nodescope.use.cluster.gatherer import AskedState, Gatherer
from nodescope.use.cluster.measure import MEASURES, Drawn
from nodescope.use.cluster.spread import WorkloadSpread, join_workloads
from nodescope.use.cluster.wall import choose_cells

ROWS_SHOWN = 40


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """What stands on one side: a node, or all of them (empty), and a range."""

    node: str
    span: TimeRange


@dataclass(frozen=True, slots=True)
class LevelDifference:
    """One measure, or one workload or node, on both sides; None where it was not there or not measured."""

    what: str
    unit: str
    left: float | None
    right: float | None

    @property
    def size(self) -> float:
        return abs((self.right or 0.0) - (self.left or 0.0))


@dataclass(frozen=True, slots=True)
class SideComparison:
    left: ComparedSide
    right: ComparedSide
    measures: tuple[LevelDifference, ...]
    """In the order of the measures."""
    rows: tuple[LevelDifference, ...]
    """Workloads of two nodes, or nodes of two ranges; the largest difference first."""
    kind: str
    asking: int
    sentence: str


def compare(
    gatherer: Gatherer, left: ComparedSide, right: ComparedSide, metric: str, unit_measure: str
) -> SideComparison:
    """What is known now; nodes are being asked for the rest."""
    states = gatherer.states()
    for side in (left, right):
        if side.node and side.node not in states:
            near = hint_nearest(side.node, list(states))
            raise RequestRejected(f'no node "{clean_text(side.node, 80)}"{near}')
    asking = want_sides(gatherer, left, right)
    levels = [measure_side(states, one) for one in (left, right)]
    measures = tuple(
        LevelDifference(key, one.unit, levels[0].get(key), levels[1].get(key))
        for key, one in MEASURES.items()
    )
    if left.node or right.node:
        rows, more = compare_workloads(gatherer, left, right, metric)
        kind = "workloads"
    else:
        rows, more, kind = compare_nodes(states, left, right, unit_measure), 0, "nodes"
    found = SideComparison(left, right, measures, tuple(rows[:ROWS_SHOWN]), kind, max(asking, more), "")
    return replace(found, sentence=describe(found))


def want_sides(gatherer: Gatherer, left: ComparedSide, right: ComparedSide) -> int:
    cells = choose_common(left.span, right.span)
    return max(gatherer.want_cells(one) for one in cells)


def choose_common(left: TimeRange, right: TimeRange) -> tuple[CellRequest, ...]:
    """One request for both where they lie so near each other that one window holds them."""
    whole = TimeRange(min(left.from_ms, right.from_ms), max(left.to_ms, right.to_ms))
    near = whole.to_ms - whole.from_ms <= 12 * (left.to_ms - left.from_ms)
    return (choose_cells(whole),) if near else (choose_cells(left), choose_cells(right))


def cells_of(states: dict[str, AskedState], side: ComparedSide, name: str) -> Drawn:
    """From the finest width that has the whole range."""
    node = states[name].cells
    cells = choose_cells(side.span)
    for step_ms in sorted(node.windows):
        window = node.windows[step_ms]
        if window.from_ms <= side.span.from_ms and side.span.to_ms <= window.to_ms + step_ms:
            from_ms = side.span.from_ms // step_ms * step_ms
            cells = CellRequest(from_ms, side.span.to_ms // step_ms * step_ms + step_ms, step_ms)
            break
    return Drawn(node, cells, node.window(cells.step_ms).cut(cells), 0.0)


def measure_side(states: dict[str, AskedState], side: ComparedSide) -> dict[str, float | None]:
    """Shares are means of all nodes, counts are sums."""
    names = [side.node] if side.node else list(states)
    drawn = [cells_of(states, side, name) for name in names]
    found: dict[str, float | None] = {}
    for key, one in MEASURES.items():
        levels = [level for each in drawn if (level := level_of(each, key)) is not None]
        whole = sum(levels) if one.unit == "count" else float(np.mean(levels)) if levels else None
        found[key] = whole if levels else None
    return found


def level_of(drawn: Drawn, measure: str) -> float | None:
    values = MEASURES[measure].read(drawn)
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    if measure == "findings":
        return float(known.max())
    return float(known.sum() if MEASURES[measure].unit == "count" else known.mean())


def compare_nodes(
    states: dict[str, AskedState], left: ComparedSide, right: ComparedSide, measure: str
) -> list[LevelDifference]:
    unit = MEASURES[measure].unit
    rows = [
        LevelDifference(
            name,
            unit,
            level_of(cells_of(states, left, name), measure),
            level_of(cells_of(states, right, name), measure),
        )
        for name in states
    ]
    known = [row for row in rows if row.left is not None or row.right is not None]
    return sorted(known, key=lambda row: (-row.size, row.what))


def compare_workloads(
    gatherer: Gatherer, left: ComparedSide, right: ComparedSide, metric: str
) -> tuple[list[LevelDifference], int]:
    sides, asking = [], 0
    for side in (left, right):
        replies, more, _ = gatherer.copy_round(gatherer.rank(metric, side.span, side.node))
        asking = max(asking, more)
        chosen = {side.node: replies[side.node]} if side.node in replies else {} if side.node else replies
        sides.append({f"{one.namespace}/{one.name}".lstrip("/"): one for one in join_workloads(chosen)})
    names = sorted({*sides[0], *sides[1]})
    rows = [
        LevelDifference(name, unit_of(name, sides), used_in(sides[0].get(name)), used_in(sides[1].get(name)))
        for name in names
    ]
    return sorted(rows, key=lambda row: (-row.size, row.what)), asking


def unit_of(name: str, sides: Sequence[dict[str, WorkloadSpread]]) -> str:
    return next(side[name].unit for side in sides if name in side)


def used_in(one: WorkloadSpread | None) -> float | None:
    return None if one is None else one.size


def describe(found: SideComparison) -> str:
    """The measure that differs most, and the first row."""
    shares = [row for row in found.measures if row.unit == "ratio" and None not in (row.left, row.right)]
    if not shares:
        return "There is nothing to compare yet: one side has no data."
    first = max(shares, key=lambda row: row.size)
    title = MEASURES[first.what].title
    levels = " and ".join(render_quantity(one or 0.0, first.unit) for one in (first.left, first.right))
    sentence = f"{title[0].upper()}{title[1:]} differs most: {levels}."
    if found.rows and found.rows[0].size > 0:
        row = found.rows[0]
        sides = ["none" if one is None else render_quantity(one, row.unit) for one in (row.left, row.right)]
        sentence += f" Of {found.kind}, {clean_text(row.what, 80)}: {sides[0]} and {sides[1]}."
    return sentence
