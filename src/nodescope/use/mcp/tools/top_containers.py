"""Who uses the most of something?"""

from collections.abc import Sequence
from dataclasses import replace

from nodescope.base.errors import RequestRejected
from nodescope.base.metric_names import find_plain
from nodescope.base.quantity import render_count
from nodescope.base.text import render_metric
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.clocks import list_clocks
from nodescope.use.answers.memory_limit import FILE, SHARED, MemoryUse, split_memory
from nodescope.use.answers.ranked.span_use import render_use
from nodescope.use.answers.timeseries import SERIES_MOST
from nodescope.use.mcp.nodes.backend import Backend, read_devices, read_levels
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import MOST_FINDINGS, NextCall, ToolAnswer
from nodescope.use.mcp.protocol.argument import FROM, NAMESPACE, NODE, TO, Argument, Values
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared import kills
from nodescope.use.mcp.tools.shared.level_table import group_by, join_levels
from nodescope.use.mcp.tools.shared.metric_name import COUNTED_SCOPES, NotCollected, choose_metric
from nodescope.use.mcp.tools.shared.next_call import keep_span, suggest_study
from nodescope.use.mcp.tools.shared.ranked import (
    Parts,
    RankedNode,
    RankedRow,
    add_totals,
    describe_devices,
    note_limits,
    rank_device,
    rank_group,
    render_row,
)
from nodescope.use.mcp.tools.shared.time_text import join_clipped, read_span

USUAL_LIMIT = 5
# By what is ranked, the share that it is of its own limit.
LIMIT_SHARES = {
    "cpu": "cpu_limit_share",
    "memory": "memory_limit_share",
    "memory_limit_share": "memory_limit_share",
}
# What to look at next, by what was ranked.
FOLLOW = {"cpu": "periodicity", "memory": "changepoint"}


def rank_node(backend: Backend, values: Values) -> RankedNode:
    about = backend.read_about()
    data = read_span(about, values["from"], values["to"])
    metric = choose_metric(values["by"] or "cpu", backend.read_metrics())
    if metric.scope in COUNTED_SCOPES:
        unit, devices = read_devices(backend, metric.name, data.span, about.node)
        return RankedNode(data, metric, unit, [rank_device(device, about.node) for device in devices])
    if metric.scope not in ("container", ""):
        raise ToolMisused(
            f'"{metric.name}" is measured per {metric.scope}, not per container; '
            "by may be cpu, memory, throttled, pressure, gpu, or a metric of containers (list_metrics)"
        )
    lives = backend.read_lives(data.span)
    levels = read_levels(backend, metric.name, data.span, [life.id for life in lives])
    groups = group_by(lives, values["group"] or "workload")
    found = join_levels(groups, levels, data.span)
    rows = [rank_group(row, metric.name, levels.unit, about.size) for row in found]
    wanted = order([row for row in rows if values["namespace"] in (None, row.namespace)], values)
    limits = add_limits(backend, metric.name, wanted, values["limit"] or USUAL_LIMIT, data.span)
    namespaces = frozenset(life.namespace for life in lives) - {""}
    unmeasured = len(groups) - len(rows)
    return RankedNode(
        data,
        metric,
        levels.unit,
        limits,
        len(groups),
        unmeasured,
        namespaces,
        about.size,
        about.ahead_seconds,
        about.ahead_of,
    )


def order(rows: list[RankedRow], values: Values) -> list[RankedRow]:
    """By use over the span; the least first where that is asked for."""
    sign = 1 if values["order"] == "ascending" else -1
    return sorted(rows, key=lambda row: (sign * row.use.over_span, row.sorted_by))


def add_limits(
    backend: Backend, metric: str, rows: list[RankedRow], shown: int, span: TimeRange
) -> list[RankedRow]:
    """Only those that will be shown are looked up."""
    what = metric.partition("_")[0]
    share = LIMIT_SHARES.get(metric)
    if share is None or share not in {row.name for row in backend.read_metrics()}:
        return rows
    ids = [one for row in rows[:shown] for one in row.ids[-SERIES_MOST:]]
    shares = read_means(backend, share, span, ids)
    kept = read_kept(backend, span, ids) if what == "memory" else {}
    return [*note_limits(rows[:shown], shares, what, kept), *rows[shown:]]


def read_means(backend: Backend, metric: str, span: TimeRange, ids: Sequence[str]) -> dict[str, float]:
    """By id; empty where the node does not have the metric."""
    try:
        return {row.id: row.mean for row in read_levels(backend, metric, span, ids).rows}
    except RequestRejected:
        return {}


