"""
What a worker does with one unit: read, study, answer.

Containers are read a few at a time, so that a worker's memory does not grow
with the node. A file that was replaced meanwhile is looked up again; one that
cannot be read is named, and costs its own samples only.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.read.files.file_survey import SurveyFault, open_files, survey_again
from nodescope.read.files.sidecar_cache import SidecarCache, cache_folder
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.engine import Engine
from nodescope.read.query.sql import SqlReader
from nodescope.use.answers.findings import POINTS, make_series
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.snapshots import ServedNode, Snapshot, View
from nodescope.use.answers.timeseries import (
    MeasuredNode,
    MeasuredSeries,
    TimeseriesRequest,
    find_limits,
    read_measured,
    split_request,
)
from nodescope.use.fleet.restart_chain import JoinedSeries, join_series, link_restarts
from nodescope.use.fleet.significance import p_value_of
from nodescope.use.fleet.unit import Job, Unit, UnitAnswer
from nodescope.use.fleet.workload import Owner, owner_of
from nodescope.use.studies import STUDIES, run_study
from nodescope.use.studies.changepoint import FEWEST_SAMPLES
from nodescope.use.studies.changepoint import study as study_changes
from nodescope.use.studies.finding import Finding, StudyAnswer
from nodescope.use.studies.maths.robust import block_medians
from nodescope.use.studies.series import Series
from nodescope.use.studies.trend import LEAK_SECONDS

TRIES = 3
# A series of one sample was there for a second.
SECOND_MS = 1000
# A leak grows by at least this share of its start, or of its limit.
LEAK_SHARE = 0.05
# A change counts from a tenth of the level on, up or down.
CHANGE_SHARE = 0.1
# The study's shortest piece, five samples, always contains a whole block.
BLOCK = 3
# Questions whose figures say how near to its limit a series is.
WITH_LIMITS = ("top", "summary")
# A load's busy time is between these shares of its sum.
BUSY = (0.05, 0.95)


@lru_cache(maxsize=1)
def worker_engine() -> Engine:
    """One per process, with one thread: a worker may use one core."""
    return Engine(SqlReader("512MiB", 1))


def run_unit(unit: Unit, job: Job) -> UnitAnswer:
    """A unit's answer; what is wrong with its files is part of it."""
    for _ in range(TRIES):
        try:
            part = study_unit(unit, job)
        except FileNotFoundError:
            pass
        else:
            if not any(is_gone(file.root, file.key) for file in unit.files if part.faults):
                return part
        # Files were replaced between listing and reading; their rows are in other files now.
        files = tuple(file for file in survey_again(unit.files) if file.node == unit.node)
        unit = replace(unit, files=files)
    return UnitAnswer(
        unit, faults=[SurveyFault(unit.name, f"its files were replaced {TRIES} times while being read")]
    )


def is_gone(root: str, key: str) -> bool:
    return not root and not os.path.exists(key)


def study_unit(unit: Unit, job: Job) -> UnitAnswer:
    catalog, faults = open_files(unit.files, SidecarCache(cache_folder(os.environ)))
    part = UnitAnswer(unit, faults=faults)
    if not catalog.entries:
        return part
    node = ServedNode(unit.node, catalog, LiveTail())
    view = View(worker_engine(), Snapshot((node,), (), unit.to_ms), (node,))
    try:
        resolved = resolve(view.nodes, unit.metric)
    except RequestRejected:
        part.collected = False
        return part
    whole = TimeseriesRequest(unit.metric, TimeRange(unit.from_ms, unit.to_ms), POINTS, is_bounded=False)
    for request in split_request(view, whole, resolved):
        for found in read_measured(view, request, resolved):
            add_batch(part, job, found, partial(find_limits, view, request))
    part.faults = list(dict.fromkeys(part.faults))
    part.fetched_bytes = sum(entry.remote.fetched_bytes for entry in catalog.entries if entry.remote)
    return part


