"""
The periods of an evenly sampled series.

Candidates are peaks of the spectrum over its own noise floor, and multiples of
them (a train of short pulses may show only its harmonics). A candidate is a
period when chance does not explain its peak and each cycle is predicted by the rest.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.studies.maths.period_timing import exact_length
from nodescope.use.studies.maths.phase_profile import (
    GROUP_SAMPLES,
    CycleFit,
    Resolution,
    fit_cycles,
    mean_cycle,
    resolutions_of,
)
from nodescope.use.studies.maths.robust import ROUNDING_SHARE, robust_deviation, robust_slope, without_line
from nodescope.use.studies.maths.spectrum import FEWEST_CYCLES, Peak, chance_ratio, comb_of, peaks_of
from nodescope.use.studies.maths.stretch import interpolated
from nodescope.use.studies.series import BoolArray, FloatArray

# Samples further than 6 robust deviations from the median are clipped: one
# outlier in a hundred would otherwise raise the floor over every peak. They
# are not removed, because spikes may be what repeats.
CLIP_DEVIATIONS = 6.0

# The share of series of pure noise that have a peak; the fit refuses most of them.
FALSE_PEAKS = 0.002

# The t value that a peak higher than chance needs, and the lower one that is
# enough for a peak half as high again.
LEAST_T_VALUE = 3.0
LEAST_T_VALUE_HIGH_PEAK = 2.0

# The peak of a period of few cycles is hidden by its own noise floor (the lobe
# of a sine is four bins wide), so the fit alone must be beyond doubt. It is not
# for cycles shorter than a group: a short series has five or six groups, whose
# t value proves nothing (one in fifty series of 39 samples of noise "repeated"
# every 2 to 5 of them).
FEW_CYCLES_RATIO = 5.0
FEW_CYCLES_T_VALUE = 7.0
FEW_CYCLES_STRENGTH = 0.2
FEW_CYCLES_STRENGTH_RED = 0.45
FEW_CYCLES_HIGH_PEAK = 9.0
RED = 1.0
FEW_CYCLES = 5.0
MANY_CYCLES = 60.0

# A period of less than 2 % of the variance is of no use, however certain. A
# second one needs more: the residual of the first is never quite noise. It also explains
# a twentieth of what the first does.
LEAST_STRENGTH = 0.02
LEAST_SECOND_STRENGTH = 0.1
LEAST_SECOND_EXPLAINED = 0.05

# Peaks tried per round; beyond the sixth none was ever the right one.
PEAKS = 6
SHORTEST_PERIOD = 1.95

# Steps to both sides, in spectral bins, at which a peak's period is tried: wide,
# then narrow. A bin is one cycle more or less over the whole series, so 0.05
# keeps short pulses aligned.
REFINING = (0.15, 0.05)

# A peak that explains less than this share of what the best one does is not
# chosen after refining either.
WORTH_REFINING = 0.6

FEWEST_SAMPLES = 16

# The smallest period that explains 80 % of what the best one does is taken:
# every multiple of a period is one too.
SAME_EXPLAINED = 0.8

# Peaks at up to the tenth harmonic of a period found, within 1 % or 1.5 bins,
# belong to it; of the edges of a square wave or a sawtooth further ones, within 1.5 bins.
HARMONICS = 10
MOST_HARMONICS = 64
HARMONIC_SHARE = 0.01
HARMONIC_BINS = 1.5

# A train of pulses may show its harmonics only. If the residual of a period has
# a peak at a small fraction of it, their common period is tried; it must explain
# this many times as much (twice, for pulses without noise).
COMMON_MULTIPLES = (2, 3, 4, 5)
COMMON_GAIN = 1.25


@dataclass(frozen=True)
class Period:
    """A period: the fit of its cycles, its peak's power over the noise floor, and how steeply that falls with frequency."""

    fit: CycleFit
    ratio: float
    redness: float = 0.0

    @property
    def length(self) -> float:
        return self.fit.period

    def with_exact_length(self, standard: FloatArray, measured: BoolArray) -> "Period":
        """The same with its exact length; the figures of the fit stay."""
        length = exact_length(standard, measured, self.length)
        return replace(self, fit=replace(self.fit, period=length))


