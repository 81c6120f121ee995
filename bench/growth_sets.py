"""
Generated memory that grows, and memory that only seems to: what a forecast is scored on.

A case is what the meter shows up to now, and the path itself far beyond. The
truth of a forecast is when the path touches the limit; the meter's noise is not
a part of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.studies_sets import autoregressive
from nodescope.use.studies.series import FloatArray

# The path is known for so many spans.
SPANS = 12


@dataclass(frozen=True)
class GrowthCase:
    """In MiB; samples_to_limit is infinite where the path does not touch the limit."""

    values: FloatArray
    limit: float
    samples_to_limit: float


@dataclass(frozen=True)
class Draw:
    """The sizes of one case: samples seen, growth per span, base level, deviation of the meter."""

    random: np.random.Generator
    count: int
    growth: float
    noise: float

    @property
    def spans(self) -> FloatArray:
        """Time in spans, for the whole path."""
        return np.arange(self.count * SPANS) / self.count

    def white(self, share: float = 1.0) -> FloatArray:
        return share * self.noise * self.random.standard_normal(self.count)

    def remembering(self, memory: float, deviation: float, count: int) -> FloatArray:
        made = autoregressive(self.random, count, memory)
        return deviation * made / max(float(made.std()), 1e-300)


Maker = Callable[[Draw], tuple[FloatArray, FloatArray]]


def line(draw: Draw) -> FloatArray:
    return draw.growth * draw.spans


def in_noise(memory: float) -> Maker:
    def make(draw: Draw) -> tuple[FloatArray, FloatArray]:
        return line(draw), draw.remembering(memory, draw.noise, draw.count)

    return make


def in_white_noise(draw: Draw) -> tuple[FloatArray, FloatArray]:
    return line(draw), draw.white()


def walk(draw: Draw, drift: float = 1.0) -> tuple[FloatArray, FloatArray]:
    steps = draw.random.standard_normal(draw.count * SPANS) / np.sqrt(draw.count)
    spread = draw.growth * draw.random.uniform(0.05, 0.25)
    return drift * line(draw) + spread * np.cumsum(steps), draw.white(0.1)


def pages(draw: Draw) -> tuple[FloatArray, FloatArray]:
    whole = np.floor((line(draw) + draw.random.uniform(0, 4)) / 4) * 4
    return whole, 0.02 * draw.random.standard_normal(draw.count)


def teeth(draw: Draw, longest: float) -> tuple[FloatArray, FloatArray]:
    """Place within its tooth (0 to 1) and the tooth's height, for each sample."""
    mean = draw.count * draw.random.uniform(1 / 80, longest)
    lengths = mean * draw.random.uniform(0.7, 1.3, int(draw.count * SPANS / mean * 2) + 5)
    ends = np.cumsum(lengths)
    times = np.arange(draw.count * SPANS)
    tooth = np.searchsorted(ends, times, side="right")
    starts = np.concatenate(([0.0], ends))[tooth]
    return (times - starts) / lengths[tooth], draw.random.uniform(0.9, 1.1, len(lengths))[tooth]


def collector(draw: Draw) -> tuple[FloatArray, FloatArray]:
    place, height = teeth(draw, 0.1)
    swing = draw.growth * draw.random.uniform(0.1, 0.6)
    return line(draw) + swing * height * place, 0.02 * swing * draw.random.standard_normal(draw.count)


def requests(draw: Draw) -> tuple[FloatArray, FloatArray]:
    a_span = draw.random.uniform(30, 300)
    leaks = draw.random.random(draw.count * SPANS) < a_span / draw.count
    sizes = draw.random.exponential(draw.growth / a_span, draw.count * SPANS)
    return np.cumsum(np.where(leaks, sizes, 0.0)), draw.white(0.05)


def load_driven(draw: Draw) -> tuple[FloatArray, FloatArray]:
    memory = 1 - 1 / (draw.count * draw.random.uniform(0.05, 0.3))
    load = np.exp(draw.remembering(memory, draw.random.uniform(0.3, 0.6), draw.count * SPANS))
    return draw.growth * np.cumsum(load / load.mean()) / draw.count, draw.white(0.2)


