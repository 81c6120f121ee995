"""
What the change point study is compared with: nothing at all, PELT, and a plain BOCPD.

Written here from their papers, with the defaults of the published benchmark, so that
the comparison needs no other package. Input is scaled to unit variance, as there.
"""

from math import lgamma, log, pi

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def scaled(values: FloatArray) -> FloatArray:
    deviation = float(values.std(ddof=1))
    return np.asarray((values - values.mean()) / deviation) if deviation > 0 else np.zeros_like(values)


def none(_: FloatArray) -> list[int]:
    return []


def pelt(values: FloatArray) -> list[int]:
    """Changes in mean with known variance, penalty 3 ln n (Killick 2012; MBIC, the published default)."""
    x = scaled(values)
    count = len(x)
    total = np.concatenate(([0.0], np.cumsum(x)))
    squares = np.concatenate(([0.0], np.cumsum(x * x)))
    penalty = 3 * log(count)
    cost = np.full(count + 1, np.inf)
    cost[0] = -penalty
    came_from = np.zeros(count + 1, dtype=np.int64)
    starts = np.array([0])
    for end in range(1, count + 1):
        length = end - starts
        piece = squares[end] - squares[starts] - (total[end] - total[starts]) ** 2 / length
        reached = cost[starts] + piece
        best = int(np.argmin(reached))
        cost[end] = reached[best] + penalty
        came_from[end] = starts[best]
        starts = np.append(starts[reached <= cost[end]], end)
    return walked_back(came_from)


def plain_bocpd(values: FloatArray) -> list[int]:
    """Constant pieces, normal-inverse-gamma (1, 1, 1), hazard 1/100, most probable cut (Adams 2007)."""
    x = scaled(values)
    count = len(x)
    total = np.concatenate(([0.0], np.cumsum(x)))
    squares = np.concatenate(([0.0], np.cumsum(x * x)))
    constants = np.array([length_constant(length) for length in range(count + 1)])
    score = np.full(count + 1, -np.inf)
    score[0] = -log(0.01)
    came_from = np.zeros(count + 1, dtype=np.int64)
    starts = np.array([0])
    for end in range(1, count + 1):
        length = end - starts
        summed = total[end] - total[starts]
        scale = 1 + 0.5 * (squares[end] - squares[starts] - summed**2 / (1 + length))
        evidence = constants[length] - (1 + length / 2) * np.log(scale)
        reached = score[starts] + log(0.01) + (length - 1) * log(0.99) + evidence
        best = int(np.argmax(reached))
        score[end] = reached[best]
        came_from[end] = starts[best]
        starts = np.append(starts[reached > reached[best] - 30], end)
    return walked_back(came_from)


def length_constant(length: int) -> float:
    return -length / 2 * log(2 * pi) - 0.5 * log(1 + length) + lgamma(1 + length / 2)


def walked_back(came_from: NDArray[np.int64]) -> list[int]:
    cuts: list[int] = []
    end = int(came_from[-1])
    while end > 0:
        cuts.append(end)
        end = int(came_from[end])
    return cuts[::-1]


BASELINES = {"none": none, "PELT": pelt, "plain BOCPD": plain_bocpd}
