"""
The stretch of a series in which a period holds, and periods that hold in a stretch only.

A cron job that ran for one hour of a day is lost in the day's spectrum, so
windows of a quarter, a sixteenth, ... of the series are looked at as well, all
windows of one length at once. Neighbouring windows that show the same period
are one spell.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.period_search import (
    CLIP_SPREADS,
    FALSE_PEAKS,
    SHORTEST_PERIOD,
    Period,
    steadied,
)
from nodescope.use.studies.maths.phase_profile import folded, layers_of
from nodescope.use.studies.maths.robust import NORMAL_MAD
from nodescope.use.studies.maths.segment import filled
from nodescope.use.studies.maths.spectrum import between_bins, chance_ratio, power_of, ratios_of
from nodescope.use.studies.series import FloatArray, IntArray

# Windows shrink by four, not two: half a window more or less changes a peak
# by a factor two, and the fold decides anyway. Ten minutes, at our pace, are
# the shortest worth an hour's look.
SHRINK = 4
SHORTEST_WINDOW = 600

# In a window nothing may be doubtful: there are many of them. Six cycles,
# a fifth of the variance, and a t value no random walk reached on the
# generated set.
WINDOW_CYCLES = 6.0
WINDOW_AGREEMENT = 5.0
WINDOW_STRENGTH = 0.2

# A window's spread is taken from so many of its samples: it only bounds
# wild ones.
SPREAD_SAMPLE = 256

# Two windows show the same period within 5 %.
SAME_PERIOD = 0.05

# Folds tried per series, over all windows: the most promising only.
WINDOW_FOLDS = 24


@dataclass(frozen=True)
class Spell:
    """A period, and the samples [start, end) in which it holds."""

    period: Period
    start: int
    end: int


@dataclass(frozen=True)
class Hint:
    """A peak over chance in one window."""

    length: float
    excess: float
    start: int
    end: int


def holding(period: Period, count: int) -> Spell:
    """
    The stretch in which the cycles look like each other.

    The run of groups with the largest sum of (match - half a typical good
    match); an end within a tenth of the series, or two groups, is the series' end.
    """
    fold = period.fold
    matches = np.nan_to_num(fold.matches, nan=float(np.nanmedian(fold.matches)))
    worth = matches - 0.5 * float(np.quantile(matches, 0.75))
    first, last = best_run(worth)
    start, end = round(first * fold.group_samples), round((last + 1) * fold.group_samples)
    near = max(0.1 * count, 2 * fold.group_samples)
    return Spell(period, 0 if start <= near else start, count if end >= count - near else end)


def best_run(worth: FloatArray) -> tuple[int, int]:
    """First and last index of the run with the largest sum."""
    total = np.concatenate(([0.0], np.cumsum(worth)))
    lowest = np.minimum.accumulate(total[:-1])
    last = int(np.argmax(total[1:] - lowest))
    return int(np.argmin(total[: last + 1])), last


def spells_of(values: FloatArray, known: list[Period]) -> list[Spell]:
    """Periods that hold in a part of the series and are none of the known ones."""
    hints = [hint for hint in all_hints(values) if not any(is_akin(hint.length, one.length) for one in known)]
    hints = sorted(hints, key=lambda hint: -hint.excess)[:WINDOW_FOLDS]
    proven = [spell for hint in hints if (spell := proof(values, hint)) is not None]
    return merged(proven)


def all_hints(values: FloatArray) -> list[Hint]:
    even = filled(values)
    hints: list[Hint] = []
    size = len(even) // SHRINK
    while size >= SHORTEST_WINDOW:
        hints += window_hints(even, size)
        size //= SHRINK
    return hints


def window_hints(even: FloatArray, size: int) -> list[Hint]:
    """The highest peak of every window of one size, where it is no chance."""
    starts = np.arange(0, len(even) - size + 1, size // 2)
    rows = calm_rows(even[starts[:, None] + np.arange(size)])
    power = power_of(rows)
    ratio = ratios_of(power)
    place = highest_with_enough_cycles(ratio)
    height = ratio[np.arange(len(starts)), place]
    needed = chance_ratio(size, FALSE_PEAKS / len(starts))
    return [
        Hint(
            size / between_bins(power[row], int(place[row])),
            float(height[row] / needed),
            int(starts[row]),
            int(starts[row]) + size,
        )
        for row in np.flatnonzero(height > needed)
    ]


def highest_with_enough_cycles(ratio: FloatArray) -> IntArray:
    enough = ratio.copy()
    enough[:, : int(WINDOW_CYCLES)] = 0.0
    return np.asarray(np.argmax(enough, axis=1))


def calm_rows(rows: FloatArray) -> FloatArray:
    """Each window without its line and with wild samples drawn in; 0 where nothing moves."""
    time = np.arange(rows.shape[1]) - (rows.shape[1] - 1) / 2
    level = rows - rows.mean(axis=1, keepdims=True)
    slopes = np.einsum("rt,t->r", level, time) / np.sum(time * time)
    level = level - slopes[:, None] * time
    some = level[:, :: max(1, rows.shape[1] // SPREAD_SAMPLE)]
    middle = np.median(some, axis=1, keepdims=True)
    reach = CLIP_SPREADS * NORMAL_MAD * np.median(np.abs(some - middle), axis=1, keepdims=True)
    return np.asarray(np.where(reach > 0, np.clip(level, middle - reach, middle + reach), level))


def proof(values: FloatArray, hint: Hint) -> Spell | None:
    """The hint's window, if folding it leaves no doubt."""
    part = values[hint.start : hint.end]
    measured = np.isfinite(part)
    calm = steadied(part) if measured.any() else None
    if calm is None or hint.length < SHORTEST_PERIOD:
        return None
    fold = folded(layers_of(calm, measured), hint.length)
    if fold.cycles < WINDOW_CYCLES or fold.agreement < WINDOW_AGREEMENT or fold.strength < WINDOW_STRENGTH:
        return None
    period = Period(fold, hint.excess * chance_ratio(hint.end - hint.start, FALSE_PEAKS))
    return Spell(period.timed(calm, measured), hint.start, hint.end)


def merged(spells: list[Spell]) -> list[Spell]:
    """Overlapping or touching spells of akin periods as one, led by the strongest."""
    kept: list[Spell] = []
    for spell in sorted(spells, key=lambda spell: -spell.period.fold.agreement):
        place = next((at for at, other in enumerate(kept) if belongs(spell, other)), None)
        if place is None:
            kept.append(spell)
        else:
            other = kept[place]
            kept[place] = Spell(other.period, min(spell.start, other.start), max(spell.end, other.end))
    return kept


def belongs(spell: Spell, other: Spell) -> bool:
    apart = max(spell.start, other.start) - min(spell.end, other.end)
    return apart <= (spell.end - spell.start) // 2 and is_akin(spell.period.length, other.period.length)


def is_akin(length: float, other: float) -> bool:
    """Equal, or one a small multiple of the other, within 5 %."""
    ratio = max(length, other) / min(length, other)
    return abs(ratio - round(ratio)) <= SAME_PERIOD * ratio
