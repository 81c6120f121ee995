"""
When a path touches its limit: drawn from every explanation by its weight.

A draw is one possible future: a shape's coefficients as uncertain as the data
leave them, and, where the path wanders, its further way given where it has
been. The share of draws that have touched the limit by a time is the
distribution of the first passage.
"""

from dataclasses import dataclass, field

import numpy as np

from nodescope.use.studies.forecast.evidence import WIDEST, Explanation
from nodescope.use.studies.forecast.noise import outlook_of
from nodescope.use.studies.forecast.wave import CYCLE_MOMENTS, Wave
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

DRAWS = 600

# Moments at which the future is looked at, denser at its start; beyond ten
# spans no forecast is given.
STEPS = 64
FARTHEST = 10.0

# Growth is not slower or faster than expected by more than this, in logarithms.
SLOWEST = 3.0

# Cycles of a season in which its crest is looked for, from the first that may touch the limit.
MOST_CYCLES = 8

# So many times likelier is no slope at all than one of any size, where a rise is over.
STILL_ODDS = 10.0

# The same series gets the same answer.
SEED = 20_15


@dataclass(frozen=True)
class Futures:
    """Possible futures, one a row: shares of the span after its end, heights, slopes now, which shape."""

    ahead: FloatArray
    heights: FloatArray
    slopes: FloatArray
    roughness: FloatArray
    """Variance of a random walk between two moments, per span; 0 where the path is smooth."""
    ends: BoolArray
    """The shape gets slower, or is a day's."""
    jitter: FloatArray
    """Deviation of what is no part of the path, at each point of it."""
    wave: Wave | None = None
    swings: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    """Of the season's harmonics, which are no part of the heights; 0 in futures without it."""
    turns: FloatArray = field(default_factory=lambda: np.empty(0))


def horizon() -> FloatArray:
    return FARTHEST * np.linspace(0.0, 1.0, STEPS + 1) ** 2


def draw_futures(
    explanations: list[Explanation], heights: FloatArray, wave: Wave | None = None, draws: int = DRAWS
) -> Futures:
    random = np.random.default_rng(SEED)
    counts = share_out(np.array([one.weight for one in explanations]), draws)
    ahead = horizon()
    rows, slopes, rough, ends, jitter, swings = [], [], [], [], [], []
    for one, count in zip(explanations, counts):
        if count == 0:
            continue
        drawn, wide = draw_coefficients(random, one, int(count))
        is_still = stands_still(one)
        if is_still:
            # The rise before the bend is all that there was.
            drawn[:, 2] = -drawn[:, 1]
        rows.append(draw_heights(random, one, drawn, heights, ahead))
        slopes.append(np.zeros(count) if is_still else end_slopes(one, drawn))
        rough.append(np.full(count, one.variance if one.noise.walks else 0.0))
        ends.append(np.full(count, one.shape.kind in ("slowing", "day")))
        jitter.append(wide * np.sqrt(one.variance * one.noise.white_variance))
        swings.append(draw_swings(one, drawn, wave))
    turns = wave.turns + wave.turns_error * random.standard_normal(draws) if wave else np.zeros(draws)
    return Futures(
        ahead=ahead,
        heights=np.concatenate(rows),
        slopes=np.concatenate(slopes),
        roughness=np.concatenate(rough),
        ends=np.concatenate(ends),
        jitter=np.concatenate(jitter),
        wave=wave,
        swings=np.concatenate(swings),
        turns=turns,
    )


def draw_swings(one: Explanation, drawn: FloatArray, wave: Wave | None) -> FloatArray:
    if wave is None or one.shape.wave is None:
        return np.zeros((len(drawn), 2 * wave.harmonics if wave else 0))
    return drawn[:, 1 + len(one.shape.columns) :]


def share_out(weights: FloatArray, draws: int) -> IntArray:
    """Whole numbers of draws, as near to the weights as they can be."""
    exact = weights / weights.sum() * draws
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact)[: draws - int(counts.sum())]
    counts[rest] += 1
    return np.asarray(counts)


