"""Who uses the most of something?"""

from dataclasses import dataclass

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import group_lives
from nodescope.use.mcp.nodes.backend import Backend, read_devices, read_levels
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import FROM, NAMESPACE, NODE, TO, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.device_rank import Measured, rank_devices
from nodescope.use.mcp.tools.shared.level_table import LevelRow, join_levels
from nodescope.use.mcp.tools.shared.metric_name import COUNTED_SCOPES, NotCollected, choose_metric
from nodescope.use.mcp.tools.shared.time_text import (
    OLD_SECONDS,
    choose_span,
    join_alike,
    list_clipped,
    newest_of,
    render_span,
)

USUAL_LIMIT = 5
# From so many missing samples on they are named beside a mean.
MISSING_SHARE = 0.05
# What to look at next, by what was ranked.
FOLLOW = {"cpu": "periodicity", "memory": "changepoint"}


@dataclass(frozen=True, slots=True)
class RankedName:
    """One node's part."""

    span: TimeRange
    newest_ms: int
    metric: str
    unit: str
    rows: list[LevelRow]
    namespaces: set[str]
    unmeasured: int
    """Containers that were there and have no sample of this metric."""
    clipped: tuple[str, ...]


def rank_node(backend: Backend, values: Values) -> RankedName | Measured:
    about = backend.read_about()
    span = choose_span(about, values["from"], values["to"])
    metric = choose_metric(values["by"] or "cpu", backend.read_metrics())
    clipped = list_clipped(about, "the span", values["from"], values["to"])
    if metric.scope in COUNTED_SCOPES:
        unit, devices = read_devices(backend, metric.name, span, about.node)
        return Measured(span, newest_of(about), metric.name, unit, metric.scope, devices, clipped)
    if metric.scope not in ("container", ""):
        raise ToolMisused(
            f'"{metric.name}" is measured per {metric.scope}, not per container; '
            "by may be cpu, memory, throttled, pressure, gpu, or a metric of containers (list_metrics)"
        )
    lives = backend.read_lives(span)
    levels = read_levels(backend, metric.name, span, [life.id for life in lives])
    containers = group_lives(lives)
    rows = join_levels(containers, levels.rows, span)
    namespaces = {one.newest.namespace for one in containers} - {""}
    return RankedName(
        span,
        newest_of(about),
        metric.name,
        levels.unit,
        rows,
        namespaces,
        len(containers) - len(rows),
        clipped,
    )


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    limit = values["limit"] or USUAL_LIMIT
    try:
        entries = fleet.choose(values["node"])
        replies = (await fleet.ask(entries, lambda backend: rank_node(backend, values))).need_one()
    except NotCollected as error:
        return not_collected(str(error))
    away = {**replies.away, **replies.refused}
    devices = {node: part for node, part in replies.answers.items() if isinstance(part, Measured)}
    if devices:
        return rank_devices(devices, limit, away)
    parts = {node: part for node, part in replies.answers.items() if isinstance(part, RankedName)}
    rows = [row for part in parts.values() for row in part.rows if is_wanted(row, values["namespace"])]
    rows.sort(key=lambda row: (-row.mean, row.container.full_name, row.container.node))
    first = next(iter(parts.values()))
    if not rows:
        if values["namespace"]:
            known = ", ".join(sorted({name for part in parts.values() for name in part.namespaces})[:12])
            raise ToolMisused(
                f'no container of namespace "{values["namespace"]}" here; there are: {known or "none"}'
            )
        return nothing(first, parts, away)
    return ToolAnswer(
        headline=render_headline(rows, first, parts),
        findings=tuple(
            render_row(row, parts[row.container.node], place + 1) for place, row in enumerate(rows[:limit])
        ),
        left_out=len(rows) - min(limit, len(rows)),
        looked_at=render_looked_at(parts),
        not_looked_at=list_gaps(parts),
        nodes_away=away,
        next_call=suggest(rows[0], first.metric),
    )


def is_wanted(row: LevelRow, namespace: str | None) -> bool:
    return namespace is None or row.container.newest.namespace == namespace


