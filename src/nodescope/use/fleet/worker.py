"""
What a worker does with one unit: read, study, answer.

Containers are read a few at a time, so that a worker's memory does not grow
with the node. A file that was replaced meanwhile is looked up again; one that
cannot be read is named, and costs its own samples only.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.file_survey import SurveyFault, open_files, survey_again
from nodescope.read.files.sidecar_cache import SidecarCache, cache_folder
from nodescope.read.live.tail import LiveTail
from nodescope.read.query.engine import Engine, QueryLine
from nodescope.read.query.resolve import resolve_metric
from nodescope.use.answers.limits import read_limits
from nodescope.use.answers.snapshots import ServedNode, Snapshot, View
from nodescope.use.fleet.line_series import POINTS, make_series, name_line
from nodescope.use.fleet.restart_chain import join_series, link_restarts
from nodescope.use.fleet.significance import p_value_of
from nodescope.use.fleet.unit import Job, Unit, UnitAnswer
from nodescope.use.fleet.workload import Owner, owner_of
from nodescope.use.studies import STUDIES, run_study
from nodescope.use.studies.changepoint import FEWEST_SAMPLES
from nodescope.use.studies.changepoint import study as study_changes
from nodescope.use.studies.finding import StudyAnswer
from nodescope.use.studies.maths.robust import block_medians
from nodescope.use.studies.series import Series
from nodescope.use.studies.trend import LEAK_SECONDS

# Samples in memory at once; a sample takes some 100 bytes while it is read.
BATCH_SAMPLES = 2_000_000
TRIES = 3
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
    engine = Engine()
    engine.connection.execute("SET threads = 1")
    engine.connection.execute("SET memory_limit = '512MiB'")
    return engine


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
    try:
        asked = resolve_metric(unit.metric, catalog.metrics, "auto")
    except RequestRejected:
        part.collected = False
        return part
    for containers in batch_containers(catalog, asked.metrics[0].name, unit, by_pod=asked.of == "pod"):
        answer = worker_engine().query(catalog, unit.metric, containers, unit.from_ms, unit.to_ms, POINTS)
        limits = limits_of(catalog, unit, answer.lines) if job.question in WITH_LIMITS else {}
        part.faults += [SurveyFault(unit.node, reason) for reason in answer.refused]
        part.samples += sum(len(line.points.time_ms) for line in answer.lines)
        if study_of(job) == "trend":
            add_trends(part, job, answer.lines, answer.asked.unit, partial(limits_of, catalog, unit))
        else:
            add_answers(part, job, answer.lines, answer.asked.unit, limits)
    part.faults = list(dict.fromkeys(part.faults))
    part.fetched_bytes = sum(entry.remote.fetched_bytes for entry in catalog.entries if entry.remote)
    return part


ReadLimits = Callable[[Sequence[QueryLine]], Mapping[str, float]]
"""From lines to limits by container id."""


def add_trends(
    part: UnitAnswer, job: Job, lines: Sequence[QueryLine], unit: str, limits_for: ReadLimits
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
            part.looked[owner_of(line, part.unit.node)] += 1
    add_answers(part, job, found, unit, limits_for(found))


def limits_of(catalog: Catalog, unit: Unit, lines: Sequence[QueryLine]) -> Mapping[str, float]:
    """The limits that every other answer about these containers has."""
    node = ServedNode(unit.node, catalog, LiveTail())
    view = View(worker_engine(), Snapshot((node,), (), unit.to_ms), (node,))
    ends_ms = {
        (unit.node, container_of(line)): int(line.points.time_ms[-1])
        for line in lines
        if container_of(line) and len(line.points.time_ms)
    }
    return read_limits(view, unit.metric, TimeRange(unit.from_ms, unit.to_ms), ends_ms)


def container_of(line: QueryLine) -> str:
    return line.subject.label("l_container_id") or ""


def may_leak(line: QueryLine) -> bool:
    """Long enough to say whether there is a leak."""
    times_ms = line.points.time_ms
    return len(times_ms) > 1 and (times_ms[-1] - times_ms[0]) / 1000 >= LEAK_SECONDS


def has_trend(line: QueryLine, metric: str, unit: str) -> bool:
    """There is a trend, or too little data to say."""
    return STUDIES["trend"].run(make_series(line, metric, unit, None)).status != "none"


def batch_containers(
    catalog: Catalog, metric: str, unit: Unit, *, by_pod: bool
) -> Iterator[list[str] | None]:
    """Container ids a few at a time; None means all of them, or a metric that has no container."""
    scopes = {
        scope
        for entry in catalog.entries
        if entry.sidecar
        for scope in entry.sidecar.scopes().get(metric, ())
    }
    ids = []
    if not by_pod and scopes == {"container"}:
        ids = sorted({one.label("l_container_id") or "" for one in catalog.containers()})
    seconds = max(1, (unit.to_ms - unit.from_ms) // 1000)
    size = max(1, BATCH_SAMPLES // seconds)
    for start in range(0, max(1, len(ids)), size):
        yield ids[start : start + size] if len(ids) > size else None


def add_answers(
    part: UnitAnswer, job: Job, lines: Sequence[QueryLine], unit: str, limits: Mapping[str, float]
) -> None:
    if job.question == "changes":
        add_changes(part, job, lines, unit)
        return
    metric = part.unit.metric
    everything = [make_series(line, metric, unit, limits.get(container_of(line))) for line in lines]
    for line, series in zip(lines, everything):
        owner = owner_of(line, part.unit.node)
        if job.question == "top":
            add_figures(part, owner, line, series)
        else:
            add_findings(part, job, owner, line, run_study(study_of(job), series, everything))


def study_of(job: Job) -> str:
    return "trend" if job.question == "leaks" else job.question


def add_findings(part: UnitAnswer, job: Job, owner: Owner, line: QueryLine, answer: StudyAnswer) -> None:
    if answer.status in ("not_enough_data", "not_collected"):
        part.short += 1
        return
    part.looked[owner] += 1
    for finding in answer.to_json()["findings"]:  # type: ignore[attr-defined]
        if job.question == "leaks" and not is_leak(finding):
            continue
        part.rows.append(build_row(part, owner, line, answer, finding))


def is_leak(finding: Mapping[str, Any]) -> bool:
    """It grows until the end, and by enough to matter."""
    base = max(abs(finding["before"] or 0.0), LEAK_SHARE * (finding.get("limit") or 0.0))
    return finding.get("verdict") == "leak" and finding["magnitude"] >= LEAK_SHARE * base


def is_material(finding: Mapping[str, Any]) -> bool:
    """A new level that somebody would notice."""
    before, after = finding["before"], finding["after"]
    if finding["evidence"]["change"] == "noise" or before is None or after is None:
        return False
    return bool(abs(after - before) >= CHANGE_SHARE * max(abs(before), abs(after)))


def build_row(
    part: UnitAnswer, owner: Owner, line: QueryLine, answer: StudyAnswer, finding: Mapping[str, Any]
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
        "series": name_line(line),
        "study": answer.study,
        "chance": p_value_of(answer.study, finding),
        "samples": answer.samples,
        **finding,
        "missing_share": answer.missing_share,
    }


def add_figures(part: UnitAnswer, owner: Owner, line: QueryLine, series: Series) -> None:
    """Mean, 95th percentile and peak, and the time of day at which most of it was."""
    if not np.isfinite(series.values).any():
        part.short += 1
        return
    part.looked[owner] += 1
    answer = STUDIES["summary"].run(series)
    finding: Mapping[str, Any] = answer.to_json()["findings"][0]  # type: ignore[index]
    row = build_row(part, owner, line, answer, finding)
    busy_from, busy_to = busy_span(series)
    row |= {"study": "top", "side": part.unit.side, "busy_from": busy_from, "busy_to": busy_to}
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


def add_changes(part: UnitAnswer, job: Job, lines: Sequence[QueryLine], unit: str) -> None:
    """Changes at the moment in question, and how many there were at other times."""
    at, within = (job.at_ms or 0) / 1000, job.within_ms / 1000
    owned = [(owner_of(line, part.unit.node), line) for line in lines if len(line.points.time_ms)]
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
        found = filter(is_material, answer.to_json()["findings"])  # type: ignore[call-overload]
        timed = [{**one, **dict.fromkeys(("at", "from", "to"), joined.real_time(one["at"]))} for one in found]
        near = [one for one in timed if abs(one["at"] - at) <= within]
        part.elsewhere[owner] += len(timed) - len(near)
        if near:
            best = max(near, key=lambda one: (one["confidence"], abs(one["magnitude"])))
            row = build_row(part, owner, line, answer, best)
            row["image_before"] = chain.owners[0].image
            part.rows.append(row)
