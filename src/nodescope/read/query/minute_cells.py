"""
One metric of one file in minutes: of each series and minute the lowest, the sum, the highest and the number of samples.

A file never changes once it has its name. What was computed of it is kept
within a bound, and the next question with buckets of whole minutes adds it up.
A counter's first sample in a file needs the last one of the file before, and a
limit is the last that was known: what a series brought along is kept with its
minutes, and they are used again only after the same.

All series of a file are derived at once, as one column: the forms are those of
derive.py, which takes over where series were not read at the same moments.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.metric import Metric
from nodescope.base.rates import judge_increase
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import Identity
from nodescope.keep.rollup import GAP_SECONDS, MINUTE_MS
from nodescope.keep.sidecar import Ticks
from nodescope.read.query.bucket import BucketGrid, Buckets, Points
from nodescope.read.query.derive import (
    COMBINE,
    Carried,
    Chunk,
    SampleDeriver,
    derive_part,
    derive_share,
    join_chunks,
)
from nodescope.read.query.metric_rows import CONTAINER, MetricRows

Codes = NDArray[np.int32]
# Of a file's rows so many are derived at once.
ROWS_DERIVED = 80_000


@dataclass(frozen=True, slots=True)
class MinuteCells:
    """Only minutes with a number; series after series, each in order of time."""

    identities: Sequence[Identity]
    before: Sequence[Carried | None]
    """What each series brought along, and what it hands on."""
    after: Sequence[Carried]
    series: Codes
    """Of each cell its place in `identities`."""
    minute: Codes
    """Since the epoch, in minutes."""
    low: Floats
    total: Floats
    high: Floats
    count: Codes

    @property
    def size_bytes(self) -> int:
        columns = (self.series, self.minute, self.low, self.total, self.high, self.count)
        return sum(column.nbytes for column in columns) + 400 * len(self.identities)


def make_cells(
    rows: MetricRows, before: Sequence[Carried | None], after: Sequence[Carried], value: Floats
) -> MinuteCells:
    """A missing value (NaN) or an unlimited one is no number to average."""
    lengths = np.diff(rows.starts)
    series = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    minute = (rows.time_ms // MINUTE_MS).astype(np.int32)
    good = np.isfinite(value)
    if not good.all():
        series, minute, value = series[good], minute[good], value[good]
    starts = find_starts(series, minute)
    if not len(starts):
        nothing = np.empty(0)
        return MinuteCells(rows.identities, before, after, series, minute, nothing, nothing, nothing, minute)
    count = np.diff(np.append(starts, len(value))).astype(np.int32)
    return MinuteCells(
        rows.identities,
        before,
        after,
        series[starts],
        minute[starts],
        np.minimum.reduceat(value, starts),
        np.add.reduceat(value, starts),
        np.maximum.reduceat(value, starts),
        count,
    )


def gather_minutes(minutes: Mapping[Identity, Points]) -> MinuteCells:
    """From rollups: nothing is carried from one minute to the next."""
    nothing = [None] * len(minutes)
    lengths = [len(one.time_ms) for one in minutes.values()]
    series = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    low, mean, high, time_ms, count = (
        np.concatenate([getattr(one, name) for one in minutes.values()] or [np.empty(0)])
        for name in ("minimum", "mean", "maximum", "time_ms", "count")
    )
    good = (count > 0) & np.isfinite(mean)
    minute, many = (time_ms // MINUTE_MS).astype(np.int32), count.astype(np.int32)
    total = mean * count
    columns = (series[good], minute[good], low[good], total[good], high[good], many[good])
    return MinuteCells(list(minutes), nothing, (), *columns)


def find_starts(series: NDArray[Any], place: NDArray[Any]) -> Integers:
    """Where a stretch of one series in one place begins."""
    if not len(series):
        return np.empty(0, np.int64)
    changed = np.ones(len(series), bool)
    np.not_equal(place[1:], place[:-1], out=changed[1:])
    changed[1:] |= series[1:] != series[:-1]
    return np.flatnonzero(changed)


# -- all series of a file at once --------------------------------------------------------


def derive_cells(
    pieces: Sequence[Sequence[MetricRows]],
    ticks: Ticks,
    make_deriver: Callable[[Identity], SampleDeriver],
    carried: dict[Identity, Carried],
    span: TimeRange,
) -> MinuteCells:
    """
    The minutes of a file within a span; what its series carry goes on from here.

    The file comes in pieces, each with the rows of every input.
    """
    some = (one for inputs in pieces for one in split_series(inputs))
    parts = [derive_some(one, ticks, make_deriver, carried, span) for one in some]
    return parts[0] if len(parts) == 1 else join_cells(parts)


def split_series(inputs: Sequence[MetricRows]) -> Iterator[Sequence[MetricRows]]:
    """Some series at a time where the inputs have the same: what is derived of an hour takes ten times its values."""
    first = inputs[0]
    if len(first.value) <= ROWS_DERIVED or not all(one.has_places_of(first) for one in inputs[1:]):
        yield inputs
        return
    begin, count = 0, len(first.identities)
    while begin < count:
        reach = int(np.searchsorted(first.starts, first.starts[begin] + ROWS_DERIVED, "right")) - 1
        end = min(count, max(begin + 1, reach))
        yield [one.take(begin, end) for one in inputs]
        begin = end


def join_cells(parts: Sequence[MinuteCells]) -> MinuteCells:
    """Of one file, series after series; of one that goes on in the next part, a minute may come twice."""
    identities: list[Identity] = []
    before: list[Carried | None] = []
    after: list[Carried] = []
    series = []
    for one in parts:
        goes_on = int(bool(identities) and identities[-1:] == list(one.identities[:1]))
        series.append(one.series + np.int32(len(identities) - goes_on))
        identities += one.identities[goes_on:]
        before += one.before[goes_on:]
        after[len(after) - goes_on :] = one.after
    names = ("minute", "low", "total", "high", "count")
    columns = (np.concatenate([getattr(one, name) for one in parts]) for name in names)
    return MinuteCells(identities, before, after, np.concatenate(series), *columns)


def derive_some(
    inputs: Sequence[MetricRows],
    ticks: Ticks,
    make_deriver: Callable[[Identity], SampleDeriver],
    carried: dict[Identity, Carried],
    span: TimeRange,
) -> MinuteCells:
    first = inputs[0]
    before = [carried.get(identity) for identity in first.identities]
    derivers = [make_deriver(identity) for identity in first.identities]
    value = derive_column(inputs, ticks, derivers)
    if value is None:
        value = derive_apart(inputs, ticks, derivers)
    after = [one.carried() for one in derivers]
    carried.update(zip(first.identities, after))
    inside = (first.time_ms >= span.from_ms) & (first.time_ms <= span.to_ms)
    return make_cells(first, before, after, value if inside.all() else np.where(inside, value, np.nan))


def derive_apart(inputs: Sequence[MetricRows], ticks: Ticks, derivers: Sequence[SampleDeriver]) -> Floats:
    """Series by series; what has no place of its own in the first input's rows is not used."""
    first, *others = (split_chunks(rows, ticks) for rows in inputs)
    parts = []
    for (identity, chunk), deriver in zip(first.items(), derivers):
        ordered = join_chunks([chunk])
        beside = (join_chunks([one[identity]] if identity in one else []) for one in others)
        moments, value = deriver.take((ordered, *beside))
        # Minutes are those of the wall clock, whatever order the other clock gives.
        parts.append(value if moments is chunk.time_ms else value[np.argsort(moments, kind="stable")])
    return np.concatenate(parts) if parts else np.empty(0)


