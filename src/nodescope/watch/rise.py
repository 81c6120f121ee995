"""
Whether a number rises steadily, since when, and when it reaches a limit.

A rise is believed when the lows of its buckets rise in order (Kendall's
rank correlation) and it has grown by more than it swings. When the limit is
reached follows from the highest value now and the pace of the second half.
What warms up slows down: if its second half is slower than its first, and
every further half by as much, it ends at a level that may lie below the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from nodescope.base.block import Floats
from nodescope.watch.ladder import Bucket, Ladder

# Fewer buckets tell nothing: with nine in a row, chance gives such an order once in thousands of times.
LEAST_BUCKETS = 9
LEAST_ORDER = 0.8
# The second half beside the first: slower than this, it has all but ended.
LEAST_STEADY = 0.4
# A rise beside how much a bucket swings around it.
LEAST_RISE = 3.0
# A rise that begins so soon after what it is about has begun with it.
START_SECONDS = 600.0
# Before a rise it was level, if in so much of its time it grew by less than half of its pace.
CALM_SHARE = 0.25
CALM_PACE = 0.5


@dataclass(frozen=True, slots=True)
class SteadyRise:
    """A steady rise, up to now."""

    since: float
    span_seconds: float
    per_second: float
    low: float
    high: float
    """The highest of the last buckets."""
    grown: float
    ends_at: float
    """The level at which it ends if it goes on slowing down; infinite for one that does not slow down."""

    def seconds_to(self, limit: float) -> float:
        return max(0.0, (limit - self.high) / self.per_second)


def find_rise(buckets: Sequence[Bucket], width: float, least_growth: float) -> SteadyRise | None:
    """The longest rise that goes on now; None where there is none, or it has grown by less than so much."""
    if len(buckets) < LEAST_BUCKETS:
        return None
    levels = [one.low for one in buckets]
    # Most containers end here: nothing has grown.
    if levels[-1] - min(levels) < least_growth:
        return None
    lows = np.array(levels)
    kept = list(buckets)
    pairs = count_ordered(lows)
    for first in range(len(lows) - LEAST_BUCKETS + 1):
        count = len(lows) - first
        if pairs[first] < LEAST_ORDER * count * (count - 1) / 2 or lows[-1] - lows[first] < least_growth:
            continue
        rise = judge_rise(kept[first:], lows[first:], width)
        if rise:
            return rise
    return None


def count_ordered(lows: Floats) -> list[float]:
    """From each bucket to the last: pairs that rise less pairs that fall, of which Kendall's correlation is made."""
    order = np.triu(np.sign(lows[None, :] - lows[:, None]), 1)
    found: list[float] = np.cumsum(order.sum(axis=1)[::-1])[::-1].tolist()
    return found


def judge_rise(buckets: Sequence[Bucket], lows: Floats, width: float) -> SteadyRise | None:
    count = len(buckets)
    times = np.array([one.start for one in buckets])
    middle = count // 2
    first, half = (
        measure_pace(times, lows, slice(0, middle + 1)),
        measure_pace(times, lows, slice(middle, None)),
    )
    grown = float(lows[-1] - lows[0])
    if half <= 0 or half < LEAST_STEADY * first or grown < LEAST_RISE * measure_swing(lows):
        return None
    high = max(one.high for one in buckets[-3:])
    # What was level before the rise is not a part of it.
    since = max(float(times[0]), float(times[-1]) - grown / half)
    ends_at = high + extrapolate(first, half, float(times[-1] - times[middle]))
    return SteadyRise(since, float(times[-1]) + width - since, half, float(lows[-1]), high, grown, ends_at)


def extrapolate(first: float, second: float, seconds: float) -> float:
    """How much more it grows in all halves to come, each slower than the one before by the same factor."""
    if second >= first:
        return inf
    slower = second / first
    return second * seconds * slower / (1 - slower)


def measure_pace(times: Floats, values: Floats, part: slice) -> float:
    """The slope of a straight line through these."""
    time, value = times[part] - times[part].mean(), values[part]
    below = float((time * time).sum())
    return float((time * value).sum()) / below if below else 0.0


def measure_swing(values: Floats) -> float:
    """How far values lie from the line between their neighbours, usually."""
    middle = (values[:-2] + values[2:]) / 2
    return float(np.median(np.abs(values[1:-1] - middle)))


def goes_on_since(ladder: Ladder, rise: SteadyRise, first: float) -> bool:
    """
    Whether it has risen from its first moment on.

    A rise is seen as far back as its level of the ladder reaches, which is not where it
    began: what lies before is asked of coarser ones, step by step.
    """
    at, low = rise.since, rise.low - rise.grown
    while at - first >= START_SECONDS:
        before = ladder.find(at - max(START_SECONDS, CALM_SHARE * rise.span_seconds))
        if before is None:
            return True
        if low - before.low < CALM_PACE * rise.per_second * (at - before.start):
            return False
        at, low = before.start, before.low
    return True
