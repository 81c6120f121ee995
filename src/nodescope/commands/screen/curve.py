"""A series as letters of two by four dots (braille), from zero up to its largest value."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

# The dots of a letter by column and row, from the top: U+2800 has none of them.
EMPTY = 0x2800
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
ACROSS, DOWN = 2, 4
# A point stands for the time until the next one; where that is missing, not for much longer.
HELD = 1.5

Bar = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CurvePoints:
    """Points that were measured, by time, each with its lowest and highest sample."""

    times: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]

    @property
    def hold(self) -> float:
        """For how long a point stands."""
        steps = [after - before for before, after in zip(self.times, self.times[1:])]
        return HELD * median(steps) if steps else 0.0

    def within(self, start: float, end: float) -> tuple[float, float] | None:
        """Lowest and highest from start to end; of a point just before, where none is inside."""
        first, after = bisect_left(self.times, start), bisect_left(self.times, end)
        if first == after:
            if first == 0 or start - self.times[first - 1] > self.hold:
                return None
            first, after = first - 1, first
        return min(self.low[first:after]), max(self.high[first:after])


def make_curve(times: Sequence[float], low: Sequence[float], high: Sequence[float]) -> CurvePoints:
    """Without the points at which nothing was measured."""
    points = [point for point in zip(times, low, high) if math.isfinite(point[1]) and math.isfinite(point[2])]
    return CurvePoints(*([point[place] for point in points] for place in range(3)))


def draw_curve(
    curve: CurvePoints, between: tuple[float, float], columns: int, rows: int, top: float
) -> list[str]:
    """
    Lines of so many columns: for every moment a bar from its lowest to its highest sample, joined with the one before.

    `between` are the times of both edges, `top` the value of the upper one. What was not measured stays empty.
    """
    cells = [[EMPTY] * columns for _ in range(rows)]
    start, end = between
    step = (end - start) / (columns * ACROSS)
    before: Bar | None = None
    for place in range(columns * ACROSS):
        found = curve.within(start + place * step, start + (place + 1) * step)
        bar = None if found is None else place_bar(found, rows * DOWN, top)
        for dot in range(*join_bars(before, bar)) if bar else ():
            row, inner = divmod(dot, DOWN)
            cells[rows - 1 - row][place // ACROSS] |= DOTS[place % ACROSS][DOWN - 1 - inner]
        before = bar
    return ["".join(map(chr, line)) for line in cells]


def place_bar(values: tuple[float, float], dots: int, top: float) -> Bar:
    lowest, highest = (round((dots - 1) * find_share(value, top)) for value in values)
    return lowest, highest


def find_share(value: float, top: float) -> float:
    return max(0.0, min(1.0, value / top)) if top > 0 else 0.0


def join_bars(before: Bar | None, bar: Bar) -> Bar:
    """Where to begin and before which dot to end; a steep rise has no hole: it begins where the one before ended."""
    lowest, highest = bar
    if before is not None:
        lowest, highest = min(lowest, before[1] + 1), max(highest, before[0] - 1)
    return lowest, highest + 1
