"""
Where a series left its level: the interval that stands out most, found for many series at once.

For every pair of a start and an end the mean inside is compared with the mean
outside; the pair with the largest contrast wins (a two-sided scan, O(n^2) on
some hundred coarse steps). The start is then moved to the fine step at which
half of the change was done. A series that left its level as far, as long,
at another time has done nothing unusual now.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Steps of the scan: a hundred and eighty make 16,000 intervals.
COARSE_MOST = 180
# An interval of less is a spike.
SHORTEST_SECONDS = 20.0
# Robust deviations of its own noise that a change is larger than.
NOISE_TIMES = 4.0
# Of a change, the part that is done when it has begun.
BEGUN = 0.15
# A change that is as large as this part of the one found happened before.
ALIKE = 0.6


@dataclass(frozen=True, slots=True)
class Shift:
    """One row's largest departure from its level."""

    row: int
    first: int
    """The first fine step of it, and the one behind its last."""
    last: int
    before: float
    after: float
    is_open: bool
    """It lasted until the end."""
    alike: int
    """How many times it departed as far for as long outside of it."""

    @property
    def size(self) -> float:
        return self.after - self.before


def find_shifts(
    values: Floats, rest: float, step_seconds: float, begin: int, *, falls: bool = False
) -> list[Shift]:
    """
    Of each row with a departure of `rest` or more that begins at step `begin` or later.

    NaN is nothing measured.
    """
    signed = -values if falls else values
    together = max(1, int(np.ceil(values.shape[1] / COARSE_MOST)))
    coarse = average_steps(signed, together)
    shortest = max(1, int(np.ceil(SHORTEST_SECONDS / (step_seconds * together))))
    found = []
    for row in np.flatnonzero(has_moved(coarse, rest)):
        shift = scan_row(int(row), signed[row], coarse[row], together, shortest, rest)
        if shift is not None and shift.first >= begin:
            found.append(shift if not falls else turn(shift))
    return found


def turn(shift: Shift) -> Shift:
    return Shift(shift.row, shift.first, shift.last, -shift.before, -shift.after, shift.is_open, shift.alike)


def average_steps(values: Floats, together: int) -> Floats:
    """Means of so many neighbouring steps; NaN where none of them was measured."""
    rows, steps = values.shape
    spare = -steps % together
    padded = np.pad(values, ((0, 0), (0, spare)), constant_values=np.nan).reshape(rows, -1, together)
    there = np.isfinite(padded)
    number = there.sum(axis=2)
    total = np.where(there, padded, 0.0).sum(axis=2)
    means: Floats = np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)
    return means


def has_moved(coarse: Floats, rest: float) -> Flags:
    """A cheap look: rows whose highest steps are far enough above their lowest."""
    there = np.isfinite(coarse)
    enough = there.sum(axis=1) >= 6
    high = np.where(there, coarse, -np.inf).max(axis=1)
    low = np.where(there, coarse, np.inf).min(axis=1)
    with np.errstate(invalid="ignore"):
        moved: Flags = enough & (high - low >= rest)
    return moved


def scan_row(
    row: int, fine: Floats, coarse: Floats, together: int, shortest: int, rest: float
) -> Shift | None:
    steps = np.flatnonzero(np.isfinite(coarse))
    level = np.clip(coarse[steps], *bounds_of(coarse[steps]))
    first, last = best_interval(level, shortest)
    if last <= first:
        return None
    inside, outside = level[first:last], np.concatenate([level[:first], level[last:]])
    earlier = level[:first] if first >= 3 else outside
    before, after = float(np.median(earlier)), float(np.mean(inside))
    noise = deviation(outside)
    if after - before < max(rest, NOISE_TIMES * noise):
        return None
    edge_first, edge_last = int(steps[first]) * together, (int(steps[last - 1]) + 1) * together
    onset = walk_back(fine, refine(fine, edge_first, together, before, after), before, after)
    is_open = last >= len(level) - 1
    end = len(fine) if is_open else refine_end(fine, edge_last, together, before, after)
    return Shift(
        row,
        onset,
        max(end, onset + 1),
        before,
        after,
        is_open,
        count_alike(level, first, last, before, after),
    )


def bounds_of(level: Floats) -> tuple[float, float]:
    """One step alone does not decide: clipped to the second highest and second lowest."""
    ordered = np.sort(level)
    return float(ordered[1]), float(ordered[-2])


def best_interval(level: Floats, shortest: int) -> tuple[int, int]:
    """[first, last) with the largest contrast of means, weighted by the lengths of both parts."""
    size = len(level)
    sums = np.concatenate([[0.0], np.cumsum(level - level.mean())])
    length = np.arange(size + 1)[None, :] - np.arange(size + 1)[:, None]
    # At least three steps outside, so that there is something to compare with.
    allowed = (length >= shortest) & (length <= size - 3)
    gain = sums[None, :] - sums[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        contrast = np.where(allowed, gain * np.sqrt(size / (length * (size - length))), -np.inf)
    place = int(np.argmax(contrast))
    first, last = divmod(place, size + 1)
    return (first, last) if np.isfinite(contrast[first, last]) and contrast[first, last] > 0 else (0, 0)


def deviation(level: Floats) -> float:
    """Robust: 1.4826 times the median distance from the median."""
    if not len(level):
        return 0.0
    return 1.4826 * float(np.median(np.abs(level - np.median(level))))


def refine(fine: Floats, edge: int, together: int, before: float, after: float) -> int:
    """The fine step near a coarse edge at which half of the change is done for the first time."""
    start = max(0, edge - together)
    window = fine[start : edge + 2 * together]
    over = np.flatnonzero(window >= before + 0.5 * (after - before))
    return start + int(over[0]) if len(over) else edge


def walk_back(fine: Floats, half: int, before: float, after: float) -> int:
    """From where half of the change is done to where it began: something that grew began earlier."""
    earlier = fine[:half]
    noise = deviation(earlier[np.isfinite(earlier)])
    bar = before + max(BEGUN * (after - before), NOISE_TIMES * noise)
    first = half
    while first > 0 and fine[first - 1] > bar:
        first -= 1
    return first


def refine_end(fine: Floats, edge: int, together: int, before: float, after: float) -> int:
    start = max(0, edge - 2 * together)
    window = fine[start : edge + together]
    over = np.flatnonzero(window >= before + 0.5 * (after - before))
    return start + int(over[-1]) + 1 if len(over) else edge


def count_alike(level: Floats, first: int, last: int, before: float, after: float) -> int:
    """How many times outside, before or after, it departed about as far for as long."""
    length = min(last - first, max(1, len(level) // 6))
    bar = before + ALIKE * (after - before)
    return sum(
        count_runs(np.convolve(part, np.ones(length) / length, "valid") >= bar)
        for part in (level[:first], level[last:])
        if len(part) >= length
    )


def count_runs(flags: Flags) -> int:
    return int((np.diff(flags.astype(np.int8), prepend=0) == 1).sum())
