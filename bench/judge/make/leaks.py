"""
Memory that leaks, by class, with the moment its path touches the limit.

The path is the memory itself; the meter's noise is laid over it and is no part of the truth.
White noise and noise forgotten within minutes (AR(0.9), AR(0.99)) is the meter's, as
docs/guides/studies.md has it; AR(0.999) wanders for a quarter of an hour and is the
memory's own. For these four classes `other_seconds` is the passage by the other reading.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.judge.make.case import MIB, Case, FloatArray, Random, pick, pick_log
from bench.judge.make.noise import autoregressive
from bench.judge.make.oracle import (
    Future,
    passage,
    spread_of,
    width_of_crossing,
    width_of_curve,
    width_of_futures,
)
from bench.judge.make.shapes import DAY_SECONDS

HOURS = (1, 1, 2, 2, 3, 4, 6)
PAGE_MIB = 4.0
# The future of slow processes is drawn at this step: they hardly move within it.
COARSE_SECONDS = 10
# How far ahead a possible future is followed, in expected times to the limit.
FOLLOWED = 4


@dataclass(frozen=True)
class GrowthCase(Case):
    unit: str = "bytes"
    metric: str = "memory_usage_bytes"
    is_leak: bool = False
    passage_seconds: float = np.inf
    """From the last sample until the path touches the limit; inf: it never will."""
    other_seconds: float | None = None
    oracle_seconds: float | None = None
    """Width of the oracle's 90 % interval."""
    must_say: str | None = None
    """What the data cannot exclude and an answer with a time has to name: "level" or "day"."""


@dataclass(frozen=True)
class Plan:
    """The common part of a leak, in MiB: it rises so much in its window, and so far ahead is the limit."""

    count: int
    base: float
    rise: float
    ahead: int

    @property
    def rate(self) -> float:
        return self.rise / self.count

    @property
    def seconds(self) -> FloatArray:
        return np.arange(self.count, dtype=np.float64)

    def line(self, seconds: FloatArray) -> FloatArray:
        return self.base + self.rate * seconds

    @property
    def limit(self) -> float:
        return self.base + self.rate * (self.count - 1 + self.ahead)


def plan(random: Random, hours: tuple[int, ...] = HOURS) -> Plan:
    count = 3600 * int(random.choice(hours))
    ahead = int(count * pick(random, 0.3, 1.0))
    return Plan(count, pick(random, 100, 800), pick_log(random, 20, 400), ahead)


def leak(values: FloatArray, limit: float, passage_seconds: float, **facts: float | None) -> GrowthCase:
    return GrowthCase(
        values=values * MIB,
        moves=True,
        limit=limit * MIB,
        is_leak=True,
        passage_seconds=passage_seconds,
        **facts,  # type: ignore[arg-type]
    )


def meter(random: Random, values: FloatArray, noise: float) -> FloatArray:
    return values + random.normal(0, noise, len(values))


def steady(random: Random, memory: float) -> GrowthCase:
    """A straight line below white noise or noise that is soon forgotten."""
    made = plan(random)
    noise = made.rise * pick(random, 0.03, 0.15)
    wobble = noise * (
        autoregressive(random, FOLLOWED * made.count, memory)
        if memory
        else random.normal(size=FOLLOWED * made.count)
    )
    line = made.line(np.arange(FOLLOWED * made.count, dtype=np.float64))
    columns = np.stack([np.ones(made.count), made.seconds], axis=1)
    place = np.array([1.0, made.count - 1 + made.ahead])
    return leak(
        (line + wobble)[: made.count],
        made.limit,
        float(made.ahead),
        other_seconds=passage((line + wobble)[made.count :], made.limit),
        oracle_seconds=width_of_crossing(columns, place, made.rate, noise, memory),
    )


def wandering(random: Random, memory: float = 0.999) -> GrowthCase:
    """A line with a wobble of the memory itself that lasts for a quarter of an hour."""
    made = plan(random, hours=(2, 3, 4, 6))
    noise = made.rise * pick(random, 0.03, 0.08)
    own = made.line(made.seconds) + noise * autoregressive(random, made.count, memory)
    seconds = np.arange(0.0, FOLLOWED * made.ahead, COARSE_SECONDS) + made.count - 1.0 + COARSE_SECONDS
    root = spread_of(np.stack([np.ones(made.count), made.seconds], axis=1), noise, memory)

    def future(random: Random, level: float = 0.0, slope: float = 0.0) -> float:
        """level and slope: by how much the line believed in differs from the true one."""
        state = own[-1] - made.line(made.seconds)[-1] - level - slope * (made.count - 1)
        wobble = continued(random, state / noise, len(seconds), memory**COARSE_SECONDS)
        return passage(
            made.line(seconds) + level + slope * seconds + noise * wobble, made.limit, COARSE_SECONDS
        )

    return leak(
        meter(random, own, made.rise * 0.005),
        made.limit,
        future(random),
        other_seconds=float(made.ahead),
        oracle_seconds=width_of_futures(
            random, lambda random: future(random, *(root @ random.normal(size=2)))
        ),
    )


