"""
Exact windows on the monotonic clock.

A window of W seconds at `now` holds the frames with time in (now - W, now].
A counter also uses the frame just before it, when the ring still has it: its
mean is increase / elapsed, its std and p95 are over the per-interval rates.
What was not measured is absent and explained, never 0.

    window(a, c) == window(a, b) + window(b, c)   for a <= b <= c
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from nodescope.base.block import Block, Table, Values
from nodescope.base.entity import Entity
from nodescope.base.errors import NothingYet, RequestRejected
from nodescope.base.frame import Frame, Outcome
from nodescope.base.metric import Metric
from nodescope.base.rates import derive_elapsed_seconds, derive_increase, judge_increase
from nodescope.base.text import hint_nearest
from nodescope.hold.feature import FEATURES, Feature, Way, Weights
from nodescope.hold.ring import Moment, Ring, pick_rows
from nodescope.hold.statistic import NAMES, STATISTICS, Column

NODE_STATISTICS = ("mean", "std", "p95")


@dataclass(slots=True)
class NodeWindow:
    """The scheduler's answer before it is rendered."""

    window_seconds: float
    samples: int
    expected: int
    newest_seconds: float
    statistics: Sequence[str] = NODE_STATISTICS
    """The mean first."""
    metrics: dict[str, float] = field(default_factory=dict)
    samples_of: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    """Which source gave a feature; several, joined by +, when it is over the rows of all."""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


def check_window(ring: Ring, seconds: float, scope: str) -> None:
    """Refuse what the ring cannot hold, naming what it can."""
    accepted = ring.accepted_seconds(scope)
    if not 0 < seconds <= accepted:
        raise RequestRejected(
            f"window of {seconds:g} s is not accepted for scope {scope}; accepted: more than 0 and at most {accepted:g} seconds"
        )


def count_frames(ring: Ring, seconds: float, now_mono_ns: int) -> tuple[int, Frame]:
    """How many frames the window has, and the newest of all; NothingYet when there are none."""
    newest = ring.newest()
    if newest is None:
        raise NothingYet("no sample yet: the first tick has not come round")
    count = ring.count_frames(now_mono_ns - round(seconds * 1e9), now_mono_ns)
    if not count:
        age_seconds = (now_mono_ns - newest.mono_ns) / 1e9
        raise NothingYet(f"no sample in the last {seconds:g} s: the newest is {age_seconds:.1f} s old")
    return count, newest


# -- features of the node ---------------------------------------------------


def take_node_window(
    ring: Ring,
    seconds: float,
    now_mono_ns: int,
    statistics: Sequence[str] = NODE_STATISTICS,
    features: Sequence[Feature] = FEATURES,
) -> NodeWindow:
    """Features over (now - seconds, now]: all of them unless some are named."""
    check_window(ring, seconds, "node")
    count, newest = count_frames(ring, seconds, now_mono_ns)
    after_ns = now_mono_ns - round(seconds * 1e9)
    expected = round(seconds / ring.interval_seconds)
    newest_seconds = (now_mono_ns - newest.mono_ns) / 1e9
    window = NodeWindow(seconds, count, expected, newest_seconds, statistics)
    window.outcomes = newest.outcomes
    look = Look(ring, after_ns, now_mono_ns)
    for feature in features:
        add_feature(window, feature.name, feature, look)
    return window


@dataclass(slots=True)
class Look:
    """One window over the ring: each table is taken out once, whole or a few rows of it."""

    ring: Ring
    after_ns: int
    until_ns: int
    cores: frozenset[str] | None = None
    """Only the rows of these cores; None for all rows."""
    _taken: dict[str, tuple[Moment | None, list[Moment]]] = field(default_factory=dict)

    def moments(self, table: str) -> tuple[Moment | None, list[Moment]]:
        if table not in self._taken:
            before, inside = self.ring.moments(table, self.after_ns, self.until_ns)
            if self.cores is not None:
                before = narrow(before, self.cores) if before else None
                inside = [narrow(moment, self.cores) for moment in inside]
            self._taken[table] = before, inside
        return self._taken[table]