def read_kept(backend: Backend, span: TimeRange, ids: Sequence[str]) -> dict[str, MemoryUse]:
    """By id: memory under its limit, with what of it can be reclaimed."""
    known = {row.name for row in backend.read_metrics()}
    shared = next((name for name in SHARED if name in known), None)
    used, limits, files = (read_means(backend, name, span, ids) for name in ("memory", "memory_limit", FILE))
    both = read_means(backend, shared, span, ids) if shared else {}
    split = {
        one: split_memory(used[one], limits[one], files.get(one), both.get(one))
        for one in used
        if one in limits
    }
    return {one: found for one, found in split.items() if found}


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    if find_plain(values["by"] or "") == kills.METRIC:
        told = await fleet.ask_all(values["node"], lambda backend: kills.list_kills(backend, values))
        return kills.describe_kills(told, values["limit"] or USUAL_LIMIT)
    try:
        replies = await fleet.ask_all(values["node"], lambda backend: rank_node(backend, values))
    except NotCollected as error:
        collected = NextCall("list_metrics", {}, "what was collected")
        return ToolAnswer(f"Cannot tell: {error}.", "not_collected", next_call=collected)
    parts = replies.answers
    devices = {node: part for node, part in parts.items() if part.metric.scope in COUNTED_SCOPES}
    rows = [row for part in (devices or parts).values() for row in part.rows]
    rows = order(rows, values)
    if not rows and not devices and values["namespace"]:
        known = ", ".join(sorted({name for part in parts.values() for name in part.namespaces})[:12])
        raise ToolMisused(
            f'no container of namespace "{values["namespace"]}" here; there are: {known or "none"}'
        )
    now_ms = fleet.clock.wall_ns() // 1_000_000
    answer = describe_devices(rows, devices) if devices else describe_groups(rows, parts, values, now_ms)
    shown = rows[: values["limit"] or USUAL_LIMIT]
    return replace(
        answer,
        findings=tuple(render_row(row, parts[row.node], place) for place, row in enumerate(shown, 1)),
        figures={} if devices else add_totals(rows, parts),
        left_out=len(rows) - len(shown),
        rest=f"limit={MOST_FINDINGS}, or order=ascending for the other end",
        nodes_away=replies.missing,
    )


def describe_groups(rows: list[RankedRow], parts: Parts, values: Values, now_ms: int) -> ToolAnswer:
    """All of an answer but its findings."""
    first = next(iter(parts.values()))
    noun = values["group"] or "workload"
    metric, span = first.metric.name, first.data.render()
    nodes = ", ".join(list(parts)[:8]) + (f" and {len(parts) - 8} more" if len(parts) > 8 else "")
    answer = ToolAnswer(
        f"No container had a sample of {metric} in {span}.",
        "not_enough_data",
        looked_at=f"{metric} of every {noun} of {nodes}, {span}",
        not_looked_at=list_gaps(parts, noun, now_ms),
        next_call=NextCall("list_containers", {"sort": "last_seen"}, "who was there, and until when"),
    )
    if not rows:
        return answer
    top = rows[0]
    where = f"on {top.node}" if len(parts) == 1 else f"on {top.node}, of {len(parts)} nodes"
    most = "least" if values["order"] == "ascending" else "most"
    headline = (
        f'"{top.title}" ({render_place(top)}) {render_lead(metric, most)} {where}: '
        f"{render_use(top.use, first.unit, top.share)}{top.note}. Of {render_count(len(rows), noun)}, in {span}."
    )
    why = "whether it changed or repeats; summarize_container for all metrics"
    study, span_asked = FOLLOW.get(metric, "changepoint"), keep_span(parts[top.node].data.span)
    next_call = suggest_study(top.container, study, metric, top.node, why, **span_asked)
    return replace(answer, headline=headline, status="found", next_call=next_call)


def render_place(row: RankedRow) -> str:
    """Its namespace; of a single pod its container, too."""
    namespace = row.namespace or "no namespace"
    return namespace if row.container == row.title else f"{namespace}, {row.container}"


# What being first by a metric means, in words; the rest is "used".
LEADS = {
    "cpu": "used the {} CPU",
    "cpu_throttled": "was throttled the {}",
    "pressure_cpu": "waited the {} for CPU",
    "pressure_memory": "waited the {} for memory",
    "pressure_io": "waited the {} for I/O",
    "disk_read": "read the {} from disk",
    "disk_write": "wrote the {} to disk",
    "network_receive": "received the {} over the network",
    "network_transmit": "sent the {} over the network",
    "threads": "had the {} threads",
    "processes": "had the {} processes",
    "memory_limit": "had the {} memory as its limit",
    "cpu_limit": "had the {} CPU as its limit",
    "memory_limit_share": "used the {} of its memory limit",
    "cpu_limit_share": "used the {} of its CPU limit",
}


def render_lead(metric: str, most: str) -> str:
    return LEADS.get(metric, f"used the {{}} {render_metric(metric)}").format(most)


def list_gaps(parts: Parts, noun: str, now_ms: int) -> tuple[str, ...]:
    lines = [*join_clipped(part.data for part in parts.values())]
    lines += list_clocks({node: part.clock for node, part in parts.items()}, now_ms)
    unmeasured = sum(part.unmeasured for part in parts.values())
    if unmeasured:
        there = sum(part.containers for part in parts.values())
        metric = next(iter(parts.values())).metric.name
        lines.append(f"{unmeasured} of {there} {noun}s that have no sample of {metric} in this span")
    return (*lines, "processes outside of containers; times before and after this span")


TOOL = Tool(
    "top_containers",
    "Top containers",
    "Workloads or containers ranked by use over the span, of any metric; GPUs, disks or nodes by theirs; totals.",
    (
        Argument("by", "default: cpu; memory, throttled, pressure, disk_write, gpu, ..."),
        NODE,
        NAMESPACE,
        FROM,
        TO,
        Argument("limit", "default: 5", "count", least=1, most=MOST_FINDINGS),
        Argument("group", "default: workload", choices=("workload", "container")),
        Argument("order", "default: descending", choices=("descending", "ascending")),
    ),
    run,
)
