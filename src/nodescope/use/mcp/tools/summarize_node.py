"""How is a node doing: what it is, how full, who uses most, what went wrong?"""

from collections.abc import Sequence

from nodescope.base.time_range import render_moment
from nodescope.use.answers.node_summary.sentence import list_full, list_lines, render_summary
from nodescope.use.answers.node_summary.summary import NodeSummary
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import FROM, NODE, TO, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.time_text import read_span, render_iso

MOST_NODES = 12
FIGURES = (
    *("cores", "memory_bytes", "pods", "containers", "cpu_mean", "cpu_most", "memory_mean", "memory_last"),
    *("pressure_cpu", "pressure_memory", "pressure_io", "disk_used", "disk_left", "restarts", "oom_kills"),
)


def look(backend: Backend, values: Values) -> NodeSummary:
    span = read_span(backend.read_about(), values["from"], values["to"]).span
    return backend.summarize(span)


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = await fleet.ask_all(values["node"], lambda backend: look(backend, values))
    parts = sorted(replies.answers.values(), key=lambda one: -fullness(one))
    first = parts[0]
    findings = describe_one(first) if len(parts) == 1 else [describe_many(one) for one in parts[:MOST_NODES]]
    head = render_summary(first)
    return ToolAnswer(
        headline=head if len(parts) == 1 else f"The fullest of {len(parts)} nodes: {head}",
        findings=tuple(findings),
        figures=list_figures(first) if len(parts) == 1 else {},
        left_out=max(0, len(parts) - MOST_NODES) if len(parts) > 1 else 0,
        rest="node= asks one of them",
        looked_at=f"{', '.join(one.node for one in parts[:8])}, {render_moment(first.from_ms)} to {render_moment(first.to_ms)}",
        not_looked_at=tuple(dict.fromkeys(line for one in parts for line in one.unseen)),
        nodes_away=replies.missing,
        next_call=suggest(parts),
    )


def list_figures(one: NodeSummary) -> dict[str, Fact]:
    shares = {
        "cpu_share": share(one.cpu_mean, one.cores),
        "memory_share": share(one.memory_mean, one.memory_bytes),
    }
    figures = {name: getattr(one, name) for name in FIGURES} | shares
    return {name: value for name, value in figures.items() if value is not None}


def share(used: float | None, whole: float | None) -> float | None:
    return None if used is None or not whole else used / whole


def fullness(one: NodeSummary) -> float:
    """Of CPU, memory and disk the share that is highest."""
    levels = (share(one.cpu_mean, one.cores), share(one.memory_mean, one.memory_bytes), one.disk_used)
    return max((level for level in levels if level is not None), default=0.0)


def describe_one(one: NodeSummary) -> list[ToolFinding]:
    """Each line is a finding; where not all fit, the incidents stay."""
    lines = list(list_lines(one))
    return [
        ToolFinding(line, kind, one.node, weight=len(lines) - place + (100 if kind == "incident" else 0))
        for place, (kind, line) in enumerate(lines)
    ]


def describe_many(one: NodeSummary) -> ToolFinding:
    told = f" {one.incidents[0]}" if one.incidents else ""
    evidence: dict[str, Fact] = {
        "cpu_share": share(one.cpu_mean, one.cores),
        "memory_share": share(one.memory_mean, one.memory_bytes),
        "disk_used": one.disk_used,
    }
    return ToolFinding(
        f"{render_summary(one)}{told}", "node", one.node, evidence=evidence, weight=fullness(one)
    )


def suggest(parts: Sequence[NodeSummary]) -> NextCall:
    """Of several nodes the fullest alone; of one who uses what is full, in the same span."""
    one = parts[0]
    asked: dict[str, Fact] = {"node": one.node, "from": render_iso(one.from_ms), "to": render_iso(one.to_ms)}
    if len(parts) > 1:
        return NextCall("summarize_node", asked, "this node alone")
    if one.incidents:
        middle = render_iso((one.from_ms + one.to_ms) / 2)
        minutes = min(720, max(1, round((one.to_ms - one.from_ms) / 120_000)))
        return NextCall(
            "explain_incident",
            {"at": middle, "minutes": minutes, "node": one.node},
            "the same span, with evidence",
        )
    by = "memory" if "memory" in list_full(one) else "cpu"
    return NextCall("top_containers", {"by": by, **asked}, "who uses it, in the same span")


TOOL = Tool(
    "summarize_node",
    "Summarize node",
    "How full a node is (CPU, memory, disk, pressure), who uses most, incidents, restarts.",
    (NODE, FROM, TO),
    run,
)
