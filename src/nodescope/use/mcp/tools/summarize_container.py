"""How does a container do: its figures, its limits, its restarts, and what is worrying?"""

from dataclasses import dataclass

from nodescope.base.quantity import render_quantity
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.mcp.nodes.backend import Backend, run_study
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import CONTAINER, FROM, NODE, TO, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.container_span import ContainerSpan, ask_container
from nodescope.use.mcp.tools.shared.leak import find_leaks
from nodescope.use.mcp.tools.shared.merge_lives import (
    MergedAnswer,
    merge_answers,
    merge_figures,
    number_of,
    render_finding,
)
from nodescope.use.mcp.tools.shared.restart import find_restarts
from nodescope.use.mcp.tools.shared.time_text import render_iso
from nodescope.use.studies import StudyAnswer

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
class ContainerSummary:
    """What a node answered."""

    seen: ContainerSpan
    summaries: dict[str, list[StudyAnswer]]
    trend: MergedAnswer
    events: list[ContainerEvent]
    leaks: list[ToolFinding]
    missing: list[str]


def summarize(backend: Backend, seen: ContainerSpan) -> ContainerSummary:
    ids, span = seen.ids, seen.span
    known = {row.name for row in backend.read_metrics()}
    summaries = {name: run_study(backend, "summary", name, ids, span) for name in METRICS if name in known}
    missing = [name for name in METRICS if name not in known]
    events = seen.read_events(backend)
    if "memory" not in known:
        return ContainerSummary(seen, summaries, merge_answers([]), events, [], missing)
    trend = merge_answers(run_study(backend, "trend", "memory", ids[-1:], span))
    leaks = find_leaks(backend, seen.container, seen.lives, events, seen.newest_ms)
    return ContainerSummary(seen, summaries, trend, events, leaks, missing)


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    summary = await ask_container(fleet, values, summarize)
    container = summary.seen.container
    figures = {name: merge_figures(answers) for name, answers in summary.summaries.items()}
    worries = find_worries(summary, figures)
    rows = [render_metric(name, figures[name]) for name in METRICS if figures.get(name)]
    return ToolAnswer(
        headline=render_headline(summary, figures, worries),
        status="found" if rows else "not_enough_data",
        findings=(*worries, *rows),
        looked_at=f"{container.full_name} on {container.node}, {summary.seen.render()}",
        not_looked_at=list_gaps(summary),
        next_call=suggest(summary, worries, figures),
    )


def render_headline(
    summary: ContainerSummary, figures: dict[str, dict[str, Fact]], worries: list[ToolFinding]
) -> str:
    used = [
        f"{render_quantity(float(figures[name]['avg'] or 0), str(figures[name].get('unit') or ''))} {word}"
        for name, word in (("cpu", "of CPU"), ("memory", "of memory"))
        if figures.get(name)
    ]
    basis = f"{' and '.join(used) or 'no sample'} on average in {summary.seen.render()}"
    if not worries:
        return f'Nothing concerning about "{summary.seen.container.name}": {basis}.'
    more = f" And {len(worries) - 1} more." if len(worries) > 1 else ""
    return f"{worries[0].sentence}{more} {basis[:1].upper()}{basis[1:]}."


def find_worries(summary: ContainerSummary, figures: dict[str, dict[str, Fact]]) -> list[ToolFinding]:
    """Restarts and kills, nearness to limits, throttling, stalls, growth: worst first."""
    seen, trend = summary.seen, summary.trend
    restarts = find_restarts(seen.container, seen.lives, summary.events, seen.newest_ms)
    found = [*summary.leaks, *restarts]
    shares = figures.get("memory_limit_share", {})
    share = float(shares.get("avg") or 0)
    if share >= NEAR_SHARE:
        level = "critical" if share >= FULL_SHARE else "warning"
        found.append(
            render_worry(
                summary,
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
                render_worry(summary, "warning", name, figures[name], text.format(f"{100 * stalled:.0f} %"))
            )
    if trend.findings and number_of(trend.findings[0].magnitude) > 0:
        found.append(render_finding(trend.findings[0], trend, "memory", seen.container, seen.newest_ms))
    return sorted(found, key=lambda one: RANK.get(one.kind, 2))


def render_worry(
    summary: ContainerSummary, level: str, metric: str, figures: dict[str, Fact], text: str
) -> ToolFinding:
    seen = summary.seen
    container = seen.container
    return ToolFinding(
        f'"{container.name}" {text} ({seen.render()}).',
        level,
        node=container.node,
        container=container.name,
        metric=metric,
        unit=str(figures.get("unit") or ""),
        confidence=1.0,
        samples=int(figures.get("samples") or 0),
        missing_share=float(figures.get("missing_share") or 0),
        start_at=seen.span.from_ms / 1000,
        end_at=seen.span.to_ms / 1000,
        evidence={name: figures.get(name) for name in ("avg", "max")},
    )


def render_metric(name: str, figures: dict[str, Fact]) -> ToolFinding:
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


def list_gaps(summary: ContainerSummary) -> tuple[str, ...]:
    lines = ["whether it repeats itself (analyze_container, periodicity) and network per pod"]
    if summary.missing:
        lines.append(f"not collected on this node: {', '.join(summary.missing)}")
    return (*lines, *summary.seen.list_left_out())


def suggest(
    summary: ContainerSummary, worries: list[ToolFinding], figures: dict[str, dict[str, Fact]]
) -> NextCall:
    container = summary.seen.container
    ends = [one.end_at if one.kind == "leak" else one.at for one in worries]
    at = next((moment for moment in ends if moment is not None), None)
    if at is not None:
        arguments: dict[str, Fact] = {"at": render_iso(at * 1000), "node": container.node}
        return NextCall("explain_incident", arguments, "what else happened then")
    restless = [name for name in ("memory", "cpu") if figures.get(name, {}).get("trend") != "stable"]
    metric = next((name for name in restless if figures.get(name)), "memory")
    arguments = {
        "container": container.name,
        "study": "changepoint",
        "metric": metric,
        "node": container.node,
    }
    return NextCall("analyze_container", arguments, f"when its {metric} changed")


TOOL = Tool(
    "summarize_container",
    "Summarize one container",
    "Figures of all main metrics of a container, with warnings: limits, throttling, pressure, restarts, growth.",
    (CONTAINER, NODE, FROM, TO),
    run,
)
