"""
Generated series for the change points: noise of many classes without a change, and changes planted in them.

Two families. The confidence is fitted on the first and checked on the second: the second
differs in its classes, their shapes and their figures, so that the check is not a repetition.
Every maker takes a random generator; whoever calls chooses the seed and prints it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.studies_sets import autoregressive, pink, random_walk

FloatArray = NDArray[np.float64]
Random = np.random.Generator
Maker = Callable[[Random, int], FloatArray]


def white(random: Random, count: int) -> FloatArray:
    return random.standard_normal(count)


def pulses(
    random: Random, count: int, every: float, width: int, height: float, jitter: float, noise: float = 1.0
) -> FloatArray:
    """A job that runs every so many samples, each start late by 0 to jitter samples."""
    values = noise * random.standard_normal(count)
    for start in np.arange(-random.uniform(0, every), count, every):
        at = round(start + random.uniform(0, jitter)) if jitter else round(start)
        values[max(at, 0) : max(at + width, 0)] += height
    return values


def nested(random: Random, count: int) -> FloatArray:
    small = pulses(random, count, 60, 4, 5, random.uniform(0, 2))
    return small + pulses(random, count, 600, 45, 8, random.uniform(0, 3), noise=0.0)


def switching(random: Random, count: int, on: float, off: float, height: float, noise: float) -> FloatArray:
    """On and off for exponential times."""
    values = noise * random.standard_normal(count)
    at, busy = 0.0, bool(random.random() < on / (on + off))
    while at < count:
        lasts = random.exponential(on if busy else off)
        if busy:
            values[int(at) : int(at + lasts)] += height
        at, busy = at + lasts, not busy
    return values


def levels(random: Random, count: int, mean_time: float, kinds: int) -> FloatArray:
    """A few levels, each taken up again and again for random times."""
    heights = np.sort(random.normal(0, 4, kinds))
    values = random.standard_normal(count) * 0.7
    at, state = 0.0, 0
    while at < count:
        lasts = random.exponential(mean_time)
        values[int(at) : int(at + lasts)] += heights[state]
        at, state = at + lasts, int((state + random.integers(1, kinds)) % kinds)
    return values


def sawtooth(random: Random, count: int, every: float, uneven: float, noise: float) -> FloatArray:
    """A heap that fills and is collected; each tooth differs in length by the share uneven."""
    values = np.empty(count)
    at = -int(random.uniform(0, every))
    while at < count:
        length = max(8, int(every * (1 + uneven * random.uniform(-1, 1))))
        tooth = np.arange(length) * (10 / every) + random.normal(0, 0.3)
        start = max(at, 0)
        part = tooth[start - at : max(count - at, 0)]
        values[start : start + len(part)] = part
        at += length
    return values + noise * random.standard_normal(count)


def day_curve(random: Random, count: int, day: float, noise: float, memory: float = 0.0) -> FloatArray:
    """A part of the day's wave, of the length day."""
    angle = 2 * np.pi * (np.arange(count) / day + random.random())
    wave = 5 * np.sin(angle) + random.uniform(0, 1.5) * np.sin(2 * angle + random.uniform(0, 6))
    return np.asarray(wave + noise * autoregressive(random, count, memory))


def diurnal_load(random: Random, count: int) -> FloatArray:
    """Requests of a Poisson process whose rate follows the day."""
    rate = 8 + 5 * np.sin(2 * np.pi * (np.arange(count) / 86_400 + random.random()))
    return random.poisson(rate) / 3.0


def zero_inflated(random: Random, count: int, share: float) -> FloatArray:
    return np.where(random.random(count) < share, random.lognormal(0, 1, count) * 3, 0.0)


def clustered(random: Random, count: int, mean_gap: float) -> FloatArray:
    """Noise whose deviation wanders: log variance is autoregressive."""
    return np.asarray(
        random.standard_normal(count) * np.exp(0.4 * autoregressive(random, count, 1 - 1 / mean_gap))
    )


