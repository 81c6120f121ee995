"""From departures and events to at most three incidents: pure, over one node's table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nodescope.base.text import clean_name, clean_path
from nodescope.use.answers.incidents.cause import (
    TOLERANCE_SECONDS,
    Candidate,
    explain_away,
    find_candidates,
    overlap_of,
)
from nodescope.use.answers.incidents.confidence import confidence_of
from nodescope.use.answers.incidents.happened import Deploy, Kill, Loop, find_deploys, find_loops
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.loss import Departure, find_lacks, find_takers, of_row, unit_of
from nodescope.use.answers.incidents.shift import ALIKE, Shift, count_runs
from nodescope.use.answers.incidents.table import Floats, NodeTable

MOST_INCIDENTS = 3
MOST_VICTIMS = 5
RESOURCES = {
    "cpu": "cpu",
    "memory_anon": "memory",
    "disk": "disk",
    "disk_operations": "disk",
    "network": "network",
    "cache_misses": "memory bandwidth",
    "bandwidth": "memory bandwidth",
}
# Below this score nobody was hurt enough to speak of: on generated nodes without a cause
# no higher score was seen in 98 of 100 hours.
LEAST_SCORE = 0.12
# Who asks about one container has a reason to: what it alone lost counts from less on.
LEAST_SCORE_ASKED = 0.03
# A deploy is told from this factor on, per replica; a change without one from the larger.
DEPLOY_FACTOR, CHANGE_FACTOR = 1.25, 1.6
# And from these sizes on, of the node and at all: cores, bytes.
CHANGE_SIZE = {"cpu": (0.01, 0.1), "memory_anon": (0.003, 64 * 2.0**20)}
CHANGE_SECONDS = 120.0
DEPLOY_SECONDS = 150.0
# What is left without a cause is told from this sum of losses on.
UNEXPLAINED_LOSS = 0.6
# A loop is said to be new where its container was seen for so long without it.
KNOWN_MS = 600_000
# A kill is more than any waiting.
KILL_LOSS = 2.0
# Candidates whose history is read: it costs a question to the archive each.
MOST_LOOKED_UP = 6
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


def find_incidents(
    table: NodeTable, kills: Sequence[Kill], history: History, focus: int | None = None
) -> tuple[list[Incident], list[str]]:
    """The weightiest first, and what was there before as well; with `focus` only what concerns that workload."""
    scene = observe(table, kills, history)
    own = [*explain_kills(scene), *explain_throttling(scene)]
    taken = explain_taken(scene, focus)
    known = {one.cause.workload for one in (*own, *taken) if one.cause}
    rest = [*explain_deploys(scene), *explain_loops(scene), *explain_changes(scene)]
    found = [*own, *taken, *(one for one in rest if one.cause and one.cause.workload not in known)]
    found += explain_rest(scene, taken)
    if focus is not None:
        found = [one for one in found if concerns(one, table.rows[focus].name)]
    found = first_of_each(sorted(found, key=lambda one: -(one.weight or 0.0)))
    return found[:MOST_INCIDENTS], scene.background


def observe(table: NodeTable, kills: Sequence[Kill], history: History) -> Scene:
    scene = Scene(table, kills, history)
    if not table.signals:
        return scene
    scene.lacks, scene.takers = find_lacks(table), find_takers(table)
    scene.deploys = {one.row: one for one in find_deploys(table)}
    scene.loops = find_loops(table)
    return scene


def count_before(scene: Scene, one: Departure) -> int:
    """How often it departed as far before the table begins, as far back as was looked."""
    earlier = scene.history(one.row, one.signal)
    if earlier is None or not len(earlier):
        return 0
    bar = one.shift.before + ALIKE * one.shift.size
    return count_runs(np.nan_to_num(earlier) >= bar)


def concerns(one: Incident, name: str) -> bool:
    return any(change.workload == name for change in (*one.causes, *one.victims))


def first_of_each(found: Iterable[Incident]) -> list[Incident]:
    """One incident for each cause: the weightiest."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for one in found:
        key = (one.cause.workload, "") if one.cause else ("", one.resource)
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept


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


