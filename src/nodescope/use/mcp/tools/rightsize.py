"""What should workloads request and be limited to, what would that save, and what is the risk?"""

from collections.abc import Sequence
from dataclasses import replace

from nodescope.base.quantity import render_count
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.rightsizing.advice import FITS, NOT_YET, SIZED, SizeAdvice
from nodescope.use.answers.rightsizing.json_form import advise_all
from nodescope.use.answers.rightsizing.need import NodeNeeds
from nodescope.use.answers.rightsizing.sentence import render_advice, render_risk, render_total
from nodescope.use.answers.workloads import WorkloadLives
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import FROM, NAMESPACE, NODE, TO, Argument, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import find_workload
from nodescope.use.mcp.tools.shared.moves import answer_moves
from nodescope.use.mcp.tools.shared.time_text import extent_of, read_span, render_iso

# A week has its weekend; the answer says how much of it there was.
USUAL_MS = 7 * 86_400_000
# As many as fit into 1,500 tokens with their figures.
MOST_SHOWN = 6
STATES = {SIZED: "found", FITS: "none", NOT_YET: "not_enough_data"}


def look(backend: Backend, values: Values, target: WorkloadLives | None) -> NodeNeeds:
    about = backend.read_about()
    there = extent_of(about)
    if values["from"] or values["to"]:
        span = read_span(about, values["from"] or render_iso(there.from_ms), values["to"]).span
    else:
        span = TimeRange(max(there.from_ms, there.to_ms - USUAL_MS), there.to_ms)
    found = backend.read_needs(span, choose_ids(target, about.node))
    if values["namespace"]:
        return replace(found, needs=tuple(one for one in found.needs if one.namespace == values["namespace"]))
    return found


def choose_ids(target: WorkloadLives | None, node: str) -> list[str] | None:
    """The newest life of each container of the workload; its others are found by it."""
    if target is None:
        return None
    newest = (part.lives for part in target.parts().values())
    return [mine[-1].id for lives in newest if (mine := [life for life in lives if life.node == node])]


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    if values["what"] == "moves":
        return await answer_moves(fleet, values)
    name, node = values["container"], values["node"]
    target = await find_workload(fleet, name, node) if name else None
    asked = set(target.nodes) if target else None
    entries = {
        key: entry for key, entry in fleet.choose(node).items() if asked is None or key in asked
    } or fleet.choose(node)
    replies = (await fleet.ask(entries, lambda backend: look(backend, values, target))).need_one()
    parts = list(replies.answers.values())
    advices = advise_all(parts)
    shown = choose_shown(advices)
    return ToolAnswer(
        headline=render_total(advices),
        status=choose_status(advices),
        findings=tuple(make_finding(one) for one in shown),
        left_out=len(advices) - len(shown),
        rest="namespace= or container= chooses others",
        looked_at=(
            f"{render_count(len(advices), 'container')} of workloads on {', '.join(list(replies.answers)[:8])}, "
            f"{render_moment(min(one.from_ms for one in parts))} to {render_moment(max(one.to_ms for one in parts))}"
        ),
        not_looked_at=tuple(dict.fromkeys(line for one in parts for line in one.unseen)),
        nodes_away=replies.missing,
        next_call=suggest(shown, parts, name),
    )


def choose_shown(advices: Sequence[SizeAdvice]) -> list[SizeAdvice]:
    """What is to be changed first; then the others."""
    order = (SIZED, NOT_YET, FITS)
    ranked = sorted(advices, key=lambda one: order.index(one.state) if one.state in order else len(order))
    return ranked[:MOST_SHOWN]


def choose_status(advices: Sequence[SizeAdvice]) -> str:
    """That of the most telling: something to change, a day that is not over, all right as it is."""
    states = {one.state for one in advices}
    return next((STATES[one] for one in (SIZED, NOT_YET, FITS) if one in states), "not_collected")


def make_finding(advice: SizeAdvice) -> ToolFinding:
    need = advice.need
    risk = render_risk(advice)
    evidence: dict[str, Fact] = {
        "workload": need.workload,
        "replicas": need.replicas,
        "seen_hours": round(need.seen_seconds / 3600, 1),
        "cpu_request": need.cpu_request,
        "recommended_cpu_request": advice.cpu_request,
        "cpu_limit": need.cpu_limit,
        "recommended_cpu_limit": advice.cpu_limit,
        "memory_request": need.memory_request,
        "recommended_memory_request": advice.memory_request,
        "memory_limit": need.memory_limit,
        "recommended_memory_limit": advice.memory_limit,
        "saved_cores": advice.saved_cores,
        "saved_bytes": advice.saved_bytes,
        "oom_kills": need.oom_kills or None,
    }
    return ToolFinding(
        f"{render_advice(advice)} {risk}".rstrip(),
        advice.state,
        node=need.node,
        container=need.workload
        if need.container in ("", need.workload)
        else f"{need.workload}/{need.container}",
        evidence=evidence,
        weight=advice.weight + (1e6 if advice.state == SIZED else 0.0),
    )


def suggest(shown: Sequence[SizeAdvice], parts: Sequence[NodeNeeds], name: str | None) -> NextCall | None:
    """Of all, the one that matters most; of one, what it used in the same span."""
    if not shown:
        return None
    need = shown[0].need
    part = next((one for one in parts if one.node in need.node), parts[0])
    span: dict[str, Fact] = {"from": render_iso(part.from_ms), "to": render_iso(part.to_ms)}
    who: dict[str, Fact] = {"container": need.workload}
    if name is None:
        return NextCall("rightsize", {**who, **span}, "this workload alone")
    return NextCall("summarize_container", {**who, **span}, "its figures and warnings in the same span")


WHAT = Argument("what", "moves: pods that should run on another node", choices=("sizes", "moves"))
TOOL = Tool(
    "rightsize",
    "Right-size workloads",
    "Requests and limits that fit, what they save (waste), and the risk.",
    (WHAT, Argument("container", "only this workload"), NODE, NAMESPACE, FROM, TO),
    run,
)
