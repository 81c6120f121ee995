"""
Noise as real series have it. Each kind has mean 1 and is never negative.

A story multiplies a level by one of these, so that nothing it finds may rest
on clean lines. Which kind a workload gets is decided by the seed.
"""

from collections.abc import Callable

import numpy as np

from nodescope.base.block import Floats

Random = np.random.Generator
Noise = Callable[[Random, int], Floats]
DAY_SECONDS = 86_400
# A busy minute in the kinds that have one.
SLOW_SECONDS = 60


def white(random: Random, count: int) -> Floats:
    return np.clip(1 + 0.12 * random.standard_normal(count), 0.3, None)


def autoregressive(random: Random, count: int) -> Floats:
    """Remembers half a minute of its past."""
    memory = 0.97
    # A weighted sum of the last four minutes is the same as the recursion, and has no loop.
    weights = memory ** np.arange(240)
    weights *= 0.15 / np.sqrt((weights**2).sum())
    path = np.convolve(random.standard_normal(count + 239), weights, "valid")
    return np.asarray(np.clip(1 + path, 0.3, None), np.float64)


def bursts(random: Random, count: int) -> Floats:
    """Requests of a heavy tail: most seconds are calm, a few have several times the mean."""
    heights = np.clip(random.pareto(2.2, count), 0, 6)
    return np.asarray(0.7 + 0.3 * heights / heights.mean(), np.float64)


def diurnal(random: Random, count: int) -> Floats:
    """Follows the day by a tenth up and down, over white noise."""
    phase = random.uniform(0, DAY_SECONDS)
    wave = 0.1 * np.sin(2 * np.pi * (np.arange(count) + phase) / DAY_SECONDS)
    return np.clip(1 + wave + 0.08 * random.standard_normal(count), 0.3, None)


def collected(random: Random, count: int) -> Floats:
    """A garbage collector: rises for a time that differs from round to round, then falls."""
    mean_seconds = random.uniform(15, 45)
    rounds = np.maximum(5, random.normal(mean_seconds, mean_seconds * 0.35, count // 5 + 8)).astype(int)
    ends = np.cumsum(rounds)
    place = np.searchsorted(ends, np.arange(count), side="right")
    share = 1 - (ends[place] - np.arange(count)) / rounds[place]
    return np.asarray(0.9 + 0.2 * share + 0.02 * random.standard_normal(count), np.float64)


def quantised(random: Random, count: int) -> Floats:
    """Counted in whole units of a hundredth-second tick: few distinct values."""
    return np.asarray(np.clip(np.rint(8 + 1.2 * random.standard_normal(count)), 2, None) / 8, np.float64)


KINDS: dict[str, Noise] = {
    "white": white,
    "autoregressive": autoregressive,
    "bursts": bursts,
    "diurnal": diurnal,
    "collected": collected,
    "quantised": quantised,
}


def choose_noise(random: Random, *, calm: bool = False) -> Noise:
    """Any kind; calm ones have no spikes of their own."""
    names = [name for name in KINDS if not (calm and name == "bursts")]
    return KINDS[str(random.choice(names))]


def wobble(random: Random, count: int, share: float = 0.02) -> Floats:
    """For memory: a slow path around 1 that comes back."""
    knots = random.standard_normal(count // 300 + 3)
    path = np.interp(np.arange(count), np.arange(len(knots)) * 300.0, knots)
    return np.asarray(1 + share * path + share * 0.1 * random.standard_normal(count), np.float64)
