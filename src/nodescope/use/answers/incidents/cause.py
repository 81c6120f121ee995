"""
Candidates for a cause: who took something just before or when others came to lack it.

    score = what the victims lost x share of what was taken x how new it is
            x how well the times fit x how full the resource was

The candidate with the highest score explains its victims; the next is looked
for among what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.answers.incidents.loss import Departure, rises
from nodescope.use.answers.incidents.shift import Shift, find_shifts
from nodescope.use.answers.incidents.signal import FAMILY
from nodescope.use.answers.incidents.table import Floats, NodeTable
from nodescope.use.answers.incidents.together import find_fallen_together

# A victim may seem to begin so much before its cause: both are known to a step or two.
TOLERANCE_SECONDS = 20.0
# A cause so much older than the loss is half as likely; memory fills up slowly.
HALF_LIFE_SECONDS = {"memory_anon": 900.0}
USUAL_HALF_LIFE = 240.0
# Of a victim's time, the least share in which the cause was there.
LEAST_OVERLAP = 0.4
# Below this use of all cores, CPU that one takes is not lacked by others.
IDLE_USE, FULL_USE = 0.45, 0.85
# Share of the node's memory that is available: above the first nobody lacks any, below the second all do.
MUCH_AVAILABLE, LITTLE_AVAILABLE = 0.3, 0.12
# The node's memory bandwidth has risen where it is this much above before.
BANDWIDTH_RISE = 0.25
# And it was somebody else's kind of work where so much more was moved per CPU second.
DENSER = 0.15
# What others lost is not counted; a guess between nothing and one that waits all the time.
UNCOUNTED_LOSS = 0.4
# Of the cores' time, the least that more was waited for disks.
IO_WAIT_RISE = 0.05
# On each core, the least number of tasks that waited more than before.
QUEUE_RISE = 0.1
# Of all cores, the least that somebody took then.
LEAST_TAKEN = 0.05


@dataclass(frozen=True, slots=True)
class Candidate:
    """One workload that took something, and whose losses that explains."""

    resource: str
    """A name in FAMILY."""
    taker: Departure
    victims: tuple[Departure, ...]
    score: float
    share: float
    news: float


def find_candidates(
    table: NodeTable, takers: Sequence[Departure], lacks: Sequence[Departure], focus: int | None = None
) -> list[Candidate]:
    """With `focus`, these are what one workload lacks, and what others lost is not looked at."""
    found = [weigh(table, one.signal, one, lacks, focus) for one in takers]
    found += [weigh(table, "bandwidth", one, lacks) for one in bandwidth_takers(table, takers)]
    return sorted((one for one in found if one.score > 0), key=lambda one: -one.score)


def bandwidth_takers(table: NodeTable, takers: Sequence[Departure]) -> list[Departure]:
    """
    Who used more CPU from when on more was moved from and to memory.

    Not where cache misses are counted for each container, and not where no more was moved per CPU second
    than before: then it is the CPU that was taken.
    """
    if table.bandwidth is None or "cache_misses" in table.signals or "cpu" not in table.signals:
        return []
    level = float(np.nanmedian(table.bandwidth))
    shifts = find_shifts(table.bandwidth[None, :], BANDWIDTH_RISE * level, table.step_seconds, 0)
    reach = TOLERANCE_SECONDS / table.step_seconds + 2
    return [
        one
        for rise in shifts
        if is_denser(table, rise)
        for one in takers
        if one.signal == "cpu" and abs(one.shift.first - rise.first) <= reach and one.shift.last > rise.first
    ]


def is_denser(table: NodeTable, rise: Shift) -> bool:
    """Whether more was moved for each second of CPU time than outside."""
    used = np.maximum(np.nansum(table.signals["cpu"], axis=0), 1e-9)
    density = np.asarray(table.bandwidth) / used
    inside = np.zeros(len(density), bool)
    inside[rise.first : rise.last] = True
    return float(np.nanmedian(density[inside])) >= (1 + DENSER) * float(np.nanmedian(density[~inside]))


def weigh(
    table: NodeTable,
    resource: str,
    taker: Departure,
    lacks: Sequence[Departure],
    focus: int | None = None,
) -> Candidate:
    victims = tuple(one for one in lacks if is_victim(table, resource, taker, one))
    if not victims and resource == taker.signal:
        # Nobody shows it alone.
        fallen = find_fallen_together(table, taker)
        victims = tuple(one for one in fallen if focus in (None, one.row))
    share = share_of_rise(table, taker)
    lost = sum(one.loss * one.news for one in victims)
    if is_uncounted(table, resource, taker):
        lost += UNCOUNTED_LOSS
    full = max(fullness(table, taker), bandwidth_fullness(table, resource, taker))
    score = lost * share * taker.news * timing(table, taker, victims) * full
    return Candidate(resource, taker, victims, score, share, taker.news)


def is_uncounted(table: NodeTable, resource: str, taker: Departure) -> bool:
    """Nobody counts what each of the others lost, and it took enough that they must have."""
    if resource in ("disk", "disk_operations"):
        return waits_more(table.io_wait, taker, IO_WAIT_RISE)
    if table.cores and taker.loss < LEAST_TAKEN:
        return False
    if resource == "bandwidth":
        return True
    is_blind = resource == "cpu" and "pressure_cpu" not in table.signals
    if is_blind and table.run_queue is not None:
        return waits_more(table.run_queue, taker, QUEUE_RISE)
    return is_blind and fullness(table, taker) >= 1


def waits_more(waited: Floats | None, taker: Departure, rise: float) -> bool:
    """Where no pressure is measured: on the cores more was waited than at other times."""
    if waited is None:
        return False
    inside = np.zeros(len(waited), bool)
    inside[taker.shift.first : taker.shift.last] = True
    known = np.isfinite(waited)
    if not (known & inside).any() or not (known & ~inside).any():
        return False
    then, else_ = (float(np.median(waited[known & part])) for part in (inside, ~inside))
    return then - else_ >= rise


def is_victim(table: NodeTable, resource: str, taker: Departure, lack: Departure) -> bool:
    if lack.row == taker.row or lack.signal not in FAMILY[resource]:
        return False
    if resource == "gpu" and not table.gpus.get(lack.row, frozenset()) & table.gpus.get(
        taker.row, frozenset()
    ):
        return False
    tolerance = TOLERANCE_SECONDS / table.step_seconds
    cause, loss = taker.shift, lack.shift
    begins_after = cause.first - tolerance <= loss.first <= cause.last + tolerance
    return begins_after and overlap_of(taker, lack) >= LEAST_OVERLAP


def overlap_of(taker: Departure, lack: Departure) -> float:
    """Of the victim's time, the share in which the cause was there."""
    cause, loss = taker.shift, lack.shift
    both = min(cause.last, loss.last) - max(cause.first, loss.first)
    return max(0.0, min(1.0, both / max(1, loss.last - loss.first)))


