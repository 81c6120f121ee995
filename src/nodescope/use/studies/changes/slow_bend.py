"""
Where a level began to rise or fall, or a slope ended, so slowly that noise with a memory hides it.

The search (change_search.py) assumes independent noise and makes a staircase of such a
rise; weighed against noise that remembers, no step of it is left. So one bend of the
whole series, flat on one side, competes here with a level, a line, a curve and a step, each in every
kind of noise of noise_rival.py. Neither the noise nor the place is known, and none is chosen: each
form counts by its mean likelihood over all of them.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nodescope.use.studies.maths.change_evidence import ChangeEvidence, drawn_in
from nodescope.use.studies.maths.change_search import MOST_BLOCKS, SearchedBlocks, SeriesChange, effect_of
from nodescope.use.studies.maths.noise_rival import (
    CHUNK,
    FEWEST_VALUES,
    kinds_that_wander,
    sine_transform,
    variances_of,
)
from nodescope.use.studies.maths.recurrence import bend_recurrences, recurrences
from nodescope.use.studies.maths.robust import block_means
from nodescope.use.studies.series import FloatArray

# Places of a bend that are tried, as shares of the series: nearer to an end a bend is not told from noise.
PLACES = np.linspace(0.1, 0.9, 41)

# Steps are tried at more places, since a step moved by a few samples is another one.
STEPS_TRIED = 60

# In units of the noise: from here on a change counts as one of the slope.
LEAST_BEND = 2.5

# What each form has to be better by, in nats, beside one coefficient: a level has none, a curve
# has two and is rare, and of a step the search would have told.
LEVEL_NATS, CURVE_NATS, STEP_NATS = -2.0, 4.0, 2.0

# In noise that wanders bends come by chance: what is taken off where all of the likelihood is of such noise.
WANDERING_NATS = 1.0
MOSTLY = 0.5


@dataclass(frozen=True)
class SlowBend:
    """
    Before the value at this place, in the middle of what is likely.

    gain is in nats, against the best of the other forms; wanders is the share of the likelihood that is of noise that wanders.
    """

    place: int
    gain: float
    wanders: float


@dataclass(frozen=True)
class Shapes:
    """Of series of one length, in the sine transform of their differences: rows, and what each kind of noise makes of them."""

    rows: FloatArray
    precisions: FloatArray
    constants: FloatArray
    energies: FloatArray
    """Of each row in each kind of noise."""
    crossed: FloatArray
    """Of the curve with the line, in each kind of noise."""


@lru_cache(maxsize=4)
def shapes_of(count: int) -> Shapes:
    """The line, the curve, the bends that begin, those that end, and the steps."""
    index = np.arange(1, count + 1) / (count + 1)
    line, curve = np.ones(count), 2 * index - 1
    begins = (index >= PLACES[:, None]).astype(np.float64)
    steps = np.zeros((STEPS_TRIED, count))
    places = np.linspace(0, count - 1, STEPS_TRIED + 2).astype(np.int64)[1:-1]
    steps[np.arange(STEPS_TRIED), places] = 1.0
    rows = sine_transform(np.vstack((line, curve, begins, 1 - begins, steps)))
    variances = variances_of(count)
    precisions = 1 / variances
    crossed = np.sum(rows[0] * rows[1] * precisions, axis=1)
    return Shapes(
        rows, precisions, -0.5 * np.log(variances).sum(axis=1), weighted(rows * rows, precisions), crossed
    )


def weighted(rows: FloatArray, precisions: FloatArray) -> FloatArray:
    """Sums over the columns, for each row and kind of noise; in parts, since a large product would start a thread per core."""
    total = np.zeros((len(rows), len(precisions)))
    for first in range(0, rows.shape[1], CHUNK):
        total += rows[:, first : first + CHUNK] @ precisions[:, first : first + CHUNK].T
    return total


def bend_in(searched: SearchedBlocks) -> SeriesChange | None:
    """The bend as a change of the slope of the whole series."""
    # Finer than the search's blocks: which noise it is shows in neighbouring samples.
    size = -(-len(searched.clean) // MOST_BLOCKS)
    if searched.size == size:
        # The noise has no memory, and the search has seen what there is.
        return None
    bend = find_slow_bend(drawn_in(block_means(searched.clean, size)))
    if bend is None:
        return None
    index = bend.place * size
    first, place = searched.first, searched.first + index // searched.size
    effect = effect_of(searched.blocks[first:place], searched.blocks[place:])
    # What wanders makes bends of any height: the moves next to this one count as well.
    count_same = recurrences if bend.wanders > MOSTLY else bend_recurrences
    same = count_same(searched.blocks, first, place, len(searched.blocks))
    return SeriesChange(
        start=0,
        index=index,
        end=len(searched.clean),
        gain_nats=bend.gain,
        # Two lines that meet, however little each of them rises.
        effect=replace(effect, jump=0.0, bend=max(effect.bend, LEAST_BEND)),
        evidence=ChangeEvidence(bend.gain, 0.0, same),
    )


def find_slow_bend(values: FloatArray) -> SlowBend | None:
    """The likeliest place of a bend, and how much better bends explain the values than the best other form."""
    if len(values) < FEWEST_VALUES:
        return None
    shapes = shapes_of(len(values) - 1)
    moves = sine_transform(np.diff(values))
    whole = weighted((moves * moves)[None], shapes.precisions)
    toward = weighted(shapes.rows * moves, shapes.precisions)
    explained = toward**2 / np.maximum(shapes.energies, 1e-300)

    def likelihoods(removed: FloatArray) -> FloatArray:
        """By shape and kind of noise."""
        left = np.maximum(whole - removed, 1e-12)
        return np.asarray(shapes.constants - len(moves) / 2 * np.log(left))

    bends, steps = np.split(likelihoods(explained[2:]), [2 * len(PLACES)])
    others = (
        log_mean(likelihoods(np.zeros_like(whole))) - LEVEL_NATS,
        log_mean(likelihoods(explained[:1])),
        log_mean(likelihoods(explained[:1] + curve_beside_line(shapes, toward))) - CURVE_NATS,
        log_mean(steps) - STEP_NATS,
    )
    shares = np.exp(bends - bends.max())
    wandering = float(shares[:, kinds_that_wander()].sum() / shares.sum())
    gain = log_mean(bends) - max(others) - WANDERING_NATS * wandering
    return SlowBend(round(likely_place(shares.sum(axis=1)) * len(values)), gain, wandering)


def log_mean(likelihoods: FloatArray) -> float:
    """Logarithm of the mean of what these are the logarithms of."""
    highest = float(likelihoods.max())
    return highest + float(np.log(np.mean(np.exp(likelihoods - highest))))


def likely_place(shares: FloatArray) -> float:
    """The median of the places of all bends, those that begin and those that end, as a share of the series."""
    both = np.cumsum(shares.reshape(2, -1).sum(axis=0))
    return float(np.interp(0.5 * both[-1], both, PLACES))


def curve_beside_line(shapes: Shapes, toward: FloatArray) -> FloatArray:
    """What the curve explains of what the line leaves over, in each kind of noise."""
    share = shapes.crossed / np.maximum(shapes.energies[0], 1e-300)
    energy = np.maximum(shapes.energies[1] - share * shapes.crossed, 1e-300)
    return np.asarray((toward[1] - share * toward[0]) ** 2 / energy)