def draw_coefficients(
    random: np.random.Generator, one: Explanation, count: int
) -> tuple[FloatArray, FloatArray]:
    """Student's t: the variance of the noise is not known either. With by how much wider each draw's noise is."""
    free = len(one.noise.whitening) - len(one.coefficients)
    normal = random.standard_normal((count, len(one.coefficients)))
    wide = np.sqrt(free / random.chisquare(free, (count, 1)))
    return one.coefficients + (normal * wide) @ one.root.T, wide[:, 0]


def draw_heights(
    random: np.random.Generator, one: Explanation, drawn: FloatArray, heights: FloatArray, ahead: FloatArray
) -> FloatArray:
    made = expected_heights(one, drawn, heights, ahead)
    if one.noise.is_path:
        wander = (
            random.standard_normal((len(drawn), len(ahead)))
            @ outlook_of(one.noise, tuple(1.0 + ahead)).root.T
        )
        made = made + np.sqrt(one.variance) * wander
    if not one.only_rises:
        return made
    return only_rising(made, expected_heights(one, one.coefficients[None, :], heights, ahead)[0])


def expected_heights(
    one: Explanation, drawn: FloatArray, heights: FloatArray, ahead: FloatArray
) -> FloatArray:
    """By the coefficients, and, where the path wanders, by where it has been."""
    made = drawn[:, : 1 + len(one.shape.columns)] @ one.shape.at(1.0 + ahead).T
    if not one.noise.is_path:
        return made
    left = heights - drawn @ one.shape.in_buckets(one.noise.places).T
    gain = outlook_of(one.noise, tuple(1.0 + ahead)).gain
    return np.asarray(made + (left @ one.noise.whitening.T) @ gain)


def only_rising(drawn: FloatArray, expected: FloatArray) -> FloatArray:
    """
    Futures of a path that gives nothing back: their growth is uncertain by a factor.

    As an amount, a growth that is known to a half would be close to none in many futures, and never too fast.
    """
    growth = drawn - drawn[:, :1]
    mean = np.maximum(expected - expected[0], 1e-9)
    factor = np.exp(np.clip(growth / mean - 1.0, -SLOWEST, SLOWEST))
    return np.asarray(np.maximum.accumulate(drawn[:, :1] + mean * factor, axis=1))


def stands_still(one: Explanation) -> bool:
    """
    Of a rise that is over: no slope after its bend is far likelier than any other one.

    By how much is the density of the slope at zero, now and before anything was seen (Savage and Dickey).
    Which side of zero a slope is on says nothing where it is none.
    """
    if one.shape.kind != "bend" or one.shape.width != 2:
        return False
    slope = float(one.coefficients[1] + one.coefficients[2])
    error = max(float(np.linalg.norm(one.root[1] + one.root[2])), 1e-300)
    density = np.exp(-0.5 * (slope / error) ** 2) / (error * np.sqrt(2 * np.pi))
    return bool(density * 2 * WIDEST > STILL_ODDS)


def end_slopes(one: Explanation, drawn: FloatArray) -> FloatArray:
    """Of the shape at the end of the span, per span."""
    near = np.array([0.995, 1.005])
    columns = one.shape.at(near)
    return np.asarray(drawn[:, : columns.shape[1]] @ (columns[1] - columns[0]) / 0.01)


def only(futures: Futures, kept: BoolArray) -> Futures:
    """The futures that are marked."""
    return Futures(
        futures.ahead,
        futures.heights[kept],
        futures.slopes[kept],
        futures.roughness[kept],
        futures.ends[kept],
        futures.jitter[kept],
        futures.wave,
        futures.swings[kept],
        futures.turns[kept],
    )


