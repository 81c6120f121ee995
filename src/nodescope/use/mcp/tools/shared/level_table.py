"""Figures of one metric by container, its lives joined: the ground of rankings and comparisons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodescope.base.time_range import TimeRange
from nodescope.use.mcp.nodes.backend import ArchivedLife, MetricLevel
from nodescope.use.mcp.tools.shared.container import Resident


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A container's figures over a span, while it was there."""

    resident: Resident
    mean: float
    least: float
    most: float
    samples: int
    there_share: float
    """Of the span, how long it lived in it."""
    missing_share: float


def join_levels(
    residents: Iterable[Resident], levels: Sequence[MetricLevel], span: TimeRange
) -> list[LevelRow]:
    """One row for each container that has a sample, the highest mean first."""
    by_id = {level.container_id: level for level in levels}
    rows = []
    interval = usual_interval(residents := list(residents), by_id, span)
    for resident in residents:
        mine = [(life, by_id[life.container_id]) for life in resident.lives if life.container_id in by_id]
        samples = sum(level.samples for _, level in mine)
        if not samples:
            continue
        seconds = sum(overlap_seconds(life, span) for life, _ in mine)
        due = max(samples, seconds / interval)
        rows.append(
            LevelRow(
                resident,
                sum(level.mean * level.samples for _, level in mine) / samples,
                min(level.least for _, level in mine),
                max(level.most for _, level in mine),
                samples,
                min(1.0, (seconds + 1) / (span.seconds + 1)),
                1 - samples / due,
            )
        )
    return sorted(rows, key=lambda row: (-row.mean, row.resident.full_name))


def usual_interval(residents: Iterable[Resident], by_id: dict[str, MetricLevel], span: TimeRange) -> float:
    """Seconds between samples of the one that has the densest; a second unless slower."""
    found = [
        overlap_seconds(life, span) / by_id[life.container_id].samples
        for resident in residents
        for life in resident.lives
        if life.container_id in by_id and by_id[life.container_id].samples > 1
    ]
    return max(1.0, min(found, default=1.0))


def overlap_seconds(life: ArchivedLife, span: TimeRange) -> float:
    return max(0.0, (min(life.last_ms, span.to_ms) - max(life.first_ms, span.from_ms)) / 1000)
