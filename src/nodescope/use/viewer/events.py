"""/api/events: starts, exits, OOM kills and restarts, each with a sentence."""

from collections.abc import Sequence

from nodescope.base.quantity import render_bytes, render_seconds
from nodescope.base.time_range import TimeRange, render_time
from nodescope.read.query.events import Happening, read_events
from nodescope.read.series_name import id_of, name_of
from nodescope.use.viewer.question import suffix_of
from nodescope.use.viewer.render import Json
from nodescope.use.viewer.snapshots import ServedNode, Snapshot

EVENTS_MOST = 2000


def happened(
    nodes: Sequence[ServedNode], span: TimeRange, ids: Sequence[str] | None
) -> list[tuple[ServedNode, Happening]]:
    wanted = set(ids) if ids is not None else None
    return [
        (node, one)
        for node in nodes
        for one in read_events(node.catalog, span.from_ms, span.to_ms, containers=wanted, tail=node.tail)
    ]


def answer_events(
    snapshot: Snapshot, nodes: Sequence[ServedNode], span: TimeRange, ids: Sequence[str] | None, limit: int
) -> Json:
    found = sorted(happened(nodes, span, ids), key=lambda pair: pair[1].at_ms)
    # The newest are kept: what went wrong last is looked at first.
    shown = found[-limit:]
    return {
        "events": [
            {
                "at": one.at_ms / 1000,
                "kind": one.kind,
                "container": id_of(one.subject, suffix_of(snapshot, node)),
                "name": name_of(one.subject),
                "node": node.name,
                "sentence": tell(one),
            }
            for node, one in shown
        ],
        "truncated": len(found) > len(shown),
    }


def tell(happening: Happening) -> str:
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
        return f"{name} ended at {at}{after}."
    if happening.kind == "restart":
        return f"{name} was started again at {at}."
    return f"{name} started at {at}."


def ends_by_id(nodes: Sequence[ServedNode]) -> dict[str, str]:
    """How each container that ended did so: exit or oom."""
    found: dict[str, str] = {}
    for node in nodes:
        if node.from_ms is None or node.to_ms is None:
            continue
        for one in read_events(node.catalog, kinds=("exit", "oom"), tail=node.tail):
            found[one.subject.label("l_container_id") or ""] = one.kind
    return found
