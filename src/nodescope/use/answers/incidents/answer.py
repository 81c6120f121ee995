"""Incidents of a span, read from a node's archive and live tail."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_seconds
from nodescope.base.text import clean_name
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.read.series_name import scope_of
from nodescope.use.answers.containers import Life, make_life
from nodescope.use.answers.events import read_happenings, render_note
from nodescope.use.answers.incidents.explain import MOST_INCIDENTS, find_incidents
from nodescope.use.answers.incidents.gpu_use import add_gpu_use
from nodescope.use.answers.incidents.happened import Kill
from nodescope.use.answers.incidents.incident import Incident, IncidentList
from nodescope.use.answers.incidents.long_span import confirm, glimpse
from nodescope.use.answers.incidents.scene import History
from nodescope.use.answers.incidents.signal import BY_NAME
from nodescope.use.answers.incidents.table import Floats, NodeTable, WorkloadRow, read_table
from nodescope.use.answers.limits import read_limits
from nodescope.use.answers.overview import count_cores, read_memory_total
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.answers.timeseries import explain_gap
from nodescope.use.answers.workloads import group_workloads

# Before the span, to know the level that something departs from: half of the span, within these bounds.
LEAD_LEAST_MS, LEAD_MOST_MS = 600_000, 1_800_000
STEP_LEAST_MS, STEPS_MOST = 5_000, 1080
# Of the workloads that may be a cause, so much before is looked at: whether they did the same then.
HISTORY_MS = 24 * 3_600_000
MINUTE_MS = 60_000
NOTED_MS = 5_000
# What somebody did so long before an incident may have led to it.
NOTED_BEFORE_MS = 900_000
NOTES_MOST = 3
# Longer spans are looked at in minutes first, which rollups have, and then in seconds around what was found.
LONG_MS = 3 * 3_600_000
SPAN_MOST_MS = 24 * 3_600_000
# A shorter pause hides no incident; so many are told, the longest.
PAUSE_LEAST_MS, PAUSES_TOLD = 60_000, 3
# By signal, the plain names that make it up.
PLAIN_NAMES: Mapping[str, tuple[str, ...]] = {
    "cpu": ("cpu",),
    "memory_anon": ("memory_anon",),
    "disk": ("disk_read", "disk_write"),
    "network": ("network_receive", "network_transmit"),
    "cpu_throttled": ("cpu_throttled",),
}
# Signals that are named where they were not collected; the others are extras.
EXPECTED = ("cpu", "memory_anon", "disk", "network", "pressure_cpu", "pressure_memory", "pressure_io")


def list_incidents(
    view: View,
    span: TimeRange,
    ids: Collection[str] | None = None,
    check: Callable[[], None] = lambda: None,
    most: int = MOST_INCIDENTS,
) -> list[IncidentList]:
    """At most so many of each node; with ids only of the workload that these lives are of, on the nodes that have it."""
    found = []
    for node in view.nodes:
        check()
        if node.to_ms is not None:
            one = explain_node(view, node, span, ids, check, most)
            found += [one] if one else []
    return found


def explain_node(
    view: View,
    node: ServedNode,
    span: TimeRange,
    ids: Collection[str] | None,
    check: Callable[[], None] = lambda: None,
    most: int = MOST_INCIDENTS,
) -> IncidentList | None:
    asked, span = span, within_bounds(node, span)
    reach = lead_of(node, span)
    step_ms = choose_step(reach)
    lives = list_lives(view, node)
    rows = [row for row in make_rows(lives) if any(life.is_within(reach) for life in row.lives)]
    focus = None if ids is None else find_row(rows, ids)
    if ids is not None and focus is None:
        return None
    table = read_table(view, node, reach, span.from_ms, step_ms, rows)
    add_gpu_use(table, view, node, reach)
    table.cores, table.memory_bytes = count_cores(node), read_memory_total(view, node)
    kills = list_kills(view, node, reach, rows)
    remarks = (
        *list_cut(node, asked, span),
        *list_short(step_ms),
        *list_pauses(table, node),
        *list_unseen(table, node),
    )
    if step_ms < MINUTE_MS:
        incidents, background = find_incidents(table, kills, read_history(view, node, table), focus, most)
    else:
        glimpsed, background = glimpse(table, kills, focus, check, most)
        # A closer look has a table of its own, and this one is large.
        table.signals.clear()
        incidents = confirm(glimpsed, lambda part: look_closer(view, node, part, ids, check), most)
    incidents = [add_notes(node, add_limit(view, node, table, one)) for one in incidents]
    return IncidentList(
        node.name,
        span.from_ms,
        span.to_ms,
        max(node.from_ms or 0, reach.from_ms - HISTORY_MS),
        tuple(incidents),
        sum(1 for row in rows if any(life.is_within(span) for life in row.lives)),
        sum(1 for life in lives if life.is_within(span) and life.scope == "container"),
        "" if focus is None else rows[focus].name,
        tuple(background),
        remarks,
    )


def add_notes(node: ServedNode, one: Incident) -> Incident:
    """What was noted shortly before it, or while it lasted: evidence, not a cause; the nearest to its beginning first."""
    near = [
        note for note in node.notes if one.from_ms - NOTED_BEFORE_MS <= note.at * 1000 <= one.to_ms + NOTED_MS
    ]
    near.sort(key=lambda note: abs(note.at * 1000 - one.from_ms))
    return replace(one, notes=tuple(render_note(note) for note in near[:NOTES_MOST])) if near else one


def look_closer(
    view: View, node: ServedNode, span: TimeRange, ids: Collection[str] | None, check: Callable[[], None]
) -> tuple[Incident, ...]:
    check()
    found = explain_node(view, node, span, ids, check)
    return found.incidents if found else ()


def list_lives(view: View, node: ServedNode) -> list[Life]:
    """Containers, and beside them the node's services: a backup of the node itself may be the cause."""
    lives = [life for life in view.lives() if life.node == node.name]
    if any(life.scope == "service" for life in lives):
        return lives
    services = (one for one in node.subjects.values() if scope_of(one) == "service")
    return [*lives, *(make_life(one, node.name, view.suffix_of(node)) for one in services)]


