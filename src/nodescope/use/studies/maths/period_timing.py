"""
How long a period is, to the resolution of the samples.

Whether there is a period is decided on a grid of lengths a twentieth of a
spectral bin apart. Here its length is measured: at the true length the cycles
are aligned, so that the mean cycle has the most variance. Pulses of one second
are timed to a fraction of a second, whatever their number; a smooth wave as
precisely as its noise allows.
"""

import numpy as np

from nodescope.use.studies.maths.phase_profile import (
    MOST_PHASES,
    edge_weights,
    resolutions_of,
    without_moving_average,
)
from nodescope.use.studies.series import BoolArray, FloatArray

# How far to each side lengths are tried, in spectral bins (one cycle more or less
# over the whole series), and in how many steps. The grid before was 0.05 wide
# and may be off by a little more; the second round is around the first's result.
REACHES = (0.1, 0.02)
STEPS = 10

# Nothing is gained where a twentieth of a bin is less than a twentieth of a
# sample: below a period of sqrt(samples), a minute in an hour.
WORTH_SAMPLES = 0.05
WORTH_BINS = 0.05

# The peak over the tried lengths is a triangle for pulses and a parabola for
# waves; for both its weighted centre is the length. Weights are raised to this
# power, so that the foot of the peak, which is noise, does not count.
SHARPNESS = 4

# Heights that differ by rounding only are a plateau: its middle is the length.
FLAT = 1e-9


def exact_length(values: FloatArray, measured: BoolArray, length: float) -> float:
    """The length near this one at which the mean cycle has the most variance, in samples."""
    bin_width = length * length / len(values)
    if WORTH_BINS * bin_width < WORTH_SAMPLES:
        return length
    resolution = next(
        resolution
        for resolution in reversed(resolutions_of(values, measured))
        if is_fine_enough(length, resolution.scale)
    )
    centred = without_moving_average(resolution.values, length / resolution.scale)
    weights = edge_weights(resolution.measured, length / resolution.scale)
    phases = min(MOST_PHASES, round(length / resolution.scale))
    ticks = np.arange(len(centred)) * float(resolution.scale)
    for reach in REACHES:
        tried = length + bin_width * reach * np.linspace(-1, 1, 2 * STEPS + 1)
        heights = np.array([mean_cycle_energy(centred, weights, ticks / one, phases) for one in tried])
        length = centre_of_peak(tried, heights)
    return length


def is_fine_enough(length: float, scale: int) -> bool:
    return scale == 1 or length / scale >= MOST_PHASES / 2


def mean_cycle_energy(centred: FloatArray, weights: FloatArray, turns: FloatArray, phases: int) -> float:
    place = np.minimum((turns % 1 * phases).astype(np.int64), phases - 1)
    counts = np.bincount(place, weights, phases)
    sums = np.bincount(place, weights * centred, phases)
    return float(np.sum(sums * sums / np.maximum(counts, 1.0)))


def centre_of_peak(places: FloatArray, heights: FloatArray) -> float:
    lowest, highest = float(heights.min()), float(heights.max())
    if highest - lowest <= FLAT * highest:
        return float(places[len(places) // 2])
    weights = ((heights - lowest) / (highest - lowest)) ** SHARPNESS
    return float(np.sum(weights * places) / weights.sum())
