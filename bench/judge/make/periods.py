"""Series that repeat themselves, series that do not, and cycles without a period."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.judge.make.case import Case, Noise, Random, pick, pick_log
from bench.judge.make.noise import STATIONARY, autoregressive, random_walk, white
from bench.judge.make.shapes import bursts, cron, pulses, sawtooth

CYCLES = 10
"""The least number of cycles in a window."""


@dataclass(frozen=True)
class PeriodCase(Case):
    periods: tuple[float, ...] = ()
    is_rough: bool = False
    """A cycle without a period: told as "roughly every", or not at all."""


def job(
    random: Random,
    periods: tuple[float, float],
    lengths: tuple[int, int],
    jitter: float,
    heights: tuple[float, float] = (4.0, 10.0),
) -> PeriodCase:
    period = float(round(pick_log(random, *periods)))
    count = int(max(1800, period * pick(random, CYCLES, 40)))
    length = int(random.integers(lengths[0], lengths[1] + 1))
    values = 10 + white(random, count) + cron(random, count, period, length, pick(random, *heights), jitter)
    return PeriodCase(values=values, moves=True, periods=(period,))


def nested(random: Random) -> PeriodCase:
    """A short job every minute and a longer one every ten minutes."""
    count = 7200
    small = cron(random, count, 60, int(random.integers(3, 8)), pick(random, 4, 8), 0.5)
    large = cron(random, count, 600, int(random.integers(20, 60)), pick(random, 6, 12), 0.5)
    return PeriodCase(values=10 + white(random, count) + small + large, moves=True, periods=(60.0, 600.0))


def collector(random: Random) -> PeriodCase:
    period = pick_log(random, 30, 200)
    count = int(max(1800, period * pick(random, 15, 40)))
    saw = sawtooth(random, count, period, 0.02)
    # Cycles of unequal length: their mean is what the series shows.
    drops = int((np.diff(saw) < -0.5).sum())
    places = np.flatnonzero(np.diff(saw) < -0.5)
    mean = float(places[-1] - places[0]) / (drops - 1)
    values = 300 + 100 * saw + pick(random, 1, 15) * white(random, count)
    return PeriodCase(values=values, moves=True, periods=(mean,), unit="MiB", metric="heap")


def wave(random: Random, memory: float, is_square: bool) -> PeriodCase:
    period = pick_log(random, 20, 300)
    count = int(max(1200, period * pick(random, CYCLES, 40)))
    shape = np.sin(2 * np.pi * np.arange(count) / period + pick(random, 0, 6))
    shape = np.sign(shape) if is_square else shape
    values = 10 + pick(random, 1.0, 2.5) * shape + autoregressive(random, count, memory)
    return PeriodCase(values=values, moves=True, periods=(period,))


def one_hour(random: Random) -> PeriodCase:
    """A day of seconds; a job of 4 s runs every 60 s in one hour of it."""
    count = 86_400
    begun = int(random.integers(1, 22)) * 3600
    starts = begun + np.arange(60) * 60.0 + random.normal(0, 0.5, 60)
    values = 10 + white(random, count) + pulses(count, starts, 4, pick(random, 5, 10))
    return PeriodCase(values=values, moves=True, periods=(60.0,))


PERIODIC: dict[str, Callable[[Random], PeriodCase]] = {
    "cron 60 s, jitter 1-2 s": lambda random: job(random, (60, 60), (4, 12), pick(random, 1, 2)),
    "cron, any period, jitter": lambda random: job(random, (40, 400), (4, 12), pick(random, 0.3, 1)),
    "1 s spikes every 60 s": partial(job, periods=(60, 60), lengths=(1, 1), jitter=0.0, heights=(6.0, 12.0)),
    "1 s spikes, jitter 1 s": partial(job, periods=(60, 60), lengths=(1, 1), jitter=1.0, heights=(6.0, 12.0)),
    "low duty": partial(job, periods=(120, 300), lengths=(2, 3), jitter=0.5, heights=(6.0, 12.0)),
    "nested 60 + 600 s": nested,
    "sawtooth": collector,
    "sine, white": partial(wave, memory=0.0, is_square=False),
    "sine, AR(0.9)": partial(wave, memory=0.9, is_square=False),
    "square, white": partial(wave, memory=0.0, is_square=True),
    "square, AR(0.9)": partial(wave, memory=0.9, is_square=True),
    "job in one hour of a day": one_hour,
}


def size(random: Random) -> int:
    return int(random.integers(1200, 7200))


def noise_alone(random: Random, noise: Noise) -> PeriodCase:
    return PeriodCase(values=10 + noise(random, size(random)))


def random_spikes(random: Random) -> PeriodCase:
    """Jobs started by people: gaps are exponential."""
    count = size(random)
    starts = np.cumsum(random.exponential(pick_log(random, 30, 200), 1000))
    values = 10 + white(random, count) + pulses(count, starts[starts < count], 5, pick(random, 4, 10))
    return PeriodCase(values=values)


def random_bursts(random: Random) -> PeriodCase:
    count = size(random)
    on, off = pick_log(random, 10, 60), pick_log(random, 20, 200)
    return PeriodCase(values=10 + white(random, count) + bursts(random, count, on, off, pick(random, 3, 8)))


def steps(random: Random) -> PeriodCase:
    count = size(random)
    cuts = np.sort(random.integers(0, count, int(random.integers(1, 5))))
    levels = random.normal(0, 5, len(cuts) + 1)
    values = 10 + white(random, count) + levels[np.searchsorted(cuts, np.arange(count), side="right")]
    return PeriodCase(values=values)


def ramp(random: Random) -> PeriodCase:
    count = size(random)
    return PeriodCase(
        values=10 + pick(random, 3, 20) * np.arange(count) / count + white(random, count), moves=True
    )


def hump(random: Random) -> PeriodCase:
    count = size(random)
    middle, wide = count * pick(random, 0.2, 0.8), count * pick(random, 0.02, 0.15)
    shape = np.exp(-0.5 * ((np.arange(count) - middle) / wide) ** 2)
    return PeriodCase(values=10 + pick(random, 4, 10) * shape + white(random, count), moves=True)


APERIODIC: dict[str, Callable[[Random], PeriodCase]] = {
    **{name: partial(noise_alone, noise=noise) for name, noise in STATIONARY.items()},
    "random walk": partial(noise_alone, noise=random_walk),
    "jobs at random": random_spikes,
    "on/off bursts": random_bursts,
    "steps": steps,
    "trend": ramp,
    "hump": hump,
}


def stochastic_cycle(random: Random) -> PeriodCase:
    """AR(2): swings about every so many seconds, but forgets its phase within a few swings."""
    count, period = size(random), pick_log(random, 20, 100)
    # The phase is forgotten within one to three cycles.
    radius = float(np.exp(-1 / (period * pick(random, 1, 3))))
    first, second = 2 * radius * np.cos(2 * np.pi / period), -(radius**2)
    values = [0.0, 0.0]
    for shock in random.normal(size=count + 1000).tolist():
        values.append(first * values[-1] + second * values[-2] + shock)
    kept = np.array(values[-count:])
    return PeriodCase(values=10 + kept / kept.std(), is_rough=True)
