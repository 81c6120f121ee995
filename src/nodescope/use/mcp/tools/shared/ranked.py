"""A metric's highest means, of containers or of what no container stands for: GPUs, disks, interfaces, nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodescope.base.quantity import render_count, render_quantity
from nodescope.use.answers.levels import Device, MetricLevel
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.tools.shared.level_table import LevelRow
from nodescope.use.mcp.tools.shared.time_text import NodeSpan, join_clipped

# From so many missing samples on they are named beside a mean.
MISSING_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One of those that are ranked."""

    node: str
    name: str
    level: MetricLevel
    sorted_by: tuple[str, str]
    """Among equal means."""
    container: str | None = None
    namespace: str = ""
    missing_share: float | None = None
    note: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedNode:
    """One node's part."""

    data: NodeSpan
    metric: MetricRow
    unit: str
    rows: list[RankedRow]
    containers: int = 0
    unmeasured: int = 0
    """Containers that were there and have no sample of this metric."""
    namespaces: frozenset[str] = frozenset()


Parts = Mapping[str, RankedNode]


def rank_container(row: LevelRow) -> RankedRow:
    container = row.container
    note = f", there for {100 * row.there_share:.0f} % of the span" if row.there_share < 0.95 else ""
    if row.missing_share >= MISSING_SHARE:
        note += f", {100 * row.missing_share:.0f} % of its samples missing"
    return RankedRow(
        container.node,
        container.full_name,
        row.level,
        (container.full_name, container.node),
        container.name,
        container.newest.namespace,
        row.missing_share,
        note,
        {"there_share": round(row.there_share, 3), "restarts": container.restarts or None},
    )


def rank_device(device: Device, node: str) -> RankedRow:
    return RankedRow(node, device.name, device.level, (node, device.name), facts=device.labels)


def render_row(row: RankedRow, part: RankedNode, place: int) -> ToolFinding:
    level, span = row.level, part.data.span
    mean, least, most = (render_quantity(value, part.unit) for value in (level.mean, level.least, level.most))
    return ToolFinding(
        f'{place}. "{row.name}" on {row.node}: {mean} on average ({least} to {most}){row.note}.',
        "rank",
        node=row.node,
        container=row.container,
        metric=part.metric.name,
        unit=part.unit,
        confidence=1.0,
        samples=level.samples,
        missing_share=row.missing_share,
        start_at=span.from_ms / 1000,
        end_at=span.to_ms / 1000,
        evidence={"place": place, "mean": level.mean, "min": level.least, "max": level.most, **row.facts},
    )


def describe_devices(rows: list[RankedRow], parts: Parts) -> ToolAnswer:
    """All of an answer but its findings."""
    first = next(iter(parts.values()))
    metric, scope, span = first.metric.name, first.metric.scope, first.data.render()
    gaps = (
        *join_clipped(part.data for part in parts.values()),
        "which containers used it; times before and after this span",
    )
    if not rows:
        headline = f"No {scope} had a sample of {metric} in {span}."
        collected = NextCall("list_metrics", {"search": scope}, "what was collected")
        return ToolAnswer(headline, "not_enough_data", not_looked_at=gaps, next_call=collected)
    top = rows[0]
    return ToolAnswer(
        f'"{top.name}" on {top.node} has the most {metric}, which is measured per {scope}: '
        f"{render_quantity(top.level.mean, first.unit)} on average, of {len(rows)} on {render_count(len(parts), 'node')}, in {span}.",
        looked_at=f"{metric} of every {scope} on {', '.join(list(parts)[:8])}, {span}",
        not_looked_at=gaps,
        next_call=NextCall("top_containers", {"by": "cpu", "node": top.node}, "who was busy there"),
    )
