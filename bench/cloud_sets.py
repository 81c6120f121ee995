"""
Generated metrics of virtual machines as a cloud's monitor keeps them: a sample every five minutes, two weeks, labelled.

What they have and second-by-second noise has not: days and weekends, jobs at fixed hours, bursts
with heavy tails, values that cannot be negative, levels that change for good. Each series has up
to three anomalies, and each of those a window around it as NAB draws them: a tenth of the
series, shared by the anomalies, with the anomaly's start in its middle.
"""

from collections.abc import Callable

import numpy as np

from bench.nab import LabelledSeries
from bench.studies_sets import FloatArray, autoregressive
from nodescope.use.studies.series import Series

Random = np.random.Generator
DAY = 288
SAMPLES = 14 * DAY
MONDAY_AT = 1_699_833_600.0


def day_wave(random: Random, count: int) -> FloatArray:
    """0 to 1, with its peak at some hour and weekends of its own."""
    place = np.arange(count) / DAY
    wave = 0.5 + 0.5 * np.cos(2 * np.pi * (place - random.random()))
    weekend = np.where((place.astype(np.int64) % 7) >= 5, random.uniform(0.3, 1.0), 1.0)
    return np.asarray(wave ** random.uniform(0.7, 3) * weekend)


def idle(random: Random, count: int) -> FloatArray:
    """A machine that does little: a floor, and rare small bursts."""
    values = random.uniform(0.05, 3) * (1 + 0.1 * np.abs(autoregressive(random, count, 0.3)))
    places = np.flatnonzero(random.random(count) < random.uniform(0.002, 0.03))
    values[places] *= random.lognormal(0.5, 0.4, len(places))
    return np.asarray(values)


def busy(random: Random, count: int) -> FloatArray:
    """Load that follows the day."""
    noise = autoregressive(random, count, random.uniform(0.3, 0.95))
    return np.asarray(
        np.maximum(20 + random.uniform(10, 40) * day_wave(random, count) + random.uniform(1, 4) * noise, 0)
    )


def steady(random: Random, count: int) -> FloatArray:
    noise = autoregressive(random, count, random.uniform(0.0, 0.9))
    return np.asarray(np.maximum(random.uniform(10, 90) + random.uniform(0.3, 3) * noise, 0))


def bytes_written(random: Random, count: int) -> FloatArray:
    """Nothing mostly, and a job at one hour of each day whose work differs."""
    values = random.lognormal(8, 0.5, count) * (random.random(count) < random.uniform(0.1, 1))
    start, length = int(random.integers(DAY)), int(random.integers(2, 20))
    for day in range(-1, count // DAY + 1):
        first = day * DAY + start + int(random.integers(0, 2))
        part = values[max(first, 0) : max(first + length, 0)]
        part += random.lognormal(13, 0.3, len(part))
    return np.asarray(values)


def traffic(random: Random, count: int) -> FloatArray:
    """Network bytes: heavy-tailed around the day's curve."""
    usual = 1e5 * (0.2 + day_wave(random, count))
    return np.asarray(usual * random.lognormal(0, random.uniform(0.15, 0.7), count))


def requests(random: Random, count: int) -> FloatArray:
    return random.poisson(random.uniform(2, 200) * (0.1 + day_wave(random, count))).astype(np.float64)


def teeth(random: Random, count: int) -> FloatArray:
    """Something fills and is emptied, every few hours."""
    every = random.uniform(12, 80)
    phase = (np.arange(count) / every + random.random()) % 1
    return np.asarray(30 + 20 * phase + random.uniform(0.3, 2) * random.standard_normal(count))


def bursty(random: Random, count: int) -> FloatArray:
    """Jobs at random moments, each for some samples."""
    values = 5 + np.abs(random.standard_normal(count))
    for start in np.flatnonzero(random.random(count) < 1 / random.uniform(30, 150)):
        values[start : start + int(random.integers(1, 8))] += random.lognormal(2.5, 0.35)
    return values


BACKGROUNDS = (idle, busy, steady, bytes_written, traffic, requests, teeth, bursty)


def high(values: FloatArray) -> float:
    """How far the usual values reach above their middle."""
    return float(np.quantile(values, 0.995) - np.median(values)) or 1.0


def spike(random: Random, values: FloatArray, at: int) -> None:
    values[at : at + int(random.integers(1, 5))] += high(values) * random.uniform(1.5, 6)


def plateau(random: Random, values: FloatArray, at: int) -> None:
    values[at : at + int(random.integers(12, 100))] += high(values) * random.uniform(0.8, 2.5)


def outage(random: Random, values: FloatArray, at: int) -> None:
    """Down to the floor for hours."""
    low = float(np.min(values))
    values[at : at + int(random.integers(6, 60))] = low * random.uniform(0.5, 1.0)


def shift(random: Random, values: FloatArray, at: int) -> None:
    """For good."""
    values[at:] += high(values) * random.uniform(0.8, 2) * (1 if random.random() < 0.7 else -0.5)
    np.maximum(values, 0, out=values)


def restless(random: Random, values: FloatArray, at: int) -> None:
    part = values[at : at + int(random.integers(24, 150))]
    part += high(values) * random.uniform(0.7, 1.5) * np.abs(random.standard_normal(len(part)))


def frozen(random: Random, values: FloatArray, at: int) -> None:
    """The same value, again and again."""
    values[at : at + int(random.integers(24, 150))] = values[at]


def quickened(random: Random, values: FloatArray, at: int) -> None:
    """Peaks that come more often than before, for a day."""
    places = at + np.cumsum(random.integers(2, 12, 40))
    values[places[places < min(len(values), at + DAY)]] += high(values) * random.uniform(0.8, 1.6)


ANOMALIES: tuple[Callable[[Random, FloatArray, int], None], ...] = (
    spike, spike, plateau, outage, shift, restless, frozen, quickened,
)  # fmt: skip


def labelled_case(random: Random, place: int) -> LabelledSeries:
    background = BACKGROUNDS[place % len(BACKGROUNDS)]
    values = background(random, SAMPLES)
    planted = sorted(
        int(at) for at in random.choice(np.arange(4, 15), int(random.integers(1, 4)), replace=False)
    )
    starts, names = [], []
    for tenth in planted:
        at = int((tenth + random.random()) * SAMPLES / 16)
        kind = ANOMALIES[int(random.integers(len(ANOMALIES)))]
        kind(random, values, at)
        starts.append(at)
        names.append(kind.__name__)
    half = SAMPLES // 10 // len(starts) // 2
    windows = [(max(at - half, 0), min(at + half, SAMPLES - 1)) for at in starts]
    times_at = MONDAY_AT + 300.0 * np.arange(SAMPLES, dtype=np.float64)
    name = f"{background.__name__}: {', '.join(names)}"
    return LabelledSeries(name, Series(times_at, values, metric="value"), windows)


def labelled(random: Random, count: int) -> list[LabelledSeries]:
    return [labelled_case(random, place) for place in range(count)]
