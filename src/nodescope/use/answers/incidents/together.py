"""
What many lost at once: each fell by less than its own noise, and all of them at the moment somebody took more.

A full link takes a third from everybody. Of one series that is not above the
noise of its traffic; that most of a dozen fall at one moment is no noise.
"""

import numpy as np

from nodescope.use.answers.incidents.loss import NETWORK_REST, Departure
from nodescope.use.answers.incidents.shift import Shift, deviation
from nodescope.use.answers.incidents.table import Floats, NodeTable

# Of these nobody counts who waits for them, and the least use of one that can tell.
COUNTED_BY_FALL = {"network": NETWORK_REST}
# The middle one of the others fell by this share or more, and so did their sum.
FALLEN_SHARE = 0.2
# So many others, at least, tell of it.
LEAST_OTHERS = 5
# Standard errors of a median that it is away from no fall at all.
ERRORS = 3.0
MEDIAN_ERROR = 1.2533
# Of what the others lost, the least part that the one took.
LEAST_TAKEN = 0.5
# The steps on both sides of the onset that are compared, at least and at most.
LEAST_STEPS, MOST_STEPS = 6, 120


def find_fallen_together(table: NodeTable, taker: Departure) -> list[Departure]:
    """The workloads that fell when this one rose, where most of them did; else nobody."""
    least = COUNTED_BY_FALL.get(taker.signal)
    if least is None:
        return []
    before, after = compare_sides(table.signals[taker.signal], taker.shift)
    known = np.isfinite(before) & np.isfinite(after) & (np.nan_to_num(before) >= least)
    known[taker.row] = False
    rows = np.flatnonzero(known)
    if len(rows) < LEAST_OTHERS:
        return []
    fallen = 1 - after[rows] / before[rows]
    lost = float((before[rows] - after[rows]).sum())
    error = ERRORS * MEDIAN_ERROR * deviation(fallen) / np.sqrt(len(rows))
    is_seen = float(np.median(fallen)) >= max(FALLEN_SHARE, error)
    if not is_seen or lost < FALLEN_SHARE * before[rows].sum() or taker.shift.size < LEAST_TAKEN * lost:
        return []
    return [
        make_departure(taker, int(row), float(before[row]), float(after[row]), float(share))
        for row, share in zip(rows, fallen)
        if share >= FALLEN_SHARE
    ]


def compare_sides(values: Floats, shift: Shift) -> tuple[Floats, Floats]:
    """Of each row its median just before the onset and just after it; NaN where it was there for less than half."""
    reach = int(np.clip(shift.last - shift.first, LEAST_STEPS, MOST_STEPS))
    sides = (
        values[:, max(0, shift.first - reach) : max(0, shift.first - 1)],
        values[:, shift.first + 1 : min(shift.last, shift.first + reach)],
    )
    before, after = (find_medians(side) for side in sides)
    return before, after


def find_medians(side: Floats) -> Floats:
    found = np.full(len(side), np.nan)
    there = np.isfinite(side).sum(axis=1) * 2 >= max(2, side.shape[1])
    if there.any():
        found[there] = np.nanmedian(side[there], axis=1)
    return found


def make_departure(taker: Departure, row: int, before: float, after: float, share: float) -> Departure:
    shift = taker.shift
    return Departure(
        taker.signal, Shift(row, shift.first, shift.last, before, after, shift.is_open, 0), min(1.0, share)
    )
