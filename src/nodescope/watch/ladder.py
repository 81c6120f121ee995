"""
The past of one number in a bounded space: fine for minutes, coarse for days.

Every level keeps the lowest and highest value of its last buckets; a bucket
of one level is six of the level below. Lows tell a leak from a heap that
fills and is collected, highs tell how near the limit it comes.

    level   bucket   reaches back
    0       20 s     10 min
    1       2 min    1 h
    2       12 min   6 h
    3       72 min   36 h
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

BASE_SECONDS = 20.0
FACTOR = 6
LEVELS = 4
BUCKETS = 30
WIDTHS = tuple(BASE_SECONDS * FACTOR**level for level in range(LEVELS))


class Bucket(NamedTuple):
    """The lowest and the highest of some seconds."""

    start: float
    low: float
    high: float


@dataclass(slots=True)
class OpenBucket:
    """One that is still being filled."""

    start: float = -inf
    low: float = inf
    high: float = -inf

    def add(self, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)


@dataclass(slots=True)
class Ladder:
    """Some 10 KiB when it is full; most containers are too young for that."""

    levels: tuple[deque[Bucket], ...] = field(
        default_factory=lambda: tuple(deque(maxlen=BUCKETS) for _ in range(LEVELS))
    )
    _open: tuple[OpenBucket, ...] = field(default_factory=lambda: tuple(OpenBucket() for _ in range(LEVELS)))

    def add(self, at: float, value: float) -> list[int]:
        """Takes a value; gives the levels of which a bucket was completed."""
        return self._add(0, at, value, value)

    def _add(self, level: int, at: float, low: float, high: float) -> list[int]:
        bucket = self._open[level]
        closed: list[int] = []
        if at - bucket.start >= WIDTHS[level]:
            closed = self._close(level)
            bucket.start, bucket.low, bucket.high = at, inf, -inf
        bucket.add(low, high)
        return closed

    def _close(self, level: int) -> list[int]:
        bucket = self._open[level]
        if bucket.low > bucket.high:
            return []
        self.levels[level].append(Bucket(bucket.start, bucket.low, bucket.high))
        if level + 1 == LEVELS:
            return [level]
        return [level, *self._add(level + 1, bucket.start, bucket.low, bucket.high)]

    def find(self, at: float) -> Bucket | None:
        """The bucket that a moment lies in, of the finest level that reaches back so far."""
        for level in self.levels:
            if level and level[0].start <= at:
                return max((one for one in level if one.start <= at), key=lambda one: one.start)
        return None

    def look_back(self, before: float) -> tuple[float, float]:
        """Of all that lies before a moment: the highest value (minus infinity where nothing does) and the deepest fall."""
        highest, fall = -inf, 0.0
        for level, width in zip(self.levels, WIDTHS):
            peak = -inf
            for one in level:
                if one.start + width > before:
                    break
                fall, peak = max(fall, peak - one.low), max(peak, one.high)
            highest = max(highest, peak)
        return highest, fall
