"""
The short events of a series: where it leaves its own baseline, for how long and by how much.

The baseline is the running median of blocks, and the noise the median absolute
deviation from it, so that rare events move neither, whatever their height. Four
kinds are looked for: pulses above the baseline, dips below it, and jumps and
falls (sharp edges between two samples, as a garbage collector leaves them).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.use.studies.maths.robust import NORMAL_MAD, ROUNDING_SHARE
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

PulseKind = Literal["pulse", "dip", "jump", "fall"]
PULSES: tuple[PulseKind, PulseKind] = ("pulse", "dip")
EDGES: tuple[PulseKind, PulseKind] = ("jump", "fall")

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

    starts and widths are in samples of the series; heights are the highest sample over
    the baseline, means the mean over the event; scale is how many samples
    were averaged before, which is how precisely the starts are known.
    """

    kind: PulseKind
    starts: FloatArray
    widths: FloatArray
    heights: FloatArray
    means: FloatArray
    scale: int

    def __len__(self) -> int:
        return len(self.starts)

    def only(self, kept: BoolArray | IntArray) -> "Events":
        starts, widths, heights, means = (
            column[kept] for column in (self.starts, self.widths, self.heights, self.means)
        )
        return Events(self.kind, starts, widths, heights, means, self.scale)


def events_of(values: FloatArray, kinds: tuple[PulseKind, PulseKind], scale: int) -> tuple[Events, Events]:
    """The events of two opposite kinds, up and down, in a series without missing samples."""
    away = deviations_of(averaged(values, scale), kinds)
    least = ROUNDING_SHARE * float(np.abs(values).max())
    noise = max(noise_of(away), least)
    pairs = away[1:] + away[:-1] if kinds == PULSES else np.empty(0)
    noise_of_pairs = max(noise_of(pairs), 2 * least) if len(pairs) else 0.0
    up = events_above(away, noise, pairs > noise_of_pairs, kinds[0], scale)
    return up, events_above(-away, noise, pairs < -noise_of_pairs, kinds[1], scale)


def noise_of(away: FloatArray) -> float:
    """What a deviation must exceed."""
    return LEAST_DEVIATIONS * NORMAL_MAD * float(np.median(np.abs(away)))


def deviations_of(values: FloatArray, kinds: tuple[PulseKind, PulseKind]) -> FloatArray:
    """From the baseline, for pulses and dips; from the sample before, for jumps and falls."""
    if kinds == PULSES:
        return values - baseline_of(values)
    steps = np.diff(values, prepend=values[0])
    return np.asarray(steps - np.median(steps))


def events_above(away: FloatArray, noise: float, pairs: BoolArray, kind: PulseKind, scale: int) -> Events:
    """Samples above the noise, and pairs of neighbours whose sum is: work of a second is cut by two samples."""
    grain = grain_of(away, noise)
    inside = away > max(noise, grain)
    if len(pairs) and grain == 0:
        lone = pairs & ~inside[1:] & ~inside[:-1]
        inside[1:] |= lone
        inside[:-1] |= lone
    inside = bridged(inside)
    edges = np.diff(np.concatenate(([0], inside.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if len(starts) == 0 or len(starts) > MOST_EVENTS_SHARE * len(away):
        return Events(kind, np.empty(0), np.empty(0), np.empty(0), np.empty(0), scale)
    bounds = np.stack((starts, ends), axis=1).ravel()[:-1]
    widths = (ends - starts).astype(np.float64)
    return Events(
        kind,
        (starts * scale).astype(np.float64),
        widths * scale,
        np.maximum.reduceat(away, bounds)[::2],
        np.add.reduceat(away, bounds)[::2] / widths,
        scale,
    )


def grain_of(away: FloatArray, noise: float) -> float:
    """Where most samples are equal, a tenth of the highest: anything less is the grain of the values."""
    is_grained = noise <= 2 * ROUNDING_SHARE * float(np.abs(away).max())
    return 0.1 * float(away.max()) if is_grained else 0.0


def averaged(values: FloatArray, scale: int) -> FloatArray:
    if scale == 1:
        return values
    count = len(values) // scale
    return np.asarray(values[: count * scale].reshape(count, scale).mean(axis=1))


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