def split_chunks(rows: MetricRows, ticks: Ticks) -> dict[Identity, Chunk]:
    mono_ns = find_moments(rows, ticks)
    return {
        identity: Chunk(rows.time_ms[where], mono_ns[where], rows.value[where])
        for identity, where in zip(rows.identities, rows.slices())
    }


def find_moments(rows: MetricRows, ticks: Ticks) -> Integers:
    """The monotonic time of each row; mostly a series has a row for each tick from its first to its last."""
    found = np.empty(len(rows.time_ms), np.int64)
    for where in rows.slices():
        time_ms = rows.time_ms[where]
        at = int(np.searchsorted(ticks.time_ms, time_ms[0]))
        if np.array_equal(ticks.time_ms[at : at + len(time_ms)], time_ms):
            found[where] = ticks.mono_ns[at : at + len(time_ms)]
        else:
            places = np.clip(np.searchsorted(ticks.time_ms, time_ms), 0, len(ticks.time_ms) - 1)
            found[where] = ticks.mono_ns[places] + (time_ms - ticks.time_ms[places]) * 1_000_000
    return found


def derive_column(
    inputs: Sequence[MetricRows], ticks: Ticks, derivers: Sequence[SampleDeriver]
) -> Floats | None:
    """None where the inputs were not read at the same moments, or the monotonic clock is not in order."""
    first = inputs[0]
    if not derivers or not all(one.has_places_of(first) for one in inputs[1:]):
        return None
    form, metrics, factor = derivers[0].form, derivers[0].metrics, derivers[0].factor
    column = SeriesColumn(first, metrics, derivers)
    if form != "value" and form not in COMBINE and not column.follow(ticks):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        value = column.derive(form, [one.value for one in inputs])
    return value if factor == 1.0 else value * factor


