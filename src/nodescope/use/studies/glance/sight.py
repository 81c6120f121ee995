"""
What can be seen in a series without any model: spikes, a sawtooth, restless and calm parts, slow movement.

Every look is cheap, and doubtful in favour of movement: "stable" is said only of
a series in which none of them sees anything.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.robust import mad_deviation, robust_deviation
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# Blocks by which slow movement is seen, and the fewest samples in one.
BLOCKS = 64
FEWEST_IN_BLOCK = 4

# Neighbouring blocks of a steady series are independent: their correlation is
# below 0.45 in all but one of a thousand of 64 blocks; a step makes it 0.9.
SLOW_CORRELATION = 0.45

# The logarithm of 20: the highest of so many ordinates of noise is above in 5 %.
PEAK_NATS = 3.0
PEAK_ROW = 128

# Eight deviations are no noise unless it has a tail, which is worth a word as well.
SPIKE_DEVIATIONS = 8.0
# All but a twentieth of the samples are usual: of noise they lie within two deviations, but four are
# allowed for where most samples are equal.
USUALLY, USUAL_DEVIATIONS = 0.95, 2.0
# So few samples between two spikes are a part of them.
SAME_SPIKE = 3
# Spikes that fill more than a twentieth of the time are bursts.
SPIKY_SHARE = 0.05

# A drop of three tenths of the range within two samples, after a slow climb, is
# the tooth of a saw; two of them are a sawtooth.
TOOTH_SHARE = 0.3
FEWEST_TEETH = 2

# A newest part that moves by less than a tenth of what was usual has stopped.
CALM_SHARE = 0.1
FEWEST_CALM = 10


# An excursion is six times as high as neighbouring blocks differ, and ends
# within a quarter of its height from where it began.
EXCURSION_NOISES = 6.0
BACK_SHARE = 0.25
LONGEST_EXCURSION = 0.6

# Two levels explain this share of the variance or they are none: they explain
# 64 % of a normal and 75 % of a uniform distribution. Four switches are a habit.
TWO_LEVELS_SHARE = 0.85
FEWEST_SWITCHES = 4
RAREST_LEVEL = 0.03


@dataclass(frozen=True)
class Excursion:
    """Samples [start, end) beyond half of its height, the level at its height, and the level since."""

    start: int
    end: int
    height: float
    now: float


@dataclass(frozen=True)
class TwoLevels:
    low: float
    high: float
    switches: int
    high_share: float


@dataclass(frozen=True)
class Spikes:
    """Where each begins, where the last ends (exclusive), and the value farthest away."""

    starts: IntArray
    end: int
    farthest: float


def moves_slowly(values: FloatArray) -> bool:
    """The level, or the noise, of neighbouring blocks is alike: it drifts, steps, swings or wanders."""
    size = max(FEWEST_IN_BLOCK, len(values) // BLOCKS)
    count = len(values) // size
    if count < 8:
        return False
    blocks = values[len(values) - count * size :].reshape(count, size)
    limit = max(SLOW_CORRELATION, 3.6 / np.sqrt(count))
    noises = np.log(blocks.std(axis=1) + 1e-9 * max(float(values.std()), np.finfo(np.float64).tiny))
    return any(neighbours(one) > limit for one in (blocks.mean(axis=1), np.median(blocks, axis=1), noises))


def has_spectral_peak(values: FloatArray) -> bool:
    """
    One frequency is stronger than its neighbours, as noise makes it in one of 20 series.

    The lowest are left out: what is so slow is seen in means as well.
    """
    power = np.abs(np.fft.rfft(values - values.mean()))[1:] ** 2
    rows = power[: len(power) // PEAK_ROW * PEAK_ROW].reshape(-1, PEAK_ROW)[1:]
    if len(rows) == 0:
        return True
    noise = np.median(rows, axis=1) / np.log(2)
    return bool(np.any(rows.max(axis=1) > noise * (np.log(rows.size) + PEAK_NATS)))


def neighbours(values: FloatArray) -> float:
    """Correlation of each value with the next."""
    level = values - values.mean()
    power = float(np.sum(level * level))
    return float(np.sum(level[1:] * level[:-1])) / power if power > 0 else 0.0


def find_spikes(values: FloatArray) -> Spikes | None:
    """Rare samples far from the rest; None where there are none, or so many that they are no spikes."""
    away = np.abs(values - np.median(values))
    # Half of the samples may be equal, as a floor at zero makes them, and the others no spikes.
    scale = max(robust_deviation(values), float(np.quantile(away, USUALLY)) / USUAL_DEVIATIONS)
    marked = away > SPIKE_DEVIATIONS * scale
    if scale <= 0 or not marked.any():
        return None
    starts, ends = joined(*runs(marked), away > 0.5 * SPIKE_DEVIATIONS * scale)
    if float(np.sum(ends - starts)) > SPIKY_SHARE * len(values):
        return None
    return Spikes(starts, int(ends[-1]), float(values[int(np.argmax(away))]))


def runs(marked: BoolArray) -> tuple[IntArray, IntArray]:
    edges = np.diff(np.concatenate(([0], marked.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def joined(starts: IntArray, ends: IntArray, high: BoolArray) -> tuple[IntArray, IntArray]:
    """Spikes a few samples apart are one, and those between which most samples are still half as far away."""
    total = np.concatenate(([0], np.cumsum(high)))
    between, room = total[starts[1:]] - total[ends[:-1]], starts[1:] - ends[:-1]
    apart = (room > SAME_SPIKE) & (2 * between < room)
    return starts[np.concatenate(([True], apart))], ends[np.concatenate((apart, [True]))]


def count_teeth(values: FloatArray) -> int:
    """Sudden drops after slow climbs; 0 where climbs are as sudden as drops."""
    if len(values) < 8:
        return 0
    low, high = np.quantile(values, (0.01, 0.99))
    moves = values[2:] - values[:-2]
    limit = TOOTH_SHARE * float(high - low)
    noise = mad_deviation(np.diff(values))
    if limit <= 6 * noise:
        return 0
    drops, climbs = (len(runs(marked)[0]) for marked in (moves < -limit, moves > limit))
    return drops if drops >= FEWEST_TEETH and climbs <= drops // 4 else 0


def calm_since(values: FloatArray) -> int | None:
    """
    The first sample of a newest part that hardly moves any more, or None.

    Every earlier part of that length moved more than ten times as much.
    """
    size = max(FEWEST_CALM, len(values) // BLOCKS)
    count = len(values) // size
    if count < 8:
        return None
    ranges = np.ptp(values[len(values) - count * size :].reshape(count, size), axis=1)
    usual = float(np.median(ranges[: count // 2]))
    calm = ranges < CALM_SHARE * usual
    busy = np.flatnonzero(~calm)
    if not calm[-1] or len(busy) == 0 or calm[: busy[-1]].any():
        return None
    last = len(values) - (count - 1 - int(busy[-1])) * size
    return refined(values, last, CALM_SHARE * usual)


def refined(values: FloatArray, start: int, limit: float) -> int:
    """Moved back as long as the samples before are within the limit of the newest."""
    newest = float(np.median(values[start:]))
    busy = np.flatnonzero(np.abs(values[:start] - newest) > limit)
    return int(busy[-1]) + 1 if len(busy) else start


def find_excursion(values: FloatArray) -> Excursion | None:
    """One time away from the level, and back."""
    size = max(FEWEST_IN_BLOCK, len(values) // BLOCKS)
    count = len(values) // size
    if count < 12:
        return None
    first = len(values) - count * size
    levels = np.median(values[first:].reshape(count, size), axis=1)
    edge = max(2, count // 10)
    began, now = float(np.median(levels[:edge])), float(np.median(levels[-edge:]))
    base = (began + now) / 2
    away = levels - base
    peak = int(np.argmax(np.abs(away)))
    height = float(abs(away[peak]))
    noise = mad_deviation(np.diff(levels))
    if height <= EXCURSION_NOISES * noise or abs(now - began) > BACK_SHARE * height:
        return None
    starts, ends = runs(np.abs(away) > height / 2)
    if len(starts) != 1 or not 2 <= ends[0] - starts[0] <= LONGEST_EXCURSION * count or ends[0] == count:
        return None
    return Excursion(first + int(starts[0]) * size, first + int(ends[0]) * size, float(levels[peak]), now)


def find_two_levels(values: FloatArray) -> TwoLevels | None:
    """Switches to and fro between two levels, at no regular times."""
    low, high = (float(level) for level in np.quantile(values, (0.02, 0.98)))
    for _ in range(8):
        upper = values > (low + high) / 2
        if not upper.any() or upper.all():
            return None
        low, high = float(np.mean(values[~upper])), float(np.mean(values[upper]))
    share = float(upper.mean())
    explained = share * (1 - share) * (high - low) ** 2 / max(float(values.var()), np.finfo(np.float64).tiny)
    if explained < TWO_LEVELS_SHARE or not RAREST_LEVEL <= share <= 1 - RAREST_LEVEL:
        return None
    switches = count_switches(values, low + 0.3 * (high - low), low + 0.7 * (high - low))
    return TwoLevels(low, high, switches, share) if switches >= FEWEST_SWITCHES else None


def count_switches(values: FloatArray, low: float, high: float) -> int:
    """From below low to above high or back; what is between counts as before."""
    sides = np.where(values > high, 1, np.where(values < low, -1, 0))
    sides = sides[sides != 0]
    return int(np.sum(sides[1:] != sides[:-1]))