# -- its own doing ------------------------------------------------------------------


def explain_kills(scene: Scene) -> list[Incident]:
    """Killed at its own limit: its own growth. Killed below it: a victim of whoever took the memory."""
    found = []
    for row in sorted({one.row for one in scene.kills}):
        mine = [one for one in scene.kills if one.row == row]
        begin_ms = scene.table.time_of(scene.table.begin)
        inside = [one for one in mine if one.at_ms >= begin_ms]
        if not inside:
            continue
        if len(mine) > len(inside) and len(inside) > 1:
            scene.background.append(f'"{scene.name(row)}" was OOM-killed again and again, before as well')
            continue
        growth = grow(scene, inside[-1])
        limit = inside[-1].limit_bytes
        if not inside[-1].was_full:
            scene.lacks.append(kill_as_loss(scene, inside[-1]))
            continue
        scene.lacks = [one for one in scene.lacks if one.row != row]
        scene.takers = [one for one in scene.takers if one.row != row or one.signal != "memory_anon"]
        more = {
            "killed_ms": inside[-1].at_ms,
            "kills": len(inside),
            "limit": limit if np.isfinite(limit) else None,
        }
        found.append(
            make_incident(
                scene, "oom_kill", "memory", [growth], growth.from_ms, inside[-1].at_ms, 0.9, **more
            )
        )
    return found


