"""Courses over time, one value every ten seconds."""

from typing import Any

import numpy as np

from nodescope.base.block import Floats

STEP_SECONDS = 10
MINUTE = 60 // STEP_SECONDS
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MIB = 2.0**20
GIB = 2.0**30

Random = np.random.Generator


def uniform(random: Random, low: float, high: float) -> float:
    return float(random.uniform(low, high))


def between(random: Random, low: float, high: float) -> int:
    """A whole number, high included."""
    return int(random.integers(round(low), round(high) + 1))


def spread(random: Random, low: float, high: float) -> float:
    """Small ones as often as large ones."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def pick(random: Random, choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def remember(random: Random, count: int, steps: float) -> Floats:
    """Noise of deviation 1 that forgets within so many steps."""
    share = float(np.exp(-1 / max(steps, 0.1)))
    shocks = random.normal(size=count) * np.sqrt(1 - share**2)
    shocks[:1] = random.normal()
    return decay(shocks, share)


def decay(values: Floats, share: float) -> Floats:
    """y[t] = share y[t-1] + x[t], block by block: powers of a whole week would underflow."""
    block = max(1, min(len(values), int(600 / max(-np.log(share), 1e-9)))) if share > 0 else 1
    if share <= 0:
        return values
    found = np.empty(len(values))
    before = 0.0
    for start in range(0, len(values), block):
        part = values[start : start + block]
        powers = share ** np.arange(1, len(part) + 1)
        found[start : start + block] = powers * (before + np.cumsum(part / powers))
        before = float(found[start + len(part) - 1])
    return found


def season(at: Floats, peak_hour: float, depth: float) -> Floats:
    """1 in the mean; a broad day, a deep night, weekends a little lower. `at` is epoch seconds."""
    hour = at / 3600 % 24
    turn = 2 * np.pi * (hour - peak_hour) / 24
    weekend = np.where((at // 86_400 + 4) % 7 >= 5, 1 - 0.35 * depth, 1.0)
    return (1 + depth * (0.8 * np.cos(turn) + 0.25 * np.cos(2 * turn))) * weekend


def traffic(random: Random, at: Floats, depth: float) -> Floats:
    """A season with slow and quick noise, and now and then a crowd."""
    count = len(at)
    level = season(at, uniform(random, 11, 20), depth)
    level = level * np.exp(0.08 * remember(random, count, 30 * MINUTE) + 0.12 * remember(random, count, 2))
    for _ in range(random.poisson(count / (2 * DAY))):
        start, length = between(random, 0, count - 1), between(random, 2 * MINUTE, 25 * MINUTE)
        level[start : start + length] *= uniform(random, 1.2, 1.8)
    return np.maximum(level, 0.02)


def collected(random: Random, count: int, young: float, old: float, every: float, old_every: float) -> Floats:
    """
    A heap: young objects go at every small collection, old ones at a large one.

    Both intervals vary from one collection to the next. Values go from 0 to young + old.
    """
    return young * teeth(random, count, every, 0.25) + old * teeth(random, count, old_every, 0.15)


def teeth(random: Random, count: int, every: float, wander: float) -> Floats:
    """From 0 up to about 1 and down at once, every so many steps."""
    lengths = every * np.exp(wander * random.normal(size=int(count / every) + 3))
    ends = np.concatenate([[0.0], np.cumsum(lengths)]) - uniform(random, 0, float(lengths[0]))
    step = np.arange(count)
    place = np.clip(np.searchsorted(ends, step, side="right") - 1, 0, len(lengths) - 1)
    return np.clip((step - ends[place]) / every, 0, 1.3)


def level_off(count: int, steps: float) -> Floats:
    """From 0 to 1, ever slower."""
    return 1 - np.exp(-np.arange(count) / max(steps, 1))


def fill(count: int, steps: float) -> Floats:
    """From 0 to 1 in a straight line, then it stays."""
    return np.minimum(np.arange(count) / max(steps, 1), 1.0)
