"""What a workload did to itself: killed at its limit, throttled, deployed anew, in a loop, or grown for good."""

from collections.abc import Sequence

import numpy as np

from nodescope.base.text import clean_name, clean_path
from nodescope.use.answers.incidents.happened import Deploy, Kill
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.loss import Departure, of_row, unit_of
from nodescope.use.answers.incidents.scene import Scene, left_of_news, make_incident
from nodescope.use.answers.incidents.shift import Shift
from nodescope.use.answers.incidents.signal import RESOURCES
from nodescope.use.answers.incidents.table import Floats, NodeTable

# A deploy is told from this factor on, per replica; a change without one from the larger.
DEPLOY_FACTOR, CHANGE_FACTOR = 1.25, 1.6
# And from these sizes on, of the node and at all: cores, bytes.
CHANGE_SIZE = {"cpu": (0.01, 0.1), "memory_anon": (0.003, 64 * 2.0**20)}
CHANGE_SECONDS = 120.0
DEPLOY_SECONDS = 150.0
# A loop is said to be new where its container was seen for so long without it.
KNOWN_MS = 600_000
# A kill is more than any waiting.
KILL_LOSS = 2.0


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
        growth = grow(scene.table, inside[-1])
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


def grow(table: NodeTable, kill: Kill) -> Change:
    """Its anonymous memory from its first sample in the table to the kill."""
    life = kill.life
    last = max(0, min(table.steps - 1, (kill.at_ms - table.start_ms) // table.step_ms))
    first = max(0, min(last, (life.first_ms - table.start_ms) // table.step_ms + 1))
    values = table.signals.get("memory_anon")
    curve = values[kill.row, first : last + 1] if values is not None else np.empty(0)
    there = np.flatnonzero(np.isfinite(curve))
    known = curve[there]
    first += int(there[0]) if len(there) else 0
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
            if other.row != one.row
            or other.signal not in ("pressure_cpu", "pressure_cpu_full", "cpu_throttled")
        ]
        wanted = of_row(scene.takers, one.row, "cpu")
        causes = [scene.change(one), *(scene.change(other) for other in wanted[:1])]
        weight = (0.25 + 0.5 * one.loss) * one.news * left_of_news(scene, one)
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
