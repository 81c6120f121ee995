"""Pairs of series: one follows the other by a known time, or they have nothing to do with each other."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.judge.make.case import Case, FloatArray, Noise, Random, pick, pick_log
from bench.judge.make.noise import AUTOREGRESSIVE, autoregressive, random_walk, white
from bench.judge.make.shapes import bursts

COUNT = 1200
# Independent series that one question compares with: the stated 5 % is of all of them together.
COMPARED = 5


@dataclass(frozen=True)
class PairCase(Case):
    others: tuple[FloatArray, ...] = ()
    lag_seconds: float | None = None
    """By how much the other series is earlier (positive) than this one; None: independent."""


def lagged(random: Random, shared: FloatArray, lag: int, noise: float) -> PairCase:
    """shared is COUNT and the lag long: the other series sees it first, this one so much later."""
    leader, follower = shared[lag : lag + COUNT], shared[:COUNT]
    other = 5 + leader + noise * white(random, COUNT)
    return PairCase(values=10 + follower + noise * white(random, COUNT), others=(other,), lag_seconds=lag)


def step_at_once(random: Random) -> PairCase:
    at = int(COUNT * pick(random, 0.25, 0.75))
    shared = pick(random, 4, 12) * (np.arange(COUNT) >= at).astype(np.float64)
    return lagged(random, shared, 0, 1.0)


def steps_later(random: Random) -> PairCase:
    """Several steps in one series, and the same in the other some seconds later."""
    lag = int(random.integers(0, 31))
    cuts = np.sort(random.integers(60, COUNT - 60, int(random.integers(2, 7))))
    levels = random.normal(0, 5, len(cuts) + 1)
    shared = levels[np.searchsorted(cuts, np.arange(COUNT + lag), side="right")]
    return lagged(random, shared, lag, 1.0)


def common_hump(random: Random) -> PairCase:
    lag = int(random.choice([0, 0, int(random.integers(1, 31))]))
    middle, wide = COUNT * pick(random, 0.3, 0.7), pick(random, 30, 120)
    shape = np.exp(-0.5 * ((np.arange(COUNT + lag) - middle) / wide) ** 2)
    return lagged(random, pick(random, 5, 15) * shape, lag, 1.0)


def driven(random: Random, memory: float) -> PairCase:
    lag = int(random.integers(0, 31))
    return lagged(random, autoregressive(random, COUNT + lag, memory), lag, pick(random, 0.2, 0.5))


def common_bursts(random: Random) -> PairCase:
    lag = int(random.integers(0, 31))
    shared = bursts(random, COUNT + lag, pick_log(random, 5, 30), pick_log(random, 30, 120), 5.0)
    return lagged(random, shared, lag, 1.0)


PAIRS: dict[str, Callable[[Random], PairCase]] = {
    "step in the same second": step_at_once,
    "steps, 0-30 s later": steps_later,
    "common hump": common_hump,
    "AR(0.5) driven, 0-30 s": partial(driven, memory=0.5),
    "AR(0.9) driven, 0-30 s": partial(driven, memory=0.9),
    "AR(0.99) driven, 0-30 s": partial(driven, memory=0.99),
    "bursts, 0-30 s later": common_bursts,
}


def one_step(random: Random, count: int) -> FloatArray:
    at = count * pick(random, 0.1, 0.9)
    height = pick(random, 3, 10) * float(random.choice([-1, 1]))
    step: FloatArray = (np.arange(count) >= at).astype(np.float64)
    return height * step + white(random, count)


def one_hump(random: Random, count: int) -> FloatArray:
    middle, wide = count * pick(random, 0.1, 0.9), count * pick(random, 0.02, 0.15)
    shape: FloatArray = np.exp(-0.5 * ((np.arange(count) - middle) / wide) ** 2)
    return pick(random, 4, 12) * shape + white(random, count)


def one_ramp(random: Random, count: int) -> FloatArray:
    return pick(random, -8, 8) * np.arange(count) / count + white(random, count)


def independent(random: Random, noise: Noise) -> PairCase:
    others = tuple(5 + noise(random, COUNT) for _ in range(COMPARED))
    return PairCase(values=10 + noise(random, COUNT), others=others)


INDEPENDENT: dict[str, Callable[[Random], PairCase]] = {
    "white": partial(independent, noise=white),
    **{name: partial(independent, noise=noise) for name, noise in AUTOREGRESSIVE.items()},
    "random walk": partial(independent, noise=random_walk),
    "steps at random times": partial(independent, noise=one_step),
    "humps": partial(independent, noise=one_hump),
    "trends": partial(independent, noise=one_ramp),
    "on/off bursts": partial(independent, noise=lambda random, count: bursts(random, count, 15, 60, 5.0)),
}
