"""Pictures that nobody would call stable, and some that everybody would."""

from collections.abc import Callable

import numpy as np

from bench.judge.make.case import Case, FloatArray, Random, pick
from bench.judge.make.leaks import Collector, collected
from bench.judge.make.noise import white

COUNT = 3600


def memory(values: FloatArray, *, moves: bool = True) -> Case:
    return Case(values=values * 2**20, moves=moves, unit="bytes", metric="memory_usage_bytes", limit=2.0**30)


def big_step(random: Random) -> Case:
    """A step of 57 %."""
    at = int(COUNT * pick(random, 0.2, 0.8))
    return memory(200 * (1 + 0.57 * (np.arange(COUNT) >= at)) + 2 * white(random, COUNT))


def staircase(random: Random) -> Case:
    stairs = int(random.integers(4, 9))
    return memory(200 + 20.0 * (np.arange(COUNT) * stairs // COUNT) + 2 * white(random, COUNT))


def wide_heap(random: Random) -> Case:
    """A heap between 200 and 500 MiB."""
    heap = Collector(300.0, pick(random, 60, 600))
    return memory(collected(random, heap, np.full(COUNT, 200.0))[0])


def live_leak(random: Random) -> Case:
    """225 MiB an hour below the sawtooth of a collector."""
    heap = Collector(pick(random, 50, 200), pick(random, 60, 300))
    return memory(collected(random, heap, 200 + 225.0 * np.arange(COUNT) / COUNT)[0])


def late_spike(random: Random) -> Case:
    """Three times its level for a minute, five minutes ago."""
    values = 200 + 2 * white(random, COUNT)
    values[-360:-300] += 400
    return memory(values)


def slow_wave(random: Random) -> Case:
    angle = 2 * np.pi * np.arange(COUNT) / pick(random, 300, 1200)
    return memory(300 + pick(random, 50, 150) * np.sin(angle) + 5 * white(random, COUNT))


def hung(random: Random) -> Case:
    """Busy, and then nothing at all."""
    values = 200 + 20 * white(random, COUNT)
    values[-900:] = 200.0
    return memory(values)


def flat(random: Random) -> Case:
    """A level with two percent of noise: this is what stable means."""
    level = pick(random, 100, 500)
    return memory(level * (1 + 0.02 * white(random, COUNT)), moves=False)


def constant(random: Random) -> Case:
    return memory(np.full(COUNT, pick(random, 100, 500)), moves=False)


PICTURES: dict[str, Callable[[Random], Case]] = {
    "step of 57 %": big_step,
    "staircase": staircase,
    "heap between 200 and 500 MiB": wide_heap,
    "live leak of 225 MiB/h": live_leak,
    "spike five minutes ago": late_spike,
    "wave": slow_wave,
    "noise that vanishes": hung,
}
STABLE: dict[str, Callable[[Random], Case]] = {"flat, 2 % noise": flat, "constant": constant}
