"""
The part of a series in which a period holds, and periods that hold in a part only.

A cron job that ran for one hour is lost in the spectrum of its day. So windows
of a quarter, a sixteenth, ... of the series are searched as well, all windows
of one length at once. Neighbouring windows with the same period are merged.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.period_search import (
    CLIP_DEVIATIONS,
    FALSE_PEAKS,
    SHORTEST_PERIOD,
    Period,
    standardised,
)
from nodescope.use.studies.maths.phase_profile import fit_cycles, resolutions_of
from nodescope.use.studies.maths.robust import NORMAL_MAD
from nodescope.use.studies.maths.spectrum import between_bins, chance_ratio, floor_of, power_of, ratios_of
from nodescope.use.studies.maths.stretch import interpolated
from nodescope.use.studies.series import FloatArray, IntArray

# Windows shrink by four, not two: a window of half the length changes a peak
# by a factor of two only, and the fit of the cycles decides. The shortest is
# ten minutes of one-second samples.
SHRINK = 4
SHORTEST_WINDOW = 600

# Stricter than for the whole series, because there are many windows: six
# cycles, a fifth of the variance, and a t value that no random walk of the
# generated set reached.
WINDOW_CYCLES = 6.0
WINDOW_T_VALUE = 5.0
WINDOW_STRENGTH = 0.2

# A window's deviation, which only bounds outliers, is estimated from so many
# of its samples.
DEVIATION_SAMPLE = 256

# Two windows show the same period within 5 %.
SAME_PERIOD = 0.05

# Fits tried per series: those of the highest peaks over all windows.
WINDOW_FITS = 24


@dataclass(frozen=True)
class LocalPeriod:
    """A period, and the samples [start, end) in which it holds."""

    period: Period
    start: int
    end: int


@dataclass(frozen=True)
class WindowPeak:
    """A peak of one window's spectrum that is higher than chance explains."""

    length: float
    excess: float
    start: int
    end: int


def extent_of(period: Period, count: int) -> LocalPeriod:
    """
    The part in which the cycles resemble each other.

    It is the run of groups with the largest sum of (correlation - half of a
    typical good one). An end within a tenth of the series, or two groups, of
    the series' own end is taken to be that end.
    """
    fit = period.fit
    correlations = np.nan_to_num(fit.correlations, nan=float(np.nanmedian(fit.correlations)))
    worth = correlations - 0.5 * float(np.quantile(correlations, 0.75))
    first, last = best_run(worth)
    start, end = round(first * fit.group_samples), round((last + 1) * fit.group_samples)
    near = max(0.1 * count, 2 * fit.group_samples)
    return LocalPeriod(period, 0 if start <= near else start, count if end >= count - near else end)


def best_run(worth: FloatArray) -> tuple[int, int]:
    """First and last index of the run with the largest sum."""
    total = np.concatenate(([0.0], np.cumsum(worth)))
    lowest = np.minimum.accumulate(total[:-1])
    last = int(np.argmax(total[1:] - lowest))
    return int(np.argmin(total[: last + 1])), last


def find_local_periods(values: FloatArray, known: list[float]) -> list[LocalPeriod]:
    """Periods that hold in a part of the series and are of none of the known lengths, nor multiples or parts of them."""
    peaks = [
        peak
        for peak in peaks_of_all_windows(values)
        if not any(is_same_or_multiple(peak.length, length) for length in known)
    ]
    peaks = sorted(peaks, key=lambda peak: -peak.excess)[:WINDOW_FITS]
    proven = [local for peak in peaks if (local := confirmed(values, peak)) is not None]
    return merge_overlapping(proven)


def peaks_of_all_windows(values: FloatArray) -> list[WindowPeak]:
    even = interpolated(values)
    peaks: list[WindowPeak] = []
    size = len(even) // SHRINK
    while size >= SHORTEST_WINDOW:
        peaks += window_peaks(even, size)
        size //= SHRINK
    return peaks


def window_peaks(even: FloatArray, size: int) -> list[WindowPeak]:
    """The highest peak of every window of one size, where chance does not explain it."""
    starts = np.arange(0, len(even) - size + 1, size // 2)
    rows = clipped_rows(even[starts[:, None] + np.arange(size)])
    power = power_of(rows)
    ratio = ratios_of(power, floor_of(power))
    place = highest_with_enough_cycles(ratio)
    height = ratio[np.arange(len(starts)), place]
    needed = chance_ratio(size, FALSE_PEAKS / len(starts))
    return [
        WindowPeak(
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


def clipped_rows(rows: FloatArray) -> FloatArray:
    """Each window less its straight line, outliers clipped; 0 where nothing varies."""
    time = np.arange(rows.shape[1]) - (rows.shape[1] - 1) / 2
    level = rows - rows.mean(axis=1, keepdims=True)
    slopes = np.einsum("rt,t->r", level, time) / np.sum(time * time)
    level = level - slopes[:, None] * time
    some = level[:, :: max(1, rows.shape[1] // DEVIATION_SAMPLE)]
    middle = np.median(some, axis=1, keepdims=True)
    reach = CLIP_DEVIATIONS * NORMAL_MAD * np.median(np.abs(some - middle), axis=1, keepdims=True)
    return np.asarray(np.where(reach > 0, np.clip(level, middle - reach, middle + reach), level))


def confirmed(values: FloatArray, peak: WindowPeak) -> LocalPeriod | None:
    """The peak's window, if its cycles predict each other beyond doubt."""
    part = values[peak.start : peak.end]
    measured = np.isfinite(part)
    standard = standardised(part) if measured.any() else None
    if standard is None or peak.length < SHORTEST_PERIOD:
        return None
    fit = fit_cycles(resolutions_of(standard, measured), peak.length)
    if fit.cycles < WINDOW_CYCLES or fit.t_value < WINDOW_T_VALUE or fit.strength < WINDOW_STRENGTH:
        return None
    period = Period(fit, peak.excess * chance_ratio(peak.end - peak.start, FALSE_PEAKS))
    return LocalPeriod(period.with_exact_length(standard, measured), peak.start, peak.end)


def merge_overlapping(found: list[LocalPeriod]) -> list[LocalPeriod]:
    """Overlapping or touching parts with the same period, or a multiple of it, as one; the surest period stays."""
    kept: list[LocalPeriod] = []
    for local in sorted(found, key=lambda local: -local.period.fit.t_value):
        place = next((at for at, other in enumerate(kept) if is_continuation(local, other)), None)
        if place is None:
            kept.append(local)
        else:
            other = kept[place]
            kept[place] = LocalPeriod(other.period, min(local.start, other.start), max(local.end, other.end))
    return kept


def is_continuation(local: LocalPeriod, other: LocalPeriod) -> bool:
    apart = max(local.start, other.start) - min(local.end, other.end)
    return apart <= (local.end - local.start) // 2 and is_same_or_multiple(
        local.period.length, other.period.length
    )


def is_same_or_multiple(length: float, other: float) -> bool:
    """Equal, or one a small multiple of the other, within 5 %."""
    ratio = max(length, other) / min(length, other)
    return abs(ratio - round(ratio)) <= SAME_PERIOD * ratio
