"""
Finds the periods of an evenly sampled series and the stretch in which each holds.

Candidates are peaks of the spectrum over its own noise floor, and multiples of
them (a train of short pulses may show only its harmonics). A candidate is a
period when its peak is no chance and a cycle left out is foretold by the rest.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.studies.maths.period_timing import exact_length
from nodescope.use.studies.maths.phase_profile import GROUP_SAMPLES, Fold, Layer, folded, layers_of, profile
from nodescope.use.studies.maths.robust import ROUNDING_SHARE, robust_slope, spread, without_line
from nodescope.use.studies.maths.segment import filled
from nodescope.use.studies.maths.spectrum import FEWEST_CYCLES, Peak, chance_ratio, comb_of, peaks_of
from nodescope.use.studies.series import BoolArray, FloatArray

# Samples further than 6 spreads from the middle are drawn in to there: one
# wild sample in a hundred would otherwise raise the floor over every peak.
# Clipped, not removed, because spikes may be what repeats.
CLIP_SPREADS = 6.0

# How often pure noise may offer a peak; most of those the fold then refuses.
FALSE_PEAKS = 0.002

# The fold's t value that a peak over chance needs, and the lower one that
# does where the peak is half as high again.
LEAST_AGREEMENT = 3.0
LEAST_AGREEMENT_HIGH_PEAK = 2.0

# A period of few cycles lies under its own floor (the lobe of a sine is four
# bins wide), and no peak over chance is possible: then the fold must be
# beyond doubt on its own. Cycles shorter than a group are judged by the group,
# of which a short series has five or six: their t value proves nothing (one in
# fifty series of 39 samples of noise "repeated" every 2 to 5 of them).
FEW_CYCLES_RATIO = 5.0
FEW_CYCLES_AGREEMENT = 7.0
FEW_CYCLES_STRENGTH = 0.2
FEW_CYCLES = 5.0
MANY_CYCLES = 60.0

# Weaker than 2 % of the variance helps nobody, however certain. A second
# period must show more: what is left of the first is never quite noise.
LEAST_STRENGTH = 0.02
LEAST_SECOND_STRENGTH = 0.1

# Peaks looked at per round: beyond the sixth none was ever the right one.
PEAKS = 6
SHORTEST_PERIOD = 1.95

# How far to both sides of a peak's parabola its period is tried, once and
# twice, in bins of the spectrum: wide, then narrow. A bin is one cycle more or
# less over the whole series, so 0.05 keeps short pulses on each other.
SHARPENING = (0.15, 0.05)

# A peak that explains less than this share of the best one cannot be chosen
# after sharpening either.
WORTH_SHARPENING = 0.6

FEWEST_SAMPLES = 16

# The smallest period that explains 80 % of what the best one does is taken:
# every multiple of a period is one too.
SAME_EXPLAINED = 0.8

# Peaks at up to the tenth harmonic of a period found, within 1 % or 1.5 bins,
# belong to it.
HARMONICS = 10
HARMONIC_SHARE = 0.01
HARMONIC_BINS = 1.5

# A train of pulses may show its harmonics only. If what is left after a
# period has a peak at a small fraction of it, their common period is tried; it
# must explain this many times as much (twice, for pulses without noise).
COMMON_MULTIPLES = (2, 3, 4, 5)
COMMON_GAIN = 1.25


@dataclass(frozen=True)
class Period:
    """A period in samples, and how its peak and its fold stand out."""

    fold: Fold
    ratio: float

    @property
    def length(self) -> float:
        return self.fold.period

    def timed(self, calm: FloatArray, measured: BoolArray) -> "Period":
        """The same with its exact length; the verdict on it stands as it was judged."""
        length = exact_length(calm, measured, self.length)
        return replace(self, fold=replace(self.fold, period=length))


def steadied(values: FloatArray) -> FloatArray | None:
    """Gaps drawn over, the straight trend and wild samples out, unit variance; None if nothing moves."""
    even = filled(values)
    even = even - np.median(even)
    size = float(np.abs(even).max())
    # The robust slope: least squares through rare spikes would tilt the rest.
    level = even - robust_slope(even) * np.arange(len(even))
    level = level - np.median(level)
    if float(np.abs(level).max()) <= ROUNDING_SHARE * size:
        return None
    reach = CLIP_SPREADS * spread(level)
    calm = without_line(np.clip(level, -reach, reach))
    deviation = float(calm.std())
    return calm / deviation if deviation > 0 else None


def periods_of(values: FloatArray) -> list[Period]:
    """At most two unrelated periods of the whole series, stronger first."""
    measured = np.isfinite(values)
    calm = steadied(values) if int(measured.sum()) >= FEWEST_SAMPLES else None
    if calm is None:
        return []
    timed: list[Period] = []
    for period in rough_periods(calm, measured):
        timed.append(period.timed(calm, measured))
        calm = calm - profile(calm, measured, timed[-1].length)
    return timed


def rough_periods(calm: FloatArray, measured: BoolArray) -> list[Period]:
    """Which periods there are; their lengths on the grid on which that was decided."""
    first = best_period(calm, measured, peaks_of(calm, PEAKS))
    if first is None:
        return []
    first, left = completed(calm, measured, first)
    if left is None:
        return [first]
    others = [peak for peak in peaks_of(left, PEAKS) if not is_harmonic(peak, first.length, len(left))]
    second = best_period(left, measured, others, LEAST_SECOND_STRENGTH)
    if second is None:
        return [first]
    if is_harmonic(Peak(first.length, first.ratio), second.length, len(calm)):
        return [fundamental(calm, measured, first, second)]
    return [first, second]


def fundamental(values: FloatArray, measured: BoolArray, first: Period, second: Period) -> Period:
    """Of a period and a longer one it is a harmonic of, the one that explains the series."""
    layers = layers_of(values, measured)
    rough = folded(layers, second.length, like=first.length)
    longer = Period(sharpened(layers, rough, len(values), like=first.length), first.ratio)
    return longer if longer.fold.explained >= COMMON_GAIN * first.fold.explained else first


def best_period(
    values: FloatArray, measured: BoolArray, peaks: list[Peak], least_strength: float = LEAST_STRENGTH
) -> Period | None:
    """Of the peaks that are periods, the shortest that explains about as much as any."""
    count = len(values)
    layers = layers_of(values, measured)
    possible = [peak for peak in peaks if is_possible(peak, count)]
    rough = [Period(folded(layers, peak.period), peak.ratio) for peak in possible + comb_of(possible, count)]
    most = max((period.fold.explained for period in rough), default=0.0)
    promising = [
        period
        for period in rough
        if period.fold.explained > WORTH_SHARPENING * most and period.fold.strength >= least_strength / 2
    ]
    tried = [Period(sharpened(layers, period.fold, count), period.ratio) for period in promising]
    real = [period for period in tried if period.fold.strength >= least_strength and is_real(period, count)]
    if not real:
        return None
    most = max(period.fold.explained for period in real)
    alike = [period for period in real if period.fold.explained >= SAME_EXPLAINED * most]
    return min(alike, key=lambda period: period.length)


def is_possible(peak: Peak, count: int) -> bool:
    if not SHORTEST_PERIOD <= peak.period <= 1.02 * count / FEWEST_CYCLES:
        return False
    if peak.ratio >= chance_ratio(count, FALSE_PEAKS):
        return True
    return peak.ratio >= FEW_CYCLES_RATIO and count / peak.period <= MANY_CYCLES


def is_real(period: Period, count: int) -> bool:
    fold = period.fold
    if fold.explained <= 0:
        return False
    chance = chance_ratio(count, FALSE_PEAKS)
    if period.ratio >= chance and fold.agreement >= LEAST_AGREEMENT:
        return True
    if period.ratio >= 1.5 * chance and fold.agreement >= LEAST_AGREEMENT_HIGH_PEAK:
        return True
    return (
        fold.period >= GROUP_SAMPLES
        and fold.agreement >= FEW_CYCLES_AGREEMENT
        and fold.strength >= FEW_CYCLES_STRENGTH
        and fold.cycles >= FEW_CYCLES
    )


def sharpened(layers: list[Layer], rough: Fold, count: int, like: float | None = None) -> Fold:
    """The fold that explains most among lengths a fraction of a spectral bin apart."""
    bin_width = rough.period * rough.period / count
    best = rough
    for reach in SHARPENING:
        steps = (-2 * reach, -reach, reach, 2 * reach)
        folds = [folded(layers, best.period + step * bin_width, like) for step in steps]
        best = max([best, *folds], key=lambda fold: fold.explained)
    return best


def completed(values: FloatArray, measured: BoolArray, first: Period) -> tuple[Period, FloatArray | None]:
    """The period, or the longer one it is a harmonic of; and what is left of the series without it."""
    left = scaled(values - profile(values, measured, first.length))
    if left is None:
        return first, None
    layers = layers_of(values, measured)
    for peak in peaks_of(left, PEAKS):
        multiple = common_multiple(peak, first.length, len(values))
        if multiple is None or first.length * multiple > len(values) / FEWEST_CYCLES:
            continue
        rough = folded(layers, first.length * multiple, like=first.length)
        longer = Period(sharpened(layers, rough, len(values), like=first.length), first.ratio)
        if longer.fold.explained >= COMMON_GAIN * first.fold.explained and is_real(longer, len(values)):
            return longer, scaled(values - profile(values, measured, longer.length))
    return first, left


def common_multiple(peak: Peak, length: float, count: int) -> int | None:
    """The a of a peak at k/a of the period's frequency, k and a small; None if there is none."""
    if peak.ratio < FEW_CYCLES_RATIO:
        return None
    share = length / peak.period
    near = max(HARMONIC_SHARE * share, HARMONIC_BINS * length / count)
    for multiple in COMMON_MULTIPLES:
        for harmonic in range(1, 2 * multiple):
            if harmonic % multiple and abs(share - harmonic / multiple) <= near:
                return multiple
    return None


def is_harmonic(peak: Peak, length: float, count: int) -> bool:
    """Is the peak at a harmonic of the period, also one folded back at half the sampling rate?"""
    harmonic = np.arange(1, HARMONICS + 1) / length
    seen_at = np.abs(harmonic - np.round(harmonic))
    near = np.maximum(HARMONIC_SHARE / peak.period, HARMONIC_BINS / count)
    return bool(np.any(np.abs(seen_at - 1 / peak.period) <= near))


def scaled(values: FloatArray) -> FloatArray | None:
    deviation = float(values.std())
    return values / deviation if deviation > ROUNDING_SHARE else None