def grow(scene: Scene, kill: Kill) -> Change:
    """Its anonymous memory from its start (or the table's) to the kill, as it was sampled."""
    table, life = scene.table, kill.life
    last = max(0, min(table.steps - 1, (kill.at_ms - table.start_ms) // table.step_ms))
    first = max(0, min(last, (life.first_ms - table.start_ms) // table.step_ms + 1))
    values = table.signals.get("memory_anon")
    curve = values[kill.row, first : last + 1] if values is not None else np.empty(0)
    known = curve[np.isfinite(curve)]
    before, after = (float(np.median(known[:5])), float(known.max())) if len(known) else (None, None)
    name = table.rows[kill.row].name
    return Change(
        name, clean_path(life.name), "memory_anon", "bytes", before, after, table.time_of(first), kill.at_ms
    )


def kill_as_loss(scene: Scene, kill: Kill) -> Departure:
    step = max(0, min(scene.table.steps - 1, (kill.at_ms - scene.table.start_ms) // scene.table.step_ms))
    return Departure("oom_kill", Shift(kill.row, step, step + 1, 0.0, 1.0, is_open=False, alike=0), KILL_LOSS)


def explain_throttling(scene: Scene) -> list[Incident]:
    """Held back by its own limit; its waiting for CPU is explained by that, too."""
    found = []
    for one in [one for one in scene.lacks if one.signal == "cpu_throttled"]:
        scene.lacks = [
            other
            for other in scene.lacks
            if other.row != one.row or other.signal not in ("pressure_cpu", "cpu_throttled")
        ]
        wanted = of_row(scene.takers, one.row, "cpu")
        causes = [scene.change(one), *(scene.change(other) for other in wanted[:1])]
        weight = (0.25 + 0.5 * one.loss) * one.news
        first = (
            min(one.shift.first, *(other.shift.first for other in wanted[:1])) if wanted else one.shift.first
        )
        from_ms = scene.table.time_of(first)
        found.append(
            make_incident(
                scene,
                "throttled",
                "cpu",
                causes,
                from_ms,
                scene.table.time_of(one.shift.last),
                weight,
            )
        )
    return found


def explain_deploys(scene: Scene) -> list[Incident]:
    found = []
    for deploy in scene.deploys.values():
        changes = [one for name in ("cpu", "memory_anon") if (one := compare_replicas(scene, deploy, name))]
        if changes:
            weight = 0.3 + 0.1 * min(4.0, factor_of(changes[0]) - 1)
            found.append(make_deploy(scene, deploy, changes, weight))
    return found


def make_deploy(
    scene: Scene, deploy: Deploy, changes: Sequence[Change], weight: float, **more: object
) -> Incident:
    resource = RESOURCES.get(changes[0].metric, "cpu")
    images = {"image_before": clean_name(deploy.image_before), "image_after": clean_name(deploy.image_after)}
    to_ms = changes[0].to_ms
    return make_incident(scene, "deploy", resource, changes, deploy.at_ms, to_ms, weight, **images, **more)


def factor_of(change: Change) -> float:
    return (change.after or 0.0) / change.before if change.before else 1.0


def compare_replicas(scene: Scene, deploy: Deploy, signal: str) -> Change | None:
    """Per replica before and after, where the difference matters."""
    table = scene.table
    values = table.signals.get(signal)
    if values is None:
        return None
    number = count_replicas(table, deploy.row)
    curve = np.where(number > 0, values[deploy.row] / np.maximum(number, 1), np.nan)
    at = (deploy.at_ms - table.start_ms) // table.step_ms
    settled = at + round(DEPLOY_SECONDS / table.step_seconds)
    earlier, later = curve[: max(1, at)], curve[min(settled, table.steps - 1) :]
    earlier, later = earlier[np.isfinite(earlier)], later[np.isfinite(later)]
    if len(earlier) < 6 or len(later) < 6:
        return None
    before, after = float(np.mean(earlier)), float(np.mean(later))
    share, least = CHANGE_SIZE[signal]
    whole = {"cpu": table.cores, "memory_anon": table.memory_bytes}[signal] or 0.0
    is_material = (after - before) * float(number.max()) >= max(least, share * whole)
    if not is_material or after < DEPLOY_FACTOR * before:
        return None
    end_ms = table.time_of(table.steps)
    name, container = scene.name(deploy.row), scene.container(deploy.row, end_ms)
    return Change(name, container, signal, unit_of(signal), before, after, deploy.at_ms, end_ms)


def count_replicas(table: NodeTable, row: int) -> Floats:
    times = table.start_ms + np.arange(table.steps) * table.step_ms
    number = np.zeros(table.steps)
    for life in table.rows[row].lives:
        number += (times >= life.first_ms) & (times <= life.last_ms)
    return number


def explain_loops(scene: Scene) -> list[Incident]:
    found = []
    for loop in scene.loops:
        if loop.was_before:
            scene.background.append(f'"{scene.name(loop.row)}" restarts all the time, before as well')
            continue
        end_ms = scene.table.time_of(scene.table.steps)
        name, container = scene.name(loop.row), scene.container(loop.row, loop.from_ms)
        cause = Change(name, container, "restarts", "count", 0.0, float(loop.restarts), loop.from_ms, end_ms)
        is_new = loop.known_ms >= KNOWN_MS or begins_inside(scene, loop.from_ms)
        weight = 0.6 if is_new else 0.25
        found.append(
            make_incident(scene, "crash_loop", "", [cause], loop.from_ms, end_ms, weight, is_new=is_new)
        )
    return found


def begins_inside(scene: Scene, at_ms: int) -> bool:
    """Not near the beginning of what was recorded: then it may have been so before."""
    table = scene.table
    return at_ms >= table.time_of(0) + 0.2 * (table.time_of(table.steps) - table.time_of(0))


def explain_changes(scene: Scene) -> list[Incident]:
    """A level that rose for good, and hurt nobody yet."""
    found = []
    for one in scene.takers:
        if one.signal in CHANGE_SIZE and is_lasting(scene, one):
            from_ms, to_ms = scene.table.time_of(one.shift.first), scene.table.time_of(one.shift.last)
            weight = 0.2 + min(0.15, one.loss)
            found.append(
                make_incident(
                    scene, "change", RESOURCES[one.signal], [scene.change(one)], from_ms, to_ms, weight
                )
            )
    return found


def is_lasting(scene: Scene, one: Departure) -> bool:
    table, shift = scene.table, one.shift
    share, least = CHANGE_SIZE[one.signal]
    whole = {"cpu": table.cores, "memory_anon": table.memory_bytes}[one.signal] or 0.0
    was_there = any(life.first_ms < table.time_of(shift.first) - 60_000 for life in table.rows[one.row].lives)
    return (
        shift.is_open
        and shift.alike == 0
        and was_there
        and shift.after >= CHANGE_FACTOR * shift.before
        and shift.size >= max(least, share * whole)
        and (shift.last - shift.first) * table.step_seconds >= CHANGE_SECONDS
    )


# -- done to others -----------------------------------------------------------------


def explain_taken(scene: Scene, focus: int | None) -> list[Incident]:
    lacks = scene.lacks if focus is None else [one for one in scene.lacks if one.row == focus]
    candidates = find_candidates(scene.table, scene.takers, lacks)
    if focus is not None:
        # What it did to others is of interest, too.
        own = [
            one for one in find_candidates(scene.table, scene.takers, scene.lacks) if one.taker.row == focus
        ]
        candidates = [*(one for one in candidates if one.victims), *own]
    candidates.sort(key=lambda one: -one.score)
    looked_up = [discount(scene, one) for one in candidates[:MOST_LOOKED_UP]]
    chosen = explain_away([*looked_up, *candidates[MOST_LOOKED_UP:]], MOST_INCIDENTS)
    least = LEAST_SCORE if focus is None else LEAST_SCORE_ASKED
    return [make_taken(scene, one) for one in chosen if one.score >= least]


def discount(scene: Scene, one: Candidate) -> Candidate:
    """Less, the more often it did the same in the day before."""
    if one.score < LEAST_SCORE:
        return one
    return replace(one, score=one.score * NEWS_LEFT ** count_before(scene, one.taker))


def make_taken(scene: Scene, one: Candidate) -> Incident:
    ordered = sorted(one.victims, key=lambda other: -other.loss)
    victims = [scene.change(other, one.taker) for other in ordered]
    best: dict[str, Change] = {}
    for victim in victims:
        best.setdefault(victim.workload, victim)
    cause = scene.change(one.taker)
    weight = 1 - 0.5**one.score
    table, shift = scene.table, one.taker.shift
    is_new = not any(
        life.first_ms < table.time_of(shift.first) - 30_000 for life in table.rows[one.taker.row].lives
    )
    more = {
        "victims": tuple(best.values())[:MOST_VICTIMS],
        "victims_count": len(best),
        "share": one.share,
        "is_new": is_new,
    }
    deploy = scene.deploys.get(one.taker.row)
    if deploy and abs(deploy.at_ms - cause.from_ms) <= DEPLOY_SECONDS * 1000:
        return make_deploy(scene, deploy, [cause], weight, **more)
    return make_incident(
        scene, "taken", RESOURCES[one.resource], [cause], cause.from_ms, cause.to_ms, weight, **more
    )


def explain_rest(scene: Scene, taken: Sequence[Incident]) -> list[Incident]:
    """Several that came to lack the same at the same time, and nobody was seen who took it."""
    if taken:
        return []
    found = []
    for signal in ("pressure_cpu", "pressure_memory", "pressure_io"):
        lacks = [one for one in scene.lacks if one.signal == signal and one.shift.alike == 0]
        if not lacks:
            continue
        onset = float(np.median([one.shift.first for one in lacks]))
        reach = 2 * TOLERANCE_SECONDS / scene.table.step_seconds
        together = [one for one in lacks if abs(one.shift.first - onset) <= reach]
        lost = sum(one.loss for one in together)
        if lost >= UNEXPLAINED_LOSS and len(together) > 1:
            victims = [scene.change(one) for one in together]
            last = max(one.shift.last for one in together)
            more = {"victims": tuple(victims[:MOST_VICTIMS]), "victims_count": len(victims)}
            from_ms, to_ms = scene.table.time_of(round(onset)), scene.table.time_of(last)
            resource = signal.removeprefix("pressure_").replace("io", "disk")
            found.append(make_incident(scene, "unexplained", resource, [], from_ms, to_ms, 0.2, **more))
    return found
