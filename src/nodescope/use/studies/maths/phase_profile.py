"""
A series laid over itself, cycle upon cycle: does each cycle foretell the others?

A peak in the spectrum only says that power is there. A period is real when
a cycle left out is predicted by the rest, which neither a ramp, a random walk
nor a burst survives.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# Cycles are cut into at most this many phases; finer shapes than 1/64 of a
# period do not change a verdict.
PHASES = 64

# Ten times a harmonic's, where its fundamental is folded as finely.
MOST_PHASES = 640

# A long period is folded at a coarser step, with this many samples or more:
# a minute of seconds stays as it is, so that work of one second is seen.
PERIOD_SAMPLES = 48

# From so many cycles on the two half ones at the ends can be spared.
EDGE_CYCLES = 8

# Short cycles are judged in groups of at least six samples, because the
# correlation of two or three samples says nothing; and into at most 256
# groups, which bounds the cost of a long series.
GROUP_SAMPLES = 6
GROUPS = 256

# The floor under the spread of the cycles' correlations: identical cycles
# would otherwise be infinitely sure.
LEAST_SPREAD = 0.05


@dataclass(frozen=True)
class Fold:
    """
    What folding at one period shows.

    explained   share of the whole series' variance that the left-out cycles' prediction takes away
    strength    the same share, of the variance within cycles
    agreement   t value of the correlation of each cycle with the rest
    matches     that correlation, group of cycles by group; NaN where too little was measured
    group_samples   how long such a group is
    """

    period: float
    cycles: float
    explained: float
    strength: float
    agreement: float
    matches: FloatArray
    group_samples: float


@dataclass(frozen=True)
class Layer:
    """The series at a coarser step: means of scale samples, and which of them were measured."""

    values: FloatArray
    measured: BoolArray
    scale: int


def layers_of(values: FloatArray, measured: BoolArray) -> list[Layer]:
    """Each layer half as long as the one before, so that long periods fold as fast as short ones."""
    layers = [Layer(values, measured, 1)]
    while len(layers[-1].values) >= 2 * PHASES:
        finer = layers[-1]
        even = len(finer.values) // 2 * 2
        halved = (finer.values[:even:2] + finer.values[1:even:2]) / 2
        layers.append(Layer(halved, finer.measured[:even:2] | finer.measured[1:even:2], finer.scale * 2))
    return layers


def folded(layers: list[Layer], period: float, like: float | None = None) -> Fold:
    """
    The fold at a period; with the resolution of a fold at another one, if like names it.

    A pulse narrower than a phase is blurred, the more the longer the period:
    only folds of one resolution may be compared.
    """
    layer = fitting_layer(layers, like or period)
    length = period / layer.scale
    centred = without_level(layer.values, length)
    weights = edgeless(layer.measured, length)
    phases = phase_count(length, len(centred))
    if like is not None:
        phases = min(MOST_PHASES, round(phase_count(like / layer.scale, len(centred)) * period / like))
    per_group = cycles_per_group(len(centred), length)
    slot = slots(len(centred), length, phases, per_group)
    shape = (int(slot[-1]) // phases + 1, phases)
    counts = np.bincount(slot, weights, shape[0] * phases).reshape(shape).astype(np.float64)
    sums = np.bincount(slot, weights * centred, shape[0] * phases).reshape(shape).astype(np.float64)
    energy = float(np.sum(weights * centred * centred))
    cycles = len(centred) / length
    frame = Fold(period, cycles, 0.0, 0.0, 0.0, np.full(len(counts), np.nan), per_group * period)
    return judged(frame, counts, sums, energy, float(weights.sum()))


def edgeless(measured: BoolArray, length: float) -> FloatArray:
    """
    1 where a sample counts; half a cycle at both ends does not.

    There the moving average sees less than a cycle and leaves a slope, which
    pulls the period off by a tenth of a bin. With few cycles they are needed.
    """
    weights = measured.astype(np.float64)
    half = round(length / 2)
    if len(measured) >= EDGE_CYCLES * length:
        weights[:half] = 0.0
        weights[len(weights) - half :] = 0.0
    return weights


def fitting_layer(layers: list[Layer], period: float) -> Layer:
    """The coarsest layer that still gives a period enough samples."""
    fitting = [layer for layer in layers if period / layer.scale >= PERIOD_SAMPLES]
    return fitting[-1] if fitting else layers[0]


def phase_count(length: float, count: int) -> int:
    """One phase per sample; up to four where many cycles of an uneven length fill them."""
    cycles = count / length
    finer = min(4.0, max(1.0, cycles / 16))
    return int(min(max(2.0, np.floor(length * finer)), PHASES))


def cycles_per_group(count: int, length: float) -> int:
    return max(1, int(np.ceil(GROUP_SAMPLES / length)), int(np.ceil(count / length / GROUPS)))


def slots(count: int, length: float, phases: int, per_group: int) -> IntArray:
    """Where every sample falls in the table of groups and phases, row by row."""
    tick = (np.arange(count) * (phases / length)).astype(np.int64)
    if per_group == 1:
        return tick
    cycle, phase = np.divmod(tick, phases)
    return np.asarray(cycle // per_group * phases + phase)


def without_level(values: FloatArray, length: float) -> FloatArray:
    """
    The series less its moving average over one cycle: what is slower than a cycle is gone.

    At the ends the average is over what there is of the cycle.
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


def judged(frame: Fold, counts: FloatArray, sums: FloatArray, energy: float, samples: float) -> Fold:
    """The frame with its figures filled in, from the sums of each group and phase."""
    enough = counts.sum(axis=1) >= 0.5 * counts.sum(axis=1).max()
    kept, kept_counts = sums[enough], counts[enough]
    if len(kept) < 3 or energy <= 0:
        return frame
    rest = (kept.sum(axis=0) - kept) / np.maximum(kept_counts.sum(axis=0) - kept_counts, 1.0)
    foretold = np.sum(kept_counts * rest * rest, axis=1)
    own = np.sum(kept * kept / np.maximum(kept_counts, 1.0), axis=1)
    both = np.sum(rest * kept, axis=1)
    match = both / np.sqrt(np.maximum(foretold * own, np.finfo(np.float64).tiny))
    # Per sample kept: whether the last, broken cycle counts must not decide
    # between two lengths.
    won = float(np.sum(2 * both - foretold)) / float(kept_counts.sum())
    matches = frame.matches.copy()
    matches[enough] = match
    agreement = match.mean() / max(float(match.std(ddof=1)), LEAST_SPREAD) * np.sqrt(len(match))
    return replace(
        frame,
        explained=won,
        strength=won * samples / energy,
        agreement=float(agreement),
        matches=matches,
    )


def profile(values: FloatArray, measured: BoolArray, period: float) -> FloatArray:
    """The mean cycle, drawn over the whole length of the series, with mean 0."""
    phases = phase_count(period, len(values))
    turns = np.arange(len(values)) / period
    place = np.minimum(((turns % 1) * phases).astype(np.int64), phases - 1)
    weights = edgeless(measured, period)
    counts = np.bincount(place, weights, phases)
    means = np.bincount(place, weights * without_level(values, period), phases) / np.maximum(counts, 1.0)
    means -= means.mean()
    if period <= PHASES:
        return means[place]
    # Long cycles have more samples than phases: drawn between phase centres.
    centres = np.arange(-1, phases + 1) + 0.5
    around = np.concatenate(([means[-1]], means, [means[0]]))
    return np.interp((turns % 1) * phases, centres, around)
