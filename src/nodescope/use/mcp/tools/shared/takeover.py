"""What changed when a workload's containers were replaced: levels of both sides, read where each of them is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_quantity
from nodescope.base.text import render_metric
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life
from nodescope.use.answers.deploys import LevelChange, Takeover, compare_levels, find_takeovers
from nodescope.use.answers.levels import Levels
from nodescope.use.mcp.nodes.backend import Backend, read_levels
from nodescope.use.mcp.protocol.answer import ToolFinding
from nodescope.use.mcp.tools.shared.container_span import ContainerSpan
from nodescope.use.mcp.tools.shared.gpu_level import BY_PROCESS, read_gpu_levels
from nodescope.use.mcp.tools.shared.time_text import render_at

# Each costs two looks at every metric; new images go before restarts, the newest first.
MOST_COMPARED = 3
NOTHING = Levels("", ())

SideLevels = dict[tuple[int, str, str], Levels]
"""By the moment of the takeover, metric and side."""


def choose_takeovers(seen: ContainerSpan) -> list[Takeover]:
    """Those that are compared, in order of time; of all nodes, whichever is asked."""
    found = find_takeovers(seen.container.newest.workload.kind, seen.container.lives, seen.span)
    usable = [one for one in found if one.is_measurable and one.before and one.after]
    first = sorted(usable, key=lambda one: (one.kind == "restart", -one.at_ms))[:MOST_COMPARED]
    return sorted(first, key=lambda one: one.at_ms)


def read_sides(backend: Backend, seen: ContainerSpan, metrics: Sequence[str]) -> SideLevels:
    """Of the lives that this node has."""
    node = seen.lives[-1].node
    found: SideLevels = {}
    for one in choose_takeovers(seen):
        sides = (("before", one.before, one.before_span), ("after", one.after, one.after_span))
        for side, lives, span in sides:
            mine = [life for life in lives if life.node == node]
            for metric in metrics if mine else ():
                try:
                    found[one.at_ms, metric, side] = read_side(backend, metric, span, mine)
                except RequestRejected:
                    continue
    return found


def read_side(backend: Backend, metric: str, span: TimeRange, lives: Sequence[Life]) -> Levels:
    if metric in BY_PROCESS:
        return read_gpu_levels(backend, metric, span, lives)
    return read_levels(backend, metric, span, [life.id for life in lives])


def join_sides(
    seen: ContainerSpan, metrics: Sequence[str], parts: Sequence[Mapping[tuple[int, str, str], Levels]]
) -> list[LevelChange]:
    """Every metric at every takeover that has samples on both sides; also what stayed the same."""
    changes = []
    for one in choose_takeovers(seen):
        for metric in metrics:
            before, after = (
                [part.get((one.at_ms, metric, side), NOTHING) for part in parts]
                for side in ("before", "after")
            )
            unit = next((levels.unit for levels in (*after, *before) if levels.unit), "")
            rows = ([row for levels in side for row in levels.rows] for side in (before, after))
            if change := compare_levels(one, metric, unit, *rows):
                changes.append(change)
    return changes


def render_changes(
    changes: Iterable[LevelChange], seen: ContainerSpan, limits: Mapping[int, str] | None = None
) -> list[ToolFinding]:
    """One finding for each that matters, in order of time."""
    material = [one for one in changes if one.is_material]
    return [render_change(one, seen, (limits or {}).get(one.takeover.at_ms, "")) for one in material]


def render_change(change: LevelChange, seen: ContainerSpan, limit: str) -> ToolFinding:
    container, one = seen.container, change.takeover
    spans = one.before_span, one.after_span
    came_with = f"; {limit}" if limit else ""
    samples = min(change.before.samples, change.after.samples)
    return ToolFinding(
        f'"{container.name}": {change.render()}{came_with}.',
        "deploy" if one.kind == "deploy" else "level_change",
        node=one.after[-1].node,
        container=container.name,
        metric=change.metric,
        unit=change.unit,
        confidence=rate(change),
        samples=samples,
        start_at=spans[0].from_ms / 1000,
        end_at=spans[1].to_ms / 1000,
        at=one.at_ms / 1000,
        when=render_at(one.at_ms, seen.newest_ms),
        evidence={**change.facts(), "limit": limit or None},
        weight=change.weight,
    )


def rate(change: LevelChange) -> float:
    """Higher where the levels lie apart and each rests on more samples; never certain: other things change, too."""
    apart = change.after.least > change.before.most or change.after.most < change.before.least
    enough = min(1.0, min(change.before.samples, change.after.samples) / 120)
    return round(min(0.97, (0.75 if apart else 0.55 + min(0.3, change.weight / 2)) + 0.2 * enough), 3)


def add_levels(restarts: Sequence[ToolFinding], changes: Iterable[LevelChange]) -> list[ToolFinding]:
    """Restarts with the level before and after each, where it was measured; a change that matters is told."""
    known = list(changes)
    return [add_level(one, find_change(one, known)) for one in restarts]


def add_level(restart: ToolFinding, change: LevelChange | None) -> ToolFinding:
    if change is None:
        return restart
    facts = change.facts()
    kept = {name: facts[name] for name in ("before", "after", "magnitude", "image_before", "image_after")}
    found = replace(restart, evidence={**restart.evidence, **kept})
    if not change.is_material:
        return found
    first, second = (render_quantity(one.per_pod, change.unit) for one in (change.before, change.after))
    image = f", {change.takeover.render()}" if change.takeover.has_new_image else ""
    told = f" Its {render_metric(change.metric)} was {first} before and {second} after{image}."
    return replace(found, sentence=found.sentence + told, metric=change.metric, unit=change.unit)


def find_change(restart: ToolFinding, changes: Iterable[LevelChange]) -> LevelChange | None:
    at_ms = round((restart.at or 0) * 1000)
    return next((one for one in changes if has_end_at(one.takeover.before, at_ms)), None)


def leave_restarts(changes: Iterable[LevelChange], restarts: Sequence[ToolFinding]) -> list[LevelChange]:
    """Those that no restart's own finding tells."""
    ends = {round((one.at or 0) * 1000) for one in restarts}
    return [one for one in changes if not any(life.last_ms in ends for life in one.takeover.before)]


def has_end_at(lives: Iterable[Life], at_ms: int) -> bool:
    return any(life.last_ms == at_ms for life in lives)
