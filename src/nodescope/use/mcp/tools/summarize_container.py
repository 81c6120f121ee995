"""How does a container do: its figures, its limits, its restarts, and what is worrying?"""

from collections.abc import Callable
from dataclasses import dataclass

from nodescope.base.quantity import render_quantity
from nodescope.use.mcp.nodes.backend import Backend, NodeEvent, StudyAnswer
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import CONTAINER, FROM, NODE, TO, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container import Resident, find_resident
from nodescope.use.mcp.tools.shared.container_span import Stay, read_stay
from nodescope.use.mcp.tools.shared.leak import find_leaks
from nodescope.use.mcp.tools.shared.merge_lives import (
    MergedAnswer,
    merge_answers,
    merge_figures,
    tell_finding,
)
from nodescope.use.mcp.tools.shared.restart import tell_restarts
from nodescope.use.mcp.tools.shared.time_text import render_iso

METRICS = (
    "cpu",
    "memory",
    "memory_limit_share",
    "cpu_throttled",
    "pressure_cpu",
    "pressure_memory",
    "pressure_io",
    "disk_read",
    "disk_write",
    "threads",
)
# Of its limit: worth a word, and close to the end. As the seed's agent interface has them.
NEAR_SHARE, FULL_SHARE = 0.8, 0.9
# Share of periods throttled, and of time stalled, that hurts.
STALLED_SHARE = 0.1
RANK = {"leak": 0, "oom_kill": 0, "critical": 0, "warning": 1}


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """What a node answered."""

    stay: Stay
    summaries: dict[str, list[StudyAnswer]]
    trend: MergedAnswer
    events: list[NodeEvent]
    leaks: list[ToolFinding]
    missing: list[str]


def ask(resident: Resident, values: Values) -> Callable[[Backend], NodeSummary]:
    def question(backend: Backend) -> NodeSummary:
        stay = read_stay(backend, resident, values["from"], values["to"])
        ids, span = stay.ids, stay.span
        known = {row.name for row in backend.read_metrics()}
        summaries = {name: backend.study("summary", name, ids, span) for name in METRICS if name in known}
        trend = merge_answers(backend.study("trend", "memory", ids[-1:], span) if "memory" in known else [])
        missing = [name for name in METRICS if name not in known]
        events = stay.read_events(backend)
        leaks = find_leaks(backend, resident, stay.lives, events, stay.newest_ms) if "memory" in known else []
        return NodeSummary(stay, summaries, trend, events, leaks, missing)

    return question


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    seat, resident = await find_resident(fleet, values["container"], values["node"])
    replies = (await fleet.ask({seat.node: seat}, ask(resident, values))).need_one()
    seen = replies.answers[seat.node]
    figures = {name: merge_figures(answers) for name, answers in seen.summaries.items()}
    worries = find_worries(resident, seen, figures)
    rows = [tell_metric(name, figures[name]) for name in METRICS if figures.get(name)]
    return ToolAnswer(
        headline=tell_headline(resident, seen, figures, worries),
        status="found" if rows else "not_enough_data",
        findings=(*worries, *rows),
        looked_at=f"{resident.full_name} on {seat.node}, {seen.stay.tell_span()}",
        not_looked_at=tell_gaps(seen),
        next_call=suggest(resident, worries, figures),
    )


def tell_headline(
    resident: Resident, seen: NodeSummary, figures: dict[str, dict[str, Fact]], worries: list[ToolFinding]
) -> str:
    used = [
        f"{render_quantity(float(figures[name]['avg'] or 0), str(figures[name].get('unit') or ''))} {word}"
        for name, word in (("cpu", "of CPU"), ("memory", "of memory"))
        if figures.get(name)
    ]
    basis = f"{' and '.join(used) or 'no sample'} on average in {seen.stay.tell_span()}"
    if not worries:
        return f'Nothing concerning about "{resident.name}": {basis}.'
    more = f" And {len(worries) - 1} more." if len(worries) > 1 else ""
    return f"{worries[0].sentence}{more} {basis[:1].upper()}{basis[1:]}."


