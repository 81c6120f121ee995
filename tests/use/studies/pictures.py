"""Thirty and more pictures of an hour, each with the word and the words that a person would say of it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bench.studies_sets import autoregressive

from nodescope.use.studies import Series
from nodescope.use.studies.series import FloatArray

MIB = 2.0**20
START_AT = 1_700_000_000.0
Draw = Callable[[FloatArray, np.random.Generator], FloatArray]


@dataclass(frozen=True)
class Seen:
    """A picture by seconds (0 .. 3599) and a random generator; says is a part of the sentence."""

    name: str
    word: str
    says: str
    draw: Draw
    unit: str = ""

    def series(self) -> Series:
        time = np.arange(3600.0)
        values = self.draw(time, np.random.default_rng(len(self.name)))
        return Series(START_AT + time, values, unit=self.unit, metric="load")


def white(time: FloatArray, random: np.random.Generator, size: float = 1.0) -> FloatArray:
    return np.asarray(size * random.standard_normal(len(time)))


def steps(time: FloatArray, *places: tuple[float, float]) -> FloatArray:
    return np.asarray(sum(np.where(time >= place, size, 0.0) for place, size in places))


def tooth(time: FloatArray, period: float) -> FloatArray:
    return np.asarray((time % period) / period)


def irregular_heap(time: FloatArray, random: np.random.Generator) -> FloatArray:
    """A collector that runs after 200 to 500 s."""
    cuts = np.cumsum(random.uniform(200, 500, 20))
    since = time - np.concatenate(([0.0], cuts))[np.searchsorted(cuts, time)]
    return np.asarray(MIB * (200 + 0.7 * since + white(time, random, 2)))


def jobs(time: FloatArray, random: np.random.Generator, number: int, seconds: int) -> FloatArray:
    values = white(time, random) + 50
    for place in random.integers(0, len(time) - 600, number):
        values[place : place + seconds] += 40
    return values


def switching(time: FloatArray, random: np.random.Generator) -> FloatArray:
    """On and off at random, 90 s each in the mean."""
    return np.asarray(20 + 60 * (np.cumsum(random.random(len(time)) < 1 / 90) % 2) + white(time, random, 3))


def between(time: FloatArray, start: float, end: float) -> FloatArray:
    return np.where((time >= start) & (time < end), 1.0, 0.0)


PICTURES = (
    Seen("a flat line", "stable", "stable", lambda t, r: 0 * t + 7),
    Seen("a flat line with a little noise", "stable", "stable", lambda t, r: 100 + white(t, r)),
    Seen(
        "noise that forgets in seconds", "stable", "stable", lambda t, r: 100 + autoregressive(r, 3600, 0.5)
    ),
    Seen("noise as large as the level", "volatile", "volatile", lambda t, r: 10 + white(t, r, 5)),
    Seen(
        "a step of 57 %",
        "stepped",
        "rose from 99.7 to 157",
        lambda t, r: 100 + steps(t, (1800, 57)) + white(t, r, 5),
    ),
    Seen(
        "a step down by half",
        "stepped",
        "fell from 99.9 to 49.9",
        lambda t, r: 100 - steps(t, (2400, 50)) + white(t, r, 3),
    ),
    Seen(
        "a staircase up",
        "stepped",
        "up in 4 steps from 99.9 to 180, the last at",
        lambda t, r: 100 + steps(t, (600, 20), (1300, 20), (2000, 20), (2900, 20)) + white(t, r, 2),
    ),
    Seen(
        "a busy quarter that ended",
        "returned",
        "rose to 161 from",
        lambda t, r: 100 + 60 * between(t, 1200, 2100) + white(t, r, 3),
    ),
    Seen(
        "a live leak of 225 MiB/h",
        "increasing",
        "increasing",
        lambda t, r: MIB * (300 + 225 * t / 3600 + white(t, r)),
        "bytes",
    ),
    Seen("a slow leak in noise", "increasing", "increasing", lambda t, r: 100 + 6 * t / 3600 + white(t, r)),
    Seen("a slow fall", "decreasing", "decreasing", lambda t, r: 200 - 50 * t / 3600 + white(t, r, 3)),
    Seen(
        "a heap between 200 and 500 MiB",
        "sawtooth",
        "climbs and drops again",
        lambda t, r: MIB * (200 + 300 * tooth(t, 300) + white(t, r, 3)),
        "bytes",
    ),
    Seen("a heap collected at odd times", "sawtooth", "climbs and drops again", irregular_heap, "bytes"),
    Seen(
        "a wave of five minutes",
        "repeating",
        "repeats every 5 min",
        lambda t, r: 100 + 20 * np.sin(2 * np.pi * t / 300) + white(t, r, 3),
    ),
    Seen(
        "a small wave of a minute",
        "repeating",
        "repeats every 60 s",
        lambda t, r: 100 + 2 * np.sin(2 * np.pi * t / 60) + white(t, r),
    ),
    Seen(
        "a cron job of five seconds a minute",
        "repeating",
        "repeats every 60 s",
        lambda t, r: 100 + 30 * (t % 60 < 5) + white(t, r, 2),
    ),
    Seen(
        "half a minute on, half a minute off",
        "repeating",
        "repeats every 60 s",
        lambda t, r: 100 + 30 * (t % 60 < 30) + white(t, r, 2),
    ),
    Seen(
        "one spike long ago",
        "spiky",
        "one spike up to",
        lambda t, r: 100 + 80 * between(t, 1000, 1005) + white(t, r),
    ),
    Seen(
        "a spike that ended 300 s ago",
        "spiky",
        "one spike up to",
        lambda t, r: 100 + 50 * between(t, 3260, 3300) + white(t, r),
    ),
    Seen("a spike right now", "spiky", ", now", lambda t, r: 100 + 80 * between(t, 3595, 3600) + white(t, r)),
    Seen(
        "spikes downwards",
        "spiky",
        "2 spikes down to",
        lambda t, r: 100 - 60 * between(t, 700, 703) - 60 * between(t, 2500, 2502) + white(t, r),
    ),
    Seen("rare jobs at random times", "spiky", "spikes up to", lambda t, r: jobs(t, r, 5, 20)),
    Seen(
        "noise that vanishes",
        "stopped",
        "hardly moves since",
        lambda t, r: np.where(t < 3000, 100 + white(t, r, 5), 100.0),
    ),
    Seen(
        "a process that hangs at its last value",
        "stopped",
        "hardly moves since",
        lambda t, r: np.where(t < 3300, 50 + white(t, r, 5), 47.25),
    ),
    Seen(
        "a wave that stops",
        "stopped",
        "hardly moves since",
        lambda t, r: np.where(t < 2900, 100 + 30 * np.sin(2 * np.pi * t / 90), 100.0) + white(t, r, 0.1),
    ),
    Seen(
        "a cron job that stops",
        "repeating",
        "repeated every 60 s until",
        lambda t, r: 100 + 30 * (t % 60 < 5) * (t < 2400) + white(t, r, 2),
    ),
    Seen(
        "a cron job that starts",
        "repeating",
        "repeats every 60 s since",
        lambda t, r: 100 + 30 * (t % 60 < 5) * (t > 1500) + white(t, r, 2),
    ),
    Seen("a random walk", "wandering", "wanders between", lambda t, r: 1000 + np.cumsum(white(t, r))),
    Seen(
        "a hump of a quarter of an hour",
        "returned",
        "and is back at 100",
        lambda t, r: 100 + 30 * np.exp(-0.5 * ((t - 1700) / 250) ** 2) + white(t, r, 3),
    ),
    Seen(
        "noise that doubles",
        "changed",
        "how much it varies",
        lambda t, r: 100 + white(t, r) * np.where(t > 1800, 3, 1),
    ),
    Seen(
        "a load that falls to zero",
        "stepped",
        "fell from 80.1 to 0 at",
        lambda t, r: np.maximum(80 * (t < 2700) + white(t, r), 0),
    ),
    Seen("zero but for one request", "spiky", "0 but for one spike", lambda t, r: 5 * between(t, 1200, 1201)),
    Seen("a job that switches on and off", "bursty", "switches between", switching),
    Seen(
        "levels that come and go",
        "stepped",
        "changed its level 3 times",
        lambda t, r: 100 + steps(t, (700, 30), (1500, -50), (2800, 25)) + white(t, r, 2),
    ),
    Seen(
        "a warm-up that levelled off",
        "increasing",
        "increasing",
        lambda t, r: 100 + 80 * (1 - np.exp(-t / 900)) + white(t, r),
    ),
)
