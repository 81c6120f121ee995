"""
What was usual in one view: how far out a further figure must be to be unusual.

Several bounds, of which the farthest counts: everything seen before; the tail of
what was seen, drawn on (of the outer tenth, and of the farthest few); and
Student's t with as many degrees of freedom as there are independent figures,
which are few where a series has a long memory.
"""

from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist

import numpy as np

from nodescope.use.studies.maths.robust import NORMAL_MAD, ROUNDING_SHARE, median_of
from nodescope.use.studies.maths.tail_probability import (
    ENOUGH_FOR_A_TAIL,
    TAIL_SHARE,
    TINY,
    student_tail,
    tail_shape,
)
from nodescope.use.studies.series import FloatArray

FEWEST_FIGURES = 10
FARTHEST = 8
FEWEST_OUTER, OUTER = 40, 30
LEAST_CHANCE = 1e-15


@dataclass(frozen=True)
class Tail:
    """Beyond the threshold, which a figure exceeds with the probability share, figures fall off like a Pareto tail."""

    threshold: float
    share: float
    scale: float
    shape: float

    def bound(self, chance: float) -> float:
        reach = ((self.share / chance) ** self.shape - 1) / self.shape
        return float(self.threshold + self.scale * max(reach, 0.0))

    def chance(self, figure: float) -> float:
        far = max(0.0, figure - self.threshold) / max(self.scale, TINY)
        return float(self.share * (1 + self.shape * far) ** (-1 / self.shape))


def outer_tail(figures: FloatArray, quantum: float) -> Tail:
    """Of the outermost forty, or the outer thirtieth where that is more; at most of the outer tenth."""
    kept = min(int(TAIL_SHARE * len(figures)), max(FEWEST_OUTER, len(figures) // OUTER))
    outer = np.sort(np.partition(figures, -kept - 1)[-kept - 1 :])
    beyond = outer[1:] - outer[0]
    excess = float(beyond.sum()) / len(beyond)
    shape = tail_shape(beyond, excess)
    return Tail(float(outer[0]), kept / len(figures), (excess + quantum) * (1 - shape), shape)


def farthest_tail(figures: FloatArray, apart: int, quantum: float) -> Tail:
    """
    Of the eight farthest, at least some pieces apart: few bursts are few figures, however many pieces see each.

    The scale is known from eight figures only, which makes the tail of a further one heavier.
    """
    count = len(figures) // apart
    far = np.sort(figures[: count * apart].reshape(count, apart).max(axis=1))
    kept = min(FARTHEST, count // 2)
    scale = float(np.mean(far[-kept:]) - far[-kept - 1]) + quantum
    return Tail(float(far[-kept - 1]), kept / len(figures), scale, 1 / kept)


@dataclass(frozen=True)
class UsualFigures:
    """
    One side of what was usual in a view; of the lower side with its sign turned.

    independent  so many independent figures know as much about the middle
    most         the farthest figure seen, and one step of a series that moves in steps
    """

    middle: float
    scale: float
    independent: float
    most: float
    tails: tuple[Tail, ...]
    count: int

    @classmethod
    def fit(cls, figures: FloatArray, independent: float, overlap: int, quantum: float) -> "UsualFigures":
        middle, most = median_of(figures), float(figures.max())
        away = figures - middle
        offset = float(away.sum()) / len(away)
        spread = sqrt(max(0.0, float((away * away).sum()) / len(away) - offset * offset))
        scale = max(median_of(np.abs(away)) * NORMAL_MAD, spread)
        rounding = ROUNDING_SHARE * max(abs(middle), abs(most))
        tails = (farthest_tail(figures, 2 * overlap, quantum),) if len(figures) >= 8 * overlap else ()
        if len(figures) >= ENOUGH_FOR_A_TAIL:
            tails = (*tails, outer_tail(figures, quantum))
        return cls(
            middle,
            scale * sqrt(1 + 1 / independent),
            independent,
            most + quantum + rounding,
            tails,
            len(figures),
        )

    def bound(self, chance: float) -> float:
        """What one further figure exceeds with this probability at most."""
        by_student = self.middle + self.scale * student_bound(chance, self.independent - 1)
        return max(self.most, by_student, *(tail.bound(chance) for tail in self.tails))

    def chance(self, figure: float) -> float:
        """That one further figure is at least so far out."""
        away = (figure - self.middle) / max(self.scale, TINY)
        by_student = 0.5 * student_tail(max(away, 0.0), max(1, round(self.independent - 1)))
        return max([by_student, *(tail.chance(figure) for tail in self.tails)])


def independent_count(figures: FloatArray, overlap: int) -> float:
    """
    How many independent figures know as much about the middle: the count over the sum of autocorrelations.

    Summed over distances that double, until one is small; each a little more
    than it looks, because a sample's own mean hides a part of it.
    """
    count = len(figures)
    centred = figures - figures.mean()
    energy = float(np.sum(centred * centred))
    memory, distance, before, last = 0.0, overlap, 1.0, 0
    while energy > 0 and distance <= count // 3:
        near = float(np.sum(centred[distance:] * centred[:-distance])) / energy
        near += (1 + 3 * max(near, 0.0)) * overlap / count
        if near < 0.05:
            break
        memory += 0.5 * (before + near) * (distance - last)
        last, before, distance = distance, near, distance * 2
    return max(2.0, count / max(float(overlap), 2 * memory))


def student_bound(chance: float, freedom: float) -> float:
    """The inverse of student_tail, one-sided."""
    freedom = max(freedom, 1.0)
    z = NormalDist().inv_cdf(1 - max(chance, LEAST_CHANCE)) * (8 * freedom + 3) / (8 * freedom + 1)
    return sqrt(freedom * (exp(min(z * z / freedom, 600.0)) - 1))


def smallest_step(values: FloatArray) -> float:
    """Of a series that moves in steps, such as counts, one step; 0 where no two of its values are often equal."""
    distinct = np.unique(values)
    if len(distinct) < 2 or 4 * len(distinct) > len(values):
        return 0.0
    return float(np.median(np.diff(distinct)))
