"""What changed around a moment, in order, across the containers of a node?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Container, group_lives
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.mcp.nodes.backend import Backend, read_levels, run_study
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import NODE, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import find_container
from nodescope.use.mcp.tools.shared.leak import find_leaks
from nodescope.use.mcp.tools.shared.merge_lives import is_material, merge_answers, render_finding
from nodescope.use.mcp.tools.shared.restart import MOST_NAMED, find_restarts, make_event
from nodescope.use.mcp.tools.shared.time_text import extent_of, read_moment, render_at, render_iso

METRICS = ("memory", "cpu", "cpu_throttled", "pressure_memory", "pressure_cpu", "pressure_io")
USUAL_MINUTES = 15
# Below, a metric is at rest whatever its ratio: noise of an idle container.
REST = {"memory": 0.0, **dict.fromkeys(METRICS[1:], 0.02)}
# Between parts of the span a mean moves by this share before a study looks closer.
MOVED_SHARE = 0.1
MOST_STUDIED = 8
# So many changes of one metric are one finding: a pattern, not an incident.
MANY_CHANGES = 2
KEPT_EVIDENCE = frozenset(
    [
        "before",
        "after",
        "change",
        "changes",
        "restarts",
        "oom_kills",
        "oom_killed",
        "down_seconds",
        "slope_per_second",
        "limit",
        "killed_at",
    ]
)
# What led to a kill before the kill, and a kill before what only moved.
WEIGHT = {
    "leak": 3.6,
    "oom_kill": 3.0,
    "crash_loop": 2.5,
    "restart": 2.0,
    "start": 1.2,
    "exit": 1.2,
    "loop_restart": 0.8,
    "pattern": 0.2,
}
# What changed within these seconds of the given moment is what was meant.
AT_ONCE_SECONDS, AT_ONCE_WEIGHT = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class NodeIncident:
    """One node's part."""

    at_ms: int
    span: TimeRange
    newest_ms: int
    findings: list[ToolFinding]
    containers: int


def look_around(backend: Backend, values: Values, container: Container | None) -> NodeIncident:
    about = backend.read_about()
    there = extent_of(about)
    oldest_ms, newest_ms = there.from_ms, there.to_ms
    at_ms = read_moment("at", values["at"], newest_ms)
    reach_ms = (values["minutes"] or USUAL_MINUTES) * 60_000
    if not oldest_ms <= at_ms <= newest_ms:
        raise ToolMisused(
            f"node {about.node} has no data at {render_moment(at_ms)}; it has "
            f"{render_moment(oldest_ms)} to {render_moment(newest_ms)}: choose a time in between"
        )
    span = TimeRange(max(oldest_ms, at_ms - reach_ms), min(newest_ms, at_ms + reach_ms))
    containers = [container] if container else group_lives(backend.read_lives(span))
    known = {row.name for row in backend.read_metrics()}
    by_id = {life.id: one for one in containers for life in one.lives}
    events = [event for event in backend.read_events(span) if event.id in by_id]
    findings = find_events(containers, events, span, newest_ms)
    if "memory" in known:
        for one in containers:
            findings += find_leaks(backend, one, one.within(span), events, newest_ms)
    for metric in (name for name in METRICS if name in known):
        lives = container.within(span) if container else []
        moved = [life.id for life in lives] if container else screen(backend, metric, span, at_ms)
        if moved:
            findings += find_changes(backend, metric, moved, span, by_id, newest_ms)
    return NodeIncident(at_ms, span, newest_ms, findings, len(containers))