def passages(futures: Futures, limit: float) -> FloatArray:
    """For each future, the share of the span until it touches the limit; infinite where it does not."""
    if futures.wave is None:
        return growth_passages(futures, np.full(len(futures.heights), limit))
    # Not before the season's crest on top of the growth is as high as the limit.
    earliest = growth_passages(futures, limit - futures.wave.crests(futures.swings))
    return crest_passages(futures, futures.wave, limit, earliest)


def growth_passages(futures: Futures, limits: FloatArray) -> FloatArray:
    """Without the season; each future has a limit of its own."""
    touches = (futures.heights[:, 1:] >= limits[:, None]) | touches_between(futures, limits)
    first = np.argmax(touches, axis=1)
    rows = np.arange(len(touches))
    last, now = futures.heights[rows, first], futures.heights[rows, first + 1]
    start, end = futures.ahead[first], futures.ahead[first + 1]
    rises = now > np.maximum(last, limits - 1e-300)
    share = np.where(rises, (limits - last) / np.where(rises, now - last, 1.0), 0.5)
    times = start + np.clip(share, 0.0, 1.0) * (end - start)
    times[futures.heights[:, 0] >= limits] = 0.0
    return np.where(touches.any(axis=1) | (futures.heights[:, 0] >= limits), times, np.inf)


def crest_passages(futures: Futures, wave: Wave, limit: float, earliest: FloatArray) -> FloatArray:
    """From the earliest moment on, cycle by cycle, until the wave on top of the growth touches the limit."""
    times = np.full(len(earliest), np.inf)
    open_rows = np.flatnonzero(np.isfinite(earliest))
    cycle = 1.0 / wave.turns
    offsets = cycle * np.linspace(0.0, 1.0, CYCLE_MOMENTS + 1)
    for turn in range(MOST_CYCLES):
        if len(open_rows) == 0:
            break
        moments = earliest[open_rows, None] + turn * cycle + offsets
        heights = between(futures, open_rows, moments)
        heights += wave.heights(futures.swings[open_rows], futures.turns[open_rows], 1.0 + moments)
        times[open_rows] = crossing(moments, heights, limit)
        open_rows = open_rows[np.isinf(times[open_rows])]
    return np.where(times <= FARTHEST, times, np.inf)


def between(futures: Futures, rows: IntArray, moments: FloatArray) -> FloatArray:
    """Heights of the growth at moments between those that were drawn, row by row."""
    after = np.clip(np.searchsorted(futures.ahead, moments), 1, len(futures.ahead) - 1)
    start, end = futures.ahead[after - 1], futures.ahead[after]
    low, high = futures.heights[rows[:, None], after - 1], futures.heights[rows[:, None], after]
    return np.asarray(low + (high - low) * (moments - start) / (end - start))


def crossing(moments: FloatArray, heights: FloatArray, limit: float) -> FloatArray:
    """The first moment of each row at the limit, on straight lines between its heights."""
    touches = heights >= limit
    after = np.argmax(touches, axis=1)
    rows, before = np.arange(len(heights)), np.maximum(after - 1, 0)
    low, high = heights[rows, before], heights[rows, after]
    share = np.where(high > low, (limit - low) / np.where(high > low, high - low, 1.0), 0.0)
    times = moments[rows, before] + np.clip(share, 0.0, 1.0) * (moments[rows, after] - moments[rows, before])
    return np.where(touches.any(axis=1), times, np.inf)


def touches_between(futures: Futures, limits: FloatArray) -> BoolArray:
    """A random walk that is below the limit at two moments may touch it between them: the bridge's chance, drawn."""
    below = np.maximum(limits[:, None] - futures.heights, 0.0)
    spread = np.maximum(futures.roughness[:, None] * np.diff(futures.ahead), 1e-100)
    chance = np.exp(-np.minimum(2 * below[:, :-1] * below[:, 1:] / spread, 700.0))
    drawn = np.random.default_rng(SEED).random(chance.shape)
    return np.asarray((drawn < chance) & (futures.roughness[:, None] > 0))