ReadLimits = Callable[[Sequence[MeasuredSeries]], Mapping[str, float]]
"""From series to limits by container id."""


def add_batch(part: UnitAnswer, job: Job, found: MeasuredNode, limits_for: ReadLimits) -> None:
    lines = found.series
    part.faults += [SurveyFault(part.unit.node, reason) for reason in found.refused]
    part.samples += sum(len(line.points.time_ms) for line in lines)
    if study_of(job) == "trend":
        add_trends(part, job, lines, found.unit, limits_for)
    else:
        limits = limits_for(lines) if job.question in WITH_LIMITS else {}
        add_answers(part, job, lines, found.unit, limits)


def add_trends(
    part: UnitAnswer, job: Job, lines: Sequence[MeasuredSeries], unit: str, limits_for: ReadLimits
) -> None:
    """
    Lines without a trend are counted; limits are read for the others only.

    A limit changes the forecast of a trend, never whether there is one.
    """
    long = [line for line in lines if job.question != "leaks" or may_leak(line)]
    part.short += len(lines) - len(long)
    found = []
    for line in long:
        if has_trend(line, part.unit.metric, unit):
            found.append(line)
        else:
            part.looked[owner_of(line)] += 1
    add_answers(part, job, found, unit, limits_for(found))


def container_of(line: MeasuredSeries) -> str:
    return line.subject.label("l_container_id") or ""


def may_leak(line: MeasuredSeries) -> bool:
    """Long enough to say whether there is a leak."""
    times_ms = line.points.time_ms
    return len(times_ms) > 1 and (times_ms[-1] - times_ms[0]) / 1000 >= LEAK_SECONDS


def has_trend(line: MeasuredSeries, metric: str, unit: str) -> bool:
    """There is a trend, or too little data to say."""
    return STUDIES["trend"].run(make_series(line, metric, unit, None)).status != "none"


def add_answers(
    part: UnitAnswer, job: Job, lines: Sequence[MeasuredSeries], unit: str, limits: Mapping[str, float]
) -> None:
    if job.question == "changes":
        add_changes(part, job, lines, unit)
        return
    metric = part.unit.metric
    everything = [make_series(line, metric, unit, limits.get(line.id)) for line in lines]
    for line, series in zip(lines, everything):
        owner = owner_of(line)
        if job.question == "top":
            add_figures(part, owner, line, series)
        else:
            add_findings(part, job, owner, line, run_study(study_of(job), series, everything))


def study_of(job: Job) -> str:
    return "trend" if job.question == "leaks" else job.question


def add_findings(part: UnitAnswer, job: Job, owner: Owner, line: MeasuredSeries, answer: StudyAnswer) -> None:
    if answer.status in ("not_enough_data", "not_collected"):
        part.short += 1
        return
    part.looked[owner] += 1
    for finding in answer.findings:
        if job.question == "leaks" and not is_leak(finding):
            continue
        part.rows.append(build_row(part, owner, line, answer, finding))


def is_leak(finding: Finding) -> bool:
    """It grows until the end, and by enough to matter."""
    limit = finding.measures.get("limit")
    base = max(abs(finding.before or 0.0), LEAK_SHARE * (limit if isinstance(limit, int | float) else 0.0))
    return finding.measures.get("verdict") == "leak" and (finding.magnitude or 0.0) >= LEAK_SHARE * base


def is_material(finding: Finding) -> bool:
    """A new level that somebody would notice."""
    before, after = finding.before, finding.after
    if finding.evidence["change"] in ("noise", "pattern") or before is None or after is None:
        return False
    return bool(abs(after - before) >= CHANGE_SHARE * max(abs(before), abs(after)))