def narrow(moment: Moment, cores: frozenset[str]) -> Moment:
    entities = moment.block.entities
    return pick_rows(moment, [row for row, one in enumerate(entities) if one.ids and one.ids[-1] in cores])


def add_feature(window: NodeWindow, name: str, feature: Feature, look: Look) -> None:
    if feature.is_pooled:
        add_pooled(window, name, feature, look)
    else:
        add_first(window, name, feature, lambda way: take_feature(way, *look.moments(way.table)))


def add_first(
    window: NodeWindow, name: str, feature: Feature, take: Callable[[Way], "FeatureValues | str"]
) -> None:
    """A feature from the first source that has it, or why none of them has."""
    reasons: dict[str, str] = {}
    for way in feature.ways:
        taken = take(way)
        if not isinstance(taken, str):
            add_statistics(window, name, way.source, taken)
            return
        reasons[way.source] = taken
    window.missing[name] = explain_missing(feature, window.outcomes, reasons)


def add_pooled(window: NodeWindow, name: str, feature: Feature, look: Look) -> None:
    """
    A feature of gauges over the rows of several sources together.

    Each source is asked at its own pace: at every tick of any of them a source
    counts with its sample nearest before it in the window, else with its first,
    so that no value is a mean over one vendor's rows alone.
    """
    reasons: dict[str, str] = {}
    found: dict[str, tuple[list[int], Intervals]] = {}
    for way in feature.ways:
        before, inside = look.moments(way.table)
        taken = take_intervals(way, before, inside)
        if isinstance(taken, str):
            reasons[way.source] = taken
            continue
        good = ~np.isnan(taken.tops) & (taken.bottoms > 0)
        sequences = [moment.sequence for moment, is_good in zip(inside, good) if is_good]
        if sequences:
            found[way.source] = sequences, Intervals(taken.tops[good], taken.bottoms[good], is_counter=False)
        else:
            reasons[way.source] = "was not measured in the window"
    if not found:
        window.missing[name] = explain_missing(feature, window.outcomes, reasons)
        return
    ticks = sorted({sequence for sequences, _ in found.values() for sequence in sequences})
    tops, bottoms = np.zeros(len(ticks)), np.zeros(len(ticks))
    for sequences, taken in found.values():
        places = np.maximum(np.searchsorted(sequences, ticks, side="right") - 1, 0)
        tops += taken.tops[places]
        bottoms += taken.bottoms[places]
    values = tops / bottoms
    add_statistics(window, name, "+".join(found), FeatureValues(values, float(values.mean())))


@dataclass(frozen=True, slots=True)
class FeatureValues:
    """A feature's values in a window and their mean, which is not their average for ratios."""

    values: Column
    mean: float


def add_statistics(window: NodeWindow, name: str, source: str, taken: FeatureValues) -> None:
    window.sources[name] = source
    window.metrics[f"mean_{name}"] = taken.mean
    for statistic in window.statistics[1:]:
        value = STATISTICS[statistic](taken.values)
        if value is not None:
            window.metrics[f"{statistic}_{name}"] = value
    if len(taken.values) != window.samples:
        window.samples_of[name] = len(taken.values)