def render_headline(rows: list[LevelRow], part: RankedName, parts: dict[str, RankedName]) -> str:
    top = rows[0]
    where = (
        f"on {top.container.node}" if len(parts) == 1 else f"on {top.container.node}, of {len(parts)} nodes"
    )
    return (
        f'"{top.container.name}" ({top.container.newest.namespace or "no namespace"}) has the most {part.metric} {where}: '
        f"{render_quantity(top.mean, part.unit)} on average, of {len(rows)} containers, in {render_span(part.span, part.newest_ms)}."
    )


def render_row(row: LevelRow, part: RankedName, place: int) -> ToolFinding:
    container = row.container
    partly = f", there for {100 * row.there_share:.0f} % of the span" if row.there_share < 0.95 else ""
    if row.missing_share >= MISSING_SHARE:
        partly += f", {100 * row.missing_share:.0f} % of its samples missing"
    return ToolFinding(
        f'{place}. "{container.full_name}" on {container.node}: {render_quantity(row.mean, part.unit)} on average '
        f"({render_quantity(row.least, part.unit)} to {render_quantity(row.most, part.unit)}){partly}.",
        "rank",
        node=container.node,
        container=container.name,
        metric=part.metric,
        unit=part.unit,
        confidence=1.0,
        samples=row.samples,
        missing_share=row.missing_share,
        start_at=part.span.from_ms / 1000,
        end_at=part.span.to_ms / 1000,
        evidence={
            "place": place,
            "mean": row.mean,
            "min": row.least,
            "max": row.most,
            "there_share": round(row.there_share, 3),
            "restarts": container.restarts or None,
        },
    )


def render_looked_at(parts: dict[str, RankedName]) -> str:
    first = next(iter(parts.values()))
    nodes = ", ".join(list(parts)[:8]) + (f" and {len(parts) - 8} more" if len(parts) > 8 else "")
    return f"{first.metric} of every container of {nodes}, {render_span(first.span, first.newest_ms)}"


def list_gaps(parts: dict[str, RankedName]) -> tuple[str, ...]:
    lines = [*join_alike([line for part in parts.values() for line in part.clipped])]
    newest_ms = max(part.newest_ms for part in parts.values())
    for node, part in parts.items():
        behind_seconds = (newest_ms - part.newest_ms) / 1000
        if behind_seconds >= OLD_SECONDS:
            lines.append(
                f"{node} is ranked by older data: its newest is of {render_moment(part.newest_ms)}, "
                f"{render_seconds(behind_seconds)} before the others'"
            )
    unmeasured = sum(part.unmeasured for part in parts.values())
    if unmeasured:
        there = unmeasured + sum(len(part.rows) for part in parts.values())
        metric = next(iter(parts.values())).metric
        lines.append(f"{unmeasured} of {there} containers that have no sample of {metric} in this span")
    return (*lines, "processes outside of containers; times before and after this span")


def not_collected(reason: str) -> ToolAnswer:
    return ToolAnswer(
        headline=f"Cannot tell: {reason}.",
        status="not_collected",
        next_call=NextCall("list_metrics", {}, "what was collected"),
    )


def nothing(part: RankedName, parts: dict[str, RankedName], away: dict[str, str]) -> ToolAnswer:
    return ToolAnswer(
        headline=f"No container had a sample of {part.metric} in {render_span(part.span, part.newest_ms)}.",
        status="not_enough_data",
        looked_at=render_looked_at(parts),
        not_looked_at=list_gaps(parts),
        nodes_away=away,
        next_call=NextCall("list_containers", {"sort": "last_seen"}, "who was there, and until when"),
    )


def suggest(row: LevelRow, metric: str) -> NextCall:
    study = FOLLOW.get(metric, "changepoint")
    arguments = {
        "container": row.container.name,
        "study": study,
        "metric": metric,
        "node": row.container.node,
    }
    return NextCall(
        "analyze_container", arguments, "whether it changed or repeats; summarize_container for all metrics"
    )


TOOL = Tool(
    "top_containers",
    "Top containers",
    "Containers ranked by cpu, memory, throttled, pressure or any container metric; GPUs by a GPU's; one node or all.",
    (
        Argument(
            "by", "cpu (unless given), memory, throttled, pressure, memory_limit_share, disk_write, gpu, ..."
        ),
        NODE,
        NAMESPACE,
        FROM,
        TO,
        Argument("limit", "how many; 5 unless given", "count", least=1, most=MOST_FINDINGS),
    ),
    run,
)
