"""
How improbable a value is, judged from the values seen before it.

With forty values or more the far tail is extrapolated from the upper tenth (peaks
over a threshold, a generalised Pareto tail whose shape comes from its mean and
its Gini mean difference); with fewer a Student t stands in.
"""

from dataclasses import dataclass
from math import erfc, log, sqrt

import numpy as np

from nodescope.use.studies.maths.robust import spread
from nodescope.use.studies.series import FloatArray

ENOUGH_FOR_A_TAIL = 40
TAIL_SHARE = 0.1

# A tail drawn from a few dozen values looks lighter than it is; a tenth more
# holds the stated rate on Student's t with 3 degrees. Heavier than 1/2 has no
# variance, and no monitoring metric needs it; lighter than exponential would
# claim impossibility from a few samples.
LEAST_SHAPE = 0.1
HEAVIEST = 0.5

TINY = 1e-300


@dataclass(frozen=True)
class Past:
    """What was seen before: distances from the middle, and how their tail falls."""

    middle: float
    scale: float
    count: int
    threshold: float
    excess: float
    shape: float

    @classmethod
    def of(cls, values: FloatArray) -> "Past":
        middle = float(np.median(values))
        away = np.sort(np.abs(values - middle))
        kept = max(8, int(TAIL_SHARE * len(away)))
        beyond = away[-kept:] - away[-min(kept + 1, len(away))]
        excess = float(np.mean(beyond))
        return cls(
            middle=middle,
            scale=max(spread(values), float(values.std(ddof=1))),
            count=len(values),
            threshold=float(away[-min(kept + 1, len(away))]),
            excess=excess,
            shape=tail_shape(beyond, excess),
        )

    def improbability(self, value: float) -> float:
        """The chance of one further value at least this far from the middle."""
        away = abs(value - self.middle)
        if self.count < ENOUGH_FOR_A_TAIL:
            return student_tail(away / max(self.scale * sqrt(1 + 1 / self.count), TINY), self.count - 1)
        if away <= self.threshold or self.excess <= 0:
            return TAIL_SHARE if away <= self.threshold else TINY
        far = (away - self.threshold) / (self.excess * (1 - self.shape))
        return float(TAIL_SHARE * (1 + self.shape * far) ** (-1 / self.shape))


def tail_shape(beyond: FloatArray, excess: float) -> float:
    """Probability-weighted moments (Hosking and Wallis 1987), between the bounds above."""
    if excess <= 0 or len(beyond) < 2:
        return LEAST_SHAPE
    rank = np.arange(len(beyond)) / (len(beyond) - 1)
    weighted = float(np.mean(np.sort(beyond) * (1 - rank)))
    shape = 2 - excess / max(excess - 2 * weighted, TINY)
    return float(np.clip(shape + LEAST_SHAPE, LEAST_SHAPE, HEAVIEST))


def student_tail(t: float, freedom: int) -> float:
    """Two-sided, by Wallace's normal approximation (1959): within 1 % from 5 degrees on."""
    freedom = max(freedom, 1)
    z = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log(1 + t * t / freedom))
    return erfc(z / sqrt(2))