def explain_missing(feature: Feature, outcomes: Mapping[str, Outcome], reasons: Mapping[str, str]) -> str:
    """Why, in the words of the sources that could have given it."""
    words = []
    for source in (way.source for way in feature.ways):
        outcome = outcomes.get(source)
        if outcome is None:
            words.append(f"{source} absent: no such source runs on this node")
        elif outcome.state != "ok":
            words.append(f"{source} {outcome.state}: {outcome.reason}")
        else:
            words.append(f"{source} {reasons.get(source, 'has no sample in the window')}")
    return "; ".join(words)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Top and bottom of every interval or moment; NaN where one was not measured."""

    tops: Column
    bottoms: Column
    is_counter: bool


def take_feature(way: Way, before: Moment | None, inside: Sequence[Moment]) -> FeatureValues | str:
    """The feature's values in the window, or why there are none."""
    found = take_intervals(way, before, inside)
    if isinstance(found, str):
        return found
    good = ~np.isnan(found.tops) & ~np.isnan(found.bottoms) & (found.bottoms > 0)
    if not good.any():
        return "was not measured in the window"
    tops, bottoms = found.tops[good], found.bottoms[good]
    values = tops / bottoms
    mean = float(tops.sum() / bottoms.sum()) if found.is_counter else float(values.mean())
    if way.bottom == "elapsed":
        # The file is read a moment before or after its block's time, so that a whole second may
        # be stalled in 0.997 s. A share of time is never above 1.
        values, mean = np.minimum(values, 1.0), min(mean, 1.0)
    return FeatureValues(1 - values, 1 - mean) if way.complement else FeatureValues(values, mean)


def take_intervals(way: Way, before: Moment | None, inside: Sequence[Moment]) -> Intervals | str:
    """The numbers of every interval in the window, or why there are none."""
    if not inside:
        return "has no sample in the window"
    table = inside[-1].block.table
    absent = [name for name in _list_inputs(way) if name not in table.columns]
    if absent:
        return f"does not offer {absent[0]}"
    if table.metrics[table.columns[way.top[0][0]]].kind == "counter":
        moments = [before, *inside] if before else list(inside)
        if len(moments) < 2:
            return "needs a second sample"
        return Intervals(*_interval_sums(way, moments), is_counter=True)
    return Intervals(*_gauge_sums(way, inside), is_counter=False)


def _interval_sums(way: Way, moments: Sequence[Moment]) -> tuple[Column, Column]:
    """Top and bottom of every interval, from increases."""
    table = moments[-1].block.table
    columns = _list_columns(way, table)
    grown = [
        _judge_columns(np.diff(cells, axis=0), [table.metrics[column] for column in columns])
        for cells in _stack_runs(moments, columns, with_before=True)
    ]
    times_ns = np.array([moment.block.mono_ns for moment in moments], dtype=np.int64)
    elapsed = np.diff(times_ns) / 1e9 if way.bottom == "elapsed" else None
    return _weigh_runs(way, grown, elapsed)


def _gauge_sums(way: Way, inside: Sequence[Moment]) -> tuple[Column, Column]:
    """Top and bottom of every moment."""
    runs = list(_stack_runs(inside, _list_columns(way, inside[-1].block.table)))
    return _weigh_runs(way, runs, np.ones(len(inside)) if way.bottom in ("one", "elapsed") else None)


def _weigh_runs(way: Way, runs: Sequence[Values], given: Column | None) -> tuple[Column, Column]:
    """Tops, and bottoms that are not given: of the columns of the bottom, else how many rows were measured."""
    count = len(way.top)
    tops = [_weigh(cells[:, :, :count], way.top) for cells in runs]
    if given is not None:
        return np.concatenate(tops), given
    if isinstance(way.bottom, tuple):
        bottoms = [_weigh(cells[:, :, count:], way.bottom) for cells in runs]
    else:
        bottoms = [_count_rows(cells[:, :, :count]) for cells in runs]
    return np.concatenate(tops), np.concatenate(bottoms)


def _list_columns(way: Way, table: Table) -> list[int]:
    return [table.columns[name] for name in _list_inputs(way)]


def _list_inputs(way: Way) -> list[str]:
    """Names of the columns of the top, then of the bottom."""
    return [name for name, _ in (*way.top, *(way.bottom if isinstance(way.bottom, tuple) else ()))]


