"""How near every container is to its limit, step by step: the rows of a heat map, the most harmed first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.metric_names import PERIOD, QUOTA
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.container_table import NO_FILTER, Filter
from nodescope.use.answers.containers import group_lives
from nodescope.use.answers.events import ends_by_id
from nodescope.use.answers.incidents.signal import Signal
from nodescope.use.answers.incidents.table import Floats, Integers
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.overview import count_cores, read_memory_total
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.swept.sheet import LifeSheet, choose_signal, choose_step, cover_steps, sweep_lives

ROWS_MOST = 400
STEP_LEAST_MS = 5_000
# By metric what its limit is made of: the first, or the first by the second.
LIMITED = {
    "memory": (Signal("memory.max", "", "bytes", "value", ("memory.max",), 0.0, join="max"),),
    "cpu": (
        Signal(QUOTA, "", "seconds", "value", (QUOTA,), 0.0, join="max"),
        Signal(PERIOD, "", "seconds", "value", (PERIOD,), 0.0, join="max"),
    ),
}
# The kernel writes a number like this where there is no limit.
UNLIMITED = 2.0**60


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One container; NaN where it was not measured."""

    id: str
    name: str
    namespace: str
    node: str
    of: str
    """limit; node, where it has none; time, of a pressure."""
    whole: float | None
    """The limit, or what the node has."""
    kills: int
    share: Floats

    @property
    def harm(self) -> tuple[int, bool, float]:
        """Kills, then the share of a limit, then of the node: the worst is the smallest."""
        known = self.share[np.isfinite(self.share)]
        # A single hot step may be a start; a twentieth of the range is not.
        high = float(np.percentile(known, 95)) if len(known) else -1.0
        return (-self.kills, self.of == "node", -high)


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows on one time axis."""

    metric: str
    step_ms: int
    time_ms: Integers
    rows: tuple[HeatRow, ...]
    total: int


def read_heat(
    view: View,
    metric: str,
    span: TimeRange,
    points: int,
    wanted: Filter = NO_FILTER,
    check: Callable[[], None] = lambda: None,
) -> HeatMap:
    signal = choose_signal(metric)
    step_ms = max(STEP_LEAST_MS, choose_step(span, points))
    reach = cover_steps(span, step_ms)
    lives = filter_lives(view.lives(reach), wanted)
    time_ms = np.arange(reach.from_ms, reach.to_ms, step_ms, dtype=np.int64)
    rows: list[HeatRow] = []
    for node in view.nodes:
        check()
        if node.to_ms is not None:
            sheet = sweep_lives(view, node, reach, step_ms, lives, [signal, *LIMITED.get(metric, ())])
            rows += make_rows(view, node, sheet, metric, len(time_ms))
    rows.sort(key=lambda one: (*one.harm, one.name))
    return HeatMap(metric, step_ms, time_ms, tuple(rows[:ROWS_MOST]), len(rows))


def make_rows(view: View, node: ServedNode, sheet: LifeSheet, metric: str, steps: int) -> list[HeatRow]:
    signal = choose_signal(metric)
    if metric not in sheet.curves:
        return []
    containers = group_lives(sheet.lives)
    whole = size_of(view, node, metric)
    ends = ends_by_id([node])
    places = {life.id: place for place, life in enumerate(sheet.lives)}
    rows = []
    for one in containers:
        mine = [places[life.id] for life in one.lives]
        curve = sheet.add_up_to(steps, signal, mine)
        limit = find_limit(sheet, metric, mine)
        of = "time" if signal.unit == "ratio" else "limit" if limit else "node"
        divisor = 1.0 if of == "time" else limit or whole
        # Of any other metric a kill for memory says nothing.
        kills = sum(ends.get(life.id) == "oom" for life in one.lives) if metric == "memory" else 0
        share = curve / divisor if divisor else np.full(steps, np.nan)
        newest = one.newest
        known = None if of == "time" else divisor
        rows.append(HeatRow(newest.id, newest.name, newest.namespace, node.name, of, known, kills, share))
    return rows


def find_limit(sheet: LifeSheet, metric: str, rows: Sequence[int]) -> float | None:
    """The newest; None where there is none, or nobody measured it."""
    newest = [find_newest(sheet, signal, rows) for signal in LIMITED.get(metric, ())]
    known = [value for value in newest if value is not None and 0 < value < UNLIMITED]
    if not newest or len(known) < len(newest):
        return None
    return known[0] / known[1] if len(known) > 1 else known[0]


def find_newest(sheet: LifeSheet, signal: Signal, rows: Sequence[int]) -> float | None:
    if signal.name not in sheet.curves:
        return None
    values = sheet.add_up(signal, rows)
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else None


def size_of(view: View, node: ServedNode, metric: str) -> float | None:
    """What the node has of it; None where nobody said, or where it has no size."""
    if metric == "cpu":
        cores = count_cores(node)
        return float(cores) if cores else None
    return read_memory_total(view, node) if metric == "memory" else None
