"""Starts, exits, OOM kills and restarts of containers, each with a sentence."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nodescope.base.findings.annotation import Annotation
from nodescope.base.quantity import render_bytes, render_seconds
from nodescope.base.time_range import TimeRange, render_time
from nodescope.read.query.events import Happening, read_events
from nodescope.read.series_name import id_of, name_of
from nodescope.use.answers.containers import Life, make_life
from nodescope.use.answers.snapshots import ServedNode, View

# Events in one answer.
EVENTS_MOST = 2000


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """Something that happened to a container."""

    at_ms: int
    kind: str
    """start, exit, oom, restart; note: somebody's own words about the node."""
    id: str
    """Of the container's life; empty for a note."""
    name: str
    node: str
    sentence: str


@dataclass(frozen=True, slots=True)
class EventList:
    """In order of time; where there are too many, the newest."""

    events: tuple[ContainerEvent, ...]
    is_truncated: bool


def read_happenings(
    view: View, span: TimeRange, ids: Collection[str] | None = None
) -> list[tuple[ServedNode, Happening]]:
    return [
        (node, one)
        for node in view.nodes
        for one in read_events(node.catalog, span.from_ms, span.to_ms, containers=ids, tail=node.tail)
    ]


def list_events(
    view: View, span: TimeRange, ids: Collection[str] | None = None, limit: int = EVENTS_MOST
) -> EventList:
    happened = [
        ContainerEvent(
            one.at_ms,
            one.kind,
            id_of(one.subject, view.suffix_of(node)),
            name_of(one.subject),
            node.name,
            render_sentence(one),
        )
        for node, one in read_happenings(view, span, ids)
    ]
    found = sorted([*happened, *list_notes(view, span)], key=lambda one: one.at_ms)
    # The newest are kept: what went wrong last is looked at first.
    shown = found[-limit:]
    return EventList(tuple(shown), len(found) > len(shown))


def list_notes(view: View, span: TimeRange) -> list[ContainerEvent]:
    """What was noted about these nodes, whichever containers are asked for: a deploy concerns all."""
    return [
        ContainerEvent(round(note.at * 1000), "note", "", note.text, node.name, render_note(note))
        for node in view.nodes
        for note in node.notes
        if span.from_ms <= note.at * 1000 <= span.to_ms
    ]


def render_note(note: Annotation) -> str:
    return f'Noted at {render_time(note.at)}: "{note.text}".'


def render_sentence(happening: Happening) -> str:
    """What happened, in one sentence with its figures."""
    name, at = name_of(happening.subject), render_time(happening.at_ms / 1000)
    facts = happening.facts
    life = facts.get("lifetime_seconds")
    after = f" after {render_seconds(float(life))}" if isinstance(life, (int, float)) else ""
    if happening.kind == "oom":
        limit = facts.get("memory_limit_bytes")
        of = f" of {render_bytes(float(limit))}" if isinstance(limit, (int, float)) and limit < 2**60 else ""
        return f"{name} was killed for memory at {at}{after}; its limit{of} was reached."
    if happening.kind == "exit":
        short = " It was too short to measure." if "unmeasured" in facts else ""
        return f"{name} ended at {at}{after}.{short}"
    if happening.kind == "restart":
        return f"{name} was started again at {at}."
    return f"{name} started at {at}."


def list_unmeasured(view: View) -> list[tuple[Life, Happening]]:
    """Containers that came and went between two ticks, each with its end: no sample tells of them."""
    return [
        (make_life(one.subject, node.name), one)
        for node in view.nodes
        for one in read_events(node.catalog, kinds=("exit", "oom"), tail=node.tail)
        if "unmeasured" in one.facts and one.subject.label("l_scope") == "container"
    ]


def ends_by_id(nodes: Sequence[ServedNode]) -> dict[str, str]:
    """How each container that ended did so: exit or oom."""
    return {
        one.subject.label("l_container_id") or "": one.kind
        for node in nodes
        if node.to_ms is not None
        for one in read_events(node.catalog, kinds=("exit", "oom"), tail=node.tail)
    }