def find_worries(
    resident: Resident, seen: NodeSummary, figures: dict[str, dict[str, Fact]]
) -> list[ToolFinding]:
    """Restarts and kills, nearness to limits, throttling, stalls, growth: worst first."""
    found = [*seen.leaks, *tell_restarts(resident, seen.stay.lives, seen.events, seen.stay.newest_ms)]
    shares = figures.get("memory_limit_share", {})
    share = float(shares.get("avg") or 0)
    if share >= NEAR_SHARE:
        level = "critical" if share >= FULL_SHARE else "warning"
        found.append(
            worry(
                resident,
                seen,
                level,
                "memory_limit_share",
                shares,
                f"uses {100 * share:.0f} % of its memory limit on average",
            )
        )
    for name, text in (
        ("cpu_throttled", "was held back by its CPU quota in {} of the scheduler's periods"),
        ("pressure_cpu", "waited for CPU {} of the time"),
        ("pressure_memory", "waited for memory {} of the time"),
        ("pressure_io", "waited for I/O {} of the time"),
    ):
        stalled = float(figures.get(name, {}).get("avg") or 0)
        if stalled >= STALLED_SHARE:
            found.append(
                worry(resident, seen, "warning", name, figures[name], text.format(f"{100 * stalled:.0f} %"))
            )
    if seen.trend.findings and float(seen.trend.findings[0].get("magnitude") or 0) > 0:
        found.append(
            tell_finding(
                seen.trend.findings[0],
                seen.trend,
                "memory",
                resident.node,
                resident.name,
                seen.stay.newest_ms,
            )
        )
    return sorted(found, key=lambda one: RANK.get(one.kind, 2))


def worry(
    resident: Resident, seen: NodeSummary, level: str, metric: str, figures: dict[str, Fact], text: str
) -> ToolFinding:
    return ToolFinding(
        f'"{resident.name}" {text} ({seen.stay.tell_span()}).',
        level,
        node=resident.node,
        container=resident.name,
        metric=metric,
        unit=str(figures.get("unit") or ""),
        confidence=1.0,
        samples=int(figures.get("samples") or 0),
        missing_share=float(figures.get("missing_share") or 0),
        start_at=seen.stay.span.from_ms / 1000,
        end_at=seen.stay.span.to_ms / 1000,
        evidence={name: figures.get(name) for name in ("avg", "max")},
    )


def tell_metric(name: str, figures: dict[str, Fact]) -> ToolFinding:
    unit = str(figures.get("unit") or "")
    average, least, most = (float(figures[key] or 0) for key in ("avg", "min", "max"))
    limit = figures.get("limit")
    of = f", limit {render_quantity(float(limit), unit)}" if limit else ""
    return ToolFinding(
        f"{name}: {render_quantity(average, unit)} on average, {render_quantity(least, unit)} to {render_quantity(most, unit)}, "
        f"{figures.get('trend') or 'unknown'}{of}.",
        "summary",
        metric=name,
        unit=unit,
        confidence=1.0,
        samples=int(figures.get("samples") or 0),
        missing_share=float(figures.get("missing_share") or 0),
        evidence={key: figures.get(key) for key in ("avg", "min", "max", "p95", "stddev", "trend", "limit")},
    )


def tell_gaps(seen: NodeSummary) -> tuple[str, ...]:
    told = ["whether it repeats itself (analyze_container, periodicity) and network per pod"]
    if seen.missing:
        told.append(f"not collected on this node: {', '.join(seen.missing)}")
    return (*told, *seen.stay.tell_left_out())


def suggest(resident: Resident, worries: list[ToolFinding], figures: dict[str, dict[str, Fact]]) -> NextCall:
    ends = [one.end_at if one.kind == "leak" else one.at for one in worries]
    at = next((moment for moment in ends if moment is not None), None)
    if at is not None:
        arguments: dict[str, Fact] = {"at": render_iso(at * 1000), "node": resident.node}
        return NextCall("explain_incident", arguments, "what else happened then")
    restless = [name for name in ("memory", "cpu") if figures.get(name, {}).get("trend") != "stable"]
    metric = next((name for name in restless if figures.get(name)), "memory")
    arguments = {
        "container": resident.name,
        "study": "changepoint",
        "metric": metric,
        "node": resident.node,
    }
    return NextCall("analyze_container", arguments, f"when its {metric} changed")


TOOL = Tool(
    "summarize_container",
    "Summarize one container",
    "Figures of all main metrics of a container, with warnings: limits, throttling, pressure, restarts, growth.",
    (CONTAINER, NODE, FROM, TO),
    run,
)