def build_row(
    part: UnitAnswer, owner: Owner, line: MeasuredSeries, answer: StudyAnswer, finding: Finding
) -> dict[str, Any]:
    return {
        "node": owner.node,
        "day": part.unit.day,
        "metric": part.unit.metric,
        "namespace": owner.namespace,
        "workload": owner.workload,
        "image": owner.image,
        "pod": line.subject.label("l_pod_name") or "",
        "container": line.subject.label("l_container_name") or "",
        "container_id": container_of(line),
        "series": line.name,
        "study": answer.study,
        "chance": p_value_of(answer.study, finding),
        "samples": answer.samples,
        **finding.to_json(),
        "missing_share": answer.missing_share,
    }


def add_figures(part: UnitAnswer, owner: Owner, line: MeasuredSeries, series: Series) -> None:
    """Mean, 95th percentile and peak, and the time of day at which most of it was."""
    if not np.isfinite(series.values).any():
        part.short += 1
        return
    part.looked[owner] += 1
    answer = STUDIES["summary"].run(series)
    row = build_row(part, owner, line, answer, answer.findings[0])
    busy_from, busy_to = busy_span(series)
    unit_ms = part.unit.to_ms - part.unit.from_ms + SECOND_MS
    there_ms = int(line.points.time_ms[-1] - line.points.time_ms[0]) + SECOND_MS
    row |= {"study": "top", "side": part.unit.side, "busy_from": busy_from, "busy_to": busy_to}
    row |= {
        "over_span": (row["magnitude"] or 0.0) * min(1.0, there_ms / unit_ms),
        "span_seconds": unit_ms / 1000,
    }
    part.rows.append(row)


def busy_span(series: Series) -> tuple[float | None, float | None]:
    held = np.isfinite(series.values)
    load = np.cumsum(np.maximum(series.values[held], 0.0))
    if not len(load) or load[-1] <= 0:
        return None, None
    first, last = (int(np.searchsorted(load, share * load[-1])) for share in BUSY)
    times_at = series.times_at[held]
    return float(times_at[first]), float(times_at[min(last, len(times_at) - 1)])


def may_have_changed(series: Series) -> bool:
    """
    Whether any two blocks differ by as much as a change that counts.

    If none do, the study would find no change. Most series of a fleet do not
    change, and a study costs a hundred times as much as this test.
    """
    heights = block_medians(series.values, BLOCK)
    heights = heights[np.isfinite(heights)]
    if not len(heights):
        return False
    low, high = float(heights.min()), float(heights.max())
    return high - low >= CHANGE_SHARE * max(abs(low), abs(high))


def add_changes(part: UnitAnswer, job: Job, lines: Sequence[MeasuredSeries], unit: str) -> None:
    """Changes at the moment in question, and how many there were at other times."""
    at, within = (job.at_ms or 0) / 1000, job.within_ms / 1000
    owned = [(owner_of(line), line) for line in lines if len(line.points.time_ms)]
    for chain in link_restarts(owned):
        joined = join_series(chain, part.unit.metric, unit)
        if len(joined.series.values) < FEWEST_SAMPLES:
            part.short += 1
            continue
        owner, line = chain.owners[-1], chain.lines[-1]
        part.looked[owner] += 1
        span = float(joined.real_at[-1] - joined.real_at[0])
        part.seconds_elsewhere[owner] = part.seconds_elsewhere.get(owner, 0.0) + max(0.0, span - 2 * within)
        if not may_have_changed(joined.series):
            continue
        answer = study_changes(joined.series)
        timed = [put_back(one, joined) for one in answer.findings if is_material(one)]
        near = [one for one in timed if abs(one.start_at - at) <= within]
        part.elsewhere[owner] += len(timed) - len(near)
        if near:
            best = max(near, key=lambda one: (one.confidence, abs(one.magnitude or 0.0)))
            row = build_row(part, owner, line, answer, best)
            row["image_before"] = chain.owners[0].image
            part.rows.append(row)


def put_back(change: Finding, joined: JoinedSeries) -> Finding:
    """At its real time."""
    at = joined.real_time(change.start_at if change.at is None else change.at)
    return replace(change, at=at, start_at=at, end_at=at)
