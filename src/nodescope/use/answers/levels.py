"""One metric over a span as figures, not as a curve: its mean, least and most, of each series."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.ranked.recorded import Recorded, make_recorded
from nodescope.use.answers.timeseries import AnswerSeries


@dataclass(frozen=True, slots=True)
class MetricLevel:
    """One series' figures over a span."""

    id: str
    mean: float
    least: float
    most: float
    samples: int


@dataclass(frozen=True, slots=True)
class Levels:
    """A metric of many lives, and in which unit."""

    unit: str
    rows: tuple[MetricLevel, ...]
    stretches: tuple[TimeRange, ...] = ()
    """What of the span was recorded; empty where it is not known."""

    def recorded(self, span: TimeRange) -> Recorded:
        return make_recorded(span, self.stretches)


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, a disk, a core, the node itself: what has metrics and is no container."""

    name: str
    """For people: GPU 0, A100; a uuid is among the labels."""
    level: MetricLevel
    labels: Mapping[str, str]


def derive_level(series: AnswerSeries) -> MetricLevel | None:
    """The buckets of a series (one, or the samples themselves of a short span) as one row."""
    means, lows, highs = (
        values[np.isfinite(values)].tolist() for values in (series.mean, series.low, series.high)
    )
    if not means or not series.samples:
        return None
    return MetricLevel(series.id, sum(means) / len(means), min(lows), max(highs), series.samples)
