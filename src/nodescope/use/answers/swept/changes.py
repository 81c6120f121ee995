"""
What changed in a span: every container and metric, by the difference from as long a span before it.

    found = rank_changes(view, span)
    found.rows[0].sentence      cache: memory 512 MiB instead of 310 MiB
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.quantity import is_share, render_count, render_quantity, render_seconds
from nodescope.base.text import clean_name
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.container_table import NO_FILTER, Filter
from nodescope.use.answers.containers import Container, Life, group_lives
from nodescope.use.answers.deploys import render_factor
from nodescope.use.answers.incidents.signal import Signal
from nodescope.use.answers.incidents.table import Floats
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.refusal import too_much
from nodescope.use.answers.snapshots import View
from nodescope.use.answers.swept.sheet import SWEPT, LifeSheet, choose_step, sweep_lives

ROWS_MOST = 40
# Of each of the two spans.
POINTS = 60
SHORTEST_MS, LONGEST_MS = 4_000, 24 * 3_600_000
# Of the least change that means anything; what is below is not listed.
LEAST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class ContainerShift:
    """One metric of one container, before and in the span; NaN where it was not there."""

    id: str
    name: str
    namespace: str
    workload: str
    node: str
    metric: str
    unit: str
    before: float
    after: float
    curve: Floats
    """Of both spans, in equal steps; the first half is before."""
    weight: float
    """How far from usual, whatever the unit; for the order only."""

    @property
    def sentence(self) -> str:
        words = next(one.words for one in SWEPT if one.name == self.metric)
        who, unit = clean_name(self.name), "" if self.unit == "count" else self.unit
        if np.isnan(self.before):
            return f"{who}: {words} {render_quantity(self.after, unit)}; it was not there before"
        first, second = (render_quantity(value, unit) for value in (self.before, self.after))
        if np.isnan(self.after):
            return f"{who}: it is gone; before, {words} {first}"
        ratio = self.after / self.before if self.before > 0 else None
        factor = "" if is_share(self.unit) else render_factor(ratio)
        return f"{who}: {f'{factor} {words}, ' if factor else f'{words} '}{second} instead of {first}"


@dataclass(frozen=True, slots=True)
class ShiftList:
    """The largest changes first, and how much was looked at."""

    span: TimeRange
    before: TimeRange
    step_ms: int
    rows: tuple[ContainerShift, ...]
    containers: int
    pairs: int
    """Containers times metrics that were measured."""
    unseen: tuple[str, ...] = ()
    """Nodes whose samples do not reach into the span before."""

    @property
    def sentence(self) -> str:
        length = render_seconds((self.span.to_ms - self.span.from_ms) / 1000)
        looked = f"{render_count(self.containers, 'container')}, {self.pairs} curves"
        if not self.rows:
            return f"Nothing changed beyond noise in these {length} against the {length} before ({looked})."
        return f"In these {length} against the {length} before, of {looked}: {self.rows[0].sentence}."


def rank_changes(
    view: View,
    span: TimeRange,
    wanted: Filter = NO_FILTER,
    check: Callable[[], None] = lambda: None,
    most: int = ROWS_MOST,
) -> ShiftList:
    span = check_length(span)
    before = TimeRange(2 * span.from_ms - span.to_ms, span.from_ms)
    step_ms = choose_step(span, POINTS)
    steps = max(1, (span.to_ms - span.from_ms) // step_ms)
    reach = TimeRange(span.from_ms - steps * step_ms, span.from_ms + steps * step_ms)
    lives = filter_lives(view.lives(reach), wanted)
    rows: list[ContainerShift] = []
    pairs, unseen = 0, []
    for node in view.nodes:
        check()
        if node.to_ms is None:
            continue
        sheet = sweep_lives(view, node, reach, step_ms, lives, SWEPT)
        found = list(compare_sheet(sheet))
        pairs += len(found)
        rows += [one for one in found if one.weight > 0]
        unseen += [node.name] if (node.from_ms or 0) > span.from_ms - step_ms else []
    rows.sort(key=lambda one: (-one.weight, one.name, one.metric))
    return ShiftList(span, before, step_ms, tuple(rows[:most]), len(group_lives(lives)), pairs, tuple(unseen))


def check_length(span: TimeRange) -> TimeRange:
    """Widened where it is too short to compare; refused where it is too long to read."""
    length_ms = span.to_ms - span.from_ms
    if length_ms > LONGEST_MS:
        longest = render_seconds(LONGEST_MS / 1000)
        raise too_much(f"a selection of {render_seconds(length_ms / 1000)}; accepted: up to {longest}")
    if length_ms >= SHORTEST_MS:
        return span
    middle_ms = (span.from_ms + span.to_ms) // 2
    return TimeRange(middle_ms - SHORTEST_MS // 2, middle_ms + SHORTEST_MS // 2)


def compare_sheet(sheet: LifeSheet) -> list[ContainerShift]:
    """Every container and metric that was measured; the weight of one that did not change is 0."""
    places = {life.id: place for place, life in enumerate(sheet.lives)}
    found = []
    for container in group_lives(sheet.lives):
        rows = [places[life.id] for life in container.lives]
        for signal in SWEPT:
            if signal.name in sheet.curves:
                one = compare_rows(sheet, signal, rows, container)
                found += [one] if one else []
    return found


def compare_rows(
    sheet: LifeSheet, signal: Signal, rows: Sequence[int], container: Container
) -> ContainerShift | None:
    curve = sheet.add_up(signal, rows)
    if not np.isfinite(curve).any():
        return None
    half = sheet.steps // 2
    before, after = mean_of(curve[:half]), mean_of(curve[half:])
    life: Life = container.newest
    weight = weigh(signal, curve[:half], before, after)
    return ContainerShift(
        life.id,
        life.name,
        life.namespace,
        life.workload.name,
        life.node,
        signal.name,
        signal.unit,
        before,
        after,
        curve,
        weight,
    )


def mean_of(values: Floats) -> float:
    """NaN where nothing was measured; not zero."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def weigh(signal: Signal, usual: Floats, before: float, after: float) -> float:
    """
    0 below the noise of an idle container; then by how often that noise it is, less where it wavered as much before.

    The logarithm lets a doubled CPU stand beside a gigabyte of memory: both are many times the noise.
    """
    change = abs(np.nan_to_num(after) - np.nan_to_num(before))
    if change < LEAST_SHARE * signal.rest:
        return 0.0
    known = usual[np.isfinite(usual)]
    wavered = float(np.percentile(known, 90) - np.percentile(known, 10)) / 2 if len(known) > 1 else 0.0
    return float(np.log1p(change / signal.rest) * change / (change + wavered))
