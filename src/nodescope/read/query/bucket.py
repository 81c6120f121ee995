"""
Downsampling: minimum, maximum, mean and count of every bucket, so that a spike survives.

A bucket is [start, start + width); what has no sample is a gap (NaN, count 0),
never zero and never joined. With fewer samples than points asked for, the
samples themselves are the answer.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.keep.rollup import MINUTE_MS


@dataclass(frozen=True, slots=True)
class BucketGrid:
    """The buckets of an answer."""

    from_ms: int
    to_ms: int
    start_ms: int
    width_ms: int
    """0: samples as they are."""

    @property
    def number(self) -> int:
        return (self.to_ms - self.start_ms) // self.width_ms + 1


def make_grid(from_ms: int, to_ms: int, max_points: int) -> BucketGrid:
    """One sample a second is the rule; fewer samples than points stay as they are."""
    span_ms = to_ms - from_ms + 1
    if span_ms <= max_points * 1000:
        return BucketGrid(from_ms, to_ms, from_ms, 0)
    width_ms = math.ceil(span_ms / max_points)
    if width_ms < MINUTE_MS and max_points > count_minutes(from_ms, to_ms):
        return BucketGrid(from_ms, to_ms, from_ms, width_ms)
    start_ms = from_ms // MINUTE_MS * MINUTE_MS
    # Beginning earlier may take one bucket more than was asked for.
    width_ms = math.ceil((to_ms - start_ms + 1) / max_points / MINUTE_MS) * MINUTE_MS
    return BucketGrid(from_ms, to_ms, start_ms, width_ms)


def count_minutes(from_ms: int, to_ms: int) -> int:
    """As many points as these are minutes, which rollups have; more are read from samples."""
    return to_ms // MINUTE_MS - from_ms // MINUTE_MS + 1


@dataclass(frozen=True, slots=True)
class Points:
    """
    Summaries of one series, by bucket, minute or sample; each stands for `count` samples.

    A sample alone has minimum = mean = maximum and count 1.
    """

    time_ms: Integers
    minimum: Floats
    mean: Floats
    maximum: Floats
    count: Integers


@dataclass(slots=True)
class Buckets:
    """Takes samples in any order of time."""

    from_ms: int
    width_ms: int
    number: int
    minimum: Floats
    maximum: Floats
    total: Floats
    count: Integers

    def add(self, time_ms: Integers, value: Floats) -> None:
        """Samples; a missing value (NaN) or an unlimited one is no number to average."""
        good = np.isfinite(value)
        places = (time_ms[good] - self.from_ms) // self.width_ms
        self._merge(places, value[good], value[good], value[good], np.ones(int(good.sum()), np.int64))

    def add_summaries(self, rows: Points, inside: NDArray[np.bool_]) -> None:
        """Those rows of a rollup that are inside."""
        places = (rows.time_ms - self.from_ms) // self.width_ms
        inside = inside & (places >= 0) & (places < self.number) & (rows.count > 0) & np.isfinite(rows.mean)
        low, high, mean = (one[inside] for one in (rows.minimum, rows.maximum, rows.mean))
        self._merge(places[inside], low, high, mean, rows.count[inside])

    def _merge(self, places: Integers, low: Floats, high: Floats, mean: Floats, count: Integers) -> None:
        if not len(places):
            return
        if (np.diff(places) < 0).any():
            order = np.argsort(places, kind="stable")
            places, low, high = places[order], low[order], high[order]
            mean, count = mean[order], count[order]
        starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
        at = places[starts]
        self.minimum[at] = np.minimum(self.minimum[at], np.minimum.reduceat(low, starts))
        self.maximum[at] = np.maximum(self.maximum[at], np.maximum.reduceat(high, starts))
        self.total[at] += np.add.reduceat(mean * count, starts)
        self.count[at] += np.add.reduceat(count, starts)

    def absorb(self, other: "Buckets") -> None:
        """Of the same series and grid."""
        np.minimum(self.minimum, other.minimum, out=self.minimum)
        np.maximum(self.maximum, other.maximum, out=self.maximum)
        self.total += other.total
        self.count += other.count

    def points(self) -> Points:
        """At the end: the arrays become those of the answer, so that a day of many series is not there twice."""
        empty = self.count == 0
        times = self.from_ms + np.arange(self.number, dtype=np.int64) * self.width_ms
        mean = np.divide(self.total, self.count, out=self.total, where=~empty)
        for column in (self.minimum, mean, self.maximum):
            column[empty] = np.nan
        return Points(times, self.minimum, mean, self.maximum, self.count)


def make_buckets(from_ms: int, width_ms: int, number: int) -> Buckets:
    """Without a sample."""
    low, high = np.full(number, np.inf), np.full(number, -np.inf)
    return Buckets(from_ms, width_ms, number, low, high, np.zeros(number), np.zeros(number, np.int64))


@dataclass(slots=True)
class Samples:
    """Used like Buckets where there are few samples: keeps them all."""

    parts: list[tuple[Integers, Floats]] = field(default_factory=list)

    def add(self, time_ms: Integers, value: Floats) -> None:
        self.parts.append((time_ms, value))

    def points(self) -> Points:
        if not self.parts:
            nothing, none = np.empty(0, np.int64), np.empty(0)
            return Points(nothing, none, none, none, nothing)
        time_ms = np.concatenate([part[0] for part in self.parts])
        value = np.concatenate([part[1] for part in self.parts])
        order = np.argsort(time_ms, kind="stable")
        time_ms, value = time_ms[order], value[order]
        return Points(time_ms, value, value, value, (~np.isnan(value)).astype(np.int64))
