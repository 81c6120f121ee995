"""
What containers needed, read from a node's archive: in minutes over the whole span, in seconds where they were busiest.

Minutes come from rollups where there are some. The seconds of the busiest
minutes are read from samples; where these are gone, the highest second of the minute stands for them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_name
from nodescope.base.time_range import TimeRange
from nodescope.read.files.rollups import choose, find_rollups, reach
from nodescope.read.query.file_sweep import Sought
from nodescope.read.query.row_reader import ask_pairwise
from nodescope.read.query.sweep import sweep_node
from nodescope.use.answers.containers import Life
from nodescope.use.answers.events import read_happenings
from nodescope.use.answers.limits import first_known, read_limits
from nodescope.use.answers.rightsizing.advice import ENOUGH_SECONDS
from nodescope.use.answers.rightsizing.need import ContainerNeed, NodeNeeds
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.workloads import WorkloadLives, group_workloads

MINUTE_MS = 60_000
MEMORY, FILE, SHARED = "memory.current", "memory.stat.file", "memory.stat.shmem"
# As far back as is looked; a week has its weekend.
SPAN_MOST_MS = 7 * 86_400_000
# Samples of one metric that are read where there are no rollups; beyond, the newest part decides.
SAMPLES_MOST = 15_000_000
# Of each container, the busiest minutes that are read in seconds; of so many containers: a look takes 15 ms.
BUSIEST, EXACT_MOST = 2, 40
BUSY_PERCENT = 95.0
# Ended within so much of the newest sample: still running.
RUNNING_MS = 30_000
ENDED_LOOK_MS, ENDED_MOST = 120_000, 40
# Runs of a Job are short; what counts is from the first to the last of them.
SHORT_LIVED = ("Job", "CronJob")
QUARTERS = 4


class Minutes(NamedTuple):
    """One metric of one life."""

    time_ms: Integers
    mean: Floats
    most: Floats


class BusyMinute(NamedTuple):
    """One of the busiest minutes of a container."""

    mean: float
    most: float
    id: str
    time_ms: int


@dataclass(slots=True)
class Measured:
    """All that was read of a node; by id of a life."""

    cpu: dict[str, Minutes]
    anon: dict[str, Minutes]
    kept: dict[str, tuple[Floats, Floats | None]]
    """What cannot be reclaimed, and page cache, once a minute; without page cache all memory."""
    limits: dict[str, dict[str, float]]
    throttled: dict[str, float]
    kills: dict[str, tuple[int, float]]
    busiest: dict[tuple[str, str, str], list[BusyMinute]] = field(default_factory=dict)
    """By a container's key."""


def read_needs(
    view: View, span: TimeRange, ids: Collection[str] | None = None, check: Callable[[], None] = lambda: None
) -> list[NodeNeeds]:
    """Of each node; with ids only of the workloads that these lives are of."""
    return [read_node(view, node, span, ids, check) for node in view.nodes if node.to_ms is not None]


def read_node(
    view: View, node: ServedNode, span: TimeRange, ids: Collection[str] | None, check: Callable[[], None]
) -> NodeNeeds:
    lives = [life for life in view.lives() if life.node == node.name]
    wanted = within_bounds(node, span)
    parts = [part for part in list_parts(lives, wanted) if ids is None or has_any(part, ids)]
    looked = shorten(node, wanted, count_side_by_side(parts, wanted))
    here = [life for part in parts for life in part.lives if life.is_within(looked)]
    measured = measure(view, node, here, parts, looked, check)
    needs = [
        sum_up(node, part, mine, measured)
        for part in parts
        if (mine := [life for life in part.lives if life.is_within(looked)])
    ]
    needs = add_seconds(view, node, needs, measured, check)
    return NodeNeeds(
        node.name, looked.from_ms, looked.to_ms, tuple(needs), tuple(list_unseen(lives, wanted, looked))
    )


def list_parts(lives: Sequence[Life], span: TimeRange) -> list[WorkloadLives]:
    """Containers of workloads; services have no requests, and a pod's sandbox is not sized."""
    sized = [
        life
        for life in lives
        if life.scope == "container" and life.is_within(span) and not life.subject.details.get("sandbox")
    ]
    return [part for one in group_workloads(sized) for part in one.parts().values()]


