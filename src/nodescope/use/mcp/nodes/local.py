"""
Nodes from data folders on this machine: files, and the log of an agent that still writes.

The viewer's own functions answer, without its HTTP in between: what a person
sees in the viewer and what an agent is told come from one place.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from nodescope import __version__
from nodescope.base.clock import Clock
from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.read.query.engine import Engine
from nodescope.read.series_name import scope_of
from nodescope.use.mcp.nodes.backend import (
    About,
    ArchivedLife,
    Levels,
    MetricRow,
    NodeEvent,
    StudyAnswer,
    Thing,
    clean_name,
    parts_of,
)
from nodescope.use.mcp.nodes.viewer import (
    EVENTS,
    SERIES_AT_ONCE,
    STUDIES_AT_ONCE,
    parse_event,
    parse_level,
    parse_metric,
    parse_things,
)
from nodescope.use.studies import correlation
from nodescope.use.viewer import ranking as busiest
from nodescope.use.viewer.container_table import answer_metrics, count_of
from nodescope.use.viewer.events import answer_events
from nodescope.use.viewer.findings import answer_study
from nodescope.use.viewer.question import SeriesMember, members_of
from nodescope.use.viewer.refusal import Refused
from nodescope.use.viewer.render import Json
from nodescope.use.viewer.snapshots import ServedNode, Shelf, Snapshot
from nodescope.use.viewer.timeseries import TimeseriesRequest, answer_timeseries

# Files that do not say whose they are.
NAMELESS = "unnamed"


class LocalFolders:
    """All folders, looked at again when somebody asks."""

    def __init__(self, paths: Sequence[Path], clock: Clock) -> None:
        self._paths = tuple(paths)
        self.shelf = Shelf(paths, clock)
        self.engine = Engine()

    def nodes(self) -> list[str]:
        return [name_of(node) for node in self.shelf.snapshot().nodes]

    def trouble(self) -> str:
        """Why there is nothing to ask; empty when there is."""
        snapshot = self.shelf.snapshot()
        if snapshot.nodes:
            return ""
        where = ", ".join(clean_text(str(path), 200) for path in self._paths[:3])
        if snapshot.refusals:
            first = snapshot.refusals[0]
            return f"no data that can be read in {where}: {clean_text(first.reason, 200)}"
        return f"there is no data in {where} yet; an agent's first samples come within seconds of its start"


def name_of(node: ServedNode) -> str:
    return clean_text(node.name) or NAMELESS


class LocalNode:
    """One node of a store."""

    def __init__(self, store: LocalFolders, node: str) -> None:
        self._store = store
        self._node = node

    def _look(self) -> tuple[Snapshot, ServedNode]:
        snapshot = self._store.shelf.snapshot()
        found = next((node for node in snapshot.nodes if name_of(node) == self._node), None)
        if found is None:
            raise RequestRejected(f'there is no data of node "{self._node}" any more')
        return snapshot, found

    def read_about(self) -> About:
        snapshot, node = self._look()
        problems = tuple(clean_text(one.reason) for one in snapshot.refusals)
        return About(self._node, __version__, node.from_ms, node.to_ms, len(node.listed), problems)

    def read_metrics(self) -> list[MetricRow]:
        _, node = self._look()
        return [parse_metric(row) for row in answer_metrics([node])["metrics"]]

    def read_lives(self, span: TimeRange | None) -> list[ArchivedLife]:
        snapshot, node = self._look()
        lives = [describe(member, self._node) for member in members_of(snapshot, [node])]
        there = [
            life
            for life in lives
            if span is None or (life.first_ms <= span.to_ms and life.last_ms >= span.from_ms)
        ]
        return sorted(there, key=lambda life: (life.namespace, life.name, life.first_ms))

    def read_levels(self, metric: str, span: TimeRange, containers: Sequence[str] | None) -> Levels:
        snapshot, node = self._look()
        members = self._members(snapshot, node, span, containers)
        unit, rows = "", []
        for some in parts_of(members, SERIES_AT_ONCE):
            wish = TimeseriesRequest(metric, span, 1, "auto", tuple(some), limits=False)
            found = tell_refusal(partial(answer_timeseries, self._store.engine, snapshot, [node], wish))
            unit = str(found.get("unit") or "")
            rows += [level for one in found["series"] if (level := parse_level(one))]
        return Levels(unit, tuple(rows))

    def read_things(self, metric: str, span: TimeRange) -> tuple[str, list[Thing]]:
        snapshot, node = self._look()
        wish = TimeseriesRequest(metric, span, 1, "auto", limits=False)
        found = tell_refusal(partial(answer_timeseries, self._store.engine, snapshot, [node], wish))
        return parse_things(found, self._node)

    def _members(
        self, snapshot: Snapshot, node: ServedNode, span: TimeRange, containers: Sequence[str] | None
    ) -> list[SeriesMember]:
        """In the order asked for, or all that lived in the span."""
        everybody = members_of(snapshot, [node])
        if containers is None:
            return [
                one
                for one in everybody
                if one.subject.first_ms <= span.to_ms and one.subject.last_ms >= span.from_ms
            ]
        by_id = {one.id: one for one in everybody}
        return [by_id[one] for one in containers if one in by_id]

    def study(self, name: str, metric: str, containers: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        snapshot, node = self._look()
        members = self._members(snapshot, node, span, containers)
        if name == correlation.NAME:
            members = self._neighbours(snapshot, node, members[:1], metric, span)
        answers: list[StudyAnswer] = []
        for some in parts_of(members, STUDIES_AT_ONCE):
            found = tell_refusal(
                partial(answer_study, self._store.engine, snapshot, [node], name, metric, some, "", span)
            )
            answers += [{**one, "id": one["series"]["id"]} for one in found["results"]]
        if name == correlation.NAME:
            return [one for one in answers if one["id"] == members[0].id]
        return answers

    def _neighbours(
        self, snapshot: Snapshot, node: ServedNode, mine: list[SeriesMember], metric: str, span: TimeRange
    ) -> list[SeriesMember]:
        """The container, then those that use the most: as many as one study takes."""
        everybody = self._members(snapshot, node, span, None)
        order = busiest.rank(self._store.engine, everybody, [node], metric, span)
        others = [one for one in busiest.first_of(order, everybody, STUDIES_AT_ONCE) if one.id != mine[0].id]
        return [*mine, *others[: STUDIES_AT_ONCE - 1]]

    def read_events(self, span: TimeRange) -> list[NodeEvent]:
        snapshot, node = self._look()
        found = answer_events(snapshot, [node], span, None, EVENTS)
        return [parse_event(one) for one in found["events"]]


def tell_refusal(answer: Callable[[], Json]) -> Json:
    """The viewer's refusal is ours, with its hint."""
    try:
        return answer()
    except Refused as error:
        raise RequestRejected(f"{error} {error.hint}".strip()) from error


def describe(member: SeriesMember, node: str) -> ArchivedLife:
    subject = member.subject
    is_container = scope_of(subject) == "container"
    return ArchivedLife(
        member.id,
        node,
        clean_name(subject.label("l_namespace")),
        clean_name(subject.label("l_pod_name")),
        clean_name(subject.label("l_container_name") if is_container else member.name),
        clean_name(subject.label("l_qos_class")),
        subject.first_ms,
        subject.last_ms,
        clean_name(subject.details.get("image")),
        count_of(subject.details.get("restarts")),
    )