def gust(random: Random, count: int) -> FloatArray:
    """Bursts that come at random and die away."""
    values = random.standard_normal(count)
    for at in np.flatnonzero(random.random(count) < 1 / 150):
        tail = np.arange(count - at)
        values[at:] += random.uniform(3, 9) * np.exp(-tail / random.uniform(3, 15))
    return values


FIRST: dict[str, Maker] = {
    "white": white,
    "AR 0.5": lambda random, count: autoregressive(random, count, 0.5),
    "AR 0.9": lambda random, count: autoregressive(random, count, 0.9),
    "AR 0.99": lambda random, count: autoregressive(random, count, 0.99),
    "AR 0.999": lambda random, count: autoregressive(random, count, 0.999),
    "random walk": lambda random, count: random_walk(random, count) / 10,
    "pink": pink,
    "quantised AR": lambda random, count: np.round(autoregressive(random, count, 0.95) * 1.5),
    "heavy tails": lambda random, count: random.standard_t(2.5, count),
    "Pareto": lambda random, count: random.pareto(1.6, count),
    "Poisson": lambda random, count: random.poisson(3, count) / np.sqrt(3.0),
    "cron 60 s": lambda random, count: pulses(random, count, 60, 5, 5, 0),
    "cron 60 s, jitter": lambda random, count: pulses(
        random, count, 60, int(random.integers(1, 7)), random.uniform(4, 10), random.uniform(0.5, 2)
    ),
    "cron 300 s": lambda random, count: pulses(
        random, count, 300, int(random.integers(10, 40)), 6, random.uniform(0, 2)
    ),
    "cron nested": nested,
    "on/off bursts": lambda random, count: switching(
        random, count, random.uniform(10, 60), random.uniform(20, 90), random.uniform(3, 8), 1.0
    ),
    "telegraph": lambda random, count: switching(random, count, 40, 40, 2, 0.5),
    "GC sawtooth": lambda random, count: sawtooth(random, count, random.uniform(60, 300), 0.1, 0.3),
    "trend": lambda random, count: (
        random.standard_normal(count) + np.linspace(0, random.uniform(-15, 15), count)
    ),
    "day's curve": lambda random, count: day_curve(random, count, 86_400, 0.3),
    "diurnal load": diurnal_load,
    "zero-inflated": lambda random, count: zero_inflated(random, count, 0.05),
    "gusts": gust,
}

SECOND: dict[str, Maker] = {
    "uniform": lambda random, count: random.uniform(-1.7, 1.7, count),
    "MA over 20": lambda random, count: (
        np.convolve(random.standard_normal(count + 19), np.ones(20), "valid") / 4.5
    ),
    "AR 0.8 and white": lambda random, count: (
        autoregressive(random, count, 0.8) + random.standard_normal(count)
    ),
    "AR 0.97": lambda random, count: autoregressive(random, count, 0.97),
    "AR 0.995 and white": lambda random, count: (
        autoregressive(random, count, 0.995) + 0.5 * random.standard_normal(count)
    ),
    "walk and white": lambda random, count: random_walk(random, count) / 20 + random.standard_normal(count),
    "AR(2) cycle": lambda random, count: ar2(random, count, 40, 0.97),
    "quantised memory": lambda random, count: np.round(autoregressive(random, count, 0.99) * 3) * 4096,
    "lognormal": lambda random, count: random.lognormal(0, 1, count),
    "Laplace": lambda random, count: random.laplace(0, 1, count),
    "Pareto 1.2": lambda random, count: random.pareto(1.2, count),
    "rare events": lambda random, count: random.poisson(0.2, count).astype(np.float64),
    "cron 45 s, late by 3 s": lambda random, count: pulses(random, count, 45, 3, 8, 3, noise=0.5),
    "cron 120 s, half on": lambda random, count: pulses(random, count, 120, 55, 4, 4),
    "cron 400 s": lambda random, count: pulses(random, count, 400, 25, 10, 5),
    "three levels": lambda random, count: levels(random, count, random.uniform(25, 80), 3),
    "idle and busy": lambda random, count: switching(random, count, 25, 120, 12, 0.6),
    "uneven sawtooth": lambda random, count: sawtooth(random, count, random.uniform(80, 200), 0.4, 0.6),
    "curve of six hours": lambda random, count: day_curve(random, count, 21_600, 0.5, 0.5),
    "noise that wanders": lambda random, count: clustered(random, count, 80),
}


