"""Noises of mean 0 and a standard deviation of 1 (where there is one), by how long they remember."""

from functools import partial

import numpy as np

from bench.judge.make.case import FloatArray, Noise, Random, pick


def white(random: Random, count: int) -> FloatArray:
    return random.normal(size=count)


def autoregressive(random: Random, count: int, memory: float) -> FloatArray:
    """x[t] = memory x[t-1] + e, started from its own distribution."""
    shocks = (random.normal(size=count) * np.sqrt(1 - memory**2)).tolist()
    value = float(random.normal())
    values = []
    for shock in shocks:
        value = memory * value + shock
        values.append(value)
    return np.array(values)


def quantised(random: Random, count: int) -> FloatArray:
    """An autoregressive value as a meter with coarse steps shows it: steps of half to one deviation."""
    step = pick(random, 0.5, 1.0)
    return step * np.asarray(np.round(autoregressive(random, count, 0.9) / step), dtype=np.float64)


def heavy_tails(random: Random, count: int) -> FloatArray:
    """Student's t with three degrees of freedom, scaled to a deviation of 1."""
    return random.standard_t(3, count) / 3**0.5


def pareto(random: Random, count: int) -> FloatArray:
    """Mostly small, now and then huge; the tail's exponent is 2.5."""
    return random.pareto(2.5, count)


def poisson(random: Random, count: int) -> FloatArray:
    mean = pick(random, 0.5, 20)
    counts: FloatArray = random.poisson(mean, count).astype(np.float64)
    return (counts - mean) / float(np.sqrt(mean))


def random_walk(random: Random, count: int) -> FloatArray:
    """Its deviation at the end is 1."""
    return np.cumsum(random.normal(size=count)) / float(np.sqrt(count))


MEMORIES = (0.5, 0.9, 0.99, 0.999)
AUTOREGRESSIVE: dict[str, Noise] = {
    f"AR({memory})": partial(autoregressive, memory=memory) for memory in MEMORIES
}
STATIONARY: dict[str, Noise] = {
    "white": white,
    **AUTOREGRESSIVE,
    "quantised AR": quantised,
    "heavy tails": heavy_tails,
    "Pareto": pareto,
    "Poisson": poisson,
}
