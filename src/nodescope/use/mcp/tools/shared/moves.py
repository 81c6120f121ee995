"""Which pods should run on another node: the answer of `rightsize` with what=moves."""

from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.moving.advice import Advice, MoveAdvice, advise
from nodescope.use.answers.moving.from_archive import derive_state
from nodescope.use.answers.moving.node_state import NodeState
from nodescope.use.answers.moving.sentence import render_headline, render_move
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import Values
from nodescope.use.mcp.tools.shared.time_text import extent_of, read_span

# A pod that is moved is moved for what is now, not for what was last week.
USUAL_MS = 3_600_000
MOST_UNKNOWN = 8


def look_state(backend: Backend, values: Values) -> tuple[NodeState, TimeRange]:
    about = backend.read_about()
    if values["from"] or values["to"]:
        span = read_span(about, values["from"], values["to"]).span
    else:
        there = extent_of(about)
        span = TimeRange(max(there.from_ms, there.to_ms - USUAL_MS), there.to_ms)
    return derive_state(backend.summarize(span), backend.read_needs(span, None)), span


async def answer_moves(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = (await fleet.ask(fleet.choose(None), lambda backend: look_state(backend, values))).need_one()
    found = list(replies.answers.values())
    advice = advise([state for state, _ in found])
    begin_ms, end_ms = min(span.from_ms for _, span in found), max(span.to_ms for _, span in found)
    unknown = [*advice.stays, *advice.unknown]
    if len(found) < 2:
        unknown.insert(0, "there is one node here: a pod can be moved only where there are two")
    return ToolAnswer(
        headline=render_headline(advice),
        status="found" if advice.moves else "none",
        findings=tuple(make_move(one) for one in advice.moves),
        looked_at=f"{len(found)} nodes, {render_moment(begin_ms)} to {render_moment(end_ms)}; nothing is moved",
        not_looked_at=tuple(unknown[:MOST_UNKNOWN]),
        nodes_away=replies.missing,
        next_call=suggest_crowded(advice),
    )


def make_move(move: MoveAdvice) -> ToolFinding:
    return ToolFinding(
        render_move(move),
        "move",
        node=move.source,
        container=move.pod.workload,
        evidence={
            "namespace": move.pod.namespace or None,
            "target": move.target,
            "resource": move.resource,
            "cores": move.pod.cores,
            "memory_bytes": move.pod.memory_bytes,
            "source_before": round(move.source_before, 3),
            "source_after": round(move.source_after, 3),
            "target_before": round(move.target_before, 3),
            "target_after": round(move.target_after, 3),
        },
    )


def suggest_crowded(advice: Advice) -> NextCall | None:
    if not advice.crowded:
        return None
    node = advice.crowded[0].partition(":")[0]
    return NextCall("explain_incident", {"node": node}, "since when it is crowded, and by whom")
