"""A node's summary in words, the same for everybody who shows it; and as JSON, and read back from a viewer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodescope.base.quantity import render_count, render_quantity, render_seconds
from nodescope.base.text import clean_text
from nodescope.use.answers.foreign_record import parse_nodes
from nodescope.use.answers.node_summary.summary import NodeSummary, WorkloadUse
from nodescope.use.answers.overview import SPARK_POINTS
from nodescope.use.answers.wire import Json, make_form

FORM = make_form(NodeSummary)
# In use: from here on it is nearly full.
FULL_SHARE = 0.9


def render_summary(one: NodeSummary) -> str:
    """How full it is, in one sentence."""
    parts = [
        render_level(
            one.cpu_mean, one.cores, "cores", "CPU", "" if one.is_cpu_whole else ", containers only"
        ),
        render_level(one.memory_mean, one.memory_bytes, "bytes", "memory"),
    ]
    known = " and ".join(part for part in parts if part) or "neither CPU nor memory was measured"
    full = ", ".join(list_full(one))
    verdict = f"; nearly full: {full}" if full else ""
    length = render_seconds((one.to_ms - one.from_ms) / 1000)
    return f"{clean_text(one.node)} used {known} on average over {length}{verdict}."


def render_level(used: float | None, whole: float | None, unit: str, name: str, note: str = "") -> str:
    """`3.2 of 16 cores of CPU (20 %)`."""
    if used is None:
        return ""
    if not whole:
        return f"{render_quantity(used, unit)} of {name} in containers"
    shown = render_quantity(used, "" if unit == "cores" else unit)
    return f"{shown} of {render_quantity(whole, unit)} of {name} ({render_quantity(used / whole, 'ratio')}{note})"


def list_full(one: NodeSummary) -> Iterator[str]:
    if one.cpu_mean is not None and one.cores and one.cpu_mean >= FULL_SHARE * one.cores:
        yield "CPU"
    if one.memory_mean is not None and one.memory_bytes and one.memory_mean >= FULL_SHARE * one.memory_bytes:
        yield "memory"
    if (one.disk_used or 0.0) >= FULL_SHARE:
        yield f'file system "{one.disk}" ({render_quantity(one.disk_used or 0.0, "ratio")})'


def list_lines(one: NodeSummary) -> Iterator[tuple[str, str]]:
    """(kind, sentence) of everything else that is known."""
    there = f"{render_count(one.pods, 'pod')} with {render_count(one.containers, 'container')} at the end of the span"
    happened = f"{render_count(one.restarts, 'restart')} and {render_count(one.oom_kills, 'OOM kill')}"
    yield "containers", f"{there}, {render_count(one.workloads, 'workload')} during it; {happened}."
    if one.cpu_most is not None:
        piece = render_seconds(max(1.0, (one.to_ms - one.from_ms) / 1000 / SPARK_POINTS))
        yield "cpu", f"In its busiest {piece} it used {render_quantity(one.cpu_most, 'cores')}."
    waits = (("CPU", one.pressure_cpu), ("memory", one.pressure_memory), ("I/O", one.pressure_io))
    known = [f"for {name} {render_quantity(value, 'ratio')}" for name, value in waits if value is not None]
    if known:
        yield "pressure", f"Tasks waited {', '.join(known)} of the time."
    if one.disk_used is not None:
        left = render_quantity(one.disk_left or 0.0, "bytes")
        yield (
            "disk",
            f'The fullest file system, "{one.disk}", is {render_quantity(one.disk_used, "ratio")} full; {left} are left.',
        )
    yield from render_users("cpu", "Most CPU over the span", one.busiest, "cores")
    yield from render_users("memory", "Most memory over the span", one.largest, "bytes")
    yield from (("incident", sentence) for sentence in one.incidents)


def render_users(kind: str, head: str, rows: Sequence[WorkloadUse], unit: str) -> Iterator[tuple[str, str]]:
    if rows:
        named = (
            f'"{row.workload}" {render_quantity(row.value or 0.0, unit)}{render_share(row)}' for row in rows
        )
        yield f"top_{kind}", f"{head}: {', '.join(named)}."


def render_share(row: WorkloadUse) -> str:
    return "" if row.share is None else f" ({render_quantity(row.share, 'ratio')} of the node)"


# -- JSON -------------------------------------------------------------------------------


def render_summaries(found: Sequence[NodeSummary]) -> Json:
    return {"nodes": [render_node(one) for one in found]}


def render_node(one: NodeSummary) -> Json:
    return {
        "sentence": render_summary(one),
        "lines": [line for _, line in list_lines(one)],
        **FORM.render(one),
    }


def parse_summaries(content: Mapping[str, Any]) -> list[NodeSummary]:
    return parse_nodes(FORM, content)
