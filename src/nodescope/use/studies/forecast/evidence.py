"""
How well each shape of growth in each kind of noise explains a path, and what it says of its coefficients.

For one noise, all is linear after whitening. The marginal likelihood has a
closed form: the variance is unknown, and what each column moves is anything
within the range that the path covered. The weights of all pairs of noise and
shape add up to one, and a forecast draws from them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import lgamma, log, pi

import numpy as np

from nodescope.use.studies.forecast.growth import Growth, day_shapes, log_prior, steady_shapes
from nodescope.use.studies.forecast.noise import Noise, grid, noises
from nodescope.use.studies.series import FloatArray

# What a column moves is at most this many times the range that the path covered.
WIDEST = 2.0

# A path that only rises is not flat, and what it moves beside its growth hardly returns.
COARSE = 4
UNLIKELY_NATS = 4.0

# Heights cover a range of 1: what is smaller than this is no noise.
LEAST_REST = 1e-18

# Pairs with less weight than this share of the best are left out of the draws.
LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class PreparedShapes:
    """Shapes with equally many columns in one noise: each as an orthonormal base, and how to come back from it."""

    noise: Noise
    shapes: tuple[Growth, ...]
    log_priors: FloatArray
    bases: FloatArray
    """By shape: whitened, orthonormal columns."""
    back: FloatArray
    """By shape: coefficients = back @ (base.T @ whitened values)."""
    log_sizes: FloatArray
    """By shape: logarithm of how much sharper the noise makes the columns, by determinant."""


@dataclass(frozen=True)
class Explanation:
    """One noise and one shape, how likely they are together, and the shape's coefficients."""

    noise: Noise
    shape: Growth
    weight: float
    coefficients: FloatArray
    root: FloatArray
    """Coefficients vary as root @ (standard normal), by the uncertainty of the fit."""
    variance: float
    """Of the whitened noise."""


@cache
def prepared_shapes(buckets: int) -> tuple[PreparedShapes, ...]:
    return tuple(prepare(steady_shapes(), buckets))


def prepare(shapes: Iterable[Growth], buckets: int) -> list[PreparedShapes]:
    made = []
    for _, group in groupby(sorted(shapes, key=columns_of), key=columns_of):
        alike = tuple(group)
        columns = np.stack([shape.at(grid(buckets)) for shape in alike])
        plain = diagonals(np.asarray(np.linalg.qr(columns, mode="r"))) / np.sqrt(buckets)
        made += [prepare_in(noise, alike, columns, plain) for noise in noises(buckets)]
    return made


def columns_of(shape: Growth) -> int:
    return len(shape.columns)


def prepare_in(
    noise: Noise, shapes: tuple[Growth, ...], columns: FloatArray, plain: FloatArray
) -> PreparedShapes:
    bases, triangles = np.linalg.qr(noise.whitening @ columns)
    sizes = np.log(np.abs(diagonals(triangles) / plain)).sum(axis=1)
    priors = np.array([noise.log_prior + log_prior(shape) for shape in shapes])
    return PreparedShapes(noise, shapes, priors, bases, np.linalg.inv(triangles), sizes)


def diagonals(triangles: FloatArray) -> FloatArray:
    return np.diagonal(triangles, axis1=1, axis2=2)


def explain(heights: FloatArray, span_seconds: float) -> list[Explanation]:
    """Every pair worth a draw, the likeliest first; heights are one value a bucket."""
    rises = only_rises(heights)
    blocks = [*prepared_shapes(len(heights)), *prepare(day_shapes(span_seconds), len(heights))]
    # By the blocks' own noises: two threads at the first call may each have made a set of them.
    whitened = {noise: noise.whitening @ heights for noise in {block.noise for block in blocks}}
    parts = [block.bases.transpose(0, 2, 1) @ whitened[block.noise] for block in blocks]
    energies = [float(whitened[block.noise] @ whitened[block.noise]) for block in blocks]
    scores = [
        log_evidence(block, part, energy) + unlikely(block, rises)
        for block, part, energy in zip(blocks, parts, energies)
    ]
    best = max(float(score.max()) for score in scores)
    found = [
        build_explanation(
            blocks[place], int(row), parts[place][row], energies[place], float(scores[place][row]) - best
        )
        for place in range(len(blocks))
        for row in np.flatnonzero(scores[place] - best >= log(LEAST_SHARE))
    ]
    return sorted(found, key=lambda one: -one.weight)


def only_rises(heights: FloatArray) -> bool:
    """What is given back is less than a fiftieth of what is taken, from one coarse bucket to the next."""
    steps = np.diff(np.median(heights.reshape(-1, COARSE), axis=1))
    return float(np.maximum(-steps, 0.0).sum()) < 0.02 * float(np.abs(steps).sum())


def unlikely(block: PreparedShapes, rises: bool) -> FloatArray:
    """What speaks against each shape where the path only rises."""
    if not rises:
        return np.zeros(len(block.shapes))
    returns = UNLIKELY_NATS * (block.noise.kind == "returning")
    return np.array([-np.inf if shape.kind == "flat" else -returns for shape in block.shapes])


def log_evidence(block: PreparedShapes, parts: FloatArray, energy: float) -> FloatArray:
    """Log marginal likelihood and prior of each shape; parts hold the values along its base."""
    rest = np.maximum(energy - (parts * parts).sum(axis=1), least_rest(energy))
    columns = parts.shape[1]
    free = block.bases.shape[1] - columns
    fixed = lgamma(free / 2) - 0.5 * block.noise.log_determinant - columns * log(2 * WIDEST)
    return np.asarray(fixed - free / 2 * np.log(pi * rest) - block.log_sizes + block.log_priors)


def least_rest(energy: float) -> float:
    """What is left where a shape explains all: of heights that are all alike, next to nothing, and not 0."""
    return max(1e-12 * energy, LEAST_REST)


def build_explanation(
    block: PreparedShapes, row: int, part: FloatArray, energy: float, log_weight: float
) -> Explanation:
    rest = max(energy - float(part @ part), least_rest(energy))
    variance = rest / (block.bases.shape[1] - len(part))
    return Explanation(
        noise=block.noise,
        shape=block.shapes[row],
        weight=float(np.exp(log_weight)),
        coefficients=block.back[row] @ part,
        root=block.back[row] * np.sqrt(variance),
        variance=variance,
    )
