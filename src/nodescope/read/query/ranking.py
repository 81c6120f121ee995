"""
Who uses most: containers in order of one metric over a range, each with a small curve.

One question to the archive for all of them, whatever their number: long ranges
are answered from the one-minute rollups, short ones from samples. A line's
mean is over the time in which it was there (every sample weighs the same), its
maximum is of the samples, or of the minutes where a rate comes from rollups;
`last` is the newest bucket that has a sample. What was not measured is not in
the list: it is not the same as 0.

    for one in rank_containers(engine, catalog, "cpu", from_ms, to_ms, tail=tail):
        print(one.subject.label("l_pod_name"), one.mean, one.points.mean)
"""

from dataclasses import dataclass

import numpy as np

from nodescope.keep.label_columns import Subject
from nodescope.read.files.catalog import Catalog
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import Engine, QueryLine

# What fits beside a name in a table.
SPARK_POINTS = 48


@dataclass(frozen=True, slots=True)
class RankedContainer:
    """One container: its figures, its curve."""

    subject: Subject
    mean: float
    maximum: float
    last: float
    points: Points
    """At most as many buckets as were asked for; a gap is NaN with count 0."""


def rank_containers(
    engine: Engine,
    catalog: Catalog,
    metric: str,
    from_ms: int | None = None,
    to_ms: int | None = None,
    *,
    max_points: int = SPARK_POINTS,
    tail: LiveTail | None = None,
) -> list[RankedContainer]:
    """The largest mean first."""
    answer = engine.query(catalog, metric, None, from_ms, to_ms, max_points, tail=tail)
    ranked = [one for one in map(summarize_line, answer.lines) if one is not None]
    return sorted(ranked, key=lambda one: (-one.mean, one.subject.identity))


def summarize_line(line: QueryLine) -> RankedContainer | None:
    """None where nothing was measured."""
    points = line.points
    good = np.flatnonzero(np.isfinite(points.mean) & (points.count > 0))
    if not len(good):
        return None
    mean = float(np.average(points.mean[good], weights=points.count[good]))
    return RankedContainer(
        line.subject, mean, float(points.maximum[good].max()), float(points.mean[good[-1]]), points
    )


def place_of(subject: Subject) -> tuple[str | None, ...]:
    """What a restart keeps; where it is not known each container stands for itself."""
    place = tuple(subject.label(name) for name in ("l_scope", "l_pod_uid", "l_container_name"))
    return place if all(place) else (*place, *subject.identity)
