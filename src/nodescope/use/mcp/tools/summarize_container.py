"""How does a container do: its figures, its limits, its restarts, and what is worrying?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodescope.base.quantity import render_count, render_quantity
from nodescope.base.text import capitalise
from nodescope.read.query.row_reader import ask_pairwise
from nodescope.use.answers.containers import Container
from nodescope.use.answers.deploys import COMPARED, tell_limits
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.levels import Levels, MetricLevel
from nodescope.use.answers.memory_limit import FILE, SHARED, MemoryUse, split_memory
from nodescope.use.mcp.nodes.backend import Backend, read_levels, run_study, summarize_lives
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import CONTAINER, FROM, NODE, TO, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared import limit_share
from nodescope.use.mcp.tools.shared.container_span import ContainerSpan, ask_container, join_spans
from nodescope.use.mcp.tools.shared.gpu_level import BY_PROCESS
from nodescope.use.mcp.tools.shared.leak import find_leaks
from nodescope.use.mcp.tools.shared.merge_lives import (
    Figures,
    MergedAnswer,
    merge_answers,
    merge_figures,
    number_of,
    render_finding,
)
from nodescope.use.mcp.tools.shared.metric_name import SHARES
from nodescope.use.mcp.tools.shared.next_call import keep_span, suggest_incident, suggest_study
from nodescope.use.mcp.tools.shared.restart import find_restarts
from nodescope.use.mcp.tools.shared.takeover import (
    SideLevels,
    join_sides,
    leave_restarts,
    read_sides,
    render_changes,
)
from nodescope.use.studies import StudyAnswer

METRICS = ("cpu", "memory", "memory_limit_share", *SHARES, "disk_read", "disk_write", "threads")
# Read beside them, and told only with the memory limit.
BESIDE = (FILE, *SHARED)
# Share of periods throttled, and of time stalled, that hurts.
STALLED_SHARE = 0.1
WORRYING = (
    ("cpu_throttled", STALLED_SHARE, "was held back by its CPU quota in {} of the scheduler's periods"),
    ("pressure_cpu", STALLED_SHARE, "waited for CPU {} of the time"),
    ("pressure_memory", STALLED_SHARE, "waited for memory {} of the time"),
    ("pressure_io", STALLED_SHARE, "waited for I/O {} of the time"),
)
RANK = {"leak": 0, "oom_kill": 0, "critical": 0, "deploy": 1, "warning": 1}
# Changes that came with a deploy or a restart; the largest are told.
MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class ContainerSummary:
    """What a node answered."""

    seen: ContainerSpan
    summaries: dict[str, list[StudyAnswer]]
    beside: dict[str, tuple[MetricLevel, ...]]
    """Of what is told only with the memory limit."""
    trends: list[StudyAnswer]
    events: list[ContainerEvent]
    leaks: list[ToolFinding]
    missing: list[str]
    sides: SideLevels
    """Levels before and after its containers were replaced."""

    @property
    def figures(self) -> dict[str, Figures]:
        """By metric, of those that have samples."""
        merged = {name: merge_figures(answers) for name, answers in self.summaries.items()}
        return {name: found for name, found in merged.items() if found}

    def mean_beside(self, name: str) -> float | None:
        """None where it was not measured."""
        rows = self.beside.get(name, ())
        total = sum(row.samples for row in rows)
        return sum(row.mean * row.samples for row in rows) / total if total else None

    @property
    def trend(self) -> MergedAnswer:
        return merge_answers(self.trends)


def summarize(backend: Backend, seen: ContainerSpan) -> ContainerSummary:
    ids, span = seen.ids, seen.span
    known = {row.name for row in backend.read_metrics()}
    wanted = [name for name in METRICS if name in known]
    is_known = "memory" in known
    limits = limit_share.read_steady(backend, span, ids, known)
    studied = [name for name in wanted if name != limit_share.NAME or not limits]
    # The trend takes longest: it begins among the first.
    asked = ["trend", *studied] if is_known else studied

    def ask(name: str) -> list[StudyAnswer]:
        if name == "trend":
            return run_study(backend, "trend", "memory", ids[-1:], span)
        return summarize_lives(backend, name, ids, span)

    found = dict(zip(asked, ask_pairwise(ask, asked), strict=True))
    if limits:
        shares = limit_share.scale_answers(found[limit_share.OF], limits)
        found[limit_share.NAME] = ask(limit_share.NAME) if shares is None else shares
    events = seen.read_events(backend)
    leaks = find_leaks(backend, seen.container, seen.lives, events, seen.newest_ms) if is_known else []
    return ContainerSummary(
        seen,
        {name: found[name] for name in wanted},
        {name: read_levels(backend, name, span, ids).rows for name in BESIDE if name in known},
        found.get("trend", []),
        events,
        leaks,
        [name for name in METRICS if name not in known],
        read_sides(backend, seen, [name for name in COMPARED if BY_PROCESS.get(name, name) in known]),
    )


def join_summaries(parts: Sequence[ContainerSummary]) -> ContainerSummary:
    """Of several nodes as one."""
    names = dict.fromkeys(name for one in parts for name in one.summaries)
    sides: SideLevels = {}
    for one in parts:
        for key, levels in one.sides.items():
            sides[key] = Levels(levels.unit, (*(sides[key].rows if key in sides else ()), *levels.rows))
    return ContainerSummary(
        join_spans([one.seen for one in parts]),
        {name: [answer for one in parts for answer in one.summaries.get(name, ())] for name in names},
        {name: tuple(row for one in parts for row in one.beside.get(name, ())) for name in BESIDE},
        parts[-1].trends,
        [event for one in parts for event in one.events],
        [leak for one in parts for leak in one.leaks],
        [name for name in parts[-1].missing if name not in names],
        sides,
    )


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    summary = join_summaries(await ask_container(fleet, values, summarize))
    container = summary.seen.container
    worries = find_worries(summary)
    rows = [render_figures(name, figures, len(container.pods)) for name, figures in summary.figures.items()]
    return ToolAnswer(
        headline=render_headline(summary, worries),
        status="found" if rows else "not_enough_data",
        findings=(*worries, *note_cache(summary), *rows),
        looked_at=f"{render_what(container)}, {summary.seen.render()}",
        not_looked_at=list_gaps(summary),
        next_call=suggest(summary, worries),
    )


def render_what(container: Container) -> str:
    """What was summarized, what it belongs to, and how that is known."""
    workload, image = container.newest.workload, container.newest.image
    pods = f" ({render_count(len(container.pods), 'pod')})" if len(container.pods) > 1 else ""
    kind = (
        f", {workload.kind} {workload.name} by its {workload.known_by}" if workload.known_by != "id" else ""
    )
    return f"{container.full_name}{pods} on {', '.join(container.nodes)}{kind}{f', image {image}' if image else ''}"


def render_headline(summary: ContainerSummary, worries: list[ToolFinding]) -> str:
    used = [
        f"{render_quantity(figures.avg, figures.unit)} {word}"
        for name, word in (("cpu", "of CPU"), ("memory", "of memory"))
        if (figures := summary.figures.get(name))
    ]
    basis = f"{' and '.join(used) or 'no sample'} on average in {summary.seen.render()}"
    if not worries:
        return f'Nothing concerning about "{summary.seen.container.name}": {basis}.'
    more = f" And {len(worries) - 1} more." if len(worries) > 1 else ""
    return f"{worries[0].sentence}{more} {capitalise(basis)}."


def find_worries(summary: ContainerSummary) -> list[ToolFinding]:
    """Restarts and kills, nearness to limits, throttling, stalls, growth: worst first."""
    seen, trend = summary.seen, summary.trend
    restarts = find_restarts(seen.container, seen.lives, summary.events, seen.newest_ms)
    changes = join_sides(seen, COMPARED, [summary.sides])
    across = leave_restarts(changes, [one for one in restarts if one.kind != "restart"])
    told = sorted(render_changes(across, seen, tell_limits(changes)), key=lambda one: -one.weight)
    found = [*summary.leaks, *restarts, *told[:MOST_CHANGES]]
    for metric, least, text in WORRYING:
        figures = summary.figures.get(metric)
        if figures and figures.avg >= least:
            found.append(render_worry(summary, metric, figures, text.format(f"{100 * figures.avg:.0f} %")))
    memory = read_memory_use(summary)
    if memory and memory.level in ("critical", "warning"):
        found.append(render_memory(summary, memory))
    if trend.findings and number_of(trend.findings[0].magnitude) > 0:
        found.append(render_finding(trend.findings[0], trend, "memory", seen.container, seen.newest_ms))
    return sorted(found, key=lambda one: RANK.get(one.kind, 2))


def render_worry(summary: ContainerSummary, metric: str, figures: Figures, text: str) -> ToolFinding:
    seen = summary.seen
    container = seen.container
    return ToolFinding(
        f'"{container.name}" {text} ({seen.render()}).',
        "warning",
        node=container.node,
        container=container.name,
        metric=metric,
        unit=figures.unit,
        confidence=1.0,
        samples=figures.samples,
        missing_share=figures.missing_share,
        start_at=seen.span.from_ms / 1000,
        end_at=seen.span.to_ms / 1000,
        evidence=figures.facts(("avg", "max")),
    )


def read_memory_use(summary: ContainerSummary) -> MemoryUse | None:
    """Of one container on average; None where it has no limit, or its share of it was not measured."""
    figures = summary.figures
    used, share = figures.get("memory"), figures.get("memory_limit_share")
    if used is None or share is None or not share.avg:
        return None
    shared = next((mean for name in SHARED if (mean := summary.mean_beside(name)) is not None), None)
    return split_memory(used.avg, used.avg / share.avg, summary.mean_beside(FILE), shared)


def render_memory(summary: ContainerSummary, memory: MemoryUse) -> ToolFinding:
    """How near to an OOM kill it is: by what cannot be reclaimed."""
    share = summary.figures["memory_limit_share"]
    found = render_worry(summary, "memory_limit_share", share, memory.render())
    known = memory.reclaimable is not None
    facts = {
        "kept_share": memory.kept_share if known else None,
        "kept_bytes": memory.kept if known else None,
        "reclaimable_bytes": memory.reclaimable,
        "limit": memory.limit,
    }
    kind = memory.level if memory.level in ("critical", "warning") else "page_cache"
    return replace(found, kind=kind, evidence={**found.evidence, **facts})


def note_cache(summary: ContainerSummary) -> list[ToolFinding]:
    """A limit that is full of page cache is said, and is no worry."""
    memory = read_memory_use(summary)
    return [render_memory(summary, memory)] if memory and memory.level == "cache" else []


def render_figures(name: str, figures: Figures, pods: int = 1) -> ToolFinding:
    average, least, most = (
        render_quantity(value or 0, figures.unit) for value in (figures.avg, figures.min, figures.max)
    )
    of = f", limit {render_quantity(float(figures.limit), figures.unit)}" if figures.limit else ""
    return ToolFinding(
        f"{name}: {average} on average, {least} to {most}{render_trend(figures, pods)}{of}.",
        "summary",
        metric=name,
        unit=figures.unit,
        confidence=1.0,
        samples=figures.samples,
        missing_share=figures.missing_share,
        evidence=figures.facts(("avg", "min", "max", "p95", "stddev", "trend", "limit")),
    )


def render_trend(figures: Figures, pods: int) -> str:
    """
    The word is of the newest life alone.

    A container that was killed and is calm again was not "stable" over the whole span; nor are all pods that
    run side by side because one of them is.
    """
    if figures.trend in (None, "unknown"):
        return ""
    whose = "" if figures.lives == 1 else " in its newest pod" if pods > 1 else " since its last start"
    return f", {figures.trend}{whose}"


def list_gaps(summary: ContainerSummary) -> tuple[str, ...]:
    lines = ["whether it repeats itself (analyze_container, periodicity) and network per pod"]
    if summary.missing:
        lines.append(f"not collected on this node: {', '.join(summary.missing)}")
    return (*lines, *summary.seen.list_left_out())


def suggest(summary: ContainerSummary, worries: list[ToolFinding]) -> NextCall:
    container = summary.seen.container
    ends = [one.end_at if one.kind == "leak" else one.at for one in worries]
    at = next((moment for moment in ends if moment is not None), None)
    if at is not None:
        return suggest_incident(at, container.node, "what else happened then")
    known = ((name, summary.figures.get(name)) for name in ("memory", "cpu"))
    metric = next((name for name, figures in known if figures and figures.trend != "stable"), "memory")
    why = f"when its {metric} changed"
    span = keep_span(summary.seen.span)
    return suggest_study(container.name, "changepoint", metric, container.node, why, **span)


TOOL = Tool(
    "summarize_container",
    "Summarize container",
    "Figures of a container's main metrics, with warnings: limits, throttling, pressure, restarts, growth.",
    (CONTAINER, NODE, FROM, TO),
    run,
)