def ar2(random: Random, count: int, period: float, memory: float) -> FloatArray:
    """A cycle that forgets its phase."""
    first, second = 2 * memory * np.cos(2 * np.pi / period), -memory * memory
    values = np.zeros(count + 400)
    shocks = random.standard_normal(count + 400)
    for index in range(2, len(values)):
        values[index] = first * values[index - 1] + second * values[index - 2] + shocks[index]
    return np.asarray(values[400:] / values[400:].std())


FAMILIES = {"first": FIRST, "second": SECOND}


@dataclass(frozen=True)
class Planted:
    """A series and the first sample of each new regime in it; reach is how near a finding must be."""

    name: str
    values: FloatArray
    changes: tuple[int, ...]
    reach: int = 0
    reaches: tuple[float, ...] = ()

    def is_real(self, found: int) -> bool:
        return any(abs(found - change) <= reach for change, reach in zip(self.changes, self.tolerances))

    @property
    def tolerances(self) -> tuple[float, ...]:
        """3 % of the series, or 5 samples; more where the place of a change cannot be seen so well."""
        usual = max(5, self.reach or round(0.03 * len(self.values)))
        return self.reaches or (usual,) * len(self.changes)


# What can be planted on a background, in units of its spread; each with the
# share of the series by which its place may be missed.
def step(random: Random, values: FloatArray, at: int, spread: float) -> FloatArray:
    values[at:] += spread * random.uniform(1, 6) * random.choice([-1, 1])
    return values


def bend(random: Random, values: FloatArray, at: int, spread: float) -> FloatArray:
    rise = spread * random.uniform(3, 10) * random.choice([-1, 1])
    values[at:] += rise * np.arange(len(values) - at) / (len(values) - at)
    return values


def louder(random: Random, values: FloatArray, at: int, _: float) -> FloatArray:
    middle = float(np.median(values))
    factor = random.uniform(1.8, 5)
    part = slice(at, None) if random.random() < 0.5 else slice(0, at)
    values[part] = middle + (values[part] - middle) * factor
    return values


def spell(random: Random, values: FloatArray, at: int, spread: float) -> FloatArray:
    values[at : at + int(len(values) * random.uniform(0.08, 0.25))] += spread * random.uniform(3, 8)
    return values


def spikes(random: Random, values: FloatArray, at: int, spread: float) -> FloatArray:
    """From here on, or until here, one sample in so many is far above."""
    part = values[at:] if random.random() < 0.5 else values[:at]
    every = random.uniform(10, 40)
    if random.random() < 0.5:
        part += spread * random.uniform(8, 20) * (random.random(len(part)) < 1 / every)
    else:
        part += spread * pulses(random, len(part), every, 2, random.uniform(8, 20), 1.0, noise=0.0)
    return values


CHANGES = {"step": step, "bend": bend, "louder": louder, "spell": spell, "spikes": spikes}
KINDS = ("step", "step", "step", "bend", "louder", "spell", "spikes")


def spread_of(values: FloatArray) -> float:
    low, high = np.quantile(values, [0.16, 0.84])
    return float(high - low) / 2 or float(values.std()) or 1.0


