"""GPUs, disks, interfaces and nodes ranked by a metric of theirs: what no container stands for."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.quantity import render_count, render_quantity
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.levels import Device
from nodescope.use.mcp.protocol.answer import NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.tools.shared.time_text import join_alike, render_span


@dataclass(frozen=True, slots=True)
class Measured:
    """One node's part."""

    span: TimeRange
    newest_ms: int
    metric: str
    unit: str
    scope: str
    devices: list[Device]
    clipped: tuple[str, ...]


def rank_devices(parts: Mapping[str, Measured], limit: int, away: Mapping[str, str]) -> ToolAnswer:
    rows = [(node, device) for node, part in parts.items() for device in part.devices]
    rows.sort(key=lambda row: (-row[1].level.mean, row[0], row[1].name))
    first = next(iter(parts.values()))
    span = render_span(first.span, first.newest_ms)
    gaps = (
        *join_alike([line for part in parts.values() for line in part.clipped]),
        "which containers used it; times before and after this span",
    )
    if not rows:
        return ToolAnswer(
            headline=f"No {first.scope} had a sample of {first.metric} in {span}.",
            status="not_enough_data",
            not_looked_at=gaps,
            nodes_away=away,
            next_call=NextCall("list_metrics", {"search": first.scope}, "what was collected"),
        )
    node, top = rows[0]
    findings = tuple(render_row(*row, parts[row[0]], place + 1) for place, row in enumerate(rows[:limit]))
    return ToolAnswer(
        headline=(
            f'"{top.name}" on {node} has the most {first.metric}, which is measured per {first.scope}: '
            f"{render_quantity(top.level.mean, first.unit)} on average, of {len(rows)} on {render_count(len(parts), 'node')}, in {span}."
        ),
        findings=findings,
        left_out=len(rows) - len(findings),
        looked_at=f"{first.metric} of every {first.scope} on {', '.join(list(parts)[:8])}, {span}",
        not_looked_at=gaps,
        nodes_away=away,
        next_call=NextCall("top_containers", {"by": "cpu", "node": node}, "who was busy there"),
    )


def render_row(node: str, device: Device, part: Measured, place: int) -> ToolFinding:
    level = device.level
    return ToolFinding(
        f'{place}. "{device.name}" on {node}: {render_quantity(level.mean, part.unit)} on average '
        f"({render_quantity(level.least, part.unit)} to {render_quantity(level.most, part.unit)}).",
        "rank",
        node=node,
        metric=part.metric,
        unit=part.unit,
        confidence=1.0,
        samples=level.samples,
        start_at=part.span.from_ms / 1000,
        end_at=part.span.to_ms / 1000,
        evidence={
            "place": place,
            "mean": level.mean,
            "min": level.least,
            "max": level.most,
            **device.labels,
        },
    )
