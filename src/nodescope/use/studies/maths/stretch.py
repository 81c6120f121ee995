"""
The stretches of a series within which samples may be compared.

A stretch ends at a time gap, at a restart the caller named, and where a
counter was reset. Its samples are on an even grid, missing ones are NaN: every
study works on this form and on nothing else.
"""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.series import BoolArray, FloatArray, IntArray, Series, ordered

# At one-second samples, half a minute: longer than a slow scrape or a paused
# agent; what was true before may not be true any more.
GAP_STEPS = 30

# Above this share of steps that are no whole number of intervals, the sampling
# is irregular and samples are put on the grid by their time.
UNEVEN_SHARE = 0.1


@dataclass(frozen=True)
class Stretch:
    """
    Samples on an even grid.

    times_at holds each grid point's time: a sample's own, or between its
    neighbours' where it is missing.
    """

    times_at: FloatArray
    values: FloatArray
    interval_seconds: float
    unit: str

    def __len__(self) -> int:
        return len(self.values)

    @property
    def present(self) -> int:
        return int(np.isfinite(self.values).sum())

    @property
    def span_seconds(self) -> float:
        return float(self.times_at[-1] - self.times_at[0]) if len(self) else 0.0


def split_stretches(series: Series) -> list[Stretch]:
    """Every stretch of the series in order of time, a counter as its rate."""
    series = ordered(series)
    times_at, values, unit = series.times_at, series.values, series.unit
    held = np.isfinite(values)
    times_at, values = times_at[held], values[held]
    if len(values) == 0:
        return []
    interval_seconds = usual_interval(series.times_at)
    breaks = gap_breaks(times_at, interval_seconds) | restart_breaks(times_at, series.restarts_at)
    if series.kind == "counter":
        breaks |= np.diff(values, prepend=values[0]) < 0
        unit = f"{unit}/s" if unit else "1/s"
    starts = np.flatnonzero(breaks)
    bounds = zip(np.append([0], starts), np.append(starts, len(values)))
    pieces = [(times_at[start:end], values[start:end]) for start, end in bounds if end > start]
    if series.kind == "counter":
        pieces = [rates(*piece) for piece in pieces if len(piece[0]) > 1]
    return [put_on_grid(*piece, interval_seconds, unit) for piece in pieces]


def usual_interval(times_at: FloatArray) -> float:
    steps = np.diff(times_at)
    return float(np.median(steps)) if len(steps) else 1.0


def gap_breaks(times_at: FloatArray, interval_seconds: float) -> BoolArray:
    steps = np.diff(times_at, prepend=times_at[0])
    return np.asarray(steps > GAP_STEPS * interval_seconds)


def restart_breaks(times_at: FloatArray, restarts_at: tuple[float, ...]) -> BoolArray:
    breaks = np.zeros(len(times_at) + 1, dtype=bool)
    breaks[np.searchsorted(times_at, np.asarray(restarts_at, dtype=np.float64))] = True
    breaks[0] = False
    return breaks[:-1]


def rates(times_at: FloatArray, counted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Increase per second between neighbours, at the time of the later one."""
    return times_at[1:], np.diff(counted) / np.diff(times_at)


def put_on_grid(times_at: FloatArray, values: FloatArray, interval_seconds: float, unit: str) -> Stretch:
    index = grid_index(times_at, interval_seconds)
    count = int(index[-1]) + 1
    on_grid = np.full(count, np.nan)
    on_grid[index] = values
    grid_times_at = np.interp(np.arange(count), index, times_at)
    mean_interval = (times_at[-1] - times_at[0]) / (count - 1) if count > 1 else interval_seconds
    return Stretch(grid_times_at, on_grid, float(mean_interval), unit)


def grid_index(times_at: FloatArray, interval_seconds: float) -> IntArray:
    """
    Each sample's place on the grid.

    Steps are rounded one by one, so that months of 28 to 31 days, a drifting
    timer and jitter keep one place per sample. Irregular samples take the
    nearest place by time, and the last sample of a place is kept.
    """
    steps = np.diff(times_at) / interval_seconds
    whole = np.maximum(1, np.round(steps)).astype(np.int64)
    uneven = np.abs(steps - whole) > 0.3
    if len(steps) and float(uneven.mean()) > UNEVEN_SHARE:
        return np.asarray(np.round((times_at - times_at[0]) / interval_seconds).astype(np.int64))
    return np.concatenate(([0], np.cumsum(whole)))


def interpolated(values: FloatArray) -> FloatArray:
    """Missing samples interpolated linearly."""
    held = np.isfinite(values)
    if held.all():
        return values
    index = np.arange(len(values))
    return np.interp(index, index[held], values[held])
