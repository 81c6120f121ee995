"""
Generated series whose truth is known: what the studies are measured and tested on.

Every maker takes a random generator, so whoever calls chooses the seed and
prints it. Values are in units of the noise's standard deviation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Maker = Callable[[np.random.Generator, int], FloatArray]


def autoregressive(random: np.random.Generator, count: int, memory: float) -> FloatArray:
    """Noise of unit variance whose neighbours correlate by memory."""
    warm_up = 300
    shocks = random.standard_normal(count + warm_up) * np.sqrt(1 - memory * memory)
    values = np.empty_like(shocks)
    level = 0.0
    for index, shock in enumerate(shocks):
        level = memory * level + shock
        values[index] = level
    return np.asarray(values[warm_up:])


def pink(random: np.random.Generator, count: int) -> FloatArray:
    frequency = np.fft.rfftfreq(count)
    frequency[0] = frequency[1]
    values = np.fft.irfft(np.fft.rfft(random.standard_normal(count)) / np.sqrt(frequency), count)
    return np.asarray((values - values.mean()) / values.std())


def random_walk(random: np.random.Generator, count: int) -> FloatArray:
    return np.cumsum(random.standard_normal(count))


def ramp(random: np.random.Generator, count: int) -> FloatArray:
    noise = random.standard_normal(count) * float(random.choice([0, 1]))
    return np.asarray(np.linspace(0, random.uniform(3, 30), count) + noise)


def level_shifts(random: np.random.Generator, count: int) -> FloatArray:
    values = random.standard_normal(count)
    for _ in range(random.integers(1, 4)):
        values[random.integers(1, count) :] += random.uniform(2, 6) * random.choice([-1, 1])
    return values


def telegraph(random: np.random.Generator, count: int) -> FloatArray:
    """Two levels, switched at random moments."""
    switches = random.random(count) < 1 / random.uniform(10, 60)
    return 2.0 * (np.cumsum(switches) % 2) + random.standard_normal(count) * 0.5


def bursts(random: np.random.Generator, count: int) -> FloatArray:
    values = random.standard_normal(count)
    for start in random.integers(0, count, size=max(2, count // 150)):
        values[start : start + random.integers(3, 20)] += random.uniform(3, 8)
    return values


def staircase(random: np.random.Generator, count: int) -> FloatArray:
    """Levels that each hold for a random time."""
    values = np.zeros(count)
    for start in random.integers(0, count, size=random.integers(4, 12)):
        values[start:] = random.normal(0, 3)
    return values + random.standard_normal(count) * 0.5


def bump(random: np.random.Generator, count: int) -> FloatArray:
    index = np.arange(count)
    width = count * random.uniform(0.03, 0.15)
    shape = np.exp(-0.5 * ((index - random.uniform(0.2, 0.8) * count) / width) ** 2)
    return np.asarray(random.standard_normal(count) + 6 * shape)


def constant(random: np.random.Generator, count: int) -> FloatArray:
    return np.full(count, float(random.integers(0, 100)))


APERIODIC: dict[str, Maker] = {
    "white": lambda random, count: random.standard_normal(count),
    "heavy tails": lambda random, count: random.standard_t(3, count),
    "autoregressive 0.5": lambda random, count: autoregressive(random, count, 0.5),
    "autoregressive 0.9": lambda random, count: autoregressive(random, count, 0.9),
    "autoregressive 0.98": lambda random, count: autoregressive(random, count, 0.98),
    "pink": pink,
    "random walk": random_walk,
    "ramp": ramp,
    "level shifts": level_shifts,
    "telegraph": telegraph,
    "bursts": bursts,
    "staircase": staircase,
    "bump": bump,
    "constant": constant,
}

SHAPES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sine": lambda phase: np.sin(2 * np.pi * phase),
    "saw": lambda phase: phase % 1 - 0.5,
    "square": lambda phase: np.where(phase % 1 < 0.5, 1.0, 0.0),
    "pulse": lambda phase: np.where(phase % 1 < 0.15, 1.0, 0.0),
    "double": lambda phase: np.sin(2 * np.pi * phase) + 0.8 * np.sin(4 * np.pi * phase + 1),
}

IMPAIRMENTS = (
    "none",
    "trend",
    "drift",
    "outliers",
    "missing",
    "gap",
    "amplitude",
    "jitter",
    "level shifts",
    "partial",
    "two periods",
)

# Signal over noise, as standard deviations; the research set's three.
SIGNAL_RATIOS = (2.0, 1.0, 0.7)


@dataclass(frozen=True)
class PeriodCase:
    """A series with the periods, in samples, that are really in it."""

    name: str
    values: FloatArray
    periods: tuple[float, ...]


def periodic_case(random: np.random.Generator, impairment: str, longest: int = 3600) -> PeriodCase:
    count = int(random.integers(300, longest + 1))
    ratio = float(random.choice(SIGNAL_RATIOS))
    # At least five cycles; log-uniform, so that every scale is met.
    period = float(np.exp(random.uniform(np.log(4.0), np.log(count / 5.2))))
    shape = str(random.choice(list(SHAPES)))
    phase = cycle_phase(random, count, period, jittered=impairment == "jitter")
    signal = unit(SHAPES[shape](phase))
    noise = (
        random.standard_normal(count) if random.random() < 0.5 else autoregressive(random, count, 0.7)
    ) / ratio
    periods = [period]
    if impairment == "two periods":
        other = period * random.uniform(2.3, 7.7)
        if other > count / 5.2:
            other = period / random.uniform(2.3, 7.7)
        if other > 4 and abs(max(other, period) / min(other, period) % 1 - 0.5) < 0.45:
            periods.append(other)
            signal = signal + unit(SHAPES["sine"](np.arange(count) / other + random.random()))
    values = impaired(random, impairment, signal, noise)
    name = f"{impairment}, {shape}, {count / period:.0f} cycles, ratio {ratio}"
    return PeriodCase(name, values * 10.0 ** random.integers(-6, 9), tuple(periods))


def cycle_phase(random: np.random.Generator, count: int, period: float, *, jittered: bool) -> FloatArray:
    """Cycles since the start; a jittered cycle starts up to 5 % of a period early or late."""
    phase = np.arange(count) / period + random.random()
    if not jittered:
        return phase
    edges = np.arange(int(phase[-1]) + 3, dtype=np.float64)
    late = edges + random.uniform(-0.05, 0.05, len(edges))
    return np.interp(phase, late, edges)


def unit(values: FloatArray) -> FloatArray:
    return np.asarray((values - values.mean()) / values.std())


def impaired(
    random: np.random.Generator, impairment: str, signal: FloatArray, noise: FloatArray
) -> FloatArray:
    count = len(signal)
    spread = float(noise.std())
    if impairment == "partial":
        start = random.integers(0, int(count * 0.4) + 1)
        inside = np.zeros(count)
        inside[start : start + int(count * 0.6)] = 1
        return signal * inside + noise
    if impairment == "amplitude":
        signal = signal * np.linspace(0.5, 1.5, count)
    values = signal + noise
    if impairment == "trend":
        values = values + np.linspace(0, random.uniform(3, 15), count)
    if impairment == "drift":
        values = values + unit(np.cumsum(random.standard_normal(count))) * 1.5
    if impairment == "outliers":
        hit = random.random(count) < 0.01
        values[hit] += random.uniform(5, 20, int(hit.sum())) * (1 + spread)
    if impairment == "level shifts":
        for cut in random.integers(1, count, size=2):
            values[cut:] += random.uniform(1, 4) * random.choice([-1, 1])
    if impairment == "missing":
        values[random.random(count) < random.uniform(0.05, 0.25)] = np.nan
    if impairment == "gap":
        start = random.integers(int(count * 0.2), int(count * 0.7))
        values[start : start + int(count * random.uniform(0.03, 0.1))] = np.nan
    return values


def aperiodic_case(random: np.random.Generator, kind: str, longest: int = 3600) -> PeriodCase:
    count = int(random.integers(300, longest + 1))
    values = APERIODIC[kind](random, count) * 10.0 ** random.integers(-6, 9)
    return PeriodCase(kind, values, ())


def cron_spikes(random: np.random.Generator, count: int) -> FloatArray:
    """Five seconds of work every minute."""
    return random.standard_normal(count) + 5 * ((np.arange(count) + random.integers(60)) % 60 < 5)


# What change points are planted into. The last three have none and look as
# if they had: what a calibrated confidence must learn to doubt.
BACKGROUNDS: dict[str, Maker] = {
    "white": APERIODIC["white"],
    "heavy tails": APERIODIC["heavy tails"],
    "Poisson": lambda random, count: random.poisson(3, count) / np.sqrt(3.0),
    "trend": lambda random, count: random.standard_normal(count) + np.linspace(0, 10, count),
    "autoregressive 0.5": APERIODIC["autoregressive 0.5"],
    "autoregressive 0.9": APERIODIC["autoregressive 0.9"],
    "cron spikes": cron_spikes,
    "autoregressive 0.98": APERIODIC["autoregressive 0.98"],
    "pink": pink,
    "random walk": lambda random, count: random_walk(random, count) / 10,
}


@dataclass(frozen=True)
class ChangeCase:
    """A series and the first sample of each new regime in it."""

    name: str
    values: FloatArray
    changes: tuple[int, ...]


def change_case(random: np.random.Generator, background: str) -> ChangeCase:
    """Half of the cases have one to three changes of level, slope or noise; half have none."""
    count = int(random.integers(200, 2400))
    values = BACKGROUNDS[background](random, count)
    changes: list[int] = []
    if random.random() < 0.5:
        for change in sorted(random.choice(np.arange(1, 10), size=random.integers(1, 4), replace=False)):
            at = int(change * count / 10 + random.integers(-count // 40, count // 40))
            values = changed(random, values, at)
            changes.append(at)
    return ChangeCase(background, values * 10.0 ** random.integers(-6, 9), tuple(changes))


def changed(random: np.random.Generator, values: FloatArray, at: int) -> FloatArray:
    after = values.copy()
    kind = random.choice(["level", "level", "level", "slope", "noise"])
    size = float(random.uniform(0.5, 6)) * float(random.choice([-1, 1]))
    if kind == "level":
        after[at:] += size
    elif kind == "slope":
        after[at:] += size * np.arange(len(values) - at) / (len(values) / 10)
    else:
        after[at:] = after[at] + (after[at:] - after[at]) * float(random.uniform(2, 6))
    return after


def is_near(found: int, changes: tuple[int, ...], count: int) -> bool:
    """A finding is real when a change was planted within 3 % of the series, or 5 samples."""
    return any(abs(found - change) <= max(5, 0.03 * count) for change in changes)


@dataclass(frozen=True)
class LeakCase:
    """A leak in MiB, its limit, and when it really reaches it, in samples after the last one."""

    values: FloatArray
    limit: float
    samples_to_limit: float


def leak_case(random: np.random.Generator) -> LeakCase:
    count = int(random.integers(600, 7200))
    noise = [
        lambda: random.standard_normal(count),
        lambda: autoregressive(random, count, 0.7),
        lambda: random.standard_t(3, count),
    ][int(random.integers(3))]()
    rise = float(random.uniform(3, 30))
    limit = 50 + rise * float(random.uniform(1.2, 4))
    values = 50 + rise * np.arange(count) / count + noise
    return LeakCase(values, limit, (limit - 50) / rise * count - (count - 1))


def filling_cache(random: np.random.Generator) -> FloatArray:
    """Fills, and levels off well before the end."""
    count = int(random.integers(600, 7200))
    filled = 1 - np.exp(-np.arange(count) / (count * random.uniform(0.05, 0.3)))
    return np.asarray(50 + 30 * filled + random.standard_normal(count) * random.uniform(0.1, 2))


@dataclass(frozen=True)
class CauseCase:
    """A series, thirty others, which of them is the cause, and by how many samples it came first."""

    target: FloatArray
    others: list[FloatArray]
    cause: int
    lag: int


def cause_case(random: np.random.Generator, count: int = 1200, others: int = 30) -> CauseCase:
    """The cause has a busy stretch that the target follows; its neighbour steps at another time."""
    makers = list(BACKGROUNDS.values())
    series = [makers[place % len(makers)](random, count) for place in range(others)]
    cause = int(random.integers(others))
    busy = autoregressive(random, count, 0.5)
    start = int(random.integers(count // 4, count * 3 // 4))
    busy[start : start + int(random.integers(60, 300))] += random.uniform(2, 6)
    lag = int(random.integers(0, 30))
    target = autoregressive(random, count, 0.7) + np.roll(busy, lag) * random.uniform(0.5, 1.5)
    series[cause] = busy
    series[(cause + 1) % others][int(random.integers(100, count - 100)) :] += 4
    return CauseCase(target, series, cause, lag)