def _stack_runs(
    moments: Sequence[Moment], columns: Sequence[int], with_before: bool = False
) -> Iterator[Values]:
    """
    Neighbouring moments with the same rows as one array: moments x rows x columns.

    With the moment before a run, its rows in the run's order, each run has the
    interval that leads to it.
    """
    earlier: Block | None = None
    for _, run in groupby(moments, key=lambda moment: id(moment.block.entities)):
        blocks = [moment.block for moment in run]
        cells = [block.values for block in blocks]
        if with_before and earlier is not None:
            cells.insert(0, align_rows(earlier, blocks[0].entities))
        yield np.array(cells)[:, :, columns]
        earlier = blocks[-1]


def _judge_columns(grown: Values, metrics: Sequence[Metric]) -> Values:
    """What a step back means depends on the metric; most columns have none."""
    for number in np.flatnonzero((grown < 0).any(axis=(0, 1))).tolist():
        grown[:, :, number] = judge_increase(grown[:, :, number], metrics[number])
    return grown


def _weigh(cells: Values, weights: Weights) -> Column:
    """By moment: a weighted sum over columns and rows; a row with a missing cell is left out."""
    rows = cells @ np.array([weight for _, weight in weights])
    known = ~np.isnan(rows)
    sums = np.where(known, rows, 0.0).sum(axis=1)
    found: Column = np.where(known.any(axis=1), sums, np.nan)
    return found


def _count_rows(cells: Values) -> Column:
    """Rows whose every cell was measured: what `_weigh` adds up."""
    found: Column = (~np.isnan(cells).any(axis=2)).sum(axis=1).astype(np.float64)
    return found


def align_rows(block: Block, entities: tuple[Entity, ...]) -> Values:
    """A block's rows in the order of other entities; NaN for those it does not have."""
    if block.entities is entities:
        return block.values
    places = {entity.key: row for row, entity in enumerate(block.entities)}
    aligned = np.full((len(entities), len(block.table.metrics)), np.nan)
    for row, entity in enumerate(entities):
        place = places.get(entity.key)
        if place is not None:
            aligned[row] = block.values[place]
    return aligned


# -- any scope ----------------------------------------------------------------


@dataclass(slots=True)
class EntityWindow:
    """One entity's statistics."""

    entity: Entity
    samples: int
    metrics: dict[str, float]
    missing: dict[str, str]


def take_scope_window(
    ring: Ring,
    scope: str,
    seconds: float,
    now_mono_ns: int,
    statistics: Sequence[str],
    filters: Mapping[str, str],
    metric_names: Sequence[str],
) -> list[EntityWindow]:
    """Statistics of every entity of a scope that matches the filters."""
    check_window(ring, seconds, scope)
    count_frames(ring, seconds, now_mono_ns)
    check_words(ring, scope, filters, metric_names)
    after_ns = now_mono_ns - round(seconds * 1e9)
    found: dict[tuple[str, ...], EntityWindow] = {}
    for table in ring.tables(scope):
        before, inside = ring.moments(table.name, after_ns, now_mono_ns)
        if inside:
            _add_table(found, scope, before, inside, statistics, filters, metric_names)
    return list(found.values())


def check_words(ring: Ring, scope: str, filters: Mapping[str, str], metric_names: Sequence[str]) -> None:
    """Refuse a metric or a label that nothing of the scope has; silent where nothing is known of it."""
    tables = ring.tables(scope)
    names = {
        name
        for table in tables
        for metric in table.metrics
        for name in (metric.name, metric.plain, metric.published)
        if name
    }
    latest = ring.latest()
    labels = {
        name
        for table in tables
        if table.name in latest
        for entity in latest[table.name].block.entities
        for name, _ in (*entity.labels, *entity.details)
    }
    for kind, asked, known in (("metric", metric_names, names), ("label", filters, labels)):
        for word in asked:
            if known and word not in known:
                raise RequestRejected(f'scope {scope} has no {kind} "{word[:60]}"{hint_nearest(word, known)}')
    if filters and tables and not labels:
        raise RequestRejected(f"scope {scope} has no label to choose by")