@dataclass(slots=True)
class SeriesColumn:
    """Series after series in one column; what each carries from the stretch before is its first neighbour."""

    rows: MetricRows
    metrics: tuple[Metric, ...]
    derivers: Sequence[SampleDeriver]
    mono_ns: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    def follow(self, ticks: Ticks) -> bool:
        """False where the monotonic clock goes back within a series."""
        self.mono_ns = find_moments(self.rows, ticks)
        back = np.diff(self.mono_ns) < 0
        back[self.rows.starts[1:-1] - 1] = False
        return not back.any()

    def derive(self, form: str, values: Sequence[Floats]) -> Floats:
        if form == "value":
            return self._scale(0, values[0])
        if form in ("rate", "rates", "rate_share"):
            increase, elapsed = self._grow(0, values[0])
            total = self._scale(0, increase)
            for place in range(1, len(values)) if form == "rates" else ():
                total = total + self._scale(place, self._grow(place, values[place])[0])
            rate = total / elapsed
            if form != "rate_share":
                return rate
            quota, period = self._know(1, values[1]), self._know(2, values[2])
            return derive_share(rate, quota / period)
        if form == "part":
            return derive_part(self._grow(0, values[0])[0], self._grow(1, values[1])[0])
        return COMBINE[form](self._scale(0, values[0]), self._know(1, values[1]))

    def _grow(self, place: int, value: Floats) -> tuple[Floats, Floats]:
        """(increase, elapsed seconds) at every sample; NaN at a first one, at resets and after holes."""
        starts, ends = self.rows.starts[:-1], self.rows.starts[1:] - 1
        lasts = [one.growth[place].last for one in self.derivers]
        increase, elapsed = np.empty_like(value), np.empty_like(value)
        np.subtract(value[1:], value[:-1], out=increase[1:])
        np.subtract(self.mono_ns[1:], self.mono_ns[:-1], out=elapsed[1:])
        elapsed[1:] /= 1e9
        increase[starts] = value[starts] - [np.nan if last is None else last[0] for last in lasts]
        moments = self.mono_ns[starts].tolist()
        elapsed[starts] = [(at - (last[1] if last else at)) / 1e9 for last, at in zip(lasts, moments)]
        for one, last, moment in zip(self.derivers, value[ends].tolist(), self.mono_ns[ends].tolist()):
            one.growth[place].last = (last, moment)
        good = (elapsed > 0) & (elapsed <= GAP_SECONDS)
        increase = judge_increase(increase, self.metrics[place])
        if not good.all():
            increase[~good] = elapsed[~good] = np.nan
        return increase, elapsed

    def _know(self, place: int, value: Floats) -> Floats:
        """Read in the same ticks: at each moment its own value."""
        for one, last in zip(self.derivers, value[self.rows.starts[1:] - 1].tolist()):
            one.known[place].last = last
        return self._scale(place, value)

    def _scale(self, place: int, value: Floats) -> Floats:
        scale = self.metrics[place].scale
        return value if scale == 1.0 else value * scale


# -- added up --------------------------------------------------------------------------------


class BucketTable:
    """Buckets of many series; each has a row from its first minute on."""

    def __init__(self, grid: BucketGrid, wanted: Collection[str] | None) -> None:
        self._grid = grid
        self._wanted = None if wanted is None else set(wanted)
        self._places: dict[Identity, int] = {}
        self._low = self._high = self._total = np.empty((0, grid.number))
        self._count = np.empty((0, grid.number), np.int64)

    def add(self, cells: MinuteCells) -> None:
        """Its minutes within the range."""
        row = self._find_rows(cells.identities)[cells.series]
        time_ms = cells.minute.astype(np.int64) * MINUTE_MS
        bucket = (time_ms - self._grid.start_ms) // self._grid.width_ms
        inside = (row >= 0) & (time_ms >= self._grid.start_ms) & (time_ms <= self._grid.to_ms)
        low, total, high, count = cells.low, cells.total, cells.high, cells.count
        if not inside.all():
            row, bucket, count = row[inside], bucket[inside], count[inside]
            low, total, high = low[inside], total[inside], high[inside]
        starts = find_starts(row, bucket)
        if not len(starts):
            return
        at = row[starts], bucket[starts]
        self._low[at] = np.minimum(self._low[at], np.minimum.reduceat(low, starts))
        self._high[at] = np.maximum(self._high[at], np.maximum.reduceat(high, starts))
        self._total[at] += np.add.reduceat(total, starts)
        self._count[at] += np.add.reduceat(count, starts)

    def _find_rows(self, identities: Sequence[Identity]) -> Integers:
        """-1 for a series that is not wanted."""
        for one in identities:
            if one not in self._places and (self._wanted is None or one[CONTAINER] in self._wanted):
                self._places[one] = len(self._places)
        if len(self._places) > len(self._count):
            # Mostly the first file has all of them.
            self._grow(len(self._places) + len(self._places) // 4)
        return np.array([self._places.get(one, -1) for one in identities], np.int64)

    def _grow(self, rows: int) -> None:
        more = (rows - len(self._count), self._grid.number)
        self._low = np.concatenate([self._low, np.full(more, np.inf)])
        self._high = np.concatenate([self._high, np.full(more, -np.inf)])
        self._total = np.concatenate([self._total, np.zeros(more)])
        self._count = np.concatenate([self._count, np.zeros(more, np.int64)])

    def rows(self) -> Iterator[tuple[Identity, Buckets]]:
        grid = self._grid
        for identity, place in self._places.items():
            low, high = self._low[place], self._high[place]
            yield (
                identity,
                Buckets(
                    grid.start_ms,
                    grid.width_ms,
                    grid.number,
                    low,
                    high,
                    self._total[place],
                    self._count[place],
                ),
            )