def has_any(part: WorkloadLives, ids: Collection[str]) -> bool:
    return any(life.id in ids for life in part.lives)


def within_bounds(node: ServedNode, span: TimeRange) -> TimeRange:
    to_ms = min(span.to_ms, node.to_ms or span.to_ms)
    return TimeRange(max(span.from_ms, node.from_ms or 0, to_ms - SPAN_MOST_MS), to_ms)


def count_side_by_side(parts: Sequence[WorkloadLives], span: TimeRange) -> float:
    """Containers that were there at a time, on average: short lives of a workload follow each other."""
    lived_ms = (
        min(life.last_ms, span.to_ms) - max(life.first_ms, span.from_ms)
        for part in parts
        for life in part.lives
        if life.is_within(span)
    )
    return sum(lived_ms) / max(1, span.to_ms - span.from_ms)


def shorten(node: ServedNode, span: TimeRange, series: float) -> TimeRange:
    """So much of the newest as can be read where rollups do not have it."""
    ends = span.from_ms, span.to_ms
    entries = node.catalog.select(*ends)
    files, _ = choose(entries, find_rollups(node.catalog.paths, *reach(entries, *ends)), *ends)
    left_ms = round(1000 * SAMPLES_MOST / max(1.0, series))
    for file in sorted(files, key=lambda one: -one.to_ms):
        left_ms -= file.to_ms - file.from_ms
        if left_ms < 0:
            return TimeRange(max(span.from_ms, file.from_ms - left_ms), span.to_ms)
    return span


def list_unseen(lives: Sequence[Life], wanted: TimeRange, looked: TimeRange) -> Iterator[str]:
    if any(life.scope == "service" for life in lives):
        yield "services: they have no requests"
    if looked.from_ms > wanted.from_ms:
        yield "what is older than the span above: it has no rollups yet, and is too much to read (nodescope consolidate makes them)"


# -- reading -------------------------------------------------------------------------


def measure(
    view: View,
    node: ServedNode,
    lives: Sequence[Life],
    parts: Sequence[WorkloadLives],
    span: TimeRange,
    check: Callable[[], None],
) -> Measured:
    ids = [life.id for life in lives]
    # One after the other: a day of 100 containers takes 25 MiB while it is put into minutes.
    cpu, anon = (read_minutes(view, node, metric, ids, span) for metric in ("cpu", "memory_anon"))
    check()
    kept = read_kept(view, node, span) if ids else {}
    check()
    limits = read_newest_limits(view, node, parts, span)
    held = [one for one in limits.get("cpu", {}) if one in cpu]
    throttled = read_minutes(view, node, "cpu_throttled", held, span) if held else {}
    shares = {one: float(np.nanmean(found.mean)) for one, found in throttled.items()}
    return Measured(cpu, anon, kept, limits, shares, read_kills(view, span, node))


