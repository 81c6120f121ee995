"""
The score of the Numenta Anomaly Benchmark (NAB), and its labelled folders.

Of each labelled window the earliest alarm counts, the more the earlier it comes (a sigmoid, 1
at the window's left edge, 0 at its right); a window without an alarm costs 1; an alarm
outside costs up to 0.11, less shortly after a window. The first 15 % of a series, at most
750 samples, are for learning and count nothing. The sum over all series is put on a scale on
which no alarm at all is 0 and one at the left edge of every window 100.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, floor
from pathlib import Path

import numpy as np

from nodescope.use.studies.csv_series import read_series
from nodescope.use.studies.series import Series

Spans = Sequence[tuple[int, int]]
"""First and last sample of each labelled window."""
Detector = Callable[[Series], Iterable[int]]
"""The samples at which an alarm is raised, from nothing but what came before them."""


@dataclass(frozen=True)
class Profile:
    """What a hit, a false alarm and a miss are worth."""

    hit: float
    false_alarm: float
    miss: float


STANDARD = Profile(1.0, 0.11, 1.0)
FEW_FALSE = Profile(1.0, 0.22, 1.0)
FEW_MISSED = Profile(1.0, 0.11, 2.0)

LEARNING_SHARE, LEARNING_MOST = 0.15, 750


@dataclass(frozen=True)
class LabelledSeries:
    name: str
    series: Series
    windows: Spans


def read_folder(folder: Path) -> list[LabelledSeries]:
    """The series of a folder that its windows.json names."""
    labels = json.loads((folder / "windows.json").read_text())
    found = []
    for name, spans in sorted(labels.items()):
        if (folder / name).exists():
            series = read_series(folder / name)
            found.append(LabelledSeries(name, series, [place_span(series, span) for span in spans]))
    return found


def place_span(series: Series, span: tuple[str, str]) -> tuple[int, int]:
    first, last = (epoch(text) for text in span)
    inside = np.flatnonzero((series.times_at >= first) & (series.times_at <= last))
    return int(inside[0]), int(inside[-1])


def epoch(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def learning_samples(count: int) -> int:
    return int(min(floor(LEARNING_SHARE * count), LEARNING_MOST))


def score_series(alarms: Iterable[int], windows: Spans, count: int, profile: Profile = STANDARD) -> float:
    """The raw score of one series: hits less misses less false alarms."""
    learning = learning_samples(count)
    counted = sorted({alarm for alarm in alarms if learning <= alarm < count})
    total = 0.0
    for first, last in counted_windows(windows, learning):
        inside = [alarm for alarm in counted if first <= alarm <= last]
        total += hit_weight(inside[0], first, last) * profile.hit if inside else -profile.miss
    outside = [alarm for alarm in counted if not any(first <= alarm <= last for first, last in windows)]
    return total + profile.false_alarm * sum(false_weight(alarm, windows) for alarm in outside)


def counted_windows(windows: Spans, learning: int) -> list[tuple[int, int]]:
    """Windows that are over before the learning ends count nothing."""
    return [(first, last) for first, last in windows if last >= learning]


def hit_weight(alarm: int, first: int, last: int) -> float:
    """1 at the window's first sample, about 0 at its last."""
    place = -(last - alarm + 1) / (last - first + 1)
    return falling(place) / falling(-1.0)


def false_weight(alarm: int, windows: Spans) -> float:
    """-1 far from any window, nearer 0 shortly after one."""
    before = [(first, last) for first, last in windows if last < alarm]
    if not before:
        return -1.0
    first, last = before[-1]
    return falling((alarm - last) / max(last - first, 1))


def falling(place: float) -> float:
    """From 0.987 at -1 through 0 at 0 to -1 at 3 and beyond."""
    return -1.0 if place >= 3.0 else 2 / (1 + exp(5 * place)) - 1


def normalised(raw: float, windows: int, nothing: float, profile: Profile = STANDARD) -> float:
    """0 for no alarm at all, 100 for one at the left edge of every window."""
    return 100 * (raw - nothing) / (profile.hit * windows - nothing)


def score_folder(
    labelled: Sequence[LabelledSeries], detect: Detector, profile: Profile = STANDARD
) -> "FolderScore":
    alarms = [sorted(detect(one.series)) for one in labelled]
    raw = [
        score_series(found, one.windows, len(one.series.values), profile)
        for found, one in zip(alarms, labelled, strict=True)
    ]
    nothing = sum(score_series([], one.windows, len(one.series.values), profile) for one in labelled)
    windows = sum(len(one.windows) for one in labelled)
    return FolderScore(normalised(sum(raw), windows, nothing, profile), tuple(raw), tuple(map(tuple, alarms)))


@dataclass(frozen=True)
class FolderScore:
    """The score on the scale of 0 to 100, and each series' raw score and alarms."""

    score: float
    raw: tuple[float, ...]
    alarms: tuple[tuple[int, ...], ...]


def hits_of(labelled: Sequence[LabelledSeries], scored: FolderScore) -> tuple[int, int, int]:
    """Windows found, windows there are, and alarms outside windows after the learning."""
    found = there = outside = 0
    for one, alarms in zip(labelled, scored.alarms, strict=True):
        learning = learning_samples(len(one.series.values))
        kept = [alarm for alarm in alarms if alarm >= learning]
        there += len(one.windows)
        found += sum(any(first <= alarm <= last for alarm in kept) for first, last in one.windows)
        outside += sum(not any(first <= alarm <= last for first, last in one.windows) for alarm in kept)
    return found, there, outside