def show_name(metric: Metric) -> str:
    """How a metric is called in a window: as a person says it, else as the kernel does."""
    return metric.plain or metric.name


def _matches(entity: Entity, scope: str, filters: Mapping[str, str]) -> bool:
    return entity.scope == scope and all(entity.attribute(key) == value for key, value in filters.items())


def _is_asked(metric: Metric, metric_names: Sequence[str]) -> bool:
    return not metric_names or any(
        name in (metric.name, metric.plain, metric.published) for name in metric_names
    )


def _add_table(
    found: dict[tuple[str, ...], EntityWindow],
    scope: str,
    before: Moment | None,
    inside: Sequence[Moment],
    statistics: Sequence[str],
    filters: Mapping[str, str],
    metric_names: Sequence[str],
) -> None:
    newest = inside[-1].block
    moments = [before, *inside] if before else list(inside)
    entities = newest.entities
    stack = np.stack([align_rows(moment.block, entities) for moment in moments])
    times_ns = np.array([moment.block.mono_ns for moment in moments], dtype=np.int64)
    first = 1 if before else 0
    asked = [
        (number, metric)
        for number, metric in enumerate(newest.table.metrics)
        if _is_asked(metric, metric_names)
    ]
    for row, entity in enumerate(entities):
        if not _matches(entity, scope, filters):
            continue
        # The key stands for the entity: its labels may have changed meanwhile.
        samples = int((~np.isnan(stack[first:, row, :])).any(axis=1).sum())
        answer = found.setdefault(entity.key, EntityWindow(entity, 0, {}, {}))
        answer.samples = max(answer.samples, samples)
        for number, metric in asked:
            _add_metric(answer, metric, stack[:, row, number], times_ns, first, statistics)


def _add_metric(
    answer: EntityWindow,
    metric: Metric,
    column: Column,
    times_ns: np.ndarray,
    first: int,
    statistics: Sequence[str],
) -> None:
    name = show_name(metric)
    good = ~np.isnan(column)
    if not good[first:].any():
        return
    if np.isinf(column).any():
        # A limit that is not there has no mean; saying so is the answer.
        answer.missing.update({f"{statistic}_{name}": "unlimited" for statistic in statistics})
        return
    scaled = column * metric.scale
    if metric.kind == "counter":
        # Resets and wraps are told in the kernel's unit; the scale comes after.
        grown = derive_increase(column, metric) * metric.scale
        elapsed = derive_elapsed_seconds(times_ns)
        known = ~np.isnan(grown) & ~np.isnan(elapsed)
        values = grown[known] / elapsed[known]
        rate = float(grown[known].sum() / elapsed[known].sum()) if known.any() else None
    else:
        kept = np.flatnonzero(good[first:]) + first
        values = scaled[kept]
        span = (times_ns[kept[-1]] - times_ns[kept[0]]) / 1e9
        rate = float((values[-1] - values[0]) / span) if span > 0 else None
    for statistic in statistics:
        value = _one(statistic, metric, values, scaled[good], rate)
        if value is None:
            answer.missing[f"{statistic}_{name}"] = "needs a second sample"
        else:
            answer.metrics[f"{statistic}_{name}"] = value


def _one(statistic: str, metric: Metric, values: Column, known: Column, rate: float | None) -> float | None:
    if statistic == "last":
        return float(known[-1])
    if statistic == "rate":
        return rate
    if statistic == "mean" and metric.kind == "counter":
        return rate
    return STATISTICS[statistic](values) if len(values) else None


def check_statistics(names: Sequence[str]) -> None:
    wrong = [name for name in names if name not in NAMES]
    if wrong:
        raise RequestRejected(f"no statistic {wrong[0]!r}; accepted: {', '.join(NAMES)}")
