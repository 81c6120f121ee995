"""What went wrong around a moment: who took what, and whom it hit?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import group_lives
from nodescope.use.answers.incidents.incident import Incident, IncidentList
from nodescope.use.answers.incidents.sentence import render_incident
from nodescope.use.answers.workloads import WorkloadLives
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import find_workload
from nodescope.use.mcp.tools.shared.incident import make_finding, moment_of
from nodescope.use.mcp.tools.shared.leak import find_leaks
from nodescope.use.mcp.tools.shared.next_call import keep_span
from nodescope.use.mcp.tools.shared.time_text import extent_of, read_moment, render_at, render_iso

USUAL_MINUTES = 15
WIDER_MINUTES = 90
MOST_INCIDENTS = 3
# An incident at the moment that was asked about counts twice as much as one at the edge of the span.
FAR_WEIGHT = 0.5
MOST_LIVES = 16


@dataclass(frozen=True, slots=True)
class NodeIncident:
    """One node's part."""

    at_ms: int
    span: TimeRange
    newest_ms: int
    found: IncidentList
    leaks: list[ToolFinding]

    def weight(self, one: Incident) -> float:
        """The nearer to the moment, the more it is what was meant."""
        reach_ms = max(1.0, self.span.seconds * 500)
        away_ms = max(0, one.from_ms - self.at_ms, self.at_ms - max(one.to_ms, moment_of(one)))
        near = max(0.0, 1 - away_ms / reach_ms)
        return (one.weight or 0.0) * (FAR_WEIGHT + (1 - FAR_WEIGHT) * near)


def look_around(backend: Backend, values: Values, target: WorkloadLives | None) -> NodeIncident:
    about = backend.read_about()
    there = extent_of(about)
    at_ms = read_moment("at", values["at"], there.to_ms)
    if not there.from_ms <= at_ms <= there.to_ms:
        raise ToolMisused(
            f"node {about.node} has no data at {render_moment(at_ms)}; it has "
            f"{render_moment(there.from_ms)} to {render_moment(there.to_ms)}: choose a time in between"
        )
    reach_ms = (values["minutes"] or USUAL_MINUTES) * 60_000
    span = TimeRange(max(there.from_ms, at_ms - reach_ms), min(there.to_ms, at_ms + reach_ms))
    ids = choose_ids(target, about.node, span)
    found = backend.read_incidents(span, ids)
    if found is None:
        name = target.name if target else ""
        raise ToolMisused(
            f'"{name}" was not on node {about.node} from {render_moment(span.from_ms)} to {render_moment(span.to_ms)}'
        )
    return NodeIncident(at_ms, span, there.to_ms, found, study_kills(backend, found, span, there.to_ms))


def choose_ids(target: WorkloadLives | None, node: str, span: TimeRange) -> list[str] | None:
    """Lives of the workload near the span."""
    if target is None:
        return None
    mine = [life for life in target.lives if life.node == node]
    return [life.id for life in ([life for life in mine if life.is_within(span)] or mine)[-MOST_LIVES:]]


def study_kills(backend: Backend, found: IncidentList, span: TimeRange, newest_ms: int) -> list[ToolFinding]:
    """The growth that led to a kill, studied over the whole life that was killed."""
    named = {one.cause.container for one in found.incidents if one.kind == "oom_kill" and one.cause}
    if not named:
        return []
    events = backend.read_events(span)
    killed = {event.id for event in events if event.kind == "oom"}
    return [
        leak
        for container in group_lives(backend.read_lives(None))
        if container.name in named and any(life.id in killed for life in container.lives)
        for leak in find_leaks(backend, container, container.within(span), events, newest_ms)
    ]


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    name, node = values["container"], values["node"]
    target = await find_workload(fleet, name, node) if name else None
    node = node or (target.nodes[0] if target and len(target.nodes) == 1 else None)
    replies = await fleet.ask_all(node, lambda backend: look_around(backend, values, target))
    parts = list(replies.answers.values())
    first = parts[0]
    ranked = sorted(
        ((part.weight(one), part, one) for part in parts for one in part.found.incidents),
        key=lambda row: -row[0],
    )
    shown = ranked[:MOST_INCIDENTS]
    findings = [finding for weight, part, one in shown for finding in tell(part, one, weight)]
    if len(parts) > 1:
        findings = [replace(one, sentence=f"On {one.node}: {one.sentence}") for one in findings]
    return ToolAnswer(
        headline=render_headline(parts, [one for _, _, one in shown], list(replies.answers)),
        status="found" if findings else "none",
        findings=tuple(findings),
        left_out=len(ranked) - len(shown),
        rest="fewer minutes, a node or a container show them",
        looked_at=(
            f"{sum(part.found.workloads for part in parts)} workloads in {sum(part.found.containers for part in parts)} containers "
            f"of {', '.join(list(replies.answers)[:8])}, {render_moment(first.span.from_ms)} to {render_moment(first.span.to_ms)}; "
            f"what is usual, from {render_moment(first.found.history_ms)} on"
        ),
        not_looked_at=list_unseen(parts),
        nodes_away=replies.missing,
        next_call=suggest(first, [one for _, _, one in shown], name),
    )