def standardised(values: FloatArray) -> FloatArray | None:
    """Gaps interpolated, straight trend removed, outliers clipped, unit variance; None if nothing varies."""
    even = interpolated(values)
    even = even - np.median(even)
    size = float(np.abs(even).max())
    # The robust slope: least squares through rare spikes would tilt the rest.
    level = even - robust_slope(even) * np.arange(len(even))
    level = level - np.median(level)
    if float(np.abs(level).max()) <= ROUNDING_SHARE * size:
        return None
    reach = CLIP_DEVIATIONS * robust_deviation(level)
    standard = without_line(np.clip(level, -reach, reach))
    deviation = float(standard.std())
    return standard / deviation if deviation > 0 else None


def find_periods(values: FloatArray) -> list[Period]:
    """At most two unrelated periods of the whole series, stronger first."""
    measured = np.isfinite(values)
    standard = standardised(values) if int(measured.sum()) >= FEWEST_SAMPLES else None
    if standard is None:
        return []
    timed: list[Period] = []
    for period in periods_on_grid(standard, measured):
        timed.append(period.with_exact_length(standard, measured))
        standard = standard - mean_cycle(standard, measured, timed[-1].length)
    return timed


def periods_on_grid(standard: FloatArray, measured: BoolArray) -> list[Period]:
    """Which periods there are, with lengths of the coarse grid on which that is decided."""
    first = best_period(standard, measured, peaks_of(standard, PEAKS))
    if first is None:
        return []
    first, left = with_fundamental(standard, measured, first)
    if left is None:
        return [first]
    others = [peak for peak in peaks_of(left, PEAKS) if not is_harmonic(peak, first.length, len(left))]
    second = best_period(left, measured, others, LEAST_SECOND_STRENGTH)
    if second is None or second.fit.explained < LEAST_SECOND_EXPLAINED * first.fit.explained:
        return [first]
    if is_harmonic(Peak(first.length, first.ratio), second.length, len(standard)):
        return [fundamental(standard, measured, first, second)]
    return [first, second]


def explains_more(values: FloatArray, shorter: Period, length: float) -> bool:
    """Whether a period about so long explains the series better than this shorter one."""
    measured = np.isfinite(values)
    standard = standardised(values)
    if standard is None:
        return False
    resolutions = resolutions_of(standard, measured)
    rough = fit_cycles(resolutions, length, like=shorter.length)
    longer = refined(resolutions, rough, len(values), like=shorter.length)
    same = fit_cycles(resolutions, shorter.length)
    return longer.explained >= COMMON_GAIN * same.explained


def fundamental(values: FloatArray, measured: BoolArray, first: Period, second: Period) -> Period:
    """Of a period and the longer one whose harmonic it is, the one that explains the series."""
    resolutions = resolutions_of(values, measured)
    rough = fit_cycles(resolutions, second.length, like=first.length)
    longer = replace(first, fit=refined(resolutions, rough, len(values), like=first.length))
    return longer if longer.fit.explained >= COMMON_GAIN * first.fit.explained else first


def best_period(
    values: FloatArray, measured: BoolArray, peaks: list[Peak], least_strength: float = LEAST_STRENGTH
) -> Period | None:
    """Of the peaks that are periods, the shortest that explains about as much as any."""
    count = len(values)
    resolutions = resolutions_of(values, measured)
    possible = [peak for peak in peaks if is_candidate(peak, count)]
    rough = [
        Period(fit_cycles(resolutions, peak.period), peak.ratio, peak.redness)
        for peak in possible + comb_of(possible, count)
    ]
    most = max((period.fit.explained for period in rough), default=0.0)
    promising = [
        period
        for period in rough
        if period.fit.explained > WORTH_REFINING * most and period.fit.strength >= least_strength / 2
    ]
    tried = [replace(period, fit=refined(resolutions, period.fit, count)) for period in promising]
    real = [period for period in tried if period.fit.strength >= least_strength and is_real(period, count)]
    if not real:
        return None
    most = max(period.fit.explained for period in real)
    alike = [period for period in real if period.fit.explained >= SAME_EXPLAINED * most]
    return min(alike, key=lambda period: period.length)