def continued(random: Random, state: float, count: int, memory: float) -> FloatArray:
    """An autoregressive path that goes on from its state."""
    values = []
    for shock in (random.normal(size=count) * np.sqrt(1 - memory**2)).tolist():
        state = memory * state + shock
        values.append(state)
    return np.array(values)


def drifting_walk(random: Random) -> GrowthCase:
    made = plan(random)
    shock = made.rise * pick(random, 0.08, 0.2) / np.sqrt(made.count)
    own = made.base + np.cumsum(random.normal(made.rate, shock, made.count))
    limit = float(own[-1]) + made.rate * made.ahead

    def future(random: Random) -> float:
        walk = np.cumsum(random.normal(made.rate, shock, FOLLOWED * made.ahead))
        return passage(own[-1] + walk, limit)

    return with_future(random, meter(random, own, made.rise * 0.005), limit, future)


def with_future(random: Random, values: FloatArray, limit: float, future: Future) -> GrowthCase:
    """The truth is one draw of what the oracle draws from."""
    return leak(values, limit, future(random), oracle_seconds=width_of_futures(random, future))


def page_steps(random: Random) -> GrowthCase:
    """An allocator that takes 4 MiB at once whenever its arena is full."""
    made = plan(random)
    steps = pick_log(random, 8, 60)
    gap = made.count / steps
    regularity = pick(random, 2, 10)

    def draw(random: Random, count: int) -> FloatArray:
        return random.gamma(regularity, gap / regularity, count)

    taken_at = np.cumsum(draw(random, int(4 * steps) + 40)) - pick(random, 0, gap)
    own = made.base + PAGE_MIB * np.searchsorted(taken_at, made.seconds, side="right").astype(np.float64)
    before = taken_at[taken_at <= made.count - 1]
    waited = made.count - 1 - (before[-1] if len(before) else 0.0)
    needed = max(1, round(steps * made.ahead / made.count))
    limit = float(own[-1]) + PAGE_MIB * needed - pick(random, 0.1, 3.9)

    def future(random: Random) -> float:
        gaps = draw(random, 50)
        longer = gaps[gaps > waited]
        first = float(longer[0]) - waited if len(longer) else float(random.exponential(gap / regularity))
        return first + float(draw(random, needed - 1).sum())

    return with_future(random, meter(random, own, pick(random, 0.02, 0.3)), limit, future)


@dataclass(frozen=True)
class Collector:
    """A heap that fills with garbage until its young part is full, then drops to what is alive."""

    young: float
    period: float

    def cycles(self, random: Random, seconds: float) -> tuple[FloatArray, FloatArray]:
        """Of each cycle: how long it lasts, how much garbage it holds at its end."""
        count = int(2 * seconds / self.period) + 20
        garbage = self.young * (1 + random.normal(0, 0.04, count)).clip(0.7, 1.3)
        speed = self.young / self.period * np.exp(random.normal(0, 0.15, count))
        return garbage / speed, garbage


def collected(random: Random, heap: Collector, live: FloatArray) -> tuple[FloatArray, float, float]:
    """The heap over so many seconds of live memory; the garbage at its end, and its present speed."""
    lengths, garbage = heap.cycles(random, len(live))
    ends = np.cumsum(lengths) - pick(random, 0, heap.period)
    seconds = np.arange(len(live), dtype=np.float64)
    cycle = np.searchsorted(ends, seconds, side="right")
    speed = garbage / lengths
    held = (seconds - (ends - lengths)[cycle]) * speed[cycle]
    return live + held, float(held[-1]), float(speed[cycle[-1]])


def collector_leak(random: Random) -> GrowthCase:
    """What is alive grows; the crest of the sawtooth touches the limit first."""
    made = plan(random)
    heap = Collector(made.rise / pick(random, 0.5, 3), pick_log(random, 30, 300))
    own, held, speed = collected(random, heap, made.line(made.seconds))
    limit = made.limit + heap.young
    live = float(made.line(made.seconds)[-1])

    def future(random: Random) -> float:
        return crest_passage(random, heap, live, made.rate, held, speed, limit, FOLLOWED * made.ahead)

    return with_future(random, meter(random, own, heap.young * 0.005), limit, future)


def crest_passage(
    random: Random,
    heap: Collector,
    live: float,
    rate: float,
    held: float,
    speed: float,
    limit: float,
    seconds: float,
) -> float:
    """Seconds until live memory and garbage together touch the limit; the present cycle goes on first."""
    lengths, garbage = heap.cycles(random, seconds)
    speeds = garbage / lengths
    starts = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    # The cycle under way: it keeps its speed, and some of its garbage is there already.
    speeds[0], garbage[0] = speed, max(garbage[0], held)
    lengths[0] = (garbage[0] - held) / speed
    starts = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    begun_with = np.zeros(len(starts))
    begun_with[0] = held
    reached = (limit - live - rate * starts - begun_with) / (rate + speeds)
    inside = np.flatnonzero(reached <= lengths)
    return float(starts[inside[0]] + max(reached[inside[0]], 0.0)) if len(inside) else np.inf