def within_bounds(node: ServedNode, span: TimeRange) -> TimeRange:
    """What the node has of it; its end, where it is too long; at least a step."""
    to_ms = max(min(span.to_ms, node.to_ms or span.to_ms), span.from_ms + STEP_LEAST_MS)
    return TimeRange(max(span.from_ms, node.from_ms or 0, to_ms - SPAN_MOST_MS), to_ms)


def list_cut(node: ServedNode, asked: TimeRange, span: TimeRange) -> list[str]:
    """What of the span was not looked at because the span is too long."""
    from_ms = max(asked.from_ms, node.from_ms or 0)
    if span.from_ms <= from_ms:
        return []
    longest = render_seconds(SPAN_MOST_MS / 1000)
    return [
        f"before {render_moment(span.from_ms)}: of a span longer than {longest} the last {longest} are looked at"
    ]


def list_short(step_ms: int) -> list[str]:
    """What is too short to be seen in minutes."""
    if step_ms < MINUTE_MS:
        return []
    longest, shortest = render_seconds(LONG_MS / 1000), render_seconds(2 * step_ms / 1000)
    return [
        f"what lasted less than {shortest}: a span longer than {longest} is looked at in minutes first; a shorter span shows it"
    ]


def list_pauses(table: NodeTable, node: ServedNode) -> list[str]:
    """The longest times in which nothing was recorded, or whose file is lost, and why."""
    pauses = [one for one in find_pauses(table) if one.to_ms - one.from_ms >= PAUSE_LEAST_MS]
    longest = sorted(pauses, key=lambda one: one.from_ms - one.to_ms)[:PAUSES_TOLD]
    told = [
        f"{render_moment(one.from_ms)} to {render_moment(one.to_ms)}: {explain_gap(node, '', one)}"
        for one in sorted(longest, key=lambda one: one.from_ms)
    ]
    more = len(pauses) - len(longest)
    return [*told, f"{more} more times without a sample"] if more else told


def find_pauses(table: NodeTable) -> list[TimeRange]:
    edges = np.diff(np.r_[True, table.is_recorded(), True].astype(np.int8))
    return [
        TimeRange(table.time_of(int(first)), table.time_of(int(last)))
        for first, last in zip(np.flatnonzero(edges < 0), np.flatnonzero(edges > 0), strict=True)
    ]


def add_limit(view: View, node: ServedNode, table: NodeTable, one: Incident) -> Incident:
    """Which limit held it back."""
    if one.kind != "throttled" or one.cause is None:
        return one
    lives = next(row.lives for row in table.rows if row.name == one.cause.workload)
    span = TimeRange(one.from_ms, one.to_ms)
    there = {(node.name, life.id): None for life in lives if life.is_within(span)}
    limits = read_limits(view, "cpu", span, there).values()
    earlier = TimeRange(table.time_of(0), one.from_ms - 1)
    were = {(node.name, life.id): None for life in lives if life.is_within(earlier)}
    before = read_limits(view, "cpu", earlier, were).values() if earlier.from_ms < earlier.to_ms else ()
    return replace(one, limit=min(limits, default=None), limit_before=max(before, default=None))


