"""Series whose newest part is as usual, and series whose newest part is not."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.judge.make.case import Case, Noise, Random, pick
from bench.judge.make.noise import STATIONARY, autoregressive, white
from bench.judge.make.shapes import DAY_SECONDS, cron

COUNT = 3600
# Asked by default: the newest tenth.
NEWEST = COUNT // 10


@dataclass(frozen=True)
class AlarmCase(Case):
    unusual: tuple[int, int] | None = None
    """First sample of what is unusual and the one after its last; None: all is as usual."""


def usual(random: Random, noise: Noise) -> AlarmCase:
    return AlarmCase(values=10 + noise(random, COUNT))


def usual_cron(random: Random, period: float, jitter: float) -> AlarmCase:
    values = 10 + white(random, COUNT) + cron(random, COUNT, period, 20, pick(random, 4, 10), jitter)
    return AlarmCase(values=values, moves=True)


# AR(0.999) remembers a quarter of an hour: in one hour of it nothing is stationary.
USUAL: dict[str, Callable[[Random], AlarmCase]] = {
    **{name: partial(usual, noise=noise) for name, noise in STATIONARY.items() if name != "AR(0.999)"},
    "cron 60 s, jitter 1 s": partial(usual_cron, period=60.0, jitter=1.0),
    "cron 300 s": partial(usual_cron, period=300.0, jitter=0.0),
}


def raised(random: Random, seconds: int, deviations: float, memory: float = 0.0, ago: int = 0) -> AlarmCase:
    end = COUNT - ago
    values = 10 + autoregressive(random, COUNT, memory)
    values[end - seconds : end] += deviations
    return AlarmCase(values=values, unusual=(end - seconds, end))


def raised_beside_cron(random: Random, deviations: float = 5.0) -> AlarmCase:
    """For the newest 60 s, beside a job of 20 s every 300 s that is as high or higher."""
    case = usual_cron(random, 300.0, float(random.choice([0.0, 1.0])))
    case.values[-60:] += deviations
    return AlarmCase(values=case.values, moves=True, unusual=(COUNT - 60, COUNT))


def vanished(random: Random) -> AlarmCase:
    """A process that hangs: its value stands still at its mean."""
    values = 10 + white(random, COUNT)
    begun = COUNT - int(NEWEST * pick(random, 0.5, 1.0))
    values[begun:] = 10 + 0.01 * white(random, COUNT - begun)
    return AlarmCase(values=values, unusual=(begun, COUNT))


def stopped_wave(random: Random) -> AlarmCase:
    period = pick(random, 30, 100)
    begun = COUNT - int(NEWEST * pick(random, 0.7, 1.0))
    wave = pick(random, 2, 5) * np.sin(2 * np.pi * np.arange(COUNT) / period)
    wave[begun:] = 0
    return AlarmCase(values=20 + wave + 0.5 * white(random, COUNT), moves=True, unusual=(begun, COUNT))


def stopped_job(random: Random) -> AlarmCase:
    """A job of 5 s each 30 or 60 s that does not come any more: at least four times it was due."""
    period = float(random.choice([30, 60]))
    begun = COUNT - int(NEWEST * pick(random, 0.7, 1.0))
    jobs = cron(random, COUNT, period, 5, pick(random, 6, 12), 0.5)
    jobs[begun:] = 0
    return AlarmCase(values=10 + white(random, COUNT) + jobs, moves=True, unusual=(begun, COUNT))


def busy_weekend(random: Random, is_busy: bool = True) -> AlarmCase:
    """Four weeks at ten minutes, ending on a Saturday evening: idle weekends, but for the last one."""
    step = 600.0
    seconds = np.arange(int((26 + 20 / 24) * DAY_SECONDS / step)) * step
    day = (seconds // DAY_SECONDS).astype(int)
    is_weekday = (day % 7 < 5) | ((day == day[-1]) & is_busy)
    hour = seconds % DAY_SECONDS / 3600
    load = np.exp(-0.5 * ((hour - 14) / 3.5) ** 2)
    values = 2 + 8 * load * is_weekday + 0.5 * white(random, len(seconds))
    begun = int(np.flatnonzero(day == day[-1])[0])
    return AlarmCase(
        values=values, moves=True, step_seconds=step, unusual=(begun, len(values)) if is_busy else None
    )


UNUSUAL: dict[str, Callable[[Random], AlarmCase]] = {
    "+5 sd for 60 s": partial(raised, seconds=60, deviations=5.0),
    "+5 sd for 60 s, AR(0.5)": partial(raised, seconds=60, deviations=5.0, memory=0.5),
    "+5 sd for 60 s beside a cron of 300 s": raised_beside_cron,
    "vanished noise": vanished,
    "stopped wave": stopped_wave,
    "stopped job": stopped_job,
    "+3 sd for 200 s": partial(raised, seconds=200, deviations=3.0),
    "+4 sd for 900 s, longer than the newest tenth": partial(raised, seconds=900, deviations=4.0),
    "+8 sd for 40 s, ended 300 s ago": partial(raised, seconds=40, deviations=8.0, ago=300),
    "weekend with a weekday's load": busy_weekend,
}
