"""
How often a series has made the same move before or after: switching is not a change.

A job that runs now and then, a heap that is collected, a service that is busy by
turns: each of their edges is a step, and none is news. So for every change the
sharp moves between the same two levels elsewhere in the series are counted.
The series is smoothed over a third of the shorter piece before, so that only
moves of the same duration count, and not the spikes within a piece.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.maths.robust import robust_deviation
from nodescope.use.studies.series import FloatArray, IntArray

# A level is reached within this share of the move, or beyond it: the heights of
# bursts differ.
REACHED_SHARE = 0.4

# A smaller move, in deviations from sample to sample, is a bend or nothing: no
# two levels between which a series could switch.
LEAST_MOVE = 0.7

# The levels on both sides are those of the samples next to the change: this
# share of the piece, so that the crest of a sawtooth is its level.
NEAR_SHARE = 0.25
FEWEST_NEAR = 3

# A smoothed value for each eighth of the window is enough.
WINDOW_STEPS = 8


def recurrences(values: FloatArray, start: int, change: int, end: int) -> int:
    """How many other sharp moves lead from one of the change's two levels to the other."""
    least = LEAST_MOVE * robust_deviation(np.diff(values)) / np.sqrt(2)
    before, after = near_levels(values, start, change, end)
    own = (change, change)
    if abs(after - before) <= least:
        # A bend: what counts is how far the shorter piece leads, as a burst that dies away.
        before, after = far_levels(values, start, change, end)
        own = (start, end)
    return moves_between(values, before, after, own, window_of(start, change, end), least)


def bend_recurrences(values: FloatArray, start: int, change: int, end: int) -> int:
    """
    The same for two lines that meet in a place that is hardly known: the move is from the flat one to the far end of the other.

    Next to a slow bend the two levels differ by noise alone, and noise makes such a move again and again.
    """
    least = LEAST_MOVE * robust_deviation(np.diff(values)) / np.sqrt(2)
    before, after = near_levels(values, start, change, end)
    few = [max(FEWEST_NEAR, int(NEAR_SHARE * length)) for length in (change - start, end - change)]
    first = float(np.median(values[start : start + few[0]]))
    last = float(np.median(values[end - few[1] : end]))
    levels, own = ((before, last), (change, end))
    if abs(first - after) > abs(last - before):
        levels, own = ((first, after), (start, change))
    return moves_between(values, *levels, own, window_of(start, change, end), least)


def window_of(start: int, change: int, end: int) -> int:
    return max(1, min(change - start, end - change) // 3)


def moves_between(
    values: FloatArray, before: float, after: float, own: tuple[int, int], window: int, least: float
) -> int:
    if abs(after - before) <= least:
        return 0
    smooth, places = smoothed(values, window)
    return count_moves((smooth - before) / (after - before), places, own, window)


def near_levels(values: FloatArray, start: int, change: int, end: int) -> tuple[float, float]:
    near = [max(FEWEST_NEAR, int(NEAR_SHARE * length)) for length in (change - start, end - change)]
    before = values[max(start, change - near[0]) : change]
    after = values[change : min(end, change + near[1])]
    return float(np.median(before)), float(np.median(after))


def far_levels(values: FloatArray, start: int, change: int, end: int) -> tuple[float, float]:
    """The level at the far end of the shorter piece, and that of the other piece next to the change."""
    before, after = near_levels(values, start, change, end)
    if change - start <= end - change:
        few = max(FEWEST_NEAR, int(NEAR_SHARE * (change - start)))
        return float(np.median(values[start : start + few])), after
    few = max(FEWEST_NEAR, int(NEAR_SHARE * (end - change)))
    return before, float(np.median(values[end - few : end]))


def smoothed(values: FloatArray, window: int) -> tuple[FloatArray, IntArray]:
    """Running medians, and the places they belong to."""
    if window < 3:
        return values, np.arange(len(values))
    half = window // 2
    stride = max(1, window // WINDOW_STEPS)
    views = sliding_window_view(np.pad(values, half, mode="edge"), 2 * half + 1)[::stride]
    return np.median(views, axis=1), np.arange(0, len(values), stride)[: len(views)]


def count_moves(share: FloatArray, places: IntArray, own: tuple[int, int], window: int) -> int:
    """The share is 0 at the level before and 1 at the level after; moves at the own place do not count."""
    state = np.where(share >= 1 - REACHED_SHARE, 1, np.where(share <= REACHED_SHARE, -1, 0))
    known = np.flatnonzero(state)
    turned = np.flatnonzero(np.diff(state[known]) != 0)
    left, reached = places[known[turned]], places[known[turned + 1]]
    sharp = reached - left <= max(window, 3)
    other = (left - window > own[1]) | (reached + window < own[0])
    return int(np.sum(sharp & other))