def read_minutes(
    view: View, node: ServedNode, metric: str, ids: Sequence[str], span: TimeRange
) -> dict[str, Minutes]:
    """Mean and highest second of each minute; nothing where the node does not have the metric."""
    # Whole minutes of the clock are what rollups have.
    whole = TimeRange(span.from_ms // MINUTE_MS * MINUTE_MS, (span.to_ms // MINUTE_MS + 1) * MINUTE_MS - 1)
    points = (whole.to_ms - whole.from_ms + 1) // MINUTE_MS
    try:
        lines = view.query(node, metric, ids, whole, points).lines if ids else []
    except RequestRejected:
        return {}
    found = {}
    for line in lines:
        good = np.isfinite(line.points.mean)
        if good.any():
            columns = (line.points.time_ms[good], line.points.mean[good], line.points.maximum[good])
            found[line.subject.label("l_container_id") or ""] = Minutes(*columns)
    return found


def read_kept(view: View, node: ServedNode, span: TimeRange) -> dict[str, tuple[Floats, Floats | None]]:
    """Memory without page cache; shared memory is counted as page cache by the kernel, and cannot be dropped."""
    names = [first_known(node, list_raw_names(one)) for one in (MEMORY, FILE, SHARED)]
    known = [name for name in names if name in node.metrics]
    sweep = sweep_node(view.engine, node.catalog, node.tail, Sought(known, "container", span, MINUTE_MS))
    columns = [split_series(sweep.samples.get(name), sweep.names) for name in names]
    found: dict[str, tuple[Floats, Floats | None]] = {}
    for its_id, (time_ms, used) in columns[0].items():
        file, shared = (align(time_ms, one.get(its_id)) for one in columns[1:])
        if file is None:
            found[its_id] = (used, None)
            continue
        cache = np.maximum(0.0, file - (0.0 if shared is None else shared))
        found[its_id] = (np.maximum(0.0, used - cache), cache)
    return found


def split_series(
    samples: tuple[Integers, Integers, Floats] | None, names: Sequence[str]
) -> dict[str, tuple[Integers, Floats]]:
    if samples is None:
        return {}
    series, time_ms, value = samples
    edges = np.flatnonzero(np.diff(series)) + 1
    starts, ends = np.r_[0, edges], np.r_[edges, len(series)]
    return {
        names[series[start]]: (time_ms[start:end], value[start:end])
        for start, end in zip(starts, ends)
        if end > start
    }


def align(time_ms: Integers, other: tuple[Integers, Floats] | None) -> Floats | None:
    """The other's value at these moments: of the same tick, or the one before."""
    if other is None:
        return None
    places = np.searchsorted(other[0], time_ms, side="right") - 1
    found: Floats = other[1][places.clip(0)]
    return found


def read_newest_limits(
    view: View, node: ServedNode, parts: Sequence[WorkloadLives], span: TimeRange
) -> dict[str, dict[str, float]]:
    """Of the newest life of each part, at its end; of those that ended long ago, some."""
    newest = [max(part.lives, key=lambda life: life.last_ms) for part in parts]
    running = [life for life in newest if life.last_ms >= span.to_ms - RUNNING_MS]
    ended = sorted((life for life in newest if life not in running), key=lambda life: -life.last_ms)
    groups = [running, *([life] for life in ended[:ENDED_MOST])]
    found: dict[str, dict[str, float]] = {"cpu": {}, "memory": {}}
    for group in groups:
        ends_ms = {(node.name, life.id): life.last_ms for life in group}
        if ends_ms:
            to_ms = max(ends_ms.values())
            looked = TimeRange(min(ends_ms.values()) - ENDED_LOOK_MS, to_ms)
            for metric, limits in found.items():
                limits.update(read_limits(view, metric, looked, ends_ms))
    return found


def read_kills(view: View, span: TimeRange, node: ServedNode) -> dict[str, tuple[int, float]]:
    """By id: how often it was killed for memory, and the limit at which."""
    found: dict[str, tuple[int, float]] = {}
    for where, one in read_happenings(view, span):
        if one.kind == "oom" and where is node:
            limit = one.facts.get("memory_limit_bytes")
            known = float(limit) if isinstance(limit, int | float) and 0 < limit < 2**60 else 0.0
            its_id = one.subject.label("l_container_id") or ""
            count, most = found.get(its_id, (0, 0.0))
            found[its_id] = (count + 1, max(most, known))
    return found


# -- one container of a workload -------------------------------------------------------


def sum_up(node: ServedNode, part: WorkloadLives, lives: Sequence[Life], measured: Measured) -> ContainerNeed:
    newest = max(lives, key=lambda life: life.last_ms)
    ids = [life.id for life in lives]
    cpu = [measured.cpu[one] for one in ids if one in measured.cpu]
    minutes = list_busiest_minutes(measured.cpu, ids)
    kept = [measured.kept[one] for one in ids if one in measured.kept]
    kills = [measured.kills[one] for one in ids if one in measured.kills]
    cache = [file for _, file in kept if file is not None]
    first_ms, last_ms = min(life.first_ms for life in lives), newest.last_ms
    need = ContainerNeed(
        node.name,
        clean_name(part.workload.namespace),
        clean_name(part.workload.name),
        part.workload.kind,
        clean_name(newest.container_name),
        sum(life.last_ms >= (node.to_ms or 0) - RUNNING_MS for life in lives),
        len(lives),
        first_ms,
        last_ms,
        measure_seen(part.workload.kind, cpu, first_ms, last_ms),
        newest.subject.details.get("name_source") == "kube" or bool(newest.subject.details.get("owner")),
        newest.request("cpu"),
        measured.limits["cpu"].get(newest.id),
        newest.request("memory"),
        measured.limits["memory"].get(newest.id),
        mean_of([one.mean for one in cpu]),
        max((one.most for one in minutes), default=None),
        max((float(one.most.max()) for one in cpu), default=None),
        False,
        max((measured.throttled[one] for one in ids if one in measured.throttled), default=None),
        find_crest(measured, ids),
        len(cache) == len(kept) and bool(kept),
        mean_of(cache),
        find_growth(measured, ids),
        sum(count for count, _ in kills),
        max((limit for _, limit in kills if limit), default=None),
    )
    measured.busiest[need.key] = minutes
    return need


def measure_seen(kind: str, curves: Sequence[Minutes], first_ms: int, last_ms: int) -> int:
    """How long it was watched: minutes with samples; of short jobs from the first run to the last."""
    if kind in SHORT_LIVED:
        return last_ms - first_ms
    if not curves:
        return 0
    return MINUTE_MS * len(np.unique(np.concatenate([one.time_ms for one in curves]) // MINUTE_MS))


def mean_of(columns: Sequence[Floats]) -> float | None:
    return float(np.concatenate(columns).mean()) if columns else None


def list_busiest_minutes(curves: Mapping[str, Minutes], ids: Sequence[str]) -> list[BusyMinute]:
    """Of all these lives, by their mean."""
    found = []
    for its_id in ids:
        if one := curves.get(its_id):
            for place in np.argsort(one.mean)[-BUSIEST:]:
                moment = int(one.time_ms[place])
                found.append(BusyMinute(float(one.mean[place]), float(one.most[place]), its_id, moment))
    return sorted(found, reverse=True)[:BUSIEST]


def add_seconds(
    view: View,
    node: ServedNode,
    needs: Sequence[ContainerNeed],
    measured: Measured,
    check: Callable[[], None],
) -> list[ContainerNeed]:
    """For those that are sized, the ones that request or use the most first; the others keep their highest second."""
    order = sorted(
        range(len(needs)), key=lambda place: -(needs[place].cpu_request or needs[place].cpu_most or 0)
    )
    sized = [place for place in order if needs[place].seen_seconds >= ENOUGH_SECONDS][:EXACT_MOST]
    found = list(needs)

    def look(place: int) -> list[float | None]:
        check()
        minutes = measured.busiest[needs[place].key]
        return [read_seconds(view, node, one.id, one.time_ms) for one in minutes]

    for place, seconds in zip(sized, ask_pairwise(look, sized), strict=True):
        known = [one for one in seconds if one is not None]
        if known and len(known) == len(seconds):
            found[place] = replace(needs[place], cpu_busy=max(known), is_cpu_exact=True)
    return found


def read_seconds(view: View, node: ServedNode, its_id: str, time_ms: int) -> float | None:
    minute = TimeRange(time_ms // MINUTE_MS * MINUTE_MS, time_ms // MINUTE_MS * MINUTE_MS + MINUTE_MS - 1)
    try:
        lines = view.query(node, "cpu", [its_id], minute, 240).lines
    except RequestRejected:
        return None
    values = [line.points.mean[np.isfinite(line.points.mean)] for line in lines]
    return float(np.percentile(values[0], BUSY_PERCENT)) if values and len(values[0]) else None


def find_crest(measured: Measured, ids: Sequence[str]) -> float | None:
    """The highest second of anonymous memory with what else cannot be reclaimed beside it."""
    crests = []
    for its_id in ids:
        kept, _ = measured.kept.get(its_id, (None, None))
        anon = measured.anon.get(its_id)
        if kept is not None:
            crests.append(float(kept.max()))
        if anon is not None:
            beside = 0.0 if kept is None else max(0.0, float(np.median(kept) - np.median(anon.mean)))
            crests.append(float(anon.most.max()) + beside)
    return max(crests, default=None)


def find_growth(measured: Measured, ids: Sequence[str]) -> float | None:
    """Of the longest life: of its last quarter against the one before; a start is no growth."""
    curves = [measured.anon[one].mean for one in ids if one in measured.anon]
    longest = max(curves, key=len, default=np.empty(0))
    if len(longest) < QUARTERS * 15:
        return None
    before, last = np.array_split(longest, QUARTERS)[-2:]
    return float(last.mean() / before.mean()) if before.mean() > 0 else None
