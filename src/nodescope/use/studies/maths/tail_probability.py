"""
Tails of distributions, and what is left of a probability among many.

With forty values or more a tail is extrapolated from the outermost of them (peaks over
a threshold, a generalised Pareto tail whose shape comes from its mean and its
Gini mean difference); with fewer, Student's t distribution is used.
"""

from collections.abc import Sequence
from math import erfc, log, sqrt

import numpy as np

from nodescope.use.studies.series import FloatArray

ENOUGH_FOR_A_TAIL = 40
TAIL_SHARE = 0.1

# The shape of a tail fitted to a few dozen values is known to a fifth only, and a tail that is
# heavier than fitted costs more false alarms than a lighter one saves: so its own standard
# error is added. A shape above 0.7 no metric needs; a tail lighter than exponential would
# call values impossible after a few samples.
LEAST_SHAPE = 0.1
HEAVIEST = 0.7

TINY = 1e-300


def adjust_p_values(p_values: Sequence[float], looked_at: int) -> list[float]:
    """For each the smallest false discovery rate at which it would be kept (Benjamini and Hochberg 1995)."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [1.0] * len(p_values)
    least = 1.0
    for rank in range(len(order), 0, -1):
        place = order[rank - 1]
        least = min(least, p_values[place] * max(looked_at, len(p_values)) / rank)
        adjusted[place] = least
    return adjusted


def tail_shape(beyond: FloatArray, excess: float) -> float:
    """Probability-weighted moments (Hosking and Wallis 1987), between the bounds above."""
    if excess <= 0 or len(beyond) < 2:
        return LEAST_SHAPE
    rank = np.arange(len(beyond)) / (len(beyond) - 1)
    weighted = float(np.mean(np.sort(beyond) * (1 - rank)))
    shape = 2 - excess / max(excess - 2 * weighted, TINY)
    error = (1 + max(shape, 0.0)) / sqrt(len(beyond))
    return float(np.clip(shape + error, LEAST_SHAPE, HEAVIEST))


def student_tail(t: float, freedom: int) -> float:
    """Two-sided, by Wallace's normal approximation (1959): within 3 % from 5 degrees of freedom on, for t up to 4."""
    freedom = max(freedom, 1)
    z = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log(1 + t * t / freedom))
    return erfc(z / sqrt(2))