def screen(backend: Backend, metric: str, span: TimeRange, at_ms: int) -> list[str]:
    """Whose mean differs between before, around and after: three cheap questions instead of a study each."""
    third_ms = max(1000, (span.to_ms - span.from_ms) // 6)
    middle = max(span.from_ms, at_ms - third_ms), min(span.to_ms, at_ms + third_ms)
    parts = [
        TimeRange(*one) for one in pairwise((span.from_ms, *middle, span.to_ms)) if one[1] - one[0] >= 1000
    ]
    try:
        levels = [read_levels(backend, metric, part) for part in parts]
    except RequestRejected:
        return []
    means: dict[str, list[float]] = {}
    for row in chain.from_iterable(one.rows for one in levels):
        means.setdefault(row.id, []).append(row.mean)
    moved = {}
    for container_id, values in means.items():
        low, high = min(values), max(values)
        if high > REST[metric] and high - low >= MOVED_SHARE * abs(high):
            moved[container_id] = (high - low) / abs(high)
    return sorted(moved, key=lambda one: (-moved[one], one))[:MOST_STUDIED]


def find_changes(
    backend: Backend,
    metric: str,
    ids: Sequence[str],
    span: TimeRange,
    by_id: dict[str, Container],
    newest_ms: int,
) -> list[ToolFinding]:
    found: list[ToolFinding] = []
    for answer in run_study(backend, "changepoint", metric, ids, span):
        container = by_id.get(str(answer.series["id"]))
        if container is None:
            continue
        merged = merge_answers([answer])
        changes = [
            render_finding(finding, merged, metric, container, newest_ms)
            for finding in merged.findings
            if is_material(finding) and finding.evidence.get("change") != "noise"
        ]
        if len(changes) > MANY_CHANGES:
            found.append(render_pattern(changes))
        else:
            found += [replace(one, sentence=f'"{container.name}": {one.sentence}') for one in changes]
    return found


def render_pattern(changes: list[ToolFinding]) -> ToolFinding:
    """Many changes of one metric as one finding, which begins as the first does."""
    first, last = (choose(changes, key=lambda one: one.at or 0) for choose in (min, max))
    start, end = (render_moment(round((one.at or 0) * 1000)) for one in (first, last))
    return replace(
        first,
        sentence=f'"{first.container}": {first.metric} changed {len(changes)} times between {start} and {end}; it may repeat itself.',
        kind="pattern",
        confidence=max(one.confidence or 0 for one in changes),
        start_at=first.at,
        end_at=last.at,
        evidence={"changes": len(changes)},
    )


def find_events(
    containers: Sequence[Container], events: Sequence[ContainerEvent], span: TimeRange, newest_ms: int
) -> list[ToolFinding]:
    """Restarts and kills; and starts and ends of containers that were not restarts."""
    found: list[ToolFinding] = []
    for container in containers:
        lives = container.within(span)
        mine = {life.id for life in container.lives}
        events_here = [event for event in events if event.id in mine]
        restarts = find_restarts(container, lives, events_here, newest_ms)
        found += [in_a_loop(one, container) for one in restarts]
        if len(lives) > MOST_NAMED + 1:
            continue
        for event in events_here:
            is_first = event.kind == "start" and event.id == container.lives[0].id
            is_last = event.kind in ("exit", "oom") and event.id == container.lives[-1].id
            if is_first or is_last:
                found.append(render_event(container, event, newest_ms))
    return found


def in_a_loop(one: ToolFinding, container: Container) -> ToolFinding:
    """A restart of what restarts all the time is no news, and belongs to its loop."""
    count = len(container.lives) - 1
    if one.kind != "restart" or count <= MOST_NAMED:
        return one
    sentence = f"{one.sentence} It was restarted {count} times in all its data: a crash loop."
    return replace(one, sentence=sentence, kind="loop_restart", evidence={**one.evidence, "restarts": count})


def render_event(container: Container, event: ContainerEvent, newest_ms: int) -> ToolFinding:
    words = {"start": "started", "exit": "ended", "oom": "was OOM-killed"}
    kind = "oom_kill" if event.kind == "oom" else event.kind
    sentence = f'"{container.name}" {words.get(event.kind, event.kind)} at {render_moment(event.at_ms)}.'
    return make_event(container, sentence, kind, event.at_ms, newest_ms)


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    name, node = values["container"], values["node"]
    container = await find_container(fleet, name, node) if name else None
    node = container.node if container else node
    replies = await fleet.ask_all(node, lambda backend: look_around(backend, values, container))
    parts = list(replies.answers.values())
    first = parts[0]
    everything = [finding for part in parts for finding in part.findings]
    if len(parts) > 1:
        everything = [replace(one, sentence=f"On {one.node}: {one.sentence}") for one in everything]
    chosen = sorted(everything, key=lambda one: -relevance(one, first))[:MOST_FINDINGS]
    shown = [weigh(one, first) for one in sorted(chosen, key=lambda one: one.at or 0)]
    return ToolAnswer(
        headline=render_headline(shown, chosen, first, list(replies.answers), len(everything)),
        status="found" if shown else "none",
        findings=tuple(shown),
        left_out=len(everything) - len(shown),
        looked_at=(
            f"{sum(part.containers for part in parts)} containers of {', '.join(list(replies.answers)[:8])}, "
            f"{render_moment(first.span.from_ms)} to {render_moment(first.span.to_ms)}"
        ),
        not_looked_at=(
            "changes below 5 % of a level; containers whose means moved by less than 10 %",
            "causes: what comes first in time is only the first to be looked at",
        ),
        nodes_away=replies.missing,
        next_call=suggest(chosen, first),
    )


def weigh(one: ToolFinding, part: NodeIncident) -> ToolFinding:
    """With how far it is from the moment, and without what only a statistician would miss here."""
    kept = {name: value for name, value in one.evidence.items() if name in KEPT_EVIDENCE}
    evidence = {**kept, "seconds_from_incident": round((one.at or 0) - part.at_ms / 1000, 1)}
    return replace(one, evidence=evidence, weight=relevance(one, part))


def relevance(one: ToolFinding, part: NodeIncident) -> float:
    """Kills before restarts before changes; large before small, near the moment before far from it."""
    reach = max(1.0, part.span.seconds / 2)
    # A leak is near when its end is.
    moment = one.end_at if one.kind == "leak" and one.end_at is not None else one.at
    away_seconds = abs((moment or 0) - part.at_ms / 1000)
    near = max(0.0, 1 - away_seconds / reach)
    if one.kind in WEIGHT:
        return WEIGHT[one.kind] + 0.5 * near
    before, after = float(one.evidence.get("before") or 0), float(one.evidence.get("after") or 0)
    larger = max(abs(before), abs(after))
    size = abs(after - before) / larger if larger else 0.0
    at_once = AT_ONCE_WEIGHT if away_seconds <= AT_ONCE_SECONDS else 0.0
    return (one.confidence or 0) * size + 0.5 * near + at_once


def render_headline(
    shown: list[ToolFinding], chosen: list[ToolFinding], part: NodeIncident, nodes: list[str], count: int
) -> str:
    where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes"
    around = f"within {render_seconds((part.span.to_ms - part.span.from_ms) / 2000)} of {render_at(part.at_ms, part.newest_ms)}"
    if not shown:
        return f"No: nothing changed on {where} {around}, in {part.containers} containers."
    things = "thing" if count == 1 else "things"
    weighty, earliest = chosen[0].sentence, shown[0].sentence
    first = f" First: {earliest}" if earliest != weighty else ""
    return f"{count} {things} happened on {where} {around}. Most telling: {weighty}{first}"


def suggest(chosen: list[ToolFinding], part: NodeIncident) -> NextCall:
    if not chosen:
        wider: dict[str, Fact] = {"at": render_iso(part.at_ms), "minutes": 60}
        return NextCall("explain_incident", wider, "a wider span; or top_containers")
    who = {"container": chosen[0].container, "node": chosen[0].node}
    return NextCall("summarize_container", who, "how the most telling container does")


TOOL = Tool(
    "explain_incident",
    "Explain an incident",
    "What changed around a moment, in order of time: kills, restarts, steps in cpu, memory, throttling, pressure.",
    (
        Argument(
            "at",
            "the moment: ISO 8601, epoch seconds or relative to the newest data (-20m)",
            "moment",
            required=True,
        ),
        Argument("minutes", "how far before and after; 15 unless given", "count", least=1, most=180),
        NODE,
        Argument("container", "only this container"),
    ),
    run,
)
