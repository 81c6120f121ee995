"""
What an oracle would say: the width of the best 90 % interval for a first passage.

Two kinds. Where the path is random (steps, requests, load, walks) the oracle knows the true
parameters and the present state, and draws possible futures. Where the path is a fixed
curve in noise an oracle with its parameters would have no width at all; there it
knows the form and the true noise, and estimates level, slope and season by least
squares, as nobody can do better. A line with a wobble of its own (AR(0.999)) has both.
"""

from collections.abc import Callable

import numpy as np

from bench.judge.make.case import FloatArray, Random

LOW, HIGH = 0.05, 0.95
DRAWS = 120
# Of a normal distribution's 90 %.
DEVIATIONS = 1.645

Future = Callable[[Random], float]
"""Seconds from now until a possible path first touches the limit."""


def width_of_futures(random: Random, future: Future, draws: int = DRAWS) -> float:
    low, high = np.quantile([future(random) for _ in range(draws)], [LOW, HIGH])
    return float(high - low)


def passage(path: FloatArray, limit: float, step_seconds: float = 1.0) -> float:
    """Seconds until a path, whose first value is one step from now, is at the limit; inf if never."""
    above = np.flatnonzero(path >= limit)
    return float((above[0] + 1) * step_seconds) if len(above) else np.inf


def whitened(columns: FloatArray, memory: float) -> FloatArray:
    """Columns in autoregressive noise as they are in white noise of the shocks' deviation."""
    if memory == 0:
        return columns
    rest = columns[1:] - memory * columns[:-1]
    return np.concatenate([columns[:1] * np.sqrt(1 - memory**2), rest])


def spread_of(columns: FloatArray, noise: float, memory: float) -> FloatArray:
    """Times a vector of standard normal draws: the errors of the best estimate of the columns' weights."""
    white = whitened(columns, memory)
    root: FloatArray = np.linalg.cholesky(np.linalg.inv(white.T @ white))
    return root * (noise * float(np.sqrt(1 - memory**2)))


def width_of_curve(
    random: Random,
    columns: FloatArray,
    ahead: FloatArray,
    truth: FloatArray,
    limit: float,
    noise: float,
    memory: float = 0.0,
    step_seconds: float = 1.0,
) -> float:
    """columns of the window and ahead of it, the true weights; the noise's deviation and its memory."""
    weights = truth[:, None] + spread_of(columns, noise, memory) @ random.normal(size=(len(truth), DRAWS))
    paths = ahead @ weights
    reached = np.where((paths >= limit).any(axis=0), (paths >= limit).argmax(axis=0) + 1, len(ahead))
    low, high = np.quantile(reached * step_seconds, [LOW, HIGH])
    return max(float(high - low), step_seconds)


def width_of_crossing(
    columns: FloatArray, place: FloatArray, rate: float, noise: float, memory: float
) -> float:
    """The same by formula where the curve crosses at a known place with a known rate."""
    deviation = float(np.linalg.norm(place @ spread_of(columns, noise, memory))) / rate
    return max(1.0, 2 * DEVIATIONS * deviation)
