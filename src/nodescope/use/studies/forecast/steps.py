"""
The sudden changes of a path: falls (a collector's, a restart's) and rises (pages taken, see pages.py).

A sudden change is far beyond what the path moves from one sample to the next.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.robust import mad_deviation
from nodescope.use.studies.series import FloatArray, IntArray

# Beyond so many deviations of a sample's own step, and so much of the path's range. A collector's
# falls come again and again, and need less.
SUDDEN_DEVIATIONS = 8.0
REPEATED_DEVIATIONS = 5.0
SUDDEN_SHARE = 0.02

# Samples on each side of a jump that is seen through a meter's noise, and how far it is beyond
# that of their means.
BLURRED = 8
BLURRED_DEVIATIONS = 5.0

# A fall that is worth naming takes a quarter of what the path covers apart from its growth.
FALL_SHARE = 0.25

# Four falls are a collector's; fewer are restarts.
COLLECTOR_FALLS = 4


@dataclass(frozen=True)
class Jumps:
    """Where the path jumped (the first sample after it), and by how much."""

    places: IntArray
    sizes: FloatArray

    def __len__(self) -> int:
        return len(self.places)


def find_jumps(values: FloatArray, deviations: float = SUDDEN_DEVIATIONS) -> Jumps:
    """A fall that takes two or three samples is one jump."""
    moves = np.diff(values)
    noise = max(mad_deviation(moves), 1e-12 * float(np.ptp(values)))
    least = max(deviations * noise, SUDDEN_SHARE * float(np.ptp(values)) / 10)
    # Beside its usual move: a path without noise climbs by the same at every sample.
    places = np.flatnonzero(np.abs(moves - np.median(moves)) > least)
    if len(places) == 0:
        return Jumps(places, np.empty(0, dtype=np.float64))
    apart = (np.diff(places) > 1) | (np.sign(moves[places[1:]]) != np.sign(moves[places[:-1]]))
    groups = np.concatenate(([0], np.cumsum(apart)))
    sizes = np.bincount(groups, weights=moves[places]).astype(np.float64)
    firsts = places[np.concatenate(([True], apart))]
    return Jumps(firsts + 1, sizes)


def find_blurred_jumps(values: FloatArray) -> Jumps:
    """Through noise that hides them from one sample to the next: the means of a few samples before and after differ."""
    if len(values) < 4 * BLURRED:
        return Jumps(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
    total = np.concatenate(([0.0], np.cumsum(values - values[0])))
    means = (total[BLURRED:] - total[:-BLURRED]) / BLURRED
    moves = means[BLURRED:] - means[:-BLURRED]
    noise = mad_deviation(np.diff(values)) / np.sqrt(BLURRED)
    least = max(BLURRED_DEVIATIONS * noise, SUDDEN_SHARE * float(np.ptp(values)) / 10)
    away = moves - np.median(moves)
    edges = np.diff(np.concatenate(([0], (np.abs(away) > least).astype(np.int8), [0])))
    bounds = zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))
    peaks = np.array([start + np.argmax(np.abs(away[start:end])) for start, end in bounds], dtype=np.int64)
    return Jumps(peaks + BLURRED, moves[peaks])


def find_falls(values: FloatArray) -> IntArray:
    """A collector's falls, or a restart's."""
    repeated = large_falls(values, find_jumps(values, REPEATED_DEVIATIONS))
    return repeated if len(repeated) >= COLLECTOR_FALLS else large_falls(values, find_jumps(values))


def large_falls(values: FloatArray, jumps: Jumps) -> IntArray:
    """Where rises of that size are rare: others are noise or load that comes and goes."""
    large = FALL_SHARE * float(np.subtract(*np.quantile(without_growth(values), [0.98, 0.02])))
    falls = jumps.places[jumps.sizes <= -large]
    rises = int((jumps.sizes >= large).sum())
    return falls if 2 * rises < len(falls) or rises == 0 else falls[:0]


def without_growth(values: FloatArray) -> FloatArray:
    """Less the line from the first to the last tenth."""
    tenth = max(1, len(values) // 10)
    first, last = float(np.median(values[:tenth])), float(np.median(values[-tenth:]))
    return values - np.linspace(first, last, len(values))
