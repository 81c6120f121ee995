"""Who leaks, what spikes, what changed: one study over all workloads of a node, or of all nodes."""

from collections.abc import Sequence

from nodescope.base.quantity import render_count
from nodescope.base.time_range import render_moment
from nodescope.use.answers.scanning.scan import (
    HOUR_MS,
    MOST_STUDIED,
    SCANNED,
    USUAL_METRIC,
    USUAL_MS,
    NodeScan,
    ScanRow,
    merge_rows,
    render_row,
    render_scan,
)
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import FROM, NODE, TO, Argument, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.metric_name import choose_metric
from nodescope.use.mcp.tools.shared.time_text import extent_of, read_moment, read_span, render_at, render_iso

LONGER = 4


def look(backend: Backend, values: Values) -> NodeScan:
    study = values["study"]
    about = backend.read_about()
    there = extent_of(about)
    to_ms = read_moment("to", values["to"], there.to_ms) if values["to"] else there.to_ms
    usual = render_iso(max(there.from_ms, to_ms - USUAL_MS.get(study, HOUR_MS)))
    span = read_span(about, values["from"] or usual, values["to"]).span
    metric = choose_metric(values["metric"] or USUAL_METRIC.get(study, "cpu"), backend.read_metrics())
    return backend.scan(study, metric.name, span)


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = await fleet.ask_all(values["node"], lambda backend: look(backend, values))
    parts = list(replies.answers.values())
    rows = merge_rows(parts)
    shown = rows[:MOST_STUDIED]
    looked = sum(one.workloads for one in parts)
    return ToolAnswer(
        headline=render_scan(parts),
        status="found" if rows else "none" if looked else "not_enough_data",
        findings=tuple(make_finding(row, parts) for row in shown),
        left_out=len(rows) - len(shown),
        rest="another span, a node, or analyze_container for one",
        figures={"looked_at": looked, "studied": sum(one.studied for one in parts), "found": len(rows)},
        looked_at=(
            f"{parts[0].metric} of {render_count(looked, 'workload')} on {', '.join(list(replies.answers)[:8])}, "
            f"{render_moment(parts[0].from_ms)} to {render_moment(parts[0].to_ms)}"
        ),
        not_looked_at=tuple(dict.fromkeys(line for one in parts for line in one.unseen)),
        nodes_away=replies.missing,
        next_call=suggest(parts, rows),
    )


def make_finding(row: ScanRow, parts: Sequence[NodeScan]) -> ToolFinding:
    part = next(one for one in parts if one.node == row.node)
    facts: dict[str, Fact] = {
        "workload": row.workload,
        "magnitude": row.magnitude,
        "before": row.before,
        "after": row.after,
    }
    return ToolFinding(
        render_row(row),
        row.kind,
        row.node,
        row.container,
        part.metric,
        row.unit or None,
        row.confidence,
        row.samples,
        start_at=row.from_ms / 1000,
        end_at=row.to_ms / 1000,
        when=render_at(row.from_ms, part.to_ms),
        evidence=facts,
        weight=row.weight or 0.0,
    )


def suggest(parts: Sequence[NodeScan], rows: Sequence[ScanRow]) -> NextCall:
    """The first of them alone, in the same span; after a No a longer span."""
    part = next((one for one in parts if rows and one.node == rows[0].node), parts[0])
    asked: dict[str, Fact] = {"study": part.study, "metric": part.metric, "node": part.node}
    span: dict[str, Fact] = {"from": render_iso(part.from_ms), "to": render_iso(part.to_ms)}
    if rows:
        return NextCall(
            "analyze_container",
            {"container": rows[0].container, **asked, **span},
            "this one alone, same span",
        )
    longer = render_iso(part.to_ms - LONGER * (part.to_ms - part.from_ms))
    return NextCall("scan", {**asked, **span, "from": longer}, "a longer span shows slower courses")


TOOL = Tool(
    "scan",
    "Scan all workloads",
    "One study over all workloads: who leaks (trend), what spikes (periodicity); the top twelve.",
    (
        Argument("study", "the question", required=True, choices=SCANNED),
        Argument("metric", "default: cpu (trend: memory)"),
        NODE,
        FROM,
        TO,
    ),
    run,
)