def planted_case(random: Random, family: str, name: str, count: int | None = None) -> Planted:
    """Half of the cases have one to three changes; half have none."""
    count = count or int(np.exp(random.uniform(np.log(150), np.log(4000))))
    values = FAMILIES[family][name](random, count).astype(np.float64)
    changes: list[int] = []
    reaches: list[float] = []
    if random.random() < 0.5:
        spread = spread_of(values)
        for place in sorted(random.choice(np.arange(1, 9), size=random.integers(1, 4), replace=False)):
            at = int(place * count / 9 + random.integers(-count // 40, count // 40 + 1))
            kind = str(random.choice(KINDS))
            before = values.copy()
            values = CHANGES[kind](random, values, at, spread)
            changes.append(at)
            reaches.append(max(5, (0.08 if kind in ("bend", "spikes") else 0.03) * count))
            if kind == "spell":
                changes.append(int(np.flatnonzero(before != values)[-1]) + 1)
                reaches.append(reaches[-1])
    return Planted(name, values * 10.0 ** random.integers(-6, 9), tuple(changes), reaches=tuple(reaches))


def spikes_begin(random: Random, count: int) -> Planted:
    """One sample in twenty, 10 deviations high, from the middle on."""
    at = int(count * random.uniform(0.35, 0.65))
    values = random.standard_normal(count)
    values[at:] += 10 * (random.random(count - at) < 0.05)
    return Planted("spikes begin", values, (at,), round(0.06 * count))


def spikes_end(random: Random, count: int) -> Planted:
    case = spikes_begin(random, count)
    return Planted("spikes end", case.values[::-1].copy(), (count - case.changes[0],), case.reach)


def cron_changes(random: Random, count: int, before: float | None, after: float | None, name: str) -> Planted:
    at = int(count * random.uniform(0.4, 0.6))
    width, height, jitter = int(random.integers(1, 6)), random.uniform(5, 10), random.uniform(0, 2)
    values = random.standard_normal(count)
    for every, part in ((before, slice(0, at)), (after, slice(at, count))):
        if every is not None:
            length = part.stop - part.start
            values[part] += pulses(random, length, every, width, height, jitter, noise=0.0)
    return Planted(name, values, (at,), 75)


def slope_begins(random: Random, count: int, memory: float) -> Planted:
    at = int(count * random.uniform(0.35, 0.65))
    values = autoregressive(random, count, memory)
    values[at:] += 3 * np.arange(count - at) / (count - at)
    return Planted(f"slope +3 sd, AR {memory}", values, (at,), round(0.12 * count))


def noise_doubles(random: Random, count: int, memory: float = 0.0) -> Planted:
    at = int(count * random.uniform(0.35, 0.65))
    values = autoregressive(random, count, memory)
    values[at:] *= 2
    return Planted("noise x2", values, (at,), round(0.06 * count))


def one_step(random: Random, count: int, size: float, memory: float) -> Planted:
    at = int(count * random.uniform(0.3, 0.7))
    values = autoregressive(random, count, memory)
    values[at:] += size
    return Planted(f"step {size:g} sd, AR {memory}", values, (at,))


def step_beside_cron(random: Random, count: int) -> Planted:
    at = int(count * random.uniform(0.3, 0.7))
    values = pulses(random, count, 60, 5, 6, 1.5)
    values[at:] += 3
    return Planted("step 3 sd beside cron", values, (at,))


TO_FIND: dict[str, Callable[[Random, int], Planted]] = {
    "step 1 sd": lambda random, count: one_step(random, count, 1, 0.0),
    "step 2 sd": lambda random, count: one_step(random, count, 2, 0.0),
    "step 2 sd, AR 0.9": lambda random, count: one_step(random, count, 2, 0.9),
    "step 4 sd, AR 0.9": lambda random, count: one_step(random, count, 4, 0.9),
    "step beside cron": step_beside_cron,
    "slope +3 sd": lambda random, count: slope_begins(random, count, 0.0),
    "slope +3 sd, AR 0.9": lambda random, count: slope_begins(random, count, 0.9),
    "noise x2": noise_doubles,
    "noise x2, AR 0.9": lambda random, count: noise_doubles(random, count, 0.9),
    "spikes begin": spikes_begin,
    "spikes end": spikes_end,
    "cron stops": lambda random, count: cron_changes(random, count, 60, None, "cron stops"),
    "cron starts": lambda random, count: cron_changes(random, count, None, 60, "cron starts"),
    "cron 60 to 30 s": lambda random, count: cron_changes(random, count, 60, 30, "cron 60 to 30 s"),
    "cron 30 to 60 s": lambda random, count: cron_changes(random, count, 30, 60, "cron 30 to 60 s"),
}