def share_of_rise(table: NodeTable, taker: Departure) -> float:
    """Of all that was taken more than before, while it lasted."""
    more = np.maximum(0.0, rises(table, taker.signal, taker.shift.first, taker.shift.last))
    return float(more[taker.row] / more.sum()) if more.sum() > 0 else 0.0


def timing(table: NodeTable, taker: Departure, victims: Sequence[Departure]) -> float:
    if not victims:
        return 1.0
    onsets = [one.shift.first for one in victims]
    lag = (float(np.median(onsets)) - taker.shift.first) * table.step_seconds
    late = max(0.0, abs(lag) - TOLERANCE_SECONDS)
    return float(0.5 ** (late / HALF_LIFE_SECONDS.get(taker.signal, USUAL_HALF_LIFE)))


def fullness(table: NodeTable, taker: Departure) -> float:
    """How much of the resource was in use while it lasted; 1 where that is not known."""
    if taker.signal == "memory_anon":
        return memory_fullness(table, taker)
    if taker.signal != "cpu" or not table.cores:
        return 1.0
    used = table.taken("cpu")[:, taker.shift.first : taker.shift.last].sum(axis=0)
    use = float(np.nanmean(used)) / table.cores
    return float(np.clip((use - IDLE_USE) / (FULL_USE - IDLE_USE), 0.1, 1.0))


def bandwidth_fullness(table: NodeTable, resource: str, taker: Departure) -> float:
    """How much the memory is used does not follow from the cores: a few of them can fill it. 1 where twice as much was moved."""
    if resource != "bandwidth" or table.bandwidth is None:
        return 0.0
    inside = np.zeros(len(table.bandwidth), bool)
    inside[taker.shift.first : taker.shift.last] = True
    then, else_ = (table.bandwidth[part & np.isfinite(table.bandwidth)] for part in (inside, ~inside))
    if not len(then) or not len(else_):
        return 0.0
    rise = float(np.median(then)) / max(float(np.median(else_)), 1e-9) - 1
    return float(np.clip((rise - BANDWIDTH_RISE) / (1 - BANDWIDTH_RISE), 0.0, 1.0))


def memory_fullness(table: NodeTable, taker: Departure) -> float:
    """Memory is lacked by others where hardly any is available; a container at its own limit lacks its own."""
    if table.available is None:
        return 1.0
    inside = table.available[taker.shift.first : taker.shift.last]
    known = inside[np.isfinite(inside)]
    if not len(known):
        return 1.0
    return float(
        np.clip((MUCH_AVAILABLE - float(known.min())) / (MUCH_AVAILABLE - LITTLE_AVAILABLE), 0.02, 1.0)
    )


def explain_away(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """The best first; each victim belongs to the first candidate that explains it."""
    chosen: list[Candidate] = []
    left = list(candidates)
    while left and len(chosen) < most:
        best = max(left, key=lambda one: one.score)
        chosen.append(best)
        taken = {id(one) for one in best.victims}
        left = [reduce(one, taken) for one in left if one.taker.row != best.taker.row]
        left = [one for one in left if one.score > 0]
    return chosen


def reduce(candidate: Candidate, taken: set[int]) -> Candidate:
    """Without the victims that another explains better."""
    if not candidate.victims:
        return candidate
    kept = tuple(one for one in candidate.victims if id(one) not in taken)
    lost, all_lost = (sum(one.loss * one.news for one in many) for many in (kept, candidate.victims))
    return replace(candidate, victims=kept, score=candidate.score * lost / max(all_lost, 1e-12))
