"""
Series of one answer on one time axis, with their gaps.

Samples of one node share their moments; those of several nodes are put on a
grid as wide as a tick. An axis has no hole: where nothing was measured there
are moments with null, so that a chart draws a gap as a gap. A bucket is never
narrower than the pace of the samples: an empty bucket is then a real gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# A hole longer than so many paces is a gap: one late tick is not.
GAP_PACES = 2.5
# Buckets as wide as this many paces have a sample each, whatever the jitter.
WIDE_PACES = 1.5
DEFAULT_PACE_MS = 1000.0


@dataclass(frozen=True, slots=True)
class AxisRow:
    """One series on the axis; NaN is nothing measured."""

    mean: Floats
    low: Floats
    high: Floats
    samples: int
    gaps: tuple[TimeRange, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    time_ms: Integers
    width_ms: int
    """0: samples as they are."""
    rows: tuple[AxisRow, ...]


def pace_of(points: Sequence[Points], width_ms: int) -> float:
    """The usual distance of two samples: by the samples themselves, or by how many a bucket has."""
    if width_ms == 0:
        steps = [np.diff(one.time_ms) for one in points if len(one.time_ms) > 1]
        return float(np.median(np.concatenate(steps))) if steps else DEFAULT_PACE_MS
    # In filled buckets with filled neighbours: the edges of a life are not full.
    paces = []
    for one in points:
        places = np.flatnonzero(one.count > 0)
        if len(places) > 2:
            inner = one.count[places[1] : places[-1]].sum()
            paces.append((places[-1] - places[1]) * width_ms / max(1, int(inner)))
    return float(np.median(paces)) if paces else DEFAULT_PACE_MS


def align(points: Sequence[Points], width_ms: int, *, same_clock: bool) -> Axis:
    """All series of an answer; same_clock says that they were measured in the same ticks."""
    pace_ms = pace_of(points, width_ms)
    if width_ms:
        return align_buckets(points, width_ms, pace_ms)
    if same_clock:
        return align_samples(points, pace_ms)
    return align_grid(points, pace_ms)


def align_samples(points: Sequence[Points], pace_ms: float) -> Axis:
    moments = [one.time_ms for one in points]
    time_ms = np.unique(np.concatenate(moments)) if moments else np.empty(0, np.int64)
    holes = np.flatnonzero(np.diff(time_ms) > GAP_PACES * pace_ms)
    if len(holes):
        # One moment of nothing a pace behind the last sample is enough to cut the line.
        time_ms = np.insert(time_ms, holes + 1, time_ms[holes] + round(pace_ms))
    rows = (place_row(one, np.searchsorted(time_ms, one.time_ms), len(time_ms), pace_ms) for one in points)
    return Axis(time_ms, 0, tuple(rows))


def align_grid(points: Sequence[Points], pace_ms: float) -> Axis:
    """Ticks of several nodes: each series by its own phase, so that a cell has one sample."""
    width = max(1, round(pace_ms))
    first = min((int(one.time_ms[0]) for one in points if len(one.time_ms)), default=0)
    last = max((int(one.time_ms[-1]) for one in points if len(one.time_ms)), default=0)
    time_ms = np.arange(first, last + width, width, dtype=np.int64) if points else np.empty(0, np.int64)
    rows = []
    for one in points:
        offset = one.time_ms - first
        phase = phase_of(offset, width)
        places = np.clip(np.rint((offset - phase) / width).astype(np.int64), 0, max(0, len(time_ms) - 1))
        rows.append(place_row(one, places, len(time_ms), pace_ms))
    return Axis(time_ms, 0, tuple(rows))


def phase_of(offset: Integers, width: int) -> float:
    """Where in its cell a series ticks, on a circle: jitter around a cell's border is one phase."""
    if not len(offset):
        return 0.0
    turns = np.exp(2j * np.pi * (offset % width) / width).mean()
    return float(np.angle(turns)) * width / (2 * np.pi)


def align_buckets(points: Sequence[Points], width_ms: int, pace_ms: float) -> Axis:
    if not points:
        return Axis(np.empty(0, np.int64), width_ms, ())
    together = max(1, int(np.ceil(WIDE_PACES * pace_ms / width_ms)))
    merged = [merge(one, together) for one in points]
    width_ms *= together
    time_ms = merged[0].time_ms
    rows = []
    for one in merged:
        filled = one.count > 0
        gaps = find_gaps(time_ms[filled], one.mean[filled], 1.5 * width_ms, width_ms)
        rows.append(AxisRow(one.mean, one.minimum, one.maximum, int(one.count.sum()), gaps))
    return Axis(time_ms, width_ms, tuple(rows))


def merge(points: Points, together: int) -> Points:
    """Neighbouring buckets as one: extremes of extremes, means by their samples."""
    if together == 1:
        return points
    spare = -len(points.count) % together
    count = np.pad(points.count, (0, spare)).reshape(-1, together)
    total = np.pad(np.where(points.count > 0, points.mean * points.count, 0.0), (0, spare)).reshape(
        -1, together
    )
    low = np.pad(np.where(points.count > 0, points.minimum, np.inf), (0, spare), constant_values=np.inf)
    high = np.pad(np.where(points.count > 0, points.maximum, -np.inf), (0, spare), constant_values=-np.inf)
    number = count.sum(axis=1)
    empty = number == 0
    mean = np.divide(total.sum(axis=1), number, out=np.full(len(number), np.nan), where=~empty)
    return Points(
        points.time_ms[::together],
        np.where(empty, np.nan, low.reshape(-1, together).min(axis=1)),
        mean,
        np.where(empty, np.nan, high.reshape(-1, together).max(axis=1)),
        number,
    )


def place_row(points: Points, places: Integers, size: int, pace_ms: float) -> AxisRow:
    mean, low, high = (np.full(size, np.nan) for _ in range(3))
    mean[places], low[places], high[places] = points.mean, points.minimum, points.maximum
    gaps = find_gaps(points.time_ms, points.mean, GAP_PACES * pace_ms)
    return AxisRow(mean, low, high, int(points.count.sum()), gaps)


def find_gaps(time_ms: Integers, mean: Floats, longest_ms: float, width_ms: int = 0) -> tuple[TimeRange, ...]:
    """Between two measured moments that are further apart than they may be."""
    moments = time_ms[np.isfinite(mean)]
    holes = np.flatnonzero(np.diff(moments) > longest_ms)
    return tuple(TimeRange(int(moments[place]) + width_ms, int(moments[place + 1])) for place in holes)