def is_candidate(peak: Peak, count: int) -> bool:
    if not SHORTEST_PERIOD <= peak.period <= 1.02 * count / FEWEST_CYCLES:
        return False
    if peak.ratio >= chance_ratio(count, FALSE_PEAKS):
        return True
    return peak.ratio >= FEW_CYCLES_RATIO and count / peak.period <= MANY_CYCLES


def is_real(period: Period, count: int) -> bool:
    fit = period.fit
    if fit.explained <= 0:
        return False
    chance = chance_ratio(count, FALSE_PEAKS)
    if period.ratio >= chance and fit.t_value >= LEAST_T_VALUE:
        return True
    if period.ratio >= 1.5 * chance and fit.t_value >= LEAST_T_VALUE_HIGH_PEAK:
        return True
    return (
        fit.period >= GROUP_SAMPLES
        and fit.t_value >= FEW_CYCLES_T_VALUE
        and fit.strength >= least_strength_of(period)
        and fit.cycles >= FEW_CYCLES
    )


def least_strength_of(period: Period) -> float:
    """Random walks swing ten times with a third of the variance, without a high peak."""
    is_doubtful = period.redness >= RED and period.ratio < FEW_CYCLES_HIGH_PEAK
    return FEW_CYCLES_STRENGTH_RED if is_doubtful else FEW_CYCLES_STRENGTH


def refined(
    resolutions: list[Resolution], rough: CycleFit, count: int, like: float | None = None
) -> CycleFit:
    """The fit that explains most among lengths a fraction of a spectral bin apart."""
    bin_width = rough.period * rough.period / count
    best = rough
    for reach in REFINING:
        steps = (-2 * reach, -reach, reach, 2 * reach)
        fits = [fit_cycles(resolutions, best.period + step * bin_width, like) for step in steps]
        best = max([best, *fits], key=lambda fit: fit.explained)
    return best


def with_fundamental(
    values: FloatArray, measured: BoolArray, first: Period
) -> tuple[Period, FloatArray | None]:
    """The period, or the longer one whose harmonic it is; and the series without it."""
    left = scaled(values - mean_cycle(values, measured, first.length))
    if left is None:
        return first, None
    resolutions = resolutions_of(values, measured)
    for peak in peaks_of(left, PEAKS):
        multiple = common_multiple(peak, first.length, len(values))
        if multiple is None or first.length * multiple > len(values) / FEWEST_CYCLES:
            continue
        rough = fit_cycles(resolutions, first.length * multiple, like=first.length)
        longer = replace(first, fit=refined(resolutions, rough, len(values), like=first.length))
        if longer.fit.explained >= COMMON_GAIN * first.fit.explained and is_real(longer, len(values)):
            return longer, scaled(values - mean_cycle(values, measured, longer.length))
    return first, left


def common_multiple(peak: Peak, length: float, count: int) -> int | None:
    """The a of a peak at k/a of the period's frequency, for small k and a; None if there is none."""
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
    """Whether the peak is at a harmonic of the period, or at the alias of one beyond half the sampling rate."""
    order = np.arange(1, MOST_HARMONICS + 1)
    seen_at = np.abs(order / length - np.round(order / length))
    share = np.where(order <= HARMONICS, HARMONIC_SHARE / peak.period, 0.0)
    return bool(np.any(np.abs(seen_at - 1 / peak.period) <= np.maximum(share, HARMONIC_BINS / count)))


def scaled(values: FloatArray) -> FloatArray | None:
    deviation = float(values.std())
    return values / deviation if deviation > ROUNDING_SHARE else None
