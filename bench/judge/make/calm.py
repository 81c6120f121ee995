"""Memory that does not leak, though much of it rises."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.judge.make.case import MIB, FloatArray, Noise, Random, pick, pick_log
from bench.judge.make.leaks import HOURS, Collector, GrowthCase, collected
from bench.judge.make.noise import AUTOREGRESSIVE, autoregressive, random_walk, white
from bench.judge.make.shapes import DAY_SECONDS

LEVELS, DAY = "level", "day"


def calm(
    values: FloatArray,
    limit: float,
    *,
    moves: bool,
    must_say: str | None = None,
    passage_seconds: float = np.inf,
    step_seconds: float = 1.0,
) -> GrowthCase:
    return GrowthCase(
        values=values * MIB,
        moves=moves,
        limit=limit * MIB,
        must_say=must_say,
        passage_seconds=passage_seconds,
        step_seconds=step_seconds,
    )


def window(random: Random) -> FloatArray:
    return np.arange(3600 * int(random.choice(HOURS)), dtype=np.float64)


def wobble(random: Random, count: int, rise: float) -> FloatArray:
    """Noise of a rise: white or soon forgotten."""
    memory = float(random.choice([0.0, 0.9]))
    return rise * pick(random, 0.01, 0.08) * autoregressive(random, count, memory)


def saturating(random: Random, shortest: float, longest: float) -> GrowthCase:
    """Towards a ceiling below the limit, with a time constant of so many windows."""
    seconds = window(random)
    full, base = pick_log(random, 50, 400), pick(random, 100, 500)
    lasting = len(seconds) * pick(random, shortest, longest)
    grown = full * (1 - np.exp(-seconds / lasting))
    values = base + grown + wobble(random, len(seconds), float(grown[-1]))
    limit = base + full * pick(random, 1.1, 1.6)
    return calm(values, limit, moves=True, must_say=LEVELS)


def square_root(random: Random) -> GrowthCase:
    """Grows with the root of time; at its limit after more than ten windows."""
    seconds = window(random)
    rise, base = pick_log(random, 50, 400), pick(random, 100, 500)
    times = pick(random, 3.5, 5)
    values = base + rise * np.sqrt(seconds / len(seconds)) + wobble(random, len(seconds), rise)
    reached = len(seconds) * (times**2 - 1)
    return calm(values, base + rise * times, moves=True, must_say=LEVELS, passage_seconds=reached)


def logarithmic(random: Random) -> GrowthCase:
    """Grows with the logarithm of time: a table that doubles ever more seldom."""
    seconds = window(random)
    rise, base = pick_log(random, 50, 400), pick(random, 100, 500)
    early = len(seconds) * pick(random, 0.02, 0.2)
    shape = np.log1p(seconds / early) / np.log1p(len(seconds) / early)
    times = pick(random, 1.8, 2.5)
    reached = early * np.expm1(times * np.log1p(len(seconds) / early)) - len(seconds)
    values = base + rise * shape + wobble(random, len(seconds), rise)
    return calm(values, base + rise * times, moves=True, must_say=LEVELS, passage_seconds=float(reached))


def restarts(random: Random) -> GrowthCase:
    """Two to four restarts that nobody named: each start warms up to a level of its own."""
    seconds = window(random)
    count, full, base = len(seconds), pick_log(random, 50, 400), pick(random, 50, 200)
    cuts = np.sort(random.uniform(0.1, 0.9, int(random.integers(2, 5)))) * count
    begun = np.concatenate([[0.0], cuts])[np.searchsorted(cuts, seconds, side="right")]
    levels = full * random.uniform(0.8, 1.2, len(cuts) + 1)
    level = levels[np.searchsorted(cuts, seconds, side="right")]
    warmth = 1 - np.exp(-(seconds - begun) / pick_log(random, 30, 600))
    values = base + level * warmth + wobble(random, count, full)
    return calm(values, base + full * pick(random, 1.5, 2.5), moves=True)


def day_flank(random: Random) -> GrowthCase:
    """Two to six hours of the morning's rise; the day's top is below the limit."""
    count = 3600 * int(random.choice([2, 3, 4, 6]))
    seconds = np.arange(count, dtype=np.float64)
    swing, base = pick_log(random, 50, 400), pick(random, 300, 800)
    # 0.25 of a day is the steepest moment; the window ends within an hour and a half of it.
    end = 0.25 * DAY_SECONDS + pick(random, -5400, 5400)
    angle = 2 * np.pi * (seconds - count + end) / DAY_SECONDS
    own = base - swing * np.cos(angle)
    values = own + wobble(random, count, float(np.ptp(own)))
    return calm(values, base + swing * pick(random, 1.1, 1.5), moves=True, must_say=DAY)


def collector_alone(random: Random) -> GrowthCase:
    seconds = window(random)
    base, young = pick(random, 100, 500), pick_log(random, 20, 200)
    heap = Collector(young, pick_log(random, 30, 600))
    values = collected(random, heap, np.full(len(seconds), base))[0]
    values += random.normal(0, young * 0.01, len(seconds))
    return calm(values, base + young * pick(random, 1.5, 3), moves=True)


def page_cache(random: Random) -> GrowthCase:
    """Files are read, most of them again: what is cached grows until all of them are, or are reclaimed."""
    seconds = window(random)
    count, files = len(seconds), int(pick_log(random, 50, 2000))
    reads = int(files * pick(random, 2.5, 5))
    read_at = np.sort(random.uniform(0, count, reads))
    which = random.integers(0, files, reads)
    sizes = random.exponential(pick_log(random, 50, 400) / files, files)
    first = np.unique(which, return_index=True)[1]
    new = np.zeros(reads)
    new[first] = sizes[which[first]]
    cached = np.concatenate([[0.0], np.cumsum(new)])[np.searchsorted(read_at, seconds, side="right")]
    base = pick(random, 100, 400)
    values = base + cached + random.normal(0, 0.2, count)
    return calm(values, base + float(sizes.sum()) * pick(random, 1.1, 1.8), moves=True, must_say=LEVELS)


def stationary(random: Random, noise: Noise) -> GrowthCase:
    count = len(window(random))
    base = pick(random, 100, 500)
    spread = base * pick_log(random, 0.005, 0.08)
    return calm(base + spread * noise(random, count), base + spread * pick(random, 5, 10), moves=False)


CALM: dict[str, Callable[[Random], GrowthCase]] = {
    "saturating": partial(saturating, shortest=0.7, longest=1.5),
    "square root": square_root,
    "logarithm": logarithmic,
    "unnamed restarts": restarts,
    "rising flank of a day": day_flank,
    "warm-up": partial(saturating, shortest=0.04, longest=0.2),
    "GC sawtooth alone": collector_alone,
    "page cache": page_cache,
    "white noise": partial(stationary, noise=white),
    **{f"{name} noise": partial(stationary, noise=noise) for name, noise in AUTOREGRESSIVE.items()},
    "random walk": partial(stationary, noise=random_walk),
}
