"""From departures and events to at most three incidents: pure, over one node's table."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nodescope.use.answers.incidents.cause import (
    TOLERANCE_SECONDS,
    Candidate,
    explain_away,
    find_candidates,
)
from nodescope.use.answers.incidents.happened import Kill
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.loss import Departure, find_slight
from nodescope.use.answers.incidents.own import (
    DEPLOY_SECONDS,
    explain_changes,
    explain_deploys,
    explain_kills,
    explain_loops,
    explain_throttling,
    make_deploy,
)
from nodescope.use.answers.incidents.scene import History, Scene, left_of_news, make_incident, observe
from nodescope.use.answers.incidents.signal import RESOURCES
from nodescope.use.answers.incidents.table import NodeTable

MOST_INCIDENTS = 3
MOST_VICTIMS = 5
# Below this score nobody was hurt enough to speak of: on generated nodes without a cause
# no higher score was seen in 98 of 100 hours.
LEAST_SCORE = 0.12
# Who asks about one container has a reason to: what it did to others counts from less on, and what it
# alone lost from less still.
LEAST_SCORE_DID, LEAST_SCORE_LOST = 0.03, 0.012
# What is left without a cause is told from this sum of losses on.
UNEXPLAINED_LOSS = 0.6
# Candidates whose history is read: it costs a question to the archive each.
MOST_LOOKED_UP = 6


def find_incidents(
    table: NodeTable,
    kills: Sequence[Kill],
    history: History,
    focus: int | None = None,
    most: int = MOST_INCIDENTS,
) -> tuple[list[Incident], list[str]]:
    """The weightiest first, and what was there before as well; with `focus` only what concerns that workload."""
    scene = observe(table, kills, history)
    own = [*explain_kills(scene), *explain_throttling(scene)]
    taken = explain_taken(scene, focus, most)
    known = {one.cause.workload for one in (*own, *taken) if one.cause}
    rest = [*explain_deploys(scene), *explain_loops(scene), *explain_changes(scene)]
    found = [*own, *taken, *(one for one in rest if one.cause and one.cause.workload not in known)]
    found += explain_rest(scene, taken)
    if focus is not None:
        found = [one for one in found if concerns(one, table.rows[focus].name)]
    found = first_of_each(sorted(found, key=lambda one: -(one.weight or 0.0)))
    return found[:most], scene.background


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


def explain_taken(scene: Scene, focus: int | None, most: int) -> list[Incident]:
    lacks = scene.lacks if focus is None else lacks_of(scene, focus)
    candidates = find_candidates(scene.table, scene.takers, lacks, focus)
    if focus is not None:
        # What it did to others is of interest, too.
        own = [
            one for one in find_candidates(scene.table, scene.takers, scene.lacks) if one.taker.row == focus
        ]
        candidates = [*(one for one in candidates if one.victims), *own]
    candidates.sort(key=lambda one: -one.score)
    looked_up = [discount(scene, one) for one in candidates[:MOST_LOOKED_UP]]
    chosen = explain_away([*looked_up, *candidates[MOST_LOOKED_UP:]], most)
    return [make_taken(scene, one) for one in chosen if one.score >= least_score(one, focus)]


def least_score(one: Candidate, focus: int | None) -> float:
    if focus is None:
        return LEAST_SCORE
    return LEAST_SCORE_DID if one.taker.row == focus else LEAST_SCORE_LOST


def lacks_of(scene: Scene, row: int) -> list[Departure]:
    """Of the workload that was asked about, slight ones as well."""
    known = [one for one in scene.lacks if one.row == row]
    seen = {one.signal for one in known}
    return [*known, *(one for one in find_slight(scene.table, row) if one.signal not in seen)]


def discount(scene: Scene, one: Candidate) -> Candidate:
    """Less, the more often it did the same in the day before."""
    if one.score < LEAST_SCORE:
        return one
    return replace(one, score=one.score * left_of_news(scene, one.taker))


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
