"""What uses the most of a metric: workloads, containers, or what no container stands for: GPUs, disks, nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodescope.base.quantity import is_share, render_count, render_quantity
from nodescope.use.answers.clocks import NodeClock
from nodescope.use.answers.levels import Device
from nodescope.use.answers.memory_limit import MemoryUse
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.ranked.span_use import UNKNOWN_SIZE, NodeSize, SpanUse, render_use
from nodescope.use.answers.ranked.workload_ranking import render_ranked
from nodescope.use.mcp.protocol.answer import Fact, NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.tools.shared.level_table import LevelRow
from nodescope.use.mcp.tools.shared.next_call import keep_span
from nodescope.use.mcp.tools.shared.time_text import NodeSpan, join_clipped

SAME_SHARE = 1e-6
# From so many missing samples on they are named beside a mean.
MISSING_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One of those that are ranked."""

    node: str
    name: str
    use: SpanUse
    sorted_by: tuple[str, str]
    """Among equal means."""
    container: str | None = None
    """As the next call names it: the container of a single pod by its own names."""
    title: str = ""
    """What a headline calls it; empty where that is `name`."""
    namespace: str = ""
    missing_share: float | None = None
    share: float | None = None
    """Of the node's cores or memory."""
    note: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    """Of its lives, oldest first."""


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
    size: NodeSize = UNKNOWN_SIZE
    ahead_seconds: float | None = None
    """How far the node's clock is ahead of another, where that was measured."""
    ahead_of: str = ""

    @property
    def clock(self) -> NodeClock:
        return NodeClock(self.data.newest_ms, self.ahead_seconds, self.ahead_of)


Parts = Mapping[str, RankedNode]


def rank_group(row: LevelRow, metric: str, unit: str, size: NodeSize) -> RankedRow:
    group, use = row.group, row.use
    newest, workload = group.lives[-1], group.workload
    request = newest.request(metric)
    missing = f", {100 * row.missing_share:.0f} % of its samples missing"
    facts = {
        "over_span": use.over_span,
        "share_of_node": size.share(metric, unit, use.over_span),
        "there_share": round(use.there_share, 3),
        "per_pod": use.per_pod if use.pods > 1 else None,
        "share_of_request": use.per_pod / request if request else None,
        "pods": use.pods,
        "lives": use.lives,
        "restarts": group.restarts or None,
        "workload": workload.name,
        "workload_kind": workload.kind,
        "image": group.images[-1] if group.images else None,
    }
    return RankedRow(
        newest.node,
        group.full_name,
        use,
        (group.full_name, newest.node),
        group.name_single().name,
        group.name,
        newest.namespace,
        row.missing_share,
        size.share(metric, unit, use.over_span),
        missing if row.missing_share >= MISSING_SHARE else "",
        facts,
        tuple(life.id for life in group.lives),
    )


def rank_device(device: Device, node: str) -> RankedRow:
    level = device.level
    use = SpanUse(level.mean, level.mean, level.mean, level.least, level.most, level.samples, 1.0, 1, 1)
    return RankedRow(node, device.name, use, (node, device.name), facts=device.labels)


def note_limits(
    rows: Sequence[RankedRow], shares: Mapping[str, float], what: str, kept: Mapping[str, MemoryUse]
) -> list[RankedRow]:
    """With the share that each uses of its own limit: of its container that is nearest to it."""
    found = [[one for one in row.ids if one in shares] for row in rows]
    nearest = [max(ids, key=lambda one: shares[one]) if ids else None for ids in found]
    return [
        note_limit(row, shares[one], what, kept.get(one)) if one else row
        for row, one in zip(rows, nearest, strict=True)
    ]


def note_limit(row: RankedRow, share: float, what: str, memory: MemoryUse | None) -> RankedRow:
    # What is ranked by the share of the limit has told it already.
    told = abs(row.use.per_pod - share) < SAME_SHARE
    text = "" if told else f", {render_quantity(share, 'ratio')} of its {what} limit"
    facts = {**row.facts, "share_of_limit": share}
    if memory and memory.reclaimable is not None:
        text += f" ({render_quantity(memory.kept_share, 'ratio')} without page cache that can be reclaimed)"
        facts["kept_share"] = memory.kept_share
    return replace(row, note=text + row.note, facts=facts)


def render_row(row: RankedRow, part: RankedNode, place: int) -> ToolFinding:
    use, span = row.use, part.data.span
    kind = str(row.facts.get("workload_kind") or "") if row.container else ""
    used = render_use(use, part.unit, row.share) + row.note
    return ToolFinding(
        f"{place}. {render_ranked(kind, row.name, row.node, used)}.",
        "rank",
        node=row.node,
        container=row.container,
        metric=part.metric.name,
        unit=part.unit,
        confidence=1.0,
        samples=use.samples,
        missing_share=row.missing_share,
        start_at=span.from_ms / 1000,
        end_at=span.to_ms / 1000,
        evidence={"place": place, "mean": use.mean, "min": use.least, "max": use.most, **row.facts},
    )


def add_totals(rows: Sequence[RankedRow], parts: "Parts") -> dict[str, Fact]:
    """Of everything that was ranked, also what is not named; only of what adds up."""
    unit = next(iter(parts.values())).unit
    if is_share(unit) or not rows:
        return {}
    total = sum(row.use.over_span for row in rows)
    shares = [row.share for row in rows if row.share is not None]
    whole = sum(shares) / len(parts) if shares else None
    return {"total_over_span": total, "unit": unit, "ranked": len(rows), "share_of_nodes": whole}


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
        f"{render_quantity(top.use.mean, first.unit)} on average, of {len(rows)} on {render_count(len(parts), 'node')}, in {span}.",
        looked_at=f"{metric} of every {scope} on {', '.join(list(parts)[:8])}, {span}",
        not_looked_at=gaps,
        next_call=NextCall(
            "top_containers",
            {"by": "cpu", "node": top.node, **keep_span(parts[top.node].data.span)},
            "who was busy there",
        ),
    )
