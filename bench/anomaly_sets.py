"""
Generated series with and without something unusual in their newest part.

A case has the series, and where in it the unusual part begins and ends; in a calm case
there is none. Noise has a standard deviation of about 1, and one sample a second.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.studies_sets import FloatArray, Maker, autoregressive

SECONDS_OF_WEEK = 604_800


def cron(period: int, busy: int, height: float, jitter: int = 0) -> Maker:
    """Work of busy seconds every period seconds, which starts up to jitter seconds late."""

    def make(random: np.random.Generator, count: int) -> FloatArray:
        values = random.standard_normal(count)
        for start in range(int(random.integers(period)) - period, count, period):
            begin = max(0, start + int(random.integers(jitter + 1)))
            values[begin : max(0, begin + busy)] += height
        return values

    return make


def busy_bursts(random: np.random.Generator, count: int) -> FloatArray:
    """Bursts of random length and height at random moments."""
    values = random.standard_normal(count)
    for start in np.flatnonzero(random.random(count) < 1 / 120):
        values[start : start + int(random.integers(3, 20))] += random.uniform(3, 8)
    return values


def quantised(random: np.random.Generator, count: int) -> FloatArray:
    return np.round(autoregressive(random, count, 0.5))


CALM: Mapping[str, Maker] = {
    "white": lambda random, count: random.standard_normal(count),
    "AR(0.9)": lambda random, count: autoregressive(random, count, 0.9),
    "AR(0.99)": lambda random, count: autoregressive(random, count, 0.99),
    "Poisson": lambda random, count: random.poisson(3, count).astype(np.float64),
    "heavy tails": lambda random, count: random.standard_t(3, count),
    "gamma": lambda random, count: random.gamma(1.5, 1.0, count),
    "quantised": quantised,
    "bursts": busy_bursts,
    "cron 60 s": cron(60, 5, 6.0),
    "cron 300 s": cron(300, 20, 8.0),
    "cron 300 s, jitter": cron(300, 20, 8.0, 10),
    "sine": lambda random, count: (
        random.standard_normal(count) + 3 * np.sin(np.arange(count) / 31 + random.random())
    ),
}


@dataclass(frozen=True)
class UnusualCase:
    """values[start:end] are unusual."""

    values: FloatArray
    start: int
    end: int


Planter = Callable[[np.random.Generator, FloatArray, int, int], None]


def raise_by_five(random: np.random.Generator, values: FloatArray, start: int, end: int) -> None:
    del random
    values[start:end] += 5.0


def freeze(random: np.random.Generator, values: FloatArray, start: int, end: int) -> None:
    """A hung process: the last value stays."""
    del random
    values[start:end] = values[start - 1]


def smooth(random: np.random.Generator, values: FloatArray, start: int, end: int) -> None:
    """Far less noise, around the same level."""
    values[start:end] = np.median(values[:start]) + 0.1 * random.standard_normal(end - start)


def roughen(random: np.random.Generator, values: FloatArray, start: int, end: int) -> None:
    values[start:end] += 3 * random.standard_normal(end - start)


def stop(random: np.random.Generator, values: FloatArray, start: int, end: int) -> None:
    """Only the noise is left of a cycle."""
    values[start:end] = random.standard_normal(end - start)


@dataclass(frozen=True)
class Kind:
    background: Maker
    plant: Planter
    seconds: int
    count: int = 3600


KINDS: Mapping[str, Kind] = {
    "+5 sd for 60 s, white": Kind(CALM["white"], raise_by_five, 60),
    "+5 sd for 60 s, AR(0.9)": Kind(CALM["AR(0.9)"], raise_by_five, 60),
    "+5 sd for 60 s, heavy tails": Kind(CALM["heavy tails"], raise_by_five, 60),
    "+5 sd for 60 s, cron 60 s": Kind(CALM["cron 60 s"], raise_by_five, 60),
    "+5 sd for 60 s, cron 300 s": Kind(CALM["cron 300 s"], raise_by_five, 60),
    "+5 sd for 60 s, cron 300 s high": Kind(cron(300, 30, 20.0), raise_by_five, 60),
    "+5 sd for 60 s, cron 300 s jitter": Kind(CALM["cron 300 s, jitter"], raise_by_five, 60),
    "+5 sd for 60 s, cron, 1200 s": Kind(CALM["cron 300 s"], raise_by_five, 60, 1200),
    "frozen, white": Kind(CALM["white"], freeze, 120),
    "frozen, AR(0.9)": Kind(CALM["AR(0.9)"], freeze, 120),
    "frozen, quantised": Kind(quantised, freeze, 120),
    "frozen, cron 60 s": Kind(CALM["cron 60 s"], freeze, 180),
    "smooth, white": Kind(CALM["white"], smooth, 120),
    "smooth, gamma": Kind(CALM["gamma"], smooth, 120),
    "noise x3, white": Kind(CALM["white"], roughen, 60),
    "cron 60 s stops": Kind(CALM["cron 60 s"], stop, 300),
    "cron 300 s stops": Kind(CALM["cron 300 s"], stop, 1200, 14_400),
    "cron 300 s jitter stops": Kind(CALM["cron 300 s, jitter"], stop, 1200, 14_400),
    "sine stops": Kind(CALM["sine"], stop, 360),
}


def unusual_case(random: np.random.Generator, name: str) -> UnusualCase:
    """The unusual part lies in the newest tenth, or ends with the series."""
    kind = KINDS[name]
    values = kind.background(random, kind.count)
    newest = kind.count - kind.count // 10
    latest = kind.count - kind.seconds
    start = int(random.integers(newest, latest + 1)) if latest > newest else latest
    kind.plant(random, values, start, start + kind.seconds)
    return UnusualCase(values, start, start + kind.seconds)


JOINT_METRICS = ("cpu", "memory", "disk_write", "network_receive", "pressure_cpu")


def container_metrics(random: np.random.Generator, count: int) -> FloatArray:
    """Five metrics that follow one load with delays of their own, each with noise: one row for each."""
    load = autoregressive(random, count + 10, 0.95)
    rows = [
        load[10:] + 0.4 * random.standard_normal(count),
        0.5 * np.convolve(load, np.ones(10) / 10)[10 : count + 10]
        + 0.2 * autoregressive(random, count, 0.99),
        0.7 * load[8:-2] + 0.5 * random.standard_normal(count),
        0.9 * load[9:-1] + 0.4 * random.standard_normal(count),
        np.maximum(load[10:], 0) ** 1.5 + 0.3 * np.abs(random.standard_normal(count)),
    ]
    return np.stack(rows)


def joint_case(random: np.random.Generator, kind: str, count: int = 3600) -> tuple[FloatArray, int, int]:
    """
    A fault that no metric shows alone by much: a valve that closes, a motor that is worn.

    closed   traffic stays while the CPU falls to its usual minimum
    worn     pressure and disk rise a little at once, each by one deviation and a half
    parted   one metric stops following the load and keeps its spread
    """
    rows = container_metrics(random, count)
    start = count - int(random.integers(150, 300))
    end = count - int(random.integers(0, 30))
    inside = slice(start, end)
    if kind == "closed":
        rows[0, inside] -= 2.0
        rows[3, inside] += 1.0
    elif kind == "worn":
        rows[4, inside] += 1.5 * rows[4].std()
        rows[2, inside] += 1.5 * rows[2].std()
    elif kind == "parted":
        rows[3, inside] = autoregressive(random, end - start, 0.95) * rows[3].std()
    return rows, start, end


JOINT_KINDS = ("closed", "worn", "parted")
