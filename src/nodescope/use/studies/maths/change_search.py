"""
Where an evenly sampled series changes its level, its slope or its noise.

Raw seconds are neither independent nor free of spikes, and the model behind
segmentation.py takes both for changes. So lone spikes go first; then the series is
averaged over as many samples as it remembers (at most 1,200 blocks, at least
150); a period that explains the changes better than they do themselves is taken
out; and each change is at last placed to the sample.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.period_search import periods_of
from nodescope.use.studies.maths.phase_profile import profile
from nodescope.use.studies.maths.piecewise_fit import SHORTEST_PIECE, RunningSums, gain_of, most_probable_cuts
from nodescope.use.studies.maths.robust import (
    is_flat,
    middle_spread,
    remembered_samples,
    robust_slope,
    spread,
    trimmed_blocks,
    without_line,
    without_spikes,
)
from nodescope.use.studies.series import FloatArray

# More blocks than this show nothing more on a screen and cost time; with fewer
# than 150, averaging would hide changes that people mark.
MOST_BLOCKS = 1200
FEWEST_BLOCKS = 150

# A change must be twenty times as probable as none: "strong" on the scale of
# Kass and Raftery (1995). 3 to 5 nats measured alike.
LEAST_GAIN_NATS = 3.0

# And it must be worth telling: half of the series' own noise in level or
# slope, or noise that at least doubles or halves. Without it, clumps of wild
# samples passed as short pieces.
LEAST_EFFECT = 0.5
LEAST_SPREAD_NATS = float(np.log(2))


# A shorter piece has too few pairs for a slope that one burst cannot make.
SLOPED_BLOCKS = 10

# Blocks have unit variance, so this only keeps a noiseless step from dividing
# by nothing.
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Effect:
    """
    What differs across a change, in units of the noise beside it.

    level   the middles of both pieces
    jump    where the two lines meet the change
    bend    how far the slopes part over the shorter piece
    spread  logarithm of the ratio of the noises
    """

    level: float
    jump: float
    bend: float
    spread: float

    @property
    def size(self) -> float:
        """1 is just worth telling."""
        return max(
            self.level / LEAST_EFFECT,
            self.jump / LEAST_EFFECT,
            self.bend / LEAST_EFFECT,
            self.spread / LEAST_SPREAD_NATS,
        )


@dataclass(frozen=True)
class ChangeCut:
    """
    A change before sample index, between pieces that reach from start to end.

    memory is the correlation of neighbouring blocks' noise that averaging has
    left: the higher, the less a gain means.
    """

    start: int
    index: int
    end: int
    gain_nats: float
    effect: Effect
    memory: float


@dataclass(frozen=True)
class Piecewise:
    """A cut of the blocks, before it is placed to the sample."""

    blocks: FloatArray
    cuts: list[int]
    period_blocks: tuple[float, ...]

    def bounds(self) -> list[int]:
        return [0, *self.cuts, len(self.blocks)]


def cuts_of(values: FloatArray) -> list[ChangeCut]:
    """Every change worth telling, in order of time; values must have no gaps."""
    if len(values) < 2 * SHORTEST_PIECE or is_flat(values):
        return []
    calm = unit_scaled(without_spikes(values - np.median(values)))
    if calm is None:
        return []
    size = block_size(calm)
    blocks = unit_scaled(trimmed_blocks(calm, size))
    if blocks is None:
        return []
    pieces = simplest(blocks)
    return described(pieces, placed(calm, pieces, size))


def unit_scaled(values: FloatArray) -> FloatArray | None:
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return (values - values.mean()) / deviation if deviation > 0 else None


def block_size(values: FloatArray) -> int:
    fewest = -(-len(values) // MOST_BLOCKS)
    return max(fewest, remembered_samples(values, max(1, len(values) // FEWEST_BLOCKS)))


def simplest(blocks: FloatArray) -> Piecewise:
    """
    The cut of the blocks, or of the blocks less their period if that needs fewer changes.

    Ten cycles of a sine are twenty changes or one period.
    """
    plain = Piecewise(blocks, pruned(blocks, most_probable_cuts(blocks)), ())
    if not plain.cuts:
        return plain
    periods = periods_of(blocks)
    flat = blocks
    for period in periods:
        flat = flat - profile(flat, np.isfinite(flat), period.length)
    rest = unit_scaled(flat) if periods else None
    if rest is None:
        return plain
    lengths = tuple(period.length for period in periods)
    aperiodic = Piecewise(rest, pruned(rest, most_probable_cuts(rest)), lengths)
    return aperiodic if len(aperiodic.cuts) < len(plain.cuts) else plain


def pruned(blocks: FloatArray, cuts: list[int]) -> list[int]:
    """Without the changes that are too doubtful or too small, the least of them first."""
    sums = RunningSums.of(blocks)
    kept = list(cuts)
    while kept:
        worth = [worth_of(blocks, sums, *around) for around in neighbours(kept, len(blocks))]
        least = int(np.argmin(worth))
        if worth[least] >= 1:
            break
        del kept[least]
    return kept


def neighbours(cuts: list[int], count: int) -> list[tuple[int, int, int]]:
    bounds = [0, *cuts, count]
    return list(zip(bounds, bounds[1:], bounds[2:]))


def worth_of(blocks: FloatArray, sums: RunningSums, start: int, cut: int, end: int) -> float:
    gain = float(gain_of(sums, start, cut, end)) / LEAST_GAIN_NATS
    return min(gain, effect_of(blocks[start:cut], blocks[cut:end]).size)


def effect_of(before: FloatArray, after: FloatArray) -> Effect:
    slope_before, slope_after = (
        robust_slope(piece) if len(piece) >= SLOPED_BLOCKS else 0.0 for piece in (before, after)
    )
    flat_before = before - slope_before * np.arange(len(before))
    flat_after = after - slope_after * np.arange(len(after))
    level_before, level_after = float(np.median(flat_before)), float(np.median(flat_after))
    rest = np.concatenate((flat_before - level_before, flat_after - level_after))
    noise = max(spread(rest), LEAST_NOISE)
    # The middle half only: of a series that is 0 but for rare bursts, a piece
    # with a burst is not noisier than one without.
    ratio = max(middle_spread(flat_before), LEAST_NOISE) / max(middle_spread(flat_after), LEAST_NOISE)
    return Effect(
        level=abs(float(np.median(after)) - float(np.median(before))) / noise,
        jump=abs(level_before + slope_before * len(before) - level_after) / noise,
        bend=abs(slope_before - slope_after) * min(len(before), len(after)) / noise,
        spread=abs(float(np.log(ratio))),
    )


def placed(calm: FloatArray, pieces: Piecewise, size: int) -> list[int]:
    """Each change moved, within two blocks, to the sample where the evidence is highest."""
    count = len(calm)
    bounds = [0, *(cut * size for cut in pieces.cuts), count]
    if size == 1 or len(bounds) == 2:
        return bounds
    for period in pieces.period_blocks:
        calm = calm - profile(calm, np.isfinite(calm), period * size)
    sums = RunningSums.of(calm)
    for place in range(1, len(bounds) - 1):
        before, after = bounds[place - 1], bounds[place + 1]
        low, high = max(before + 2, bounds[place] - 2 * size), min(after - 2, bounds[place] + 2 * size)
        tried = np.arange(low, high + 1)
        bounds[place] = int(tried[np.argmax(gain_of(sums, before, tried, after))])
    return bounds


def described(pieces: Piecewise, bounds: list[int]) -> list[ChangeCut]:
    sums = RunningSums.of(pieces.blocks)
    memory = memory_left(pieces)
    return [
        ChangeCut(
            start=bounds[place],
            index=bounds[place + 1],
            end=bounds[place + 2],
            gain_nats=float(gain_of(sums, start, cut, end)),
            effect=effect_of(pieces.blocks[start:cut], pieces.blocks[cut:end]),
            memory=memory,
        )
        for place, (start, cut, end) in enumerate(neighbours(pieces.cuts, len(pieces.blocks)))
    ]


def memory_left(pieces: Piecewise) -> float:
    """Correlation of neighbouring blocks about their piece's line; 0 to 1."""
    bounds = pieces.bounds()
    rests = [without_line(pieces.blocks[start:end]) for start, end in itertools.pairwise(bounds)]
    together = sum(float(np.sum(rest[1:] * rest[:-1])) for rest in rests)
    energy = sum(float(np.sum(rest * rest)) for rest in rests)
    return min(max(together / energy, 0.0), 0.99) if energy > 0 else 0.0
