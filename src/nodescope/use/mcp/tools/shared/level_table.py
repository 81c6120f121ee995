"""Figures of one metric by workload or by container, all lives joined: the ground of rankings and comparisons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life, group_lives, overlap_seconds
from nodescope.use.answers.levels import Levels, MetricLevel
from nodescope.use.answers.ranked.span_use import SpanUse, add_up
from nodescope.use.answers.workloads import WorkloadLives, group_workloads, name_apart


@dataclass(frozen=True, slots=True)
class LevelRow:
    """What a workload (or one container) used over a span."""

    group: WorkloadLives
    use: SpanUse
    missing_share: float


def group_by(lives: Sequence[Life], by: str) -> list[WorkloadLives]:
    """`workload`, or one for each name in each pod."""
    if by == "workload":
        return name_apart(group_workloads(lives))
    return [
        WorkloadLives(one.newest.workload, (one,), one.name if one.newest.pod else "")
        for one in group_lives(lives)
    ]


def join_levels(groups: Sequence[WorkloadLives], levels: Levels, span: TimeRange) -> list[LevelRow]:
    """One row for each group that has a sample, the highest use over the span first."""
    by_id = {level.id: level for level in levels.rows}
    interval = usual_interval((life for group in groups for life in group.lives), by_id, span)
    recorded = levels.recorded(span)
    rows = []
    for group in groups:
        lives = group.within(span)
        if use := add_up(lives, by_id, recorded, levels.unit):
            seconds = sum(overlap_seconds(life, span) for life in lives if life.id in by_id)
            rows.append(LevelRow(group, use, 1 - use.samples / max(use.samples, seconds / interval)))
    return sorted(rows, key=lambda row: (-row.use.over_span, row.group.full_name))


def usual_interval(lives: Iterable[Life], by_id: dict[str, MetricLevel], span: TimeRange) -> float:
    """Seconds between samples of the one that has the densest; a second unless slower."""
    found = [
        overlap_seconds(life, span) / by_id[life.id].samples
        for life in lives
        if life.id in by_id and by_id[life.id].samples > 1
    ]
    return max(1.0, min(found, default=1.0))