def lead_of(node: ServedNode, span: TimeRange) -> TimeRange:
    lead_ms = min(LEAD_MOST_MS, max(LEAD_LEAST_MS, (span.to_ms - span.from_ms) // 2))
    return TimeRange(min(span.from_ms, max(node.from_ms or 0, span.from_ms - lead_ms)), span.to_ms)


def choose_step(reach: TimeRange) -> int:
    """Whole seconds; of a long span minutes, which rollups have."""
    length_ms = reach.to_ms - reach.from_ms
    if length_ms > LONG_MS + LEAD_MOST_MS:
        return MINUTE_MS
    return max(STEP_LEAST_MS, -(-length_ms // STEPS_MOST // 1000) * 1000)


def make_rows(lives: list[Life]) -> list[WorkloadRow]:
    """A workload has its namespace before its name where two have the same name."""
    workloads = group_workloads(lives)
    names = [one.workload.name for one in workloads]
    return [
        WorkloadRow(
            clean_name(one.full_name if names.count(one.workload.name) > 1 else one.workload.name),
            list(one.lives),
        )
        for one in workloads
    ]


def find_row(rows: list[WorkloadRow], ids: Collection[str]) -> int | None:
    return next((place for place, row in enumerate(rows) if any(life.id in ids for life in row.lives)), None)


def list_kills(view: View, node: ServedNode, reach: TimeRange, rows: list[WorkloadRow]) -> list[Kill]:
    places = {life.subject.identity: (place, life) for place, row in enumerate(rows) for life in row.lives}
    found: dict[int, list[Kill]] = {}
    for where, one in read_happenings(view, reach):
        if one.kind == "oom" and where is node and one.subject.identity in places:
            limit = one.facts.get("memory_limit_bytes")
            known = float(limit) if isinstance(limit, int | float) and 0 < limit < 2**60 else np.inf
            place, life = places[one.subject.identity]
            # The event is noted in the tick that misses it: the last sample is nearer to the kill.
            at_ms = life.last_ms if 0 <= one.at_ms - life.last_ms <= NOTED_MS else one.at_ms
            found.setdefault(place, []).append(Kill(place, at_ms, life, known))
    # The newest of each tells why: a loop of kills has one story.
    for mine in found.values():
        newest = mine[-1]
        mine[-1] = replace(newest, most_bytes=read_most(view, node, newest.life, newest.at_ms))
    return [one for mine in found.values() for one in mine]


def read_most(view: View, node: ServedNode, life: Life, at_ms: int) -> float | None:
    """The most memory in use in the minute before."""
    try:
        lines = view.query(node, "memory", [life.id], TimeRange(at_ms - MINUTE_MS, at_ms + 1000), 120).lines
    except RequestRejected:
        return None
    most = [float(np.nanmax(line.points.maximum)) for line in lines if np.isfinite(line.points.maximum).any()]
    return max(most, default=None)


def read_history(view: View, node: ServedNode, table: NodeTable) -> History:
    """Asked for the few that may be a cause."""
    before = TimeRange(max(node.from_ms or 0, table.start_ms - HISTORY_MS), table.start_ms - 1)

    @cache
    def read(row: int, signal: str) -> Floats | None:
        lives = [
            life for life in table.rows[row].lives if life.is_within(before) and life.scope == "container"
        ]
        if not lives or signal not in PLAIN_NAMES or before.seconds < 60:
            return None
        minutes = max(1, (before.to_ms - before.from_ms) // MINUTE_MS)
        ids = [life.id for life in lives]
        curves = [read_sum(view, node, name, ids, before, minutes) for name in PLAIN_NAMES[signal]]
        known = [one for one in curves if one is not None]
        return np.sum(known, axis=0) if known else None

    return read


def read_sum(
    view: View, node: ServedNode, metric: str, ids: list[str], span: TimeRange, points: int
) -> Floats | None:
    """Over these containers, in equal pieces of the span; 0 where none was there."""
    try:
        lines = view.query(node, metric, ids, span, points).lines
    except RequestRejected:
        return None
    total = np.zeros(points + 2)
    width = max(1.0, (span.to_ms - span.from_ms + 1) / points)
    for line in lines:
        good = np.isfinite(line.points.mean)
        places = ((line.points.time_ms[good] - span.from_ms) / width).astype(np.int64).clip(0, points + 1)
        np.add.at(total, places, line.points.mean[good])
    return total


def list_unseen(table: NodeTable, node: ServedNode) -> list[str]:
    lines = []
    lacking = [BY_NAME[name].words for name in EXPECTED if name not in table.signals]
    if lacking:
        lines.append(f"not collected here: {', '.join(lacking)}")
    if "pressure_cpu" not in table.signals:
        known = (
            "of the node as a whole only"
            if table.run_queue is not None
            else "neither of containers nor of the node"
        )
        lines.append(f"which containers waited for a core: run-queue delay is recorded {known}")
    if "cache_misses" not in table.signals:
        lines.append(
            "which container used the memory bandwidth: cache misses of single containers are counted on request only"
        )
    if any(name.startswith("gpu.") for name in node.metrics) and "gpu" not in table.signals:
        lines.append("GPUs: which container used them was not measured")
    if table.begin * table.step_seconds < LEAD_LEAST_MS / 1000:
        known = "nothing" if not table.begin else f"only {table.begin * table.step_seconds:.0f} s"
        lines.append(f"what is usual here: {known} was recorded before the span")
    return lines
