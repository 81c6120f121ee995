"""
How long a period is, to the resolution of the samples.

Whether there is a period is decided on a coarse grid of lengths. Here the length
that is already known to a twentieth of a spectral bin is measured: at the right
one the cycles lie exactly on each other, so the mean cycle has the most variance.
Pulses of a second are then on each other to a fraction of a second, whatever
their number; a smooth wave in noise to what its noise allows.
"""

import numpy as np

from nodescope.use.studies.maths.phase_profile import MOST_PHASES, edgeless, layers_of, without_level
from nodescope.use.studies.series import BoolArray, FloatArray

# Lengths tried to each side, and how far they reach, in bins of the spectrum
# (one cycle more or less over the whole series). The grid before was 0.05 wide
# and may be off by some more; then once more around what was found.
REACHES = (0.1, 0.02)
STEPS = 10

# Where a twentieth of a bin is less than a twentieth of a sample there is
# nothing to gain: sqrt(samples), a minute in an hour.
WORTH_SAMPLES = 0.05
WORTH_BINS = 0.05

# The peak over the tried lengths is a triangle for pulses and a parabola for
# waves: its centre of weight is its place for both. Raised so that the
# foot, which is noise, has no say.
SHARPNESS = 4

# Heights that differ by no more than the last bits of their sums are one
# plateau: its centre is the middle, not where the rounding happens to be largest.
FLAT = 1e-9


def exact_length(values: FloatArray, measured: BoolArray, length: float) -> float:
    """The length near this one at which the mean cycle has the most variance, in samples."""
    bin_width = length * length / len(values)
    if WORTH_BINS * bin_width < WORTH_SAMPLES:
        return length
    layer = next(
        layer for layer in reversed(layers_of(values, measured)) if is_fine_enough(length, layer.scale)
    )
    centred = without_level(layer.values, length / layer.scale)
    weights = edgeless(layer.measured, length / layer.scale)
    phases = min(MOST_PHASES, round(length / layer.scale))
    ticks = np.arange(len(centred)) * float(layer.scale)
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
