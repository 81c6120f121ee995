"""
The mean cycle of a series at a given period, and how well each cycle is predicted by the others.

A peak of the spectrum only says that there is power at a frequency. A period is
accepted when each cycle, left out in turn, is predicted by the mean of the
rest; ramps, random walks and bursts fail this test.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# Cycles are cut into at most this many phases; finer shapes than 1/64 of a
# period do not change a verdict.
PHASES = 64

# Ten times as many where a fundamental is compared with its harmonic: both
# need phases of the same length.
MOST_PHASES = 640

# A long period is fitted to averaged samples, of which it has at least so
# many: a minute of seconds is not averaged, so that work of one second is seen.
PERIOD_SAMPLES = 48

# With so many cycles the half ones at both ends are left out.
EDGE_CYCLES = 8

# Short cycles are judged in groups of at least six samples, because the
# correlation of two or three samples says nothing; and in at most 256 groups,
# which bounds the cost of a long series.
GROUP_SAMPLES = 6
GROUPS = 256

# The least standard deviation of the cycles' correlations: identical cycles
# would otherwise have an infinite t value.
LEAST_DEVIATION = 0.05


@dataclass(frozen=True)
class CycleFit:
    """
    How well cycles of one period predict each other.

    explained      share of the series' variance that the prediction of left-out cycles removes
    strength       the same share, of the variance within cycles
    t_value        of the correlation of each cycle with the mean of the others
    correlations   that correlation for each group of cycles; NaN where too little was measured
    group_samples  length of such a group
    """

    period: float
    cycles: float
    explained: float
    strength: float
    t_value: float
    correlations: FloatArray
    group_samples: float


@dataclass(frozen=True)
class Resolution:
    """The series as means of scale samples each, and which of them were measured."""

    values: FloatArray
    measured: BoolArray
    scale: int


def resolutions_of(values: FloatArray, measured: BoolArray) -> list[Resolution]:
    """Each half as long as the one before, so that long periods are fitted as fast as short ones."""
    resolutions = [Resolution(values, measured, 1)]
    while len(resolutions[-1].values) >= 2 * PHASES:
        finer = resolutions[-1]
        even = len(finer.values) // 2 * 2
        halved = (finer.values[:even:2] + finer.values[1:even:2]) / 2
        measured = finer.measured[:even:2] | finer.measured[1:even:2]
        resolutions.append(Resolution(halved, measured, finer.scale * 2))
    return resolutions


def fit_cycles(resolutions: list[Resolution], period: float, like: float | None = None) -> CycleFit:
    """
    The fit at a period; at the resolution used for the period `like`, if given.

    A pulse narrower than a phase is blurred, more so for longer periods: only
    fits of the same resolution may be compared.
    """
    resolution = choose_resolution(resolutions, like or period)
    length = period / resolution.scale
    centred = without_moving_average(resolution.values, length)
    weights = edge_weights(resolution.measured, length)
    phases = phase_count(length, len(centred))
    if like is not None:
        phases = min(MOST_PHASES, round(phase_count(like / resolution.scale, len(centred)) * period / like))
    per_group = cycles_per_group(len(centred), length)
    place = phase_bins(len(centred), length, phases, per_group)
    shape = (int(place[-1]) // phases + 1, phases)
    counts = np.bincount(place, weights, shape[0] * phases).reshape(shape).astype(np.float64)
    sums = np.bincount(place, weights * centred, shape[0] * phases).reshape(shape).astype(np.float64)
    energy = float(np.sum(weights * centred * centred))
    cycles = len(centred) / length
    unscored = CycleFit(period, cycles, 0.0, 0.0, 0.0, np.full(len(counts), np.nan), per_group * period)
    return score_cycles(unscored, counts, sums, energy, float(weights.sum()))


def edge_weights(measured: BoolArray, length: float) -> FloatArray:
    """
    1 where a sample counts; half a cycle at both ends does not, if there are many cycles.

    At the ends the moving average covers less than a cycle and leaves a slope,
    which biases the period by a tenth of a spectral bin.
    """
    weights = measured.astype(np.float64)
    half = round(length / 2)
    if len(measured) >= EDGE_CYCLES * length:
        weights[:half] = 0.0
        weights[len(weights) - half :] = 0.0
    return weights


def choose_resolution(resolutions: list[Resolution], period: float) -> Resolution:
    """The coarsest one with enough samples per period."""
    fitting = [resolution for resolution in resolutions if period / resolution.scale >= PERIOD_SAMPLES]
    return fitting[-1] if fitting else resolutions[0]


def phase_count(length: float, count: int) -> int:
    """One phase per sample; up to four where there are enough cycles, of a length that is no whole number, to fill them."""
    cycles = count / length
    finer = min(4.0, max(1.0, cycles / 16))
    return int(min(max(2.0, np.floor(length * finer)), PHASES))


def cycles_per_group(count: int, length: float) -> int:
    return max(1, int(np.ceil(GROUP_SAMPLES / length)), int(np.ceil(count / length / GROUPS)))


def phase_bins(count: int, length: float, phases: int, per_group: int) -> IntArray:
    """The cell of each sample in the table of groups and phases, counted row by row."""
    tick = (np.arange(count) * (phases / length)).astype(np.int64)
    if per_group == 1:
        return tick
    cycle, phase = np.divmod(tick, phases)
    return np.asarray(cycle // per_group * phases + phase)


def without_moving_average(values: FloatArray, length: float) -> FloatArray:
    """
    The series less its moving average over one cycle, which removes everything slower.

    At the ends the average is over the part of the cycle that exists.
    """
    half = min(round(length / 2), (len(values) - 1) // 2)
    total = np.concatenate(([0.0], np.cumsum(values)))
    width = 2 * half + 1
    level = np.empty_like(values)
    level[half : len(values) - half] = (total[width:] - total[:-width]) / width
    edge = np.arange(half + 1, width)
    level[:half] = total[edge] / edge
    level[len(values) - half :] = ((total[-1] - total[-1 - edge]) / edge)[::-1]
    return values - level


def score_cycles(
    unscored: CycleFit, counts: FloatArray, sums: FloatArray, energy: float, samples: float
) -> CycleFit:
    """The fit with its figures, from the sums of each group and phase; unchanged where there is too little."""
    enough = counts.sum(axis=1) >= 0.5 * counts.sum(axis=1).max()
    kept, kept_counts = sums[enough], counts[enough]
    if len(kept) < 3 or energy <= 0:
        return unscored
    rest = (kept.sum(axis=0) - kept) / np.maximum(kept_counts.sum(axis=0) - kept_counts, 1.0)
    predicted = np.sum(kept_counts * rest * rest, axis=1)
    own = np.sum(kept * kept / np.maximum(kept_counts, 1.0), axis=1)
    both = np.sum(rest * kept, axis=1)
    correlation = both / np.sqrt(np.maximum(predicted * own, np.finfo(np.float64).tiny))
    # Per sample kept, so that an incomplete last cycle does not decide between
    # two lengths.
    won = float(np.sum(2 * both - predicted)) / float(kept_counts.sum())
    correlations = unscored.correlations.copy()
    correlations[enough] = correlation
    t_value = (
        correlation.mean() / max(float(correlation.std(ddof=1)), LEAST_DEVIATION) * np.sqrt(len(correlation))
    )
    return replace(
        unscored,
        explained=won,
        strength=won * samples / energy,
        t_value=float(t_value),
        correlations=correlations,
    )


def mean_cycle(values: FloatArray, measured: BoolArray, period: float) -> FloatArray:
    """The mean cycle repeated over the whole length of the series, with mean 0."""
    phases = phase_count(period, len(values))
    turns = np.arange(len(values)) / period
    place = np.minimum(((turns % 1) * phases).astype(np.int64), phases - 1)
    weights = edge_weights(measured, period)
    counts = np.bincount(place, weights, phases)
    sums = np.bincount(place, weights * without_moving_average(values, period), phases)
    means = sums / np.maximum(counts, 1.0)
    means -= means.mean()
    if period <= PHASES:
        return means[place]
    # Long cycles have more samples than phases.
    return interpolate_cycle((turns % 1) * phases, means)


def interpolate_cycle(places: FloatArray, heights: FloatArray) -> FloatArray:
    """Between the centres of a cycle's phases (place 0.5, 1.5, ...), from the last to the first too."""
    centres = np.arange(-1, len(heights) + 1) + 0.5
    return np.interp(places, centres, np.concatenate(([heights[-1]], heights, [heights[0]])))
