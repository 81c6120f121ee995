"""Who uses most of a metric in a range, over all nodes, within a bounded amount of work."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import count_minutes
from nodescope.read.query.ranking import SPARK_POINTS, rank_containers
from nodescope.read.query.resolve import resolve_metric
from nodescope.use.answers.axis import Floats, Integers
from nodescope.use.answers.containers import Life, there_share
from nodescope.use.answers.ranked.recorded import Recorded, record_whole
from nodescope.use.answers.snapshots import View

# Samples that a ranking reads of one node: about half a second on one core.
# Beyond, the end of the range decides, and the answer says so.
SAMPLES_MOST = 3_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """How much one container used: on average while it was there, at last, at most, and over time."""

    value: float
    last: float
    most: float
    spark: Floats
    """A mean for each piece of the range; NaN where nothing was measured."""
    over_span: float
    """What it used in the range, divided by what was recorded of the range: the order of every ranking."""
    counts: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    """Samples in each piece; empty where they are not known."""


@dataclass(frozen=True, slots=True)
class Order:
    """Containers by how much they use, and the end of the range that decided it."""

    unit: str
    span: TimeRange
    figures: dict[str, Figure]
    """By id; what was not measured is not here."""
    ends_ms: dict[str, int]
    """By id: the time of its last sample."""
    recorded: dict[str, Recorded] = field(default_factory=dict)
    """By node: what of the span was recorded there."""

    def recorded_of(self, node: str) -> Recorded:
        return self.recorded.get(node) or record_whole(self.span)

    @property
    def longest(self) -> Recorded:
        """Of all nodes, that of which the most was recorded."""
        return max(self.recorded.values(), key=lambda one: one.total_ms, default=record_whole(self.span))


def rank(
    view: View, lives: Sequence[Life], metric: str, span: TimeRange, most_points: int = SPARK_POINTS
) -> Order:
    figures: dict[str, Figure] = {}
    ends_ms: dict[str, int] = {}
    recorded: dict[str, Recorded] = {}
    unit, looked = "", span
    for node in view.nodes:
        ids = {one.subject.identity: one for one in lives if one.node == node.name}
        if not ids or node.to_ms is None:
            continue
        looked = shorten(span, len(ids))
        try:
            unit = unit or resolve_metric(metric, node.metrics, "auto").unit
            ranked = rank_containers(
                view.engine,
                node.catalog,
                metric,
                looked.from_ms,
                looked.to_ms,
                max_points=most_points,
                tail=node.tail,
            )
        except RequestRejected:
            # This node does not have the metric; the others may.
            continue
        mine = recorded[node.name] = node.recorded(looked)
        for row in ranked:
            if found := ids.get(row.subject.identity):
                over_span = row.mean * there_share([found], mine)
                points = row.points
                figures[found.id] = Figure(
                    row.mean, row.last, row.maximum, points.mean, over_span, points.count
                )
                ends_ms[found.id] = int(points.time_ms[points.count > 0][-1])
    return Order(unit, looked, figures, ends_ms, recorded)


def shorten(span: TimeRange, series: int) -> TimeRange:
    """The end of the range, as long as it may be for so many series."""
    most_ms = 1000 * SAMPLES_MOST // max(1, series)
    return TimeRange(max(span.from_ms, span.to_ms - most_ms), span.to_ms)


def rank_roughly(view: View, lives: Sequence[Life], metric: str, span: TimeRange) -> Order:
    """
    By the whole minutes that the span touches: who is to be drawn, not how much each used.

    Minutes are in the rollups. The samples of a few minutes cost as much as those
    of hours: in a file they stand container by container.
    """
    return rank(view, lives, metric, span, min(SPARK_POINTS, count_minutes(span.from_ms, span.to_ms)))


def list_busiest(view: View, metric: str, span: TimeRange, among: Sequence[Life] | None = None) -> list[Life]:
    """Who of these, or of all, was measured in the span, the one that used the most over it first."""
    everybody = view.lives(span) if among is None else among
    figures = rank(view, everybody, metric, span).figures
    measured = [one for one in everybody if one.id in figures]
    return sorted(measured, key=lambda one: (-figures[one.id].over_span, one.id))
