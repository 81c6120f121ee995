"""Series without a change, by kind of noise, and series with one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.judge.make.case import Case, FloatArray, Noise, Random, pick, pick_log
from bench.judge.make.noise import STATIONARY, autoregressive, white
from bench.judge.make.shapes import bursts, cron, day_curve, pulses, sawtooth

# What a person would call a step: smaller ones hide in the noise of a chart.
SEEN_DEVIATIONS = 3.0


@dataclass(frozen=True)
class ChangeCase(Case):
    change_at: float | None = None
    """Seconds from the first sample; None: nothing changes."""
    margin_seconds: float = 30.0


def quiet(random: Random, count: int, noise: Noise) -> ChangeCase:
    return ChangeCase(values=10 + noise(random, count))


def quiet_cron(random: Random, count: int, period: float, jitter: float) -> ChangeCase:
    length = int(random.integers(3, 11)) if period < 100 else int(random.integers(10, 40))
    values = 10 + white(random, count) + cron(random, count, period, length, pick(random, 4, 12), jitter)
    return ChangeCase(values=values, moves=True)


def quiet_bursts(random: Random, count: int) -> ChangeCase:
    on, off = pick_log(random, 5, 40), pick_log(random, 20, 120)
    return ChangeCase(values=10 + white(random, count) + bursts(random, count, on, off, pick(random, 3, 10)))


def quiet_collector(random: Random, count: int) -> ChangeCase:
    saw = sawtooth(random, count, pick_log(random, 20, 150), 0.1)
    return ChangeCase(values=10 + pick(random, 3, 15) * saw + 0.3 * white(random, count), moves=True)


def quiet_day(random: Random, count: int) -> ChangeCase:
    """A whole day, or ten of them: a sample every 72 or 60 seconds."""
    step = 72.0 if count <= 1200 else 60.0
    curve = day_curve(random, np.arange(count, dtype=np.float64) * step)
    values = 20 + pick(random, 2, 6) * curve + white(random, count)
    return ChangeCase(values=values, moves=True, step_seconds=step)


def quiet_trend(random: Random, count: int) -> ChangeCase:
    slope = pick(random, 3, 10) * float(random.choice([-1, 1])) * np.arange(count) / count
    return ChangeCase(values=20 + slope + white(random, count), moves=True)


QUIET: dict[str, Callable[[Random, int], ChangeCase]] = {
    **{name: partial(quiet, noise=noise) for name, noise in STATIONARY.items() if name != "AR(0.999)"},
    "cron 60 s": partial(quiet_cron, period=60, jitter=0.0),
    "cron 60 s, jitter 1 s": partial(quiet_cron, period=60, jitter=1.0),
    "cron 300 s": partial(quiet_cron, period=300, jitter=0.0),
    "cron 300 s, jitter 2 s": partial(quiet_cron, period=300, jitter=2.0),
    "on/off bursts": quiet_bursts,
    "GC": quiet_collector,
    "day's curve": quiet_day,
    "trend": quiet_trend,
}


def place(random: Random, count: int) -> int:
    return int(count * pick(random, 0.3, 0.7))


def level(random: Random, count: int, deviations: float, memory: float = 0.0) -> ChangeCase:
    at = place(random, count)
    values = 10 + autoregressive(random, count, memory)
    values[at:] += deviations * float(random.choice([-1, 1]))
    return ChangeCase(values=values, moves=deviations >= SEEN_DEVIATIONS, change_at=at)


def slope(random: Random, count: int, memory: float = 0.0) -> ChangeCase:
    """Level, then rising to +3 deviations at the end; the bend is found within a tenth of the window."""
    at = place(random, count)
    values = 10 + autoregressive(random, count, memory)
    values[at:] += 3 * np.linspace(0, 1, count - at)
    return ChangeCase(values=values, moves=True, change_at=at, margin_seconds=0.15 * count)


def noisier(random: Random, count: int) -> ChangeCase:
    at = place(random, count)
    values = white(random, count)
    values[at:] *= 2
    return ChangeCase(values=10 + values, change_at=at)


def spikes(random: Random, count: int) -> FloatArray:
    """One sample in twenty, at random, ten deviations high."""
    return 10.0 * (random.random(count) < 1 / 20).astype(np.float64)


def with_part(random: Random, before: FloatArray, after: FloatArray, gap: float) -> ChangeCase:
    """One pattern until a moment, another from then on; the moment is known to about two gaps."""
    count = len(before)
    at = place(random, count)
    pattern = np.concatenate([before[:at], after[at:]])
    values = 10 + white(random, count) + pattern
    return ChangeCase(values=values, moves=True, change_at=at, margin_seconds=max(60.0, 2 * gap))


def spikes_change(random: Random, count: int, begin: bool) -> ChangeCase:
    none, some = np.zeros(count), spikes(random, count)
    before, after = (none, some) if begin else (some, none)
    return with_part(random, before, after, 20)


def cron_change(random: Random, count: int, before: float, after: float) -> ChangeCase:
    """A job's period from and to; 0 is no job. Jobs of 3 to 8 s, in half of the cases with jitter."""
    length, height = int(random.integers(3, 9)), pick(random, 5, 10)
    jitter = float(random.choice([0.0, 1.0]))

    def job(period: float) -> FloatArray:
        if not period:
            return np.zeros(count)
        starts = np.arange(0, count, period) + random.normal(0, jitter, len(np.arange(0, count, period)))
        return pulses(count, starts, length, height)

    return with_part(random, job(before), job(after), max(before, after))


CHANGES: dict[str, Callable[[Random, int], ChangeCase]] = {
    **{f"level {size} sd": partial(level, deviations=float(size)) for size in (1, 2, 3, 5)},
    "level 5 sd, AR(0.9)": partial(level, deviations=5.0, memory=0.9),
    "slope 0 to +3 sd": slope,
    "slope 0 to +3 sd, AR(0.9)": partial(slope, memory=0.9),
    "noise x2": noisier,
    "spikes begin": partial(spikes_change, begin=True),
    "spikes stop": partial(spikes_change, begin=False),
    "cron stops": partial(cron_change, before=60, after=0),
    "cron starts": partial(cron_change, before=0, after=60),
    "cron 60 to 30 s": partial(cron_change, before=60, after=30),
    "cron 30 to 60 s": partial(cron_change, before=30, after=60),
}
