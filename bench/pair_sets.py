"""
Pairs of generated series: related with a known lag, or independent.

Every maker takes a random generator and a number of samples. A lag is positive
where the second series moved first, as the correlation study tells it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.studies_sets import autoregressive, cron_spikes, pink, telegraph

FloatArray = NDArray[np.float64]
Maker = Callable[[np.random.Generator, int], FloatArray]
PairMaker = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray, int]]


def noise(random: np.random.Generator, count: int) -> FloatArray:
    """White, or forgotten within a few samples."""
    return autoregressive(random, count, float(random.choice([0.0, 0.3, 0.6])))


def step_places(random: np.random.Generator, count: int, most: int) -> list[int]:
    return sorted(
        int(place)
        for place in random.integers(count // 10, count - count // 10, random.integers(1, most + 1))
    )


def steps(random: np.random.Generator, count: int) -> FloatArray:
    """One to three steps at random times."""
    values = noise(random, count)
    for place in step_places(random, count, 3):
        values[place:] += random.uniform(3, 12) * random.choice([-1, 1])
    return values


def hump(random: np.random.Generator, count: int, middle: float, width: float) -> FloatArray:
    index = np.arange(count)
    return np.asarray(random.uniform(4, 10) * np.exp(-0.5 * ((index - middle) / width) ** 2))


def humps(random: np.random.Generator, count: int) -> FloatArray:
    values = noise(random, count)
    return values + hump(
        random, count, count * random.uniform(0.15, 0.85), count * random.uniform(0.03, 0.12)
    )


def trend(random: np.random.Generator, count: int) -> FloatArray:
    """A line, a parabola, a root, a curve that levels off."""
    share = np.linspace(0, 1, count)
    curves = (share, share**2, np.sqrt(share), 1 - np.exp(-share / random.uniform(0.1, 1)), share**3)
    size = random.uniform(5, 30) * random.choice([-1, 1])
    return np.asarray(noise(random, count) + size * curves[random.integers(len(curves))])


def burst_train(random: np.random.Generator, count: int, places: FloatArray | None = None) -> FloatArray:
    values = noise(random, count)
    starts = random.integers(0, count, max(3, count // 300)) if places is None else places
    for start in starts:
        values[int(start) : int(start) + random.integers(5, 40)] += random.uniform(4, 10)
    return values


def memory(share: float) -> Maker:
    return lambda random, count: autoregressive(random, count, share)


INDEPENDENT: dict[str, Maker] = {
    "white": memory(0.0),
    "heavy tails": lambda random, count: random.standard_t(3, count),
    "AR(0.5)": memory(0.5),
    "AR(0.9)": memory(0.9),
    "AR(0.99)": memory(0.99),
    "AR(0.999)": lambda random, count: autoregressive(random, count + 3000, 0.999)[3000:],
    "walk": lambda random, count: np.cumsum(random.standard_normal(count)),
    "walk in noise": lambda random, count: (
        np.cumsum(random.standard_normal(count)) / 5 + random.standard_normal(count)
    ),
    "pink": pink,
    "steps": steps,
    "humps": humps,
    "trends": trend,
    "bursts": burst_train,
    "telegraph": telegraph,
    "cron": cron_spikes,
    "sine": lambda random, count: (
        random.standard_normal(count) + 3 * np.sin(np.arange(count) / 60 + random.uniform(0, 6.3))
    ),
}


def stepped_pair(
    random: np.random.Generator, count: int, lag: int, most: int
) -> tuple[FloatArray, FloatArray, int]:
    left, right = noise(random, count), noise(random, count)
    for place in step_places(random, count, most):
        sign = random.choice([-1, 1])
        left[place + lag :] += sign * random.uniform(3, 12)
        right[place:] += sign * random.uniform(3, 12)
    return left, right, lag


def hump_pair(random: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray, int]:
    middle, width = count * random.uniform(0.2, 0.8), count * random.uniform(0.03, 0.12)
    left = noise(random, count) + hump(random, count, middle, width)
    return left, noise(random, count) + hump(random, count, middle, width), 0


HUMPS: tuple[Callable[[FloatArray], FloatArray], ...] = (
    lambda away: np.exp(-0.5 * away * away),
    lambda away: 0.5 + 0.5 * np.cos(np.pi * np.clip(away / 1.8, -1, 1)),
    lambda away: np.maximum(0, 1 - np.abs(away) / 1.8),
    lambda away: np.maximum(0, away + 1) * np.exp(-away),
    lambda away: 1 / (1 + np.exp(8 * (np.abs(away) - 1.2))),
)
"""Shapes of a hump, by the distance from its middle in widths: round, a cosine's, pointed, slow to end, flat on top."""


def flank_pair(random: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray, int]:
    """A common hump of any shape, mostly short, so that its flanks look like steps; in noise with or without memory."""
    away = (np.arange(count, dtype=np.float64) - count * random.uniform(0.2, 0.8)) / (
        count * float(np.exp(random.uniform(-5.3, -2.3)))
    )
    shape, share = HUMPS[random.integers(len(HUMPS))](away), float(random.choice([0.0, 0.5, 0.9]))
    left, right = (random.uniform(3, 10) * shape + autoregressive(random, count, share) for _ in range(2))
    return left, right, 0


def driven_pair(random: np.random.Generator, count: int, share: float) -> tuple[FloatArray, FloatArray, int]:
    """The second drives the first, which has noise of its own with the same memory."""
    lag = int(random.integers(0, 31))
    right = autoregressive(random, count + lag, share)
    left = random.uniform(0.7, 2) * right[:count] + autoregressive(random, count, share)
    return left, right[lag:], lag


def burst_pair(random: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray, int]:
    lag = int(random.integers(0, 31))
    places = random.integers(0, count - 60, max(3, count // 300)).astype(np.float64)
    return burst_train(random, count, places + lag), burst_train(random, count, places), lag


RELATED: dict[str, PairMaker] = {
    "one step, same second": lambda random, count: stepped_pair(random, count, 0, 1),
    "steps, same second": lambda random, count: stepped_pair(random, count, 0, 3),
    "one step, up to 5 s later": lambda random, count: stepped_pair(
        random, count, int(random.integers(1, 6)), 1
    ),
    "steps, up to 30 s later": lambda random, count: stepped_pair(
        random, count, int(random.integers(1, 31)), 4
    ),
    "common hump": hump_pair,
    "common flanks": flank_pair,
    "driven AR(0.5)": lambda random, count: driven_pair(random, count, 0.5),
    "driven AR(0.9)": lambda random, count: driven_pair(random, count, 0.9),
    "driven AR(0.99)": lambda random, count: driven_pair(random, count, 0.99),
    "bursts": burst_pair,
}
