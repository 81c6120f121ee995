"""Who was killed for memory: kills are counted and dated, not averaged."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_count
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Life
from nodescope.use.answers.ranked.workload_ranking import render_ranked
from nodescope.use.mcp.nodes.backend import Backend, read_levels
from nodescope.use.mcp.nodes.fleet import Replies
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import Values
from nodescope.use.mcp.tools.shared.level_table import group_by
from nodescope.use.mcp.tools.shared.next_call import keep_span
from nodescope.use.mcp.tools.shared.time_text import NodeSpan, join_clipped, read_span, render_at

METRIC = "oom_kills"
# Kills are rare: a day unless another span is asked for.
USUAL_BACK = "-24h"


@dataclass(frozen=True, slots=True)
class KilledWorkload:
    """A workload whose containers were killed in the span."""

    node: str
    name: str
    full_name: str
    kind: str
    kills: int
    last_ms: int | None
    """None where only the kernel's counter tells: a process was killed, and its container went on."""


@dataclass(frozen=True, slots=True)
class NodeKills:
    """One node's part."""

    data: NodeSpan
    workloads: int
    rows: list[KilledWorkload]


def list_kills(backend: Backend, values: Values) -> NodeKills:
    about = backend.read_about()
    data = read_span(about, values["from"] or USUAL_BACK, values["to"])
    lives = [one for one in backend.read_lives(data.span) if values["namespace"] in (None, one.namespace)]
    counted = read_counted(backend, data.span, lives)
    ends: dict[str, list[int]] = {}
    for event in backend.read_events(data.span):
        if event.kind == "oom":
            ends.setdefault(event.id, []).append(event.at_ms)
    rows = []
    groups = group_by(lives, values["group"] or "workload")
    for group in groups:
        kills = sum(max(counted.get(one.id, 0), len(ends.get(one.id, ()))) for one in group.lives)
        dates = [at_ms for one in group.lives for at_ms in ends.get(one.id, ())]
        if kills:
            last_ms = max(dates, default=None)
            rows.append(
                KilledWorkload(about.node, group.name, group.full_name, group.workload.kind, kills, last_ms)
            )
    return NodeKills(data, len(groups), rows)


def read_counted(backend: Backend, span: TimeRange, lives: list[Life]) -> Mapping[str, int]:
    """By id, how far the kernel's counter rose; of one that began in the span, from 0 on."""
    try:
        rows = read_levels(backend, METRIC, span, [one.id for one in lives]).rows
    except RequestRejected:
        return {}
    begun = {one.id for one in lives if one.first_ms > span.from_ms}
    return {row.id: round(row.most - (0.0 if row.id in begun else row.least)) for row in rows}


def describe_kills(replies: Replies[NodeKills], limit: int) -> ToolAnswer:
    parts = replies.answers
    rows = sorted(
        (row for part in parts.values() for row in part.rows),
        key=lambda row: (-row.kills, -(row.last_ms or 0), row.full_name),
    )
    first = next(iter(parts.values()))
    looked = f"{render_count(sum(part.workloads for part in parts.values()), 'workload')} of {', '.join(list(parts)[:8])}"
    shown = rows[: min(limit, MOST_FINDINGS)]
    return ToolAnswer(
        headline=render_headline(rows, looked, first.data),
        status="found" if rows else "none",
        findings=tuple(make_finding(row, parts[row.node].data, place) for place, row in enumerate(shown, 1)),
        figures={"kills": sum(row.kills for row in rows), "ranked": len(rows)},
        left_out=len(rows) - len(shown),
        rest=f"limit={MOST_FINDINGS}",
        looked_at=f"OOM kills of {looked}, {first.data.render()}",
        not_looked_at=join_clipped(part.data for part in parts.values()),
        nodes_away=replies.missing,
        next_call=suggest(rows, parts),
    )


def render_headline(rows: list[KilledWorkload], looked: str, data: NodeSpan) -> str:
    if not rows:
        return f"No: nobody was OOM-killed ({looked}, {data.render()})."
    top = rows[0]
    more = f" {render_count(len(rows) - 1, 'more workload')} beside it." if len(rows) > 1 else ""
    return f'"{top.full_name}" on {top.node} was OOM-killed {render_times(top)}.{more} Of {looked}, {data.render()}.'


def render_times(row: KilledWorkload) -> str:
    times = "once" if row.kills == 1 else f"{row.kills} times"
    if row.last_ms is None:
        return f"{times} (a process of it; the container went on)"
    return f"{times}, {'' if row.kills == 1 else 'last '}at {render_moment(row.last_ms)}"


def make_finding(row: KilledWorkload, data: NodeSpan, place: int) -> ToolFinding:
    told = render_ranked(row.kind, row.full_name, row.node, f"OOM-killed {render_times(row)}")
    return ToolFinding(
        f"{place}. {told}.",
        "oom_kill",
        node=row.node,
        container=row.name,
        metric=METRIC,
        confidence=1.0,
        start_at=data.span.from_ms / 1000,
        end_at=data.span.to_ms / 1000,
        at=None if row.last_ms is None else row.last_ms / 1000,
        when=None if row.last_ms is None else render_at(row.last_ms, data.newest_ms),
        evidence={"place": place, "kills": row.kills, "over_span": row.kills, "workload": row.name},
    )


def suggest(rows: list[KilledWorkload], parts: Mapping[str, NodeKills]) -> NextCall:
    if not rows:
        part = next(iter(parts.values()))
        return NextCall(
            "scan",
            {"study": "trend", "metric": "memory", **keep_span(part.data.span)},
            "whose memory rises towards its limit",
        )
    top = rows[0]
    arguments = {"container": top.name, "node": top.node, **keep_span(parts[top.node].data.span)}
    return NextCall("summarize_container", arguments, "its limits, restarts and growth in the same span")