def tell(part: NodeIncident, one: Incident, weight: float) -> list[ToolFinding]:
    """The incident; before a kill the growth that led to it."""
    finding = replace(make_finding(one, part.newest_ms, part.at_ms), weight=weight)
    leaks = [
        leak
        for leak in part.leaks
        if one.cause and leak.container == one.cause.container and one.kind == "oom_kill"
    ]
    away = finding.evidence["seconds_from_incident"]
    return [
        *(
            replace(leak, weight=weight, evidence={**leak.evidence, "seconds_from_incident": away})
            for leak in leaks[-1:]
        ),
        finding,
    ]


def list_unseen(parts: Sequence[NodeIncident]) -> tuple[str, ...]:
    """What was there before, and what could not be seen; once where nodes say the same."""
    background = [f"no news: {line}" for part in parts for line in part.found.background]
    unseen = [line for part in parts for line in part.found.unseen]
    return tuple(
        dict.fromkeys([*background[:3], *unseen, "departures that are small, shorter than 20 s, or a habit"])
    )


def render_headline(parts: Sequence[NodeIncident], shown: Sequence[Incident], nodes: Sequence[str]) -> str:
    first = parts[0]
    around = f"within {render_seconds(first.span.seconds / 2)} of {render_at(first.at_ms, first.newest_ms)}"
    where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes"
    if not shown:
        if first.found.asked:
            return f'No: nobody was seen to take anything from "{first.found.asked}", and it did nothing unusual, on {where} {around}.'
        workloads = sum(part.found.workloads for part in parts)
        return (
            f"No: nothing unusual was seen that hurt anybody on {where} {around}, in {workloads} workloads."
        )
    more = f" ({len(shown) - 1} more below)" if len(shown) > 1 else ""
    on = f"On {shown[0].node}: " if len(nodes) > 1 else ""
    return f"{on}{render_incident(shown[0])}{more}"


def suggest(part: NodeIncident, shown: Sequence[Incident], name: str | None) -> NextCall:
    """A narrower question about the same span; where nothing was found a wider span."""
    if not shown and part.span.seconds >= 60 * WIDER_MINUTES:
        busy: dict[str, Fact] = {"by": "cpu", "node": part.found.node, **keep_span(part.span)}
        return NextCall("top_containers", busy, "who was busy then")
    if not shown:
        wider: dict[str, Fact] = {
            "at": render_iso(part.at_ms),
            "minutes": WIDER_MINUTES,
            "node": part.found.node,
        }
        return NextCall(
            "explain_incident", wider if not name else {**wider, "container": name}, "a wider span"
        )
    one = shown[0]
    told = one.cause or one.victims[0]
    span = keep_span(part.span)
    if one.kind in ("oom_kill", "crash_loop"):
        who: dict[str, Fact] = {"container": told.container, "node": one.node}
        return NextCall(
            "summarize_container", {**who, **span}, "its limits, restarts and growth in the same span"
        )
    metric = "disk_write" if told.metric.startswith("disk") else told.metric
    asked: dict[str, Fact] = {
        "container": told.container,
        "node": one.node,
        "study": "changepoint",
        "metric": metric,
    }
    return NextCall("analyze_container", {**asked, **span}, "when exactly it changed, in the same span")


TOOL = Tool(
    "explain_incident",
    "Explain incident",
    "What went wrong around a moment: at most three incidents with cause and victims; for one container, who did it.",
    (
        Argument(
            "at",
            "14:05, -20m, ISO 8601 or epoch",
            "moment",
            required=True,
        ),
        Argument("minutes", "before and after; default: 15", "count", least=1, most=720),
        NODE,
        Argument("container", "only what concerns this one"),
    ),
    run,
)
