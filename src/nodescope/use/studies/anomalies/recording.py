"""The series an alarm is looked for in: all its stretches in one, and how a walk goes through it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nodescope.use.studies.anomalies.walk import Alarm, Walk
from nodescope.use.studies.maths.robust import ROUNDING_SHARE
from nodescope.use.studies.maths.stretch import interpolated, split_stretches
from nodescope.use.studies.maths.tail_probability import TINY
from nodescope.use.studies.series import BoolArray, FloatArray, Series

# The history is walked through in parts, each half as long as what is before it, from a third of it on.
FIRST_SHARE, GROWTH = 1 / 3, 1.5
FEWEST_HISTORY = 60


@dataclass(frozen=True)
class Recording:
    """Samples on an even grid; measured says which of them are not interpolated."""

    times_at: FloatArray
    values: FloatArray
    measured: BoolArray
    unit: str

    def __len__(self) -> int:
        return len(self.values)

    @property
    def interval_seconds(self) -> float:
        return float(np.median(np.diff(self.times_at))) if len(self) > 1 else 1.0

    @property
    def rounding(self) -> float:
        """Smaller differences are no measurement."""
        return max(ROUNDING_SHARE * float(np.abs(self.values).max()), TINY)

    def newest_samples(self, seconds: float) -> int:
        return int(np.sum(self.times_at > self.times_at[-1] - seconds))


def record(series: Series) -> Recording | None:
    """All stretches since the last restart the caller named, one after the other."""
    newest = max(series.restarts_at, default=-np.inf)
    kept = [one for one in split_stretches(series) if one.present and one.times_at[-1] >= newest]
    if not kept:
        return None
    return Recording(
        np.concatenate([one.times_at for one in kept]),
        np.concatenate([interpolated(one.values) for one in kept]),
        np.concatenate([np.isfinite(one.values) for one in kept]),
        kept[0].unit,
    )


def walk_to_window(recording: Recording, samples: int) -> tuple[Walk, list[Alarm]]:
    """The walk up to the end, and the alarms that reach into the newest samples."""
    walk = Walk(recording.times_at, recording.values, recording.measured)
    history = len(recording) - samples
    for start, end in parts_of(history):
        walk.judge(start, end)
    walk.judge(history, len(recording))
    return walk, [one for one in walk.alarms if one.part == walk.parts]


def parts_of(history: int) -> list[tuple[int, int]]:
    edges = [history]
    while edges[-1] / GROWTH >= max(FEWEST_HISTORY, FIRST_SHARE * history):
        edges.append(int(edges[-1] / GROWTH))
    edges.reverse()
    return list(pairwise(edges))


def watch(recording: Recording, samples: int) -> tuple[Walk, list[Alarm]]:
    """
    All alarms of a walk from the first sample on that is asked again every so many samples.

    Each alarm's `seen` is the sample with which it was told, from nothing that came later.
    """
    walk = Walk(recording.times_at, recording.values, recording.measured)
    for start in range(FEWEST_HISTORY, len(recording), samples):
        walk.judge(start, min(start + samples, len(recording)))
    return walk, walk.alarms


def coarsened(recording: Recording, earlier: Recording) -> Recording:
    """The earlier one, which is coarser, and after it means of the newer one as long as its intervals."""
    before = earlier.times_at < recording.times_at[0]
    width = earlier.interval_seconds
    place = ((recording.times_at - recording.times_at[0]) // width).astype(np.int64)
    counts = np.bincount(place, recording.measured)
    sums = np.bincount(place, recording.values * recording.measured)
    held = np.flatnonzero(counts)
    newer_at = recording.times_at[0] + width * held
    return Recording(
        np.concatenate((earlier.times_at[before], newer_at)),
        np.concatenate((earlier.values[before], sums[held] / counts[held])),
        np.concatenate((earlier.measured[before], np.ones(len(held), dtype=bool))),
        recording.unit,
    )


def align(recordings: Sequence[Recording]) -> list[Recording]:
    """All of them at the times of the shortest; what was not measured near such a time is missing there."""
    times_at = min((one.times_at for one in recordings), key=len)
    return [at_times(one, times_at) for one in recordings]


def at_times(recording: Recording, times_at: FloatArray) -> Recording:
    after = np.clip(np.searchsorted(recording.times_at, times_at), 1, max(len(recording) - 1, 1))
    before = after - 1
    place = np.where(
        np.abs(recording.times_at[before] - times_at) <= np.abs(recording.times_at[after] - times_at),
        before,
        after,
    )
    near = np.abs(recording.times_at[place] - times_at) <= recording.interval_seconds
    return Recording(times_at, recording.values[place], recording.measured[place] & near, recording.unit)
