"""
From raw samples to the values of an answer: rates, shares, differences, chunk by chunk.

A chunk is the samples of one series in one stretch of time. What a form needs
from the chunk before (the last sample of a counter, the last known limit) is
carried, so that the border between two files is no border in the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.metric import Metric
from nodescope.base.metric_names import Form
from nodescope.base.rates import derive_growth
from nodescope.keep.rollup import GAP_SECONDS


class Chunk(NamedTuple):
    """Samples in order of the monotonic clock. An infinite value means unlimited."""

    time_ms: Integers
    mono_ns: Integers
    value: Floats


NOTHING = Chunk(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def join_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Pieces of one series, in order of the monotonic clock, whatever the wall clock did."""
    if not chunks:
        return NOTHING
    joined = chunks[0]
    if len(chunks) > 1:
        joined = Chunk(*map(np.concatenate, zip(*chunks)))
    if (np.diff(joined.mono_ns) < 0).any():
        return pick(joined, np.argsort(joined.mono_ns, kind="stable"))
    return joined


def pick(chunk: Chunk, rows: NDArray[Any]) -> Chunk:
    return Chunk(chunk.time_ms[rows], chunk.mono_ns[rows], chunk.value[rows])


def values_at(wanted: Integers, times: Integers, values: Floats) -> Floats:
    """The values at exactly these times; NaN where there is none."""
    found = np.full(len(wanted), np.nan)
    places = np.searchsorted(times, wanted)
    inside = places < len(times)
    hit = inside.copy()
    hit[inside] = times[places[inside]] == wanted[inside]
    found[hit] = values[places[hit]]
    return found


def values_near(wanted: Integers, times: Integers, values: Floats) -> Floats:
    """The values nearest to these times, at most half of their usual distance away; NaN where there is none."""
    if len(wanted) < 2 or not len(times):
        return values_at(wanted, times, values)
    after = np.searchsorted(times, wanted).clip(0, len(times) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - times[before] < times[after] - wanted, before, after)
    slack = float(np.median(np.diff(wanted))) / 2
    return np.where(np.abs(times[nearest] - wanted) <= slack, values[nearest], np.nan)


Carried = tuple[Any, ...]
"""Of each input the last sample of a counter, (value, monotonic time), then the last known value; None for none."""


@dataclass(slots=True)
class RunGrowth:
    """A counter's increase and the seconds it took, sample by sample."""

    metric: Metric
    last: tuple[float, int] | None = None
    """Value and monotonic time of the last sample."""

    def take(self, chunk: Chunk) -> tuple[Floats, Floats]:
        """(increase, elapsed seconds) at every sample; NaN at the first, at resets and after holes."""
        if not len(chunk.value):
            return np.empty(0), np.empty(0)
        value, mono_ns = self.last or (np.nan, chunk.mono_ns[0])
        self.last = float(chunk.value[-1]), int(chunk.mono_ns[-1])
        with np.errstate(invalid="ignore"):
            increase, elapsed = derive_growth(
                np.concatenate([[value], chunk.value]),
                np.concatenate([[mono_ns], chunk.mono_ns]),
                self.metric,
            )
        good = elapsed <= GAP_SECONDS
        return np.where(good, increase, np.nan), np.where(good, elapsed, np.nan)


@dataclass(slots=True)
class Known:
    """The last known value of a slower input."""

    last: float | None = None

    def at(self, mono_ns: Integers, chunk: Chunk) -> Floats:
        """At each moment the newest value that was known then."""
        values = np.concatenate([[np.nan if self.last is None else self.last], chunk.value])
        places = np.searchsorted(chunk.mono_ns, mono_ns, side="right")
        if len(chunk.value):
            self.last = float(chunk.value[-1])
        known: Floats = values[places]
        return known


@dataclass(slots=True)
class SampleDeriver:
    """One form for one series."""

    form: Form
    metrics: tuple[Metric, ...]
    factor: float = 1.0
    growth: list[RunGrowth] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.growth = [RunGrowth(metric) for metric in self.metrics]
        self.known = [Known() for _ in self.metrics]

    def carried(self) -> Carried:
        """What the next stretch begins with."""
        return *(one.last for one in self.growth), *(one.last for one in self.known)

    def carry(self, carried: Carried) -> None:
        """As if the stretch that ended so had been taken."""
        size = len(self.metrics)
        for one, pair in zip(self.growth, carried[:size]):
            one.last = pair
        for other, last in zip(self.known, carried[size:]):
            other.last = last

    def take(self, chunks: tuple[Chunk, ...]) -> tuple[Integers, Floats]:
        """Times and values of the answer for one stretch."""
        with np.errstate(invalid="ignore", divide="ignore"):
            value = self._derive(chunks)
            return chunks[0].time_ms, value if self.factor == 1.0 else value * self.factor

    def _derive(self, chunks: tuple[Chunk, ...]) -> Floats:
        first = chunks[0]
        if self.form == "value":
            return self._scale(0, first.value)
        if self.form in ("rate", "rates", "rate_share"):
            rate = self._rate(chunks)
            if self.form != "rate_share":
                return rate
            quota, period = self._input(1, first, chunks), self._input(2, first, chunks)
            return derive_share(rate, quota / period)
        if self.form == "part":
            part, _ = self.growth[0].take(first)
            whole, _ = self.growth[1].take(self._align(first, chunks[1]))
            return derive_part(part, whole)
        value, other = self._scale(0, first.value), self._input(1, first, chunks)
        return COMBINE[self.form](value, other)

    def _rate(self, chunks: tuple[Chunk, ...]) -> Floats:
        """Of the first counter; of all counters that are read together where the form says so."""
        first = chunks[0]
        increase, elapsed = self.growth[0].take(first)
        total = self._scale(0, increase)
        if self.form == "rates":
            for place in range(1, len(chunks)):
                more, _ = self.growth[place].take(self._align(first, chunks[place]))
                total = total + self._scale(place, more)
        return total / elapsed

    def _input(self, place: int, first: Chunk, chunks: tuple[Chunk, ...]) -> Floats:
        return self._scale(place, self.known[place].at(first.mono_ns, chunks[place]))

    def _scale(self, place: int, value: Floats) -> Floats:
        scale = self.metrics[place].scale
        return value if scale == 1.0 else value * scale

    @staticmethod
    def _align(first: Chunk, other: Chunk) -> Chunk:
        """The other counter at the first one's moments. Our agent reads both in one tick; others stamp each sample."""
        if len(first.value) == len(other.value) and (first.mono_ns == other.mono_ns).all():
            return other
        value = values_near(first.mono_ns, other.mono_ns, other.value)
        return Chunk(first.time_ms, first.mono_ns, value)


# -- two values into one, for samples and for minutes alike ----------------------------


def derive_left(value: Floats, other: Floats) -> Floats:
    return np.maximum(value - other, 0.0)


def derive_share(value: Floats, limit: Floats) -> Floats:
    """Without a limit there is no share of it."""
    return np.where(np.isfinite(limit) & (limit > 0), value / limit, np.nan)


def derive_used(value: Floats, whole: Floats) -> Floats:
    return 1.0 - derive_share(value, whole)


def derive_part(part: Floats, whole: Floats) -> Floats:
    return np.where(whole > 0, part / whole, np.nan)


COMBINE = {"left": derive_left, "share": derive_share, "used": derive_used}
