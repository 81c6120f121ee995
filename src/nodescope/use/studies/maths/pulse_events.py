"""
The short events of a series: where it leaves its own baseline, for how long and by how much.

The baseline is the running median of blocks, and the noise the median absolute
deviation from it, so that rare events move neither, whatever their height. Four
kinds are looked for: pulses above the baseline, dips below it, and jumps and
falls (sharp edges between two samples, as a garbage collector leaves them).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nodescope.use.studies.maths.robust import NORMAL_MAD, ROUNDING_SHARE
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

PulseKind = Literal["pulse", "dip", "jump", "fall"]
KINDS: tuple[PulseKind, ...] = ("pulse", "dip", "fall", "jump")

# A sample is part of an event from 3.5 deviations on: one in 4,000 samples of
# normal noise, and events of noise at random times do not hide a train.
LEAST_DEVIATIONS = 3.5

# Blocks of the baseline. A pulse longer than half a block is seen at the next,
# four times coarser scale.
BASELINE_SAMPLES = 256

# Samples below the threshold within a pulse: two are bridged.
BRIDGED_SAMPLES = 2

# More events than one in four samples are no events but the series itself.
MOST_EVENTS_SHARE = 0.25


@dataclass(frozen=True)
class Events:
    """
    Events of one kind, in order of time.

    starts and widths are in samples of the series; scale is how many of those
    were averaged before, which is how precisely the starts are known.
    """

    kind: PulseKind
    starts: FloatArray
    widths: FloatArray
    heights: FloatArray
    scale: int

    def __len__(self) -> int:
        return len(self.starts)

    def only(self, kept: BoolArray | IntArray) -> "Events":
        return replace(self, starts=self.starts[kept], widths=self.widths[kept], heights=self.heights[kept])


def events_of(values: FloatArray, kind: PulseKind, scale: int) -> Events:
    """The events of one kind in a series without missing samples."""
    signal = signed(averaged(values, scale), kind)
    away = signal - baseline_of(signal)
    deviation = float(np.median(np.abs(away))) * NORMAL_MAD
    smallest = ROUNDING_SHARE * float(np.abs(values).max())
    inside = bridged(away > max(LEAST_DEVIATIONS * deviation, smallest, quantum(away, deviation)))
    edges = np.diff(np.concatenate(([0], inside.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if len(starts) == 0 or len(starts) > MOST_EVENTS_SHARE * len(signal):
        return Events(kind, np.empty(0), np.empty(0), np.empty(0), scale)
    heights = np.maximum.reduceat(away, np.stack((starts, ends), axis=1).ravel()[:-1])[::2]
    return Events(
        kind, (starts * scale).astype(np.float64), (ends - starts) * np.float64(scale), heights, scale
    )


def quantum(away: FloatArray, deviation: float) -> float:
    """Where most samples are equal, a tenth of the highest: anything less is the grain of the values."""
    return 0.0 if deviation > 0 else 0.1 * float(away.max())


def averaged(values: FloatArray, scale: int) -> FloatArray:
    if scale == 1:
        return values
    count = len(values) // scale
    return np.asarray(values[: count * scale].reshape(count, scale).mean(axis=1))


def signed(values: FloatArray, kind: PulseKind) -> FloatArray:
    """The series turned so that its events point upward."""
    if kind == "pulse":
        return values
    if kind == "dip":
        return -values
    steps = np.diff(values, prepend=values[0])
    return steps if kind == "jump" else -steps


def baseline_of(values: FloatArray) -> FloatArray:
    """Medians of blocks, interpolated between the blocks' centres."""
    size = max(8, min(BASELINE_SAMPLES, len(values) // 3))
    count = max(1, len(values) // size)
    size = len(values) // count
    medians = np.median(values[: count * size].reshape(count, size), axis=1)
    centres = np.arange(count) * size + (size - 1) / 2
    return np.interp(np.arange(len(values)), centres, medians)


def bridged(inside: BoolArray) -> BoolArray:
    """Holes of at most two samples between two marked samples are marked, too."""
    marked = np.flatnonzero(inside)
    gaps = np.diff(marked)
    result = inside.copy()
    for hole in range(1, BRIDGED_SAMPLES + 1):
        for place in range(1, hole + 1):
            result[marked[:-1][gaps == hole + 1] + place] = True
    return result
