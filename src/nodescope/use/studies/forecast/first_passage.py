"""
When a path touches its limit: drawn from every explanation by its weight.

A draw is one possible future: a shape's coefficients as uncertain as the data
leave them, and, where the path wanders, its further way given where it has
been. The share of draws that have touched the limit by a time is the
distribution of the first passage.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.forecast.evidence import Explanation
from nodescope.use.studies.forecast.noise import grid, outlook_of
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

DRAWS = 600

# Moments at which the future is looked at, denser at its start; beyond ten
# spans no forecast is given.
STEPS = 64
FARTHEST = 10.0

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


def horizon() -> FloatArray:
    return FARTHEST * np.linspace(0.0, 1.0, STEPS + 1) ** 2


def draw_futures(explanations: list[Explanation], heights: FloatArray, draws: int = DRAWS) -> Futures:
    random = np.random.default_rng(SEED)
    counts = share_out(np.array([one.weight for one in explanations]), draws)
    ahead = horizon()
    rows, slopes, rough, ends = [], [], [], []
    for one, count in zip(explanations, counts):
        if count == 0:
            continue
        drawn = draw_coefficients(random, one, int(count))
        rows.append(draw_heights(random, one, drawn, heights, ahead))
        slopes.append(end_slopes(one, drawn))
        rough.append(np.full(count, one.variance if one.noise.walks else 0.0))
        ends.append(np.full(count, one.shape.kind in ("slowing", "day")))
    return Futures(
        ahead, np.concatenate(rows), np.concatenate(slopes), np.concatenate(rough), np.concatenate(ends)
    )


def share_out(weights: FloatArray, draws: int) -> IntArray:
    """Whole numbers of draws, as near to the weights as they can be."""
    exact = weights / weights.sum() * draws
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact)[: draws - int(counts.sum())]
    counts[rest] += 1
    return np.asarray(counts)


def draw_coefficients(random: np.random.Generator, one: Explanation, count: int) -> FloatArray:
    """Student's t: the variance of the noise is not known either."""
    free = len(one.noise.whitening) - len(one.coefficients)
    normal = random.standard_normal((count, len(one.coefficients)))
    wide = np.sqrt(free / random.chisquare(free, (count, 1)))
    return one.coefficients + (normal * wide) @ one.root.T


def draw_heights(
    random: np.random.Generator, one: Explanation, drawn: FloatArray, heights: FloatArray, ahead: FloatArray
) -> FloatArray:
    made = drawn @ one.shape.at(1.0 + ahead).T
    if not one.noise.is_path:
        return made
    outlook = outlook_of(one.noise, tuple(1.0 + ahead))
    left = heights - drawn @ one.shape.at(grid(len(heights))).T
    expected = (left @ one.noise.whitening.T) @ outlook.gain
    wander = random.standard_normal((len(drawn), len(ahead))) @ outlook.root.T
    return np.asarray(made + expected + np.sqrt(one.variance) * wander)


def end_slopes(one: Explanation, drawn: FloatArray) -> FloatArray:
    """Of the shape at the end of the span, per span."""
    near = np.array([0.995, 1.005])
    columns = one.shape.at(near)
    return np.asarray(drawn @ (columns[1] - columns[0]) / 0.01)


def only(futures: Futures, kept: BoolArray) -> Futures:
    """The futures that are marked."""
    return Futures(
        futures.ahead,
        futures.heights[kept],
        futures.slopes[kept],
        futures.roughness[kept],
        futures.ends[kept],
    )


def passages(futures: Futures, limit: float) -> FloatArray:
    """For each future, the share of the span until it touches the limit; infinite where it does not."""
    touches = (futures.heights[:, 1:] >= limit) | touches_between(futures, limit)
    first = np.argmax(touches, axis=1)
    rows = np.arange(len(touches))
    last, now = futures.heights[rows, first], futures.heights[rows, first + 1]
    start, end = futures.ahead[first], futures.ahead[first + 1]
    rises = now > np.maximum(last, limit - 1e-300)
    share = np.where(rises, (limit - last) / np.where(rises, now - last, 1.0), 0.5)
    times = start + np.clip(share, 0.0, 1.0) * (end - start)
    times[futures.heights[:, 0] >= limit] = 0.0
    return np.where(touches.any(axis=1) | (futures.heights[:, 0] >= limit), times, np.inf)


def touches_between(futures: Futures, limit: float) -> BoolArray:
    """A random walk that is below the limit at two moments may touch it between them: the bridge's chance, drawn."""
    below = np.maximum(limit - futures.heights, 0.0)
    spread = np.maximum(futures.roughness[:, None] * np.diff(futures.ahead), 1e-300)
    chance = np.exp(-np.minimum(2 * below[:, :-1] * below[:, 1:] / spread, 700.0))
    drawn = np.random.default_rng(SEED).random(chance.shape)
    return np.asarray((drawn < chance) & (futures.roughness[:, None] > 0))
