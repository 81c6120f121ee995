"""Figures of one metric by container, its lives joined: the ground of rankings and comparisons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Container, Life
from nodescope.use.answers.levels import MetricLevel


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A container's figures over a span, while it was there."""

    container: Container
    level: MetricLevel
    there_share: float
    """Of the span, how long it lived in it."""
    missing_share: float


def join_levels(
    containers: Sequence[Container], levels: Sequence[MetricLevel], span: TimeRange
) -> list[LevelRow]:
    """One row for each container that has a sample, the highest mean first."""
    by_id = {level.id: level for level in levels}
    rows = []
    interval = usual_interval(containers, by_id, span)
    for container in containers:
        mine = [(life, by_id[life.id]) for life in container.lives if life.id in by_id]
        samples = sum(level.samples for _, level in mine)
        if not samples:
            continue
        seconds = sum(overlap_seconds(life, span) for life, _ in mine)
        due = max(samples, seconds / interval)
        rows.append(
            LevelRow(
                container,
                merge_levels([level for _, level in mine]),
                min(1.0, (seconds + 1) / (span.seconds + 1)),
                1 - samples / due,
            )
        )
    return sorted(rows, key=lambda row: (-row.level.mean, row.container.full_name))


def merge_levels(levels: Sequence[MetricLevel]) -> MetricLevel:
    samples = sum(level.samples for level in levels)
    return MetricLevel(
        levels[-1].id,
        sum(level.mean * level.samples for level in levels) / samples,
        min(level.least for level in levels),
        max(level.most for level in levels),
        samples,
    )


def usual_interval(containers: Iterable[Container], by_id: dict[str, MetricLevel], span: TimeRange) -> float:
    """Seconds between samples of the one that has the densest; a second unless slower."""
    found = [
        overlap_seconds(life, span) / by_id[life.id].samples
        for container in containers
        for life in container.lives
        if life.id in by_id and by_id[life.id].samples > 1
    ]
    return max(1.0, min(found, default=1.0))


def overlap_seconds(life: Life, span: TimeRange) -> float:
    return max(0.0, (min(life.last_ms, span.to_ms) - max(life.first_ms, span.from_ms)) / 1000)