def late(draw: Draw) -> tuple[FloatArray, FloatArray]:
    start = draw.random.uniform(0.4, 0.8)
    return 2 * draw.growth * np.maximum(draw.spans - start, 0.0), draw.white(0.4)


def wave(draw: Draw, fewest: float) -> FloatArray:
    turns = draw.random.uniform(fewest, 12)
    swing = draw.growth * draw.random.uniform(0.2, 0.8)
    return np.asarray(swing * np.sin(2 * np.pi * (turns * draw.spans + draw.random.random())))


def with_season(draw: Draw) -> tuple[FloatArray, FloatArray]:
    return line(draw) + wave(draw, 4), draw.white(0.3)


def saturating(draw: Draw) -> tuple[FloatArray, FloatArray]:
    constant = draw.random.uniform(0.6, 1.2)
    return 2 * draw.growth * -np.expm1(-draw.spans / constant), draw.white(0.3)


def filling(draw: Draw) -> tuple[FloatArray, FloatArray]:
    constant = draw.random.uniform(0.1, 0.4)
    return 2 * draw.growth * -np.expm1(-draw.spans / constant), draw.white(0.3)


def flat_in_noise(memory: float) -> Maker:
    def make(draw: Draw) -> tuple[FloatArray, FloatArray]:
        return 0 * draw.spans, draw.remembering(memory, draw.noise, draw.count)

    return make


def flat_walk(draw: Draw) -> tuple[FloatArray, FloatArray]:
    return walk(draw, drift=0.0)


def flat_collector(draw: Draw) -> tuple[FloatArray, FloatArray]:
    place, height = teeth(draw, 0.33)
    return draw.growth * height * place, 0.02 * draw.growth * draw.random.standard_normal(draw.count)


def restarted(draw: Draw) -> tuple[FloatArray, FloatArray]:
    """A warm-up before the span, a fall within it, and the same warm-up again."""
    constant, at = draw.random.uniform(0.03, 0.15), draw.random.uniform(0.5, 0.9)
    age = np.where(draw.spans < at, 100.0, draw.spans - at)
    return -draw.growth * np.expm1(-age / constant), draw.white(0.3)


def flat_season(draw: Draw) -> tuple[FloatArray, FloatArray]:
    return wave(draw, 2.5), draw.white(0.3)


LEAKS: dict[str, Maker] = {
    "white": in_white_noise,
    "AR(0.9)": in_noise(0.9),
    "AR(0.99)": in_noise(0.99),
    "AR(0.999)": in_noise(0.999),
    "random-walk drift": walk,
    "pages of 4 MiB": pages,
    "collector's teeth": collector,
    "requests that leak": requests,
    "load-driven": load_driven,
    "starts in the span": late,
    "season and leak": with_season,
}

NO_LEAKS: dict[str, Maker] = {
    "saturating": saturating,
    "filling cache": filling,
    "flat, AR(0.99)": flat_in_noise(0.99),
    "flat, AR(0.999)": flat_in_noise(0.999),
    "random walk": flat_walk,
    "collector, no leak": flat_collector,
    "unnamed restart": restarted,
    "season, no leak": flat_season,
}


def growth_case(random: np.random.Generator, kind: str) -> GrowthCase:
    count = int(random.choice([1200, 3600, 7200]))
    growth = float(random.uniform(20, 300))
    draw = Draw(random, count, growth, growth * float(random.uniform(0.01, 0.15)))
    path, noise = {**LEAKS, **NO_LEAKS}[kind](draw)
    path = path + random.uniform(50, 300)
    limit = limit_of(draw, path, kind)
    touched = np.flatnonzero(path[count:] >= limit)
    return GrowthCase(path[:count] + noise, limit, float(touched[0] + 1) if len(touched) else np.inf)


def limit_of(draw: Draw, path: FloatArray, kind: str) -> float:
    """Where a leak will be after 0.15 to 3 spans; above everything seen where there is none."""
    highest = float(path[: draw.count].max())
    if kind in LEAKS:
        ahead = int(draw.count * (1 + draw.random.uniform(0.15, 3)))
        return max(float(path[:ahead].max()), highest + 1e-6 * draw.growth)
    swing = highest - float(path[: draw.count].min())
    return highest + swing * draw.random.uniform(0.3, 1.5) + 3 * draw.noise
