"""
Who uses most: containers in order of one metric over a range, each with a small curve.

One question to the archive for all of them, whatever their number: long ranges
are answered from the one-minute rollups, short ones from samples. A line's
mean is over the time in which it was there (every sample weighs the same), its
maximum is of the samples, or of the minutes where a rate comes from rollups;
`last` is the newest bucket that has a sample. What was not measured is not in
the list: it is not the same as 0. The lives of a container that was restarted
are one row, under the id of the newest: a crash loop takes one place, not all
(`apart` gives each life its own, for a list that has them all).

    ranking = rank_containers(engine, catalog, "cpu", from_ms, to_ms, limit=10, tail=tail)
    [(one.subject.label("l_pod_name"), one.value, one.points.mean) for one in ranking.rows]
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.text import hint_nearest
from nodescope.keep.label_columns import Subject
from nodescope.read.files.catalog import Catalog
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import Engine, QueryLine, QueryResult
from nodescope.read.query.resolve import ResolvedMetric

By = Literal["mean", "max", "last"]
# What fits beside a name in a table.
SPARK_POINTS = 48
# Of Points, in its own order.
COLUMNS = ("time_ms", "minimum", "mean", "maximum", "count")


@dataclass(frozen=True, slots=True)
class RankedContainer:
    """One container: the value it is ranked by, its figures, its curve."""

    subject: Subject
    value: float
    mean: float
    maximum: float
    last: float
    points: Points
    """At most as many buckets as were asked for; a gap is NaN with count 0."""
    lives: int = 1
    """How many containers of this pod and name were there in the range."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The first of all that were measured."""

    asked: ResolvedMetric
    by: By
    from_ms: int
    to_ms: int
    total: int
    """How many rows there would be without the limit."""
    rows: list[RankedContainer]
    refused: list[str] = field(default_factory=list)
    """Files that could not be read, with the reason."""


def rank_containers(
    engine: Engine,
    catalog: Catalog,
    metric: str = "cpu",
    from_ms: int | None = None,
    to_ms: int | None = None,
    *,
    by: By = "mean",
    limit: int = 10,
    containers: Sequence[str] | None = None,
    namespace: str | None = None,
    max_points: int = SPARK_POINTS,
    tail: LiveTail | None = None,
    apart: bool = False,
) -> Ranking:
    """The largest first; full container ids or a namespace narrow it; apart gives every life a row."""
    if by not in get_args(By):
        raise RequestRejected(
            f'by = "{by}" is not accepted{hint_nearest(by, get_args(By))}; accepted: mean, max, last'
        )
    if limit < 1:
        raise RequestRejected(f"limit = {limit} is not accepted; accepted: 1 or more")
    if namespace is not None:
        containers = choose_namespace(catalog, tail, namespace, containers)
    answer = engine.query(catalog, metric, containers, from_ms, to_ms, max_points, tail=tail)
    rows = sorted(rank_lines(answer, by, apart=apart), key=lambda one: (-one.value, one.subject.identity))
    return Ranking(answer.asked, by, answer.from_ms, answer.to_ms, len(rows), rows[:limit], answer.refused)


def choose_namespace(
    catalog: Catalog, tail: LiveTail | None, namespace: str, containers: Sequence[str] | None
) -> list[str]:
    subjects = [*catalog.containers(), *(tail.subjects.values() if tail else ())]
    inside = {
        one.label("l_container_id") or "" for one in subjects if one.label("l_namespace") == namespace
    } - {""}
    if not inside:
        known = sorted({one.label("l_namespace") or "" for one in subjects} - {""})
        raise RequestRejected(
            f'no namespace "{namespace}"{hint_nearest(namespace, known)}; known: {", ".join(known) or "none"}'
        )
    return sorted(inside if containers is None else inside & set(containers))


def rank_lines(answer: QueryResult, by: By, *, apart: bool) -> list[RankedContainer]:
    groups: dict[tuple[str | None, ...], list[QueryLine]] = {}
    for line in answer.lines:
        place = line.subject.identity if apart else place_of(line.subject)
        groups.setdefault(place, []).append(line)
    ranked = (rank_lives(lives, answer.width_ms > 0, by) for lives in groups.values())
    return [one for one in ranked if one is not None]


def place_of(subject: Subject) -> tuple[str | None, ...]:
    """What a restart keeps; where it is not known each container stands for itself."""
    place = tuple(subject.label(name) for name in ("l_scope", "l_pod_uid", "l_container_name"))
    return place if all(place) else (*place, *subject.identity)


def rank_lives(lives: Sequence[QueryLine], has_grid: bool, by: By) -> RankedContainer | None:
    in_order = sorted(lives, key=first_sample)
    points = join_lives([line.points for line in in_order], has_grid)
    good = np.flatnonzero(np.isfinite(points.mean) & (points.count > 0))
    if not len(good):
        return None
    mean = float(np.average(points.mean[good], weights=points.count[good]))
    maximum = float(points.maximum[good].max())
    last = float(points.mean[good[-1]])
    value = {"mean": mean, "max": maximum, "last": last}[by]
    return RankedContainer(in_order[-1].subject, value, mean, maximum, last, points, len(in_order))


def first_sample(line: QueryLine) -> int:
    there = np.flatnonzero(line.points.count)
    return int(line.points.time_ms[there[0]]) if len(there) else 0


def join_lives(parts: Sequence[Points], has_grid: bool) -> Points:
    """One curve of several lives: bucket by bucket, or sample behind sample."""
    if len(parts) == 1:
        return parts[0]
    if not has_grid:
        return Points(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))
    _, low, mean, high, count = (np.stack([getattr(part, name) for part in parts]) for name in COLUMNS)
    total = count.sum(axis=0)
    empty = total == 0
    weighted = np.where(count > 0, mean, 0.0) * count
    return Points(
        parts[0].time_ms,
        np.where(empty, np.nan, np.where(count > 0, low, np.inf).min(axis=0)),
        np.divide(weighted.sum(axis=0), total, out=np.full(len(total), np.nan), where=~empty),
        np.where(empty, np.nan, np.where(count > 0, high, -np.inf).max(axis=0)),
        total,
    )
