"""
How well each shape of growth in each kind of noise explains a path, and what it says of its coefficients.

For one noise, all is linear after whitening. The marginal likelihood has a
closed form: the variance is unknown, and what each column moves is anything
within the range that the path covered. The weights of all pairs of noise and
shape add up to one, and a forecast draws from them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from math import lgamma, log, pi

import numpy as np

from nodescope.use.studies.forecast.bends import look_closer
from nodescope.use.studies.forecast.growth import (
    Growth,
    bend,
    bent,
    day_shapes,
    few_shapes,
    log_prior,
    steady_shapes,
    wave_shapes,
)
from nodescope.use.studies.forecast.noise import Noise, noises, noises_at
from nodescope.use.studies.forecast.wave import Wave
from nodescope.use.studies.series import FloatArray

# What a column moves is at most this many times the range that the path covered.
WIDEST = 2.0

# A path that only rises is not flat, and what it moves beside its growth hardly returns.
COARSE = 4
UNLIKELY_NATS = 4.0

# Memory that grows wanders less often as well than memory that does not grow. And where it can
# be told which of both it is, the other's long tails count for less than their share: a tenth of walks
# below growth in noise that returns would make most of its interval.
GROWS_AND_WANDERS = 0.5
LONG_MEMORY = 0.25
EVEN_SHARE, SHARPER = 0.4, 4.0

# A walk that gives back so much of what it takes, from bucket to bucket, is often half taken for noise that
# returns. Its future is drawn so much wider that the intervals hold (0227).
GIVES_BACK = 0.05
WIDER = 1.2

# Heights cover a range of 1: what is smaller than this is no noise.
LEAST_REST = 1e-18

# Pairs with less weight than this share of the best are left out of the draws.
LEAST_SHARE = 0.01

# The white noise beside a memory or a wandering that is looked at beside a season.
WAVE_BESIDE = (0.0, 0.5, 1e-4, 1e-2)

# A bend that stands out by this much from the third best of the grid is placed closely.
SHARP_NATS = 2.0

# How far a bend may be from its place on the grid, and how far behind it is left aside.
NEIGHBOUR = 0.025
HOPELESS_NATS = 20.0

# Places of a path that are needed after a bend.
AFTER_BEND = 4

# In how many noises of each kind a bend is placed closely.
CLOSE_NOISES = {"white": 1, "returning": 2, "wandering": 2}

# Spans that were looked at last.
DAYS_KEPT = 8


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
    only_rises: bool = False
    """The path gives nothing back."""


@cache
def prepared_shapes(buckets: int) -> tuple[PreparedShapes, ...]:
    return tuple(prepare(steady_shapes(), noises(buckets)))


@lru_cache(maxsize=DAYS_KEPT)
def prepared_days(buckets: int, span_seconds: float) -> tuple[PreparedShapes, ...]:
    """The metrics of one summary have the same span."""
    return tuple(prepare(day_shapes(span_seconds), noises(buckets)))


def prepare(shapes: Iterable[Growth], among: Sequence[Noise]) -> list[PreparedShapes]:
    made = []
    for _, group in groupby(sorted(shapes, key=columns_of), key=columns_of):
        alike = AlikeShapes(tuple(group), among[0].places)
        made += [prepare_in(noise, alike) for noise in among]
    return made


class AlikeShapes:
    """Shapes with equally many columns, and these columns in buckets."""

    def __init__(self, shapes: tuple[Growth, ...], places: FloatArray) -> None:
        self.shapes = shapes
        self.columns = np.stack([shape.in_buckets(places) for shape in shapes])
        self.plain = diagonals(np.asarray(np.linalg.qr(self.columns, mode="r"))) / np.sqrt(len(places))


def columns_of(shape: Growth) -> int:
    return shape.width


def prepare_in(noise: Noise, alike: AlikeShapes) -> PreparedShapes:
    bases, triangles = np.linalg.qr(noise.whitening @ alike.columns)
    sizes = np.log(np.abs(diagonals(triangles) / alike.plain)).sum(axis=1)
    priors = np.array([noise.log_prior + log_prior(shape) + together(noise, shape) for shape in alike.shapes])
    return PreparedShapes(noise, alike.shapes, priors, bases, np.linalg.inv(triangles), sizes)


def together(noise: Noise, shape: Growth) -> float:
    """What speaks against both at once, beside what each has alone."""
    return log(GROWS_AND_WANDERS) if grows_and_wanders(noise, shape) else 0.0


def grows_and_wanders(noise: Noise, shape: Growth) -> bool:
    lasting = noise.walks or noise.memory > LONG_MEMORY
    return lasting and shape.kind != "flat"


def diagonals(triangles: FloatArray) -> FloatArray:
    return np.diagonal(triangles, axis1=1, axis2=2)


@dataclass(frozen=True, eq=False)
class Scored:
    """Prepared shapes with what the path is along their bases, and the log weight of each."""

    block: PreparedShapes
    parts: FloatArray
    energy: float
    scores: FloatArray

    def explanations(self, best: float) -> list[Explanation]:
        rows = np.flatnonzero(self.scores - best >= log(LEAST_SHARE))
        return [
            build_explanation(
                self.block, int(row), self.parts[row], self.energy, float(self.scores[row]) - best
            )
            for row in rows
        ]


def explain(heights: FloatArray, span_seconds: float, wave: Wave | None = None) -> list[Explanation]:
    """Every pair worth a draw, the likeliest first; heights are one value a bucket."""
    among = noises(len(heights))
    blocks = [*prepared_shapes(len(heights)), *prepared_days(len(heights), span_seconds)]
    blocks += prepare(wave_shapes(wave), wave_noises(among)) if wave else []
    found = weigh(blocks, heights, only_rises(heights))
    return [widened(one) for one in found] if given_back(heights) > GIVES_BACK else found


def widened(one: Explanation) -> Explanation:
    """With the future of a walk below growth less certain than the fit says."""
    if not one.noise.walks or one.shape.kind == "flat":
        return one
    return replace(one, root=WIDER * one.root, variance=WIDER**2 * one.variance)


def explain_points(places: FloatArray, heights: FloatArray) -> list[Explanation]:
    """The same of a path that is known at a few places only, as by its crests."""
    return weigh(
        prepare(few_shapes(latest_bend(places)), wave_noises(noises_at(places))), heights, rises=False
    )


def weigh(blocks: list[PreparedShapes], heights: FloatArray, rises: bool) -> list[Explanation]:
    # By the blocks' own noises: two threads at the first call may each have made a set of them.
    whitened = {noise: noise.whitening @ heights for noise in {block.noise for block in blocks}}
    scored = [score(block, whitened[block.noise], rises) for block in blocks]
    scored = with_close_bends(scored, whitened, rises)
    best = max(float(one.scores.max()) for one in scored)
    found = [replace(each, only_rises=rises) for one in scored for each in one.explanations(best)]
    return sorted(sharpened(found), key=lambda one: -one.weight)


def sharpened(found: list[Explanation]) -> list[Explanation]:
    """
    The likelier of growth that wanders and growth that returns counts more than its share; together they count as before.

    Growth that wanders is the likelier one from a share of EVEN_SHARE on.
    """
    wanders = [grows_and_wanders(one.noise, one.shape) for one in found]
    sums = np.array(
        [
            sum(one.weight for one, is_so in zip(found, wanders) if is_so),
            sum(one.weight for one, is_so in zip(found, wanders) if not is_so and one.shape.kind != "flat"),
        ]
    )
    if not sums.all():
        return found
    shares = sums / sums.sum()
    counted = (shares / np.array([EVEN_SHARE, 1.0 - EVEN_SHARE])) ** SHARPER
    factors = counted / counted.sum() / shares
    return [
        one
        if one.shape.kind == "flat"
        else replace(one, weight=one.weight * float(factors[0 if is_so else 1]))
        for one, is_so in zip(found, wanders)
    ]


def wave_noises(among: Sequence[Noise]) -> list[Noise]:
    """Fewer of them, where each costs more; their priors are those of all."""
    return [noise for noise in among if not noise.smooth and noise.beside in WAVE_BESIDE]


def score(block: PreparedShapes, whitened: FloatArray, rises: bool) -> Scored:
    parts = block.bases.transpose(0, 2, 1) @ whitened
    energy = float(whitened @ whitened)
    return Scored(block, parts, energy, log_evidence(block, parts, energy) + unlikely(block, rises))


def with_close_bends(scored: list[Scored], whitened: dict[Noise, FloatArray], rises: bool) -> list[Scored]:
    """In the likeliest noises of each kind, the bends of the coarse grid are exchanged for close ones."""
    made = list(scored)
    best = max(float(one.scores.max()) for one in scored)
    for kind, count in CLOSE_NOISES.items():
        for columns in (1, 2):
            places = [
                place for place, one in enumerate(scored) if is_bent(one, kind, columns) and is_sharp(one)
            ]
            places.sort(key=lambda place: -float(bent_scores(scored[place]).max()))
            for place in places[:count]:
                one, path = scored[place], whitened[scored[place].block.noise]
                if could_matter(one, path, best):
                    made[place] = without_bends(one)
                    made.append(close_bends(one, path, rises))
    return made


def could_matter(one: Scored, whitened: FloatArray, best: float) -> bool:
    """Two bends around the best one explain at least as much as any between them; on few points, too much."""
    if not one.block.noise.is_grid:
        return True
    shape = one.block.shapes[int(np.argmax(bent_scores(one)))]
    around = (*shape.columns, bend(shape.start - NEIGHBOUR), bend(shape.start + NEIGHBOUR))
    richer = unweighted(one.block.noise, [Growth("bend", around)])
    return float(score(richer, whitened, rises=False).scores[0]) > best - HOPELESS_NATS


def is_bent(one: Scored, kind: str, columns: int) -> bool:
    shape = one.block.shapes[0]
    return (
        one.block.noise.kind == kind
        and len(shape.columns) == columns
        and shape.wave is None
        and len(one.scores) > 1
    )


def is_sharp(one: Scored) -> bool:
    """Beside the best bend and its neighbour, none of the coarse grid explains the path."""
    scores = np.sort(bent_scores(one))
    return bool(np.isfinite(scores[-1]) and scores[-1] - scores[-min(3, len(scores))] > SHARP_NATS)


def bent_scores(one: Scored) -> FloatArray:
    bent = np.array([shape.kind == "bend" for shape in one.block.shapes])
    return np.where(bent, one.scores, -np.inf)


def without_bends(one: Scored) -> Scored:
    return replace(one, scores=np.where(np.isfinite(bent_scores(one)), -np.inf, one.scores))


def close_bends(one: Scored, whitened: FloatArray, rises: bool) -> Scored:
    noise = one.block.noise
    shape = one.block.shapes[int(np.argmax(bent_scores(one)))]
    rises_before = len(shape.columns) == 2

    def plain_scores(shapes: list[Growth]) -> FloatArray:
        return score(unweighted(noise, shapes), whitened, rises).scores

    places, weights = look_closer(plain_scores, shape.start, rises_before, latest_bend(noise.places))
    close = unweighted(noise, [bent(place, rises_before) for place in places])
    return replace(score(close, whitened, rises), scores=weights + noise.log_prior)


def latest_bend(places: FloatArray) -> float:
    """Three places after it, at least."""
    return float(places[-AFTER_BEND])


def unweighted(noise: Noise, shapes: list[Growth]) -> PreparedShapes:
    made = prepare_in(noise, AlikeShapes(tuple(shapes), noise.places))
    return replace(made, log_priors=np.zeros(len(shapes)))


def only_rises(heights: FloatArray) -> bool:
    """What is given back is less than a fiftieth of what is taken, from one coarse bucket to the next."""
    return given_back(np.median(heights.reshape(-1, COARSE), axis=1)) < 0.02


def given_back(heights: FloatArray) -> float:
    """The falls from one height to the next, as a share of all moves; of a path that does not move, all of it."""
    steps = np.diff(heights)
    moved = float(np.abs(steps).sum())
    return float(np.maximum(-steps, 0.0).sum()) / moved if moved else 1.0


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
