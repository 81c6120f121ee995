"""Who uses most of a metric in a range, over all nodes, within a bounded amount of work."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import Engine
from nodescope.read.query.ranking import rank_containers
from nodescope.read.query.resolve import resolve_metric
from nodescope.use.viewer.question import SeriesMember
from nodescope.use.viewer.snapshots import ServedNode

# Samples that a ranking reads of one node: about half a second on one core.
# Beyond, the end of the range decides, and the answer says so.
SAMPLES_MOST = 3_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One container's place in the order."""

    value: float
    last: float
    most: float
    points: Points


@dataclass(frozen=True, slots=True)
class Order:
    unit: str
    span: TimeRange
    figures: dict[str, Figure]
    """By id; what was not measured is not here."""


def rank(
    engine: Engine, members: Sequence[SeriesMember], nodes: Sequence[ServedNode], metric: str, span: TimeRange
) -> Order:
    figures: dict[str, Figure] = {}
    unit, looked = "", span
    for node in nodes:
        mine = {(one.subject.identity): one.id for one in members if one.node is node}
        if not mine or node.to_ms is None:
            continue
        looked = shorten(span, len(mine))
        try:
            unit = unit or resolve_metric(metric, node.metrics, "auto").unit
            ranked = rank_containers(
                engine, node.catalog, metric, looked.from_ms, looked.to_ms, tail=node.tail
            )
        except RequestRejected:
            # This node does not have the metric; the others may.
            continue
        for row in ranked:
            figure = Figure(row.mean, row.last, row.maximum, row.points)
            found = mine.get(row.subject.identity)
            if found:
                figures[found] = figure
    return Order(unit, looked, figures)


def shorten(span: TimeRange, series: int) -> TimeRange:
    """The end of the range, as long as it may be for so many series."""
    most_ms = 1000 * SAMPLES_MOST // max(1, series)
    return TimeRange(max(span.from_ms, span.to_ms - most_ms), span.to_ms)


def first_of(order: Order, members: Sequence[SeriesMember], number: int) -> list[SeriesMember]:
    """The busiest members that were measured."""
    measured = [one for one in members if one.id in order.figures]
    return sorted(measured, key=lambda one: (-order.figures[one.id].value, one.id))[:number]
