"""What containers do besides noise: jobs, collectors, bursts, days."""

import numpy as np

from bench.judge.make.case import FloatArray, Random, pick

DAY_SECONDS = 86_400.0


def pulses(count: int, starts: FloatArray, length: int, height: float = 1.0) -> FloatArray:
    """A box of so many samples at each start that lies inside."""
    values = np.zeros(count)
    for start in np.round(starts).astype(int):
        values[max(0, start) : max(0, start + length)] += height
    return values


def job_starts(random: Random, count: int, period: float, jitter: float) -> FloatArray:
    """A job due every period, begun late or early by the jitter (a deviation); jitter does not add up."""
    due = np.arange(pick(random, 0, period), count, period)
    return due + random.normal(0, jitter, len(due)) if jitter else due


def cron(
    random: Random, count: int, period: float, length: int, height: float, jitter: float = 0.0
) -> FloatArray:
    return pulses(count, job_starts(random, count, period, jitter), length, height)


def bursts(random: Random, count: int, on: float, off: float, height: float) -> FloatArray:
    """On and off by turns; each lasts an exponential time."""
    values = np.zeros(count)
    place = 0.0 if random.random() < on / (on + off) else random.exponential(off)
    while place < count:
        end = place + random.exponential(on)
        values[round(place) : max(round(end), round(place) + 1)] = height
        place = end + random.exponential(off)
    return values


def sawtooth(random: Random, count: int, period: float, jitter: float) -> FloatArray:
    """Rises from 0 to 1 and drops; the length of each cycle differs by the jitter (a share)."""
    values = np.zeros(count)
    place = -pick(random, 0, period)
    while place < count:
        length = max(3.0, period * (1 + random.normal(0, jitter)))
        inside = np.arange(max(0, int(np.ceil(place))), min(count, int(np.ceil(place + length))))
        values[inside] = (inside - place) / length
        place += length
    return values


def day_curve(random: Random, seconds: FloatArray) -> FloatArray:
    """A smooth day between -1 and 1 about, lowest near four in the morning, with a second hump."""
    angle = 2 * np.pi * (seconds / DAY_SECONDS - 4 / 24)
    return -np.cos(angle) + pick(random, 0.0, 0.25) * np.sin(2 * angle + pick(random, 0, 6))
