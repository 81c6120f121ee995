"""
Who will reach its memory limit soon, where no watcher was there to tell it.

A first pass looks at the share of the limit in 240 means of each container
that is still there. The few whose newest course leads to the limit within
half a day are studied as `analyze_container` does it; only a leak is told.
"""

from collections.abc import Callable, Iterator

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.errors import RequestRejected
from nodescope.base.findings import NodeFinding
from nodescope.base.text import clean_name, clean_text
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life
from nodescope.use.answers.scanning.scan import GROWING, POINTS, SURE_ENOUGH, id_of_line, study_life
from nodescope.use.answers.snapshots import ServedNode, View
from nodescope.use.studies import Finding

LOOKED_MS = 6 * 3_600_000
# A limit that is further away is no news of today.
SOON_SECONDS = 12 * 3600.0
# Its newest sample is at most so old: what has gone will not be killed.
THERE_MS = 60_000
# The newest parts of the span that may be the beginning of a rise, each as a share of it.
NEWEST_PARTS = (1.0, 0.5, 0.2)
LEAST_POINTS = 8
STUDIED_MOST = 4


def find_nearing(view: View, node: ServedNode, check: Callable[[], None]) -> tuple[NodeFinding, ...]:
    """Leaks that end at a limit within half a day, the soonest first."""
    newest_ms = node.to_ms or 0
    span = TimeRange(max(node.from_ms or 0, newest_ms - LOOKED_MS), newest_ms)
    try:
        lines = (
            View(view.engine, view.snapshot, (node,))
            .query(node, "memory_limit_share", None, span, POINTS)
            .lines
        )
    except RequestRejected:
        return ()
    step = span.seconds / POINTS
    left = {id_of_line(line): seconds_left(line.points.mean, step) for line in lines}
    lives = [life for life in view.lives(span) if life.node == node.name and is_there(life, newest_ms)]
    near = sorted(
        (life for life in lives if left.get(life.id, np.inf) <= SOON_SECONDS), key=lambda life: left[life.id]
    )
    found = [one for life in near[:STUDIED_MOST] for one in study_rise(view, life, span, check)]
    return tuple(sorted(found, key=lambda one: one.time_to_limit_seconds or 0.0))


def is_there(life: Life, newest_ms: int) -> bool:
    return life.last_ms >= newest_ms - THERE_MS


def seconds_left(share: Floats, step: float) -> float:
    """By the steepest of the newest parts that rises from third to third; infinite where none does."""
    share = share[np.isfinite(share)]
    soonest = np.inf
    for part in NEWEST_PARTS:
        newest = share[-max(LEAST_POINTS, round(len(share) * part)) :]
        if len(newest) < LEAST_POINTS:
            break
        low, middle, high = (float(third.mean()) for third in np.array_split(newest, 3))
        if low < middle < high:
            slope = (high - low) / (len(newest) * 2 / 3 * step)
            soonest = min(soonest, max(0.0, 1.0 - float(newest.max())) / slope)
    return soonest


def study_rise(view: View, life: Life, span: TimeRange, check: Callable[[], None]) -> Iterator[NodeFinding]:
    check()
    for answer in study_life(view, "trend", "memory", life, span):
        for finding in answer.findings:
            left = finding.measures.get("time_to_limit_seconds")
            grows = finding.measures.get("verdict") in GROWING and finding.confidence >= SURE_ENOUGH
            if grows and isinstance(left, float) and left <= SOON_SECONDS:
                yield make_finding(life, finding, left, span.to_ms / 1000)
                break


def make_finding(life: Life, finding: Finding, left: float, now: float) -> NodeFinding:
    """As a watcher would have told it at the newest sample."""
    workload = life.workload
    name = clean_name(workload.full_name)
    return NodeFinding(
        id=f"memory_leak-{life.id[:12]}",
        key=f"memory_leak {name}",
        kind="memory_leak",
        severity="kill",
        state="confirmed",
        node=clean_text(life.node),
        onset=finding.start_at,
        born=now,
        updated=now,
        confirmed=now,
        sentence=clean_text(f'"{name}": {finding.sentence}', 400),
        namespace=clean_name(life.namespace),
        workload=clean_name(workload.name),
        pod=clean_name(life.pod),
        container=clean_name(life.container_name),
        container_id=life.id,
        time_to_limit_seconds=left,
    )