def leaking_requests(random: Random) -> GrowthCase:
    """Requests come at random; each leaves something behind, some of them much."""
    made = plan(random)
    requests = pick_log(random, 40, 1000)
    each = made.rise / requests
    gap = made.count / requests

    def draw(random: Random, count: int) -> tuple[FloatArray, FloatArray]:
        return np.cumsum(random.exponential(gap, count)), np.cumsum(random.exponential(each, count))

    came_at, left = draw(random, int(3 * requests) + 60)
    served = np.searchsorted(came_at, made.seconds, side="right")
    own = made.base + np.concatenate([[0.0], left])[served]
    limit = float(own[-1]) + made.rate * made.ahead

    def future(random: Random) -> float:
        came_at, left = draw(random, int(FOLLOWED * requests) + 60)
        return float(came_at[np.searchsorted(left, limit - own[-1])])

    return with_future(random, meter(random, own, made.rise * 0.003), limit, future)


def load_driven(random: Random) -> GrowthCase:
    """The leak's rate follows a load that swings slowly about its mean."""
    made = plan(random, hours=(2, 3, 4, 6))
    swing = pick(random, 0.3, 0.7)
    lasting = pick(random, 300, made.count / 10)
    kept = float(np.exp(-COARSE_SECONDS / lasting))

    def rates(load: FloatArray) -> FloatArray:
        return made.rate * np.exp(swing * load - swing**2 / 2)

    load = continued(random, float(random.normal()), made.count // COARSE_SECONDS, kept)
    own = made.base + np.cumsum(np.repeat(rates(load), COARSE_SECONDS))
    limit = float(own[-1]) + made.rate * made.ahead

    def future(random: Random) -> float:
        steps = FOLLOWED * made.ahead // COARSE_SECONDS
        path = own[-1] + np.cumsum(rates(continued(random, float(load[-1]), steps, kept))) * COARSE_SECONDS
        return passage(path, limit, COARSE_SECONDS)

    return with_future(random, meter(random, own, made.rise * 0.01), limit, future)


def begins_inside(random: Random) -> GrowthCase:
    """Level at first, and leaking since somewhere in the middle of the window."""
    made = plan(random)
    begun = int(made.count * pick(random, 0.4, 0.7))
    since = np.maximum(0.0, made.seconds - begun)
    rate = made.rise / (made.count - begun)
    ahead = int((made.count - begun) * pick(random, 0.3, 1.0))
    memory = float(random.choice([0.0, 0.9]))
    noise = made.rise * pick(random, 0.03, 0.15)
    own = made.base + rate * since
    place = np.array([1.0, since[-1] + ahead])
    columns = np.stack([np.ones(made.count), since], axis=1)
    return leak(
        own + noise * autoregressive(random, made.count, memory),
        float(own[-1]) + rate * ahead,
        float(ahead),
        oracle_seconds=width_of_crossing(columns, place, rate, noise, memory),
    )


def season_and_leak(random: Random) -> GrowthCase:
    """Two to four days at a sample a minute: a day's wave, and a leak below it."""
    step = 60.0
    count = int(random.integers(2, 5)) * int(DAY_SECONDS / step)
    swing = pick_log(random, 20, 200)
    weights = np.array(
        [
            pick(random, 200, 800),
            swing * pick(random, 0.3, 1.5) / DAY_SECONDS,
            *(swing * random.normal(size=2) / 1.4),
            *(0.2 * swing * random.normal(size=2)),
        ]
    )
    noise = swing * pick(random, 0.03, 0.15)
    columns = season_columns(np.arange(3 * count, dtype=np.float64) * step)
    path = columns @ weights
    seen = float(path[:count].max())
    later = float(path[count : count + int(count * pick(random, 0.4, 1.0))].max())
    if later - seen < 0.05 * swing:
        return season_and_leak(random)
    limit = seen + (later - seen) * pick(random, 0.3, 0.9)
    reached = passage(path[count:], limit, step)
    oracle = width_of_curve(
        random, columns[:count], columns[count:], weights, limit, noise, step_seconds=step
    )
    values = meter(random, path[:count], noise)
    return GrowthCase(
        values=values * MIB,
        moves=True,
        step_seconds=step,
        limit=limit * MIB,
        is_leak=True,
        passage_seconds=reached,
        oracle_seconds=oracle,
    )


def season_columns(seconds: FloatArray) -> FloatArray:
    angle = 2 * np.pi * seconds / DAY_SECONDS
    waves = (np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle))
    return np.stack([np.ones(len(seconds)), seconds, *waves], axis=1)


LEAKS: dict[str, Callable[[Random], GrowthCase]] = {
    "white": partial(steady, memory=0.0),
    "AR(0.9)": partial(steady, memory=0.9),
    "AR(0.99)": partial(steady, memory=0.99),
    "AR(0.999)": wandering,
    "random-walk drift": drifting_walk,
    "page steps of 4 MiB": page_steps,
    "GC sawtooth": collector_leak,
    "requests that leak": leaking_requests,
    "load-driven": load_driven,
    "starts mid-window": begins_inside,
    "season and leak": season_and_leak,
}
__all__ = ["LEAKS", "Collector", "GrowthCase", "collected", "plan"]
