"""
Where an evenly sampled series changes its level, its slope or its noise.

One-second samples are autocorrelated and have spikes, and the model of
piecewise_fit.py takes both for changes. So single spikes are removed; the series
is averaged over blocks as long as its autocorrelation (at most 1,200 blocks, at
least 150); a period is removed if that leaves fewer changes; each change is
weighed against what is no change (change_evidence.py); and at last it is placed
to the sample.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.change_evidence import ChangeEvidence, weigh_changes
from nodescope.use.studies.maths.period_search import find_periods
from nodescope.use.studies.maths.phase_profile import mean_cycle
from nodescope.use.studies.maths.piecewise_fit import (
    SHORTEST_PIECE,
    RunningSums,
    gain_of,
    most_probable_changes,
)
from nodescope.use.studies.maths.robust import (
    decorrelation_samples,
    is_flat,
    mad_deviation,
    robust_deviation,
    robust_slope,
    trimmed_blocks,
    without_line,
    without_spikes,
)
from nodescope.use.studies.series import FloatArray

# More blocks cost time and show nothing more on a screen; with fewer than 150,
# averaging would hide changes that people mark.
MOST_BLOCKS = 1200
FEWEST_BLOCKS = 150

# A change must be twenty times as probable as none: "strong" on the scale of
# Kass and Raftery (1995). 3 to 5 nats measured alike.
LEAST_GAIN_NATS = 3.0

# And it must be large enough: half of the series' own noise in level or slope,
# or noise that grows by half or falls by a third. Without this, clusters of
# outliers passed as short pieces.
LEAST_EFFECT = 0.5
LEAST_NOISE_RATIO_NATS = float(np.log(1.5))

# In a shorter piece a single burst can make a slope.
SLOPED_BLOCKS = 10

# Where two lines may meet: 1 % of the pieces apart, which is how well a bend can be seen.
BENDS_TRIED = 100

# Blocks have unit variance; this only avoids a division by zero at a step
# without noise.
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Effect:
    """
    What differs across a change, in units of the noise around it.

    level   between the medians of both pieces
    jump    between the two lines at the change
    bend    between the slopes, over the length of the shorter piece
    spread  logarithm of the ratio of the noises
    """

    level: float
    jump: float
    bend: float
    spread: float

    @property
    def kind(self) -> str:
        """Noise if only that differs, slope if the two lines meet, level otherwise."""
        if max(self.level, self.jump, self.bend) < 1 <= self.spread / np.log(1.4):
            return "noise"
        return "slope" if self.bend > 2 * max(self.jump, 1.0) else "level"

    @property
    def size(self) -> float:
        """1 is just large enough to report."""
        moved = max(self.level, self.jump, self.bend)
        return max(moved / LEAST_EFFECT, self.spread / LEAST_NOISE_RATIO_NATS)


@dataclass(frozen=True)
class SeriesChange:
    """
    A change before sample index, between pieces that reach from start to end.

    gain_nats is against independent noise; what is left of it against everything
    else is the evidence.
    """

    start: int
    index: int
    end: int
    gain_nats: float
    effect: Effect
    evidence: ChangeEvidence


@dataclass(frozen=True)
class Piecewise:
    """
    The blocks and the first block of each piece but the first, before changes are placed to the sample.

    earlier are blocks of the time before, in the same units; no changes are looked for in them.
    """

    blocks: FloatArray
    changes: list[int]
    period_blocks: tuple[float, ...]
    earlier: FloatArray


@dataclass(frozen=True)
class SearchedBlocks:
    """The samples without spikes, in units of their spread, and blocks of size samples; from the block first on of them."""

    clean: FloatArray
    blocks: FloatArray
    first: int
    size: int


def find_changes(values: FloatArray, earlier: FloatArray | None = None) -> list[SeriesChange]:
    """
    Every change large enough to report, in order of time.

    values must have no gaps. earlier are the samples before them, if they are
    known: what repeats there is no change here.
    """
    searched = searched_blocks(values, earlier)
    return [] if searched is None else changes_in(searched)


def searched_blocks(values: FloatArray, earlier: FloatArray | None = None) -> SearchedBlocks | None:
    """None where nothing moves or there are too few samples."""
    if len(values) < 2 * SHORTEST_PIECE or is_flat(values):
        return None
    before = np.empty(0) if earlier is None else earlier
    clean = unit_scaled(without_spikes(np.concatenate((before, values)) - np.median(values)), len(before))
    if clean is None:
        return None
    size = block_size(clean[len(before) :])
    # Blocks of both parts, so that none holds samples of both.
    parts = (clean[len(before) % size : len(before)], clean[len(before) :])
    early, late = (trimmed_blocks(part, size) for part in parts)
    blocks = unit_scaled(np.concatenate((early, late)), len(early))
    return None if blocks is None else SearchedBlocks(clean[len(before) :], blocks, len(early), size)


def changes_in(searched: SearchedBlocks) -> list[SeriesChange]:
    pieces = fewest_changes(searched.blocks, searched.first)
    return build_changes(pieces, place_to_sample(searched.clean, pieces, searched.size))


def unit_scaled(values: FloatArray, first: int = 0) -> FloatArray | None:
    """Mean 0 and variance 1 from the sample first on."""
    part = values[first:]
    deviation = float(part.std(ddof=1)) if len(part) > 1 else 0.0
    return (values - part.mean()) / deviation if deviation > 0 else None


def block_size(values: FloatArray) -> int:
    fewest = -(-len(values) // MOST_BLOCKS)
    return max(fewest, decorrelation_samples(values, max(1, len(values) // FEWEST_BLOCKS)))


def fewest_changes(blocks: FloatArray, first: int = 0) -> Piecewise:
    """
    The pieces from the block first on, or of the blocks less their periods if those have fewer changes.

    Ten cycles of a sine are twenty changes or one period.
    """
    plain = divided(blocks, first, ())
    if not plain.changes:
        return plain
    periods = find_periods(blocks)
    flat = blocks
    for period in periods:
        flat = flat - mean_cycle(flat, np.isfinite(flat), period.length)
    rest = unit_scaled(flat, first) if periods else None
    if rest is None:
        return plain
    aperiodic = divided(rest, first, tuple(period.length for period in periods))
    return aperiodic if len(aperiodic.changes) < len(plain.changes) else plain


def divided(blocks: FloatArray, first: int, period_blocks: tuple[float, ...]) -> Piecewise:
    late = blocks[first:]
    changes = without_weak(late, most_probable_changes(late))
    return Piecewise(late, changes, period_blocks, blocks[:first])


def without_weak(blocks: FloatArray, changes: list[int]) -> list[int]:
    """Without the changes that are too doubtful or too small; the weakest is removed first."""
    sums = RunningSums.of(blocks)
    kept = list(changes)
    while kept:
        strengths = [strength_of(blocks, sums, *around) for around in neighbours(kept, len(blocks))]
        least = int(np.argmin(strengths))
        if strengths[least] >= 1:
            break
        del kept[least]
    return kept


def neighbours(changes: list[int], count: int) -> list[tuple[int, int, int]]:
    bounds = [0, *changes, count]
    return list(zip(bounds, bounds[1:], bounds[2:]))


def strength_of(blocks: FloatArray, sums: RunningSums, start: int, change: int, end: int) -> float:
    gain = float(gain_of(sums, start, change, end)) / LEAST_GAIN_NATS
    return min(gain, effect_of(blocks[start:change], blocks[change:end]).size)


def effect_of(before: FloatArray, after: FloatArray) -> Effect:
    slope_before, slope_after = (
        robust_slope(piece) if len(piece) >= SLOPED_BLOCKS else 0.0 for piece in (before, after)
    )
    flat_before = before - slope_before * np.arange(len(before))
    flat_after = after - slope_after * np.arange(len(after))
    level_before, level_after = float(np.median(flat_before)), float(np.median(flat_after))
    rest = np.concatenate((flat_before - level_before, flat_after - level_after))
    noise = max(robust_deviation(rest), LEAST_NOISE)
    # The median absolute deviation: in a series that is 0 except for rare
    # bursts, a piece with a burst is not noisier than one without.
    ratio = max(mad_deviation(flat_before), LEAST_NOISE) / max(mad_deviation(flat_after), LEAST_NOISE)
    return Effect(
        level=abs(float(np.median(after)) - float(np.median(before))) / noise,
        jump=abs(level_before + slope_before * len(before) - level_after) / noise,
        bend=abs(slope_before - slope_after) * min(len(before), len(after)) / noise,
        spread=abs(float(np.log(ratio))),
    )


def place_to_sample(clean: FloatArray, pieces: Piecewise, size: int) -> list[int]:
    """Each change moved, within two blocks, to the sample at which the gain is highest; a bend to where both lines meet."""
    count = len(clean)
    bounds = [0, *(change * size for change in pieces.changes), count]
    around = neighbours(pieces.changes, len(pieces.blocks))
    if size > 1 and around:
        for period in pieces.period_blocks:
            clean = clean - mean_cycle(clean, np.isfinite(clean), period * size)
        sums = RunningSums.of(clean)
        for place in range(1, len(bounds) - 1):
            before, after = bounds[place - 1], bounds[place + 1]
            low, high = max(before + 2, bounds[place] - 2 * size), min(after - 2, bounds[place] + 2 * size)
            tried = np.arange(low, high + 1)
            bounds[place] = int(tried[np.argmax(gain_of(sums, before, tried, after))])
    for place, (start, change, end) in enumerate(around, 1):
        if effect_of(pieces.blocks[start:change], pieces.blocks[change:end]).kind == "slope":
            met = meeting_point(pieces.blocks[start:end], change - start)
            bounds[place] = bounds[place] if met is None else (start + met) * size
    return bounds


def meeting_point(blocks: FloatArray, change: int) -> int | None:
    """Where the two lines of the best unbroken bend meet; None where two lines that do not meet explain more."""
    count = len(blocks)
    places = np.unique(np.linspace(SHORTEST_PIECE, count - SHORTEST_PIECE, BENDS_TRIED).astype(np.int64))
    index = np.arange(count, dtype=np.float64)
    rest, time = without_line(blocks), index - index.mean()
    energy = float(np.sum(time * time))
    bends = np.maximum(index - places[:, None], 0.0)
    bends -= bends.mean(axis=1, keepdims=True)
    bends -= np.sum(bends * time, axis=1, keepdims=True) / energy * time
    explained = np.sum(bends * rest, axis=1) ** 2 / np.maximum(np.sum(bends * bends, axis=1), LEAST_NOISE)
    left = float(np.sum(rest * rest) - explained.max())
    broken = sum(float(np.sum(without_line(part) ** 2)) for part in (blocks[:change], blocks[change:]))
    is_broken = count / 2 * np.log(max(left, LEAST_NOISE) / max(broken, LEAST_NOISE)) > LEAST_GAIN_NATS
    return None if is_broken else int(places[np.argmax(explained)])


def build_changes(pieces: Piecewise, bounds: list[int]) -> list[SeriesChange]:
    sums = RunningSums.of(pieces.blocks)
    around = neighbours(pieces.changes, len(pieces.blocks))
    gains = [float(gain_of(sums, *one)) for one in around]
    weighed = weigh_changes(pieces.blocks, pieces.changes, gains, pieces.earlier)
    return [
        SeriesChange(
            start=bounds[place],
            index=bounds[place + 1],
            end=bounds[place + 2],
            gain_nats=gains[place],
            effect=effect_of(pieces.blocks[start:change], pieces.blocks[change:end]),
            evidence=weighed[place],
        )
        for place, (start, change, end) in enumerate(around)
    ]
