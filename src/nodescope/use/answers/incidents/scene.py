"""Everything that was found on a node, while it is put together into incidents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nodescope.base.text import clean_path
from nodescope.use.answers.incidents.cause import overlap_of
from nodescope.use.answers.incidents.confidence import confidence_of
from nodescope.use.answers.incidents.happened import Deploy, Kill, Loop, find_deploys, find_loops
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.loss import Departure, find_lacks, find_takers, unit_of
from nodescope.use.answers.incidents.shift import ALIKE, count_runs
from nodescope.use.answers.incidents.table import Floats, NodeTable

# What it did once in the day before is a little less news; what it did twenty times is none.
NEWS_LEFT = 0.85

History = Callable[[int, str], Floats | None]
"""Of a workload (its row) and a signal: what it was before the table begins, in means of minutes."""


@dataclass(slots=True)
class Scene:
    """Everything that was found on a node, while it is put together."""

    table: NodeTable
    kills: Sequence[Kill]
    history: History
    lacks: list[Departure] = field(default_factory=list)
    takers: list[Departure] = field(default_factory=list)
    deploys: dict[int, Deploy] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    background: list[str] = field(default_factory=list)

    def name(self, row: int) -> str:
        return self.table.rows[row].name

    def container(self, row: int, at_ms: int) -> str:
        """Of the workload's containers the one that was there then."""
        lives = self.table.rows[row].lives
        there = [life for life in lives if life.first_ms <= at_ms + 2 * self.table.step_ms]
        return clean_path((there[-1] if there else lives[0]).name)

    def change(self, one: Departure, cause: Departure | None = None) -> Change:
        shift, table = one.shift, self.table
        lag = None if cause is None else (shift.first - cause.shift.first) * table.step_seconds
        return Change(
            self.name(one.row),
            self.container(one.row, table.time_of(shift.first)),
            one.signal,
            "" if one.signal == "oom_kill" else unit_of(one.signal),
            shift.before,
            shift.after,
            table.time_of(shift.first),
            table.time_of(shift.last),
            lag,
            None if cause is None else overlap_of(cause, one),
        )


def observe(table: NodeTable, kills: Sequence[Kill], history: History) -> Scene:
    scene = Scene(table, kills, history)
    if not table.signals:
        return scene
    scene.lacks, scene.takers = find_lacks(table), find_takers(table)
    scene.deploys = {one.row: one for one in find_deploys(table)}
    scene.loops = find_loops(table)
    return scene


def left_of_news(scene: Scene, one: Departure) -> float:
    """1, or less the more often it departed as far before the table begins, as far back as was looked."""
    earlier = scene.history(one.row, one.signal)
    if earlier is None or not len(earlier):
        return 1.0
    bar = one.shift.before + ALIKE * one.shift.size
    return float(NEWS_LEFT ** count_runs(np.nan_to_num(earlier) >= bar))


def make_incident(
    scene: Scene,
    kind: str,
    resource: str,
    causes: Sequence[Change],
    from_ms: int,
    to_ms: int,
    weight: float,
    **more: object,
) -> Incident:
    end_ms = scene.table.time_of(scene.table.steps)
    made = Incident(
        kind,
        scene.table.node,
        resource,
        tuple(causes),
        (),
        0,
        from_ms,
        min(to_ms, end_ms),
        is_over=to_ms < end_ms - 2 * scene.table.step_ms,
        confidence=confidence_of(kind, weight),
        weight=weight,
    )
    return replace(made, **more)  # type: ignore[arg-type]
