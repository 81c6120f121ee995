"""
Where a series has more power than its own noise explains.

Power falls with frequency in almost every real series, so a peak is judged
against the noise near it: the running median of the power over about two
thirds of an octave to both sides. Under noise the ratio to that floor is exponentially
distributed with mean 1, whatever the colour of the noise.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.series import FloatArray

# A bin of the floor reaches 40 % of its frequency to both sides, and at least
# six bins: the lobe of one sine under a Hann window is four bins wide.
FLOOR_REACH = 0.4
FLOOR_BINS = 6

# The floor is computed at four places per factor e of frequency, and
# interpolated between them: finer changed no result.
FLOOR_SPACING = 0.25

# A median of so many bins is within 6 % of that of all of them.
FLOOR_SAMPLE = 512

# With fewer cycles a period cannot be distinguished from a curve.
FEWEST_CYCLES = 3

# A comb (equally spaced peaks) has at least four teeth, each within 1.5 bins and
# within a tenth of the spacing: peaks of noise fit a looser comb by chance.
COMB_PEAKS = 4
COMB_BINS = 1.5
COMB_SHARE = 0.1

# Power below this share of the largest is rounding.
ROUNDING_POWER = 1e-12


@dataclass(frozen=True)
class Peak:
    """A period, in samples, its power over the floor, and how steeply the floor falls there."""

    period: float
    ratio: float
    redness: float = 0.0


def power_of(rows: FloatArray) -> FloatArray:
    """Power spectrum of each row under a Hann window."""
    count = rows.shape[-1]
    return np.asarray(np.abs(np.fft.rfft(rows * np.hanning(count), axis=-1)) ** 2)


def floor_of(power: FloatArray) -> FloatArray:
    """
    The noise floor of each row of power, as a mean.

    The median of an exponential distribution is ln 2 of its mean.
    """
    bins = power.shape[-1]
    centres = np.exp(np.arange(0.0, np.log(bins - 1) + FLOOR_SPACING, FLOOR_SPACING))
    centres = np.minimum(centres, bins - 1)
    logs = np.log(power + ROUNDING_POWER * power.max(axis=-1, keepdims=True) + np.finfo(np.float64).tiny)
    medians = np.stack([np.median(logs[..., near(centre, bins)], axis=-1) for centre in centres], axis=-1)
    return np.asarray(np.exp(interpolate_floor(np.log(centres), medians, bins)) / np.log(2))


def near(centre: float, bins: int) -> slice:
    reach = max(FLOOR_BINS, FLOOR_REACH * centre)
    low, high = int(max(1, centre - reach)), int(min(bins, centre + reach + 1))
    return slice(low, high, max(1, (high - low) // FLOOR_SAMPLE))


def interpolate_floor(places: FloatArray, heights: FloatArray, bins: int) -> FloatArray:
    """Linear interpolation of every row of heights onto the logarithms of the bin numbers."""
    wanted = np.log(np.maximum(np.arange(bins), 1))
    right = np.clip(np.searchsorted(places, wanted), 1, len(places) - 1)
    width = np.maximum(places[right] - places[right - 1], np.finfo(np.float64).eps)
    share = np.clip((wanted - places[right - 1]) / width, 0.0, 1.0)
    return np.asarray(heights[..., right - 1] * (1 - share) + heights[..., right] * share)


def ratios_of(power: FloatArray, floor: FloatArray) -> FloatArray:
    """Power over floor; 0 below the fewest cycles and wherever power is no local maximum."""
    ratio = power / floor
    peak = np.zeros(power.shape, dtype=bool)
    peak[..., 1:-1] = (power[..., 1:-1] > power[..., :-2]) & (power[..., 1:-1] >= power[..., 2:])
    # The last bin is a period of two samples. It has one degree of freedom
    # where others have two, so chance reaches twice as far there.
    peak[..., -1] = power[..., -1] > 2 * power[..., -2]
    ratio[..., -1] /= 2
    peak[..., :FEWEST_CYCLES] = False
    return np.where(peak, ratio, 0.0)


def peaks_of(values: FloatArray, most: int) -> list[Peak]:
    """The highest peaks over the floor, highest first."""
    power = power_of(values)
    floor = floor_of(power)
    ratio = ratios_of(power, floor)
    highest = np.argsort(-ratio)[:most]
    return [
        Peak(
            len(values) / between_bins(power, int(place)),
            float(ratio[place]),
            redness_at(floor, int(place)),
        )
        for place in highest
        if ratio[place] > 0
    ]


def redness_at(floor: FloatArray, place: int) -> float:
    """The exponent by which the floor falls with frequency, over an octave to both sides: 0 is white, 2 a random walk."""
    low, high = max(1, place // 2), min(len(floor) - 1, place * 2)
    return float(np.log(floor[low] / floor[high]) / np.log(high / low)) if high > low else 0.0


def comb_of(peaks: list[Peak], count: int) -> list[Peak]:
    """
    The period whose harmonics all of these peaks are, if there is one.

    A train of short pulses has thirty harmonics of equal height, and its own
    frequency need not be among the highest: but it is the spacing of any two
    neighbours of them.
    """
    frequencies = np.sort([1 / peak.period for peak in peaks])
    steps = np.diff(frequencies)
    steps = steps[steps > COMB_BINS / count]
    if len(peaks) < COMB_PEAKS or len(steps) == 0:
        return []
    teeth = np.round(frequencies / steps.min())
    spacing = float(frequencies[-1] / max(teeth[-1], 1.0))
    away = np.abs(frequencies - teeth * spacing) * count
    if spacing * count < FEWEST_CYCLES or float(away.max()) > min(COMB_BINS, COMB_SHARE * spacing * count):
        return []
    highest = max(peaks, key=lambda peak: peak.ratio)
    return [Peak(1 / spacing, highest.ratio, highest.redness)]


def between_bins(power: FloatArray, place: int) -> float:
    """The peak of the parabola through the logarithms of three bins."""
    if place + 1 >= len(power):
        return float(place)
    left, middle, right = np.log(power[place - 1 : place + 2] + np.finfo(np.float64).tiny)
    bend = left - 2 * middle + right
    return place + (0.5 * (left - right) / bend if bend < 0 else 0.0)


def chance_ratio(count: int, false_alarms: float) -> float:
    """The ratio that the highest of all bins of pure noise exceeds in that share of series."""
    return float(np.log(max(count / 2, 1)) - np.log(false_alarms))
