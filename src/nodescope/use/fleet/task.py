"""
What a worker does with one unit: read, study, answer. Pure but for the reading.

Containers are taken a few at a time, so that the memory of a worker does not
follow the node's size. A file that was replaced meanwhile is looked up again;
one that cannot be read costs its own samples, and is named.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.file_survey import SurveyFault, open_files, survey_again
from nodescope.read.files.sidecar_cache import SidecarCache, cache_folder
from nodescope.read.query.engine import Engine, QueryLine
from nodescope.read.query.resolve import resolve_metric
from nodescope.use.fleet.chain import join, link
from nodescope.use.fleet.chance import chance_of
from nodescope.use.fleet.part import Job, Unit, UnitPart
from nodescope.use.fleet.workload import Owner, owner_of
from nodescope.use.studies import STUDIES, run_study
from nodescope.use.studies.archive_series import POINTS, make_series, name_line, read_limits
from nodescope.use.studies.changepoint import FEWEST_SAMPLES
from nodescope.use.studies.changepoint import study as study_changes
from nodescope.use.studies.finding import StudyAnswer
from nodescope.use.studies.maths.robust import block_medians
from nodescope.use.studies.series import Series
from nodescope.use.studies.trend import LEAK_SECONDS

# Samples held at once: a sample takes some 100 bytes on its way through.
BATCH_SAMPLES = 2_000_000
TRIES = 3
# Of what a leak had at its start, or of its limit: less is breathing.
LEAK_SHARE = 0.05
# A change that counts is of a tenth of the level, up or down.
CHANGE_SHARE = 0.1
# The shortest piece that the study tells from its neighbours, five samples, always holds a whole block.
BLOCK = 3
# Questions whose figures say how near to the limit a series is.
NEAR_LIMITS = ("top", "summary")
# What the middle of a load is: between these shares of its sum.
MIDDLE = (0.05, 0.95)


@lru_cache(maxsize=1)
def engine_here() -> Engine:
    """One a process. A worker is one core's: DuckDB is not to take the others."""
    engine = Engine()
    engine.connection.execute("SET threads = 1")
    engine.connection.execute("SET memory_limit = '512MiB'")
    return engine


def run_unit(unit: Unit, job: Job) -> UnitPart:
    """A unit's answer, whatever is wrong with its files."""
    for _ in range(TRIES):
        try:
            part = look_at(unit, job)
        except FileNotFoundError:
            pass
        else:
            if not any(is_gone(file.root, file.key) for file in unit.files if part.faults):
                return part
        # Replaced between listing and reading: their rows are in other files now.
        files = tuple(file for file in survey_again(unit.files) if file.node == unit.node)
        unit = Unit(unit.node, unit.day, unit.metric, unit.from_ms, unit.to_ms, files, unit.side)
    return UnitPart(
        unit, faults=[SurveyFault(unit.name, f"its files were replaced {TRIES} times while being read")]
    )


def is_gone(root: str, key: str) -> bool:
    return not root and not os.path.exists(key)


def look_at(unit: Unit, job: Job) -> UnitPart:
    held = SidecarCache(cache_folder(os.environ))
    catalog, faults = open_files(unit.files, held)
    part = UnitPart(unit, faults=faults)
    if not catalog.entries:
        return part
    try:
        asked = resolve_metric(unit.metric, catalog.metrics, "auto")
    except RequestRejected:
        part.collected = False
        return part
    for containers in batches(catalog, asked.metrics[0].name, unit, by_pod=asked.of == "pod"):
        answer = engine_here().query(catalog, unit.metric, containers, unit.from_ms, unit.to_ms, POINTS)
        limits: Mapping[str, float] = {}
        if job.question in NEAR_LIMITS:
            limits = limits_of(catalog, unit, containers)
        part.faults += [SurveyFault(unit.node, reason) for reason in answer.refused]
        part.samples += sum(len(line.points.time_ms) for line in answer.lines)
        if study_of(job) == "trend":
            take_trends(part, job, answer.lines, answer.asked.unit, partial(limits_of, catalog, unit))
        else:
            take(part, job, answer.lines, answer.asked.unit, limits)
    part.faults = list(dict.fromkeys(part.faults))
    part.fetched_bytes = sum(entry.remote.fetched_bytes for entry in catalog.entries if entry.remote)
    return part


ReadLimits = Callable[[Sequence[str]], Mapping[str, float]]
"""From container ids to limits by name."""


def take_trends(
    part: UnitPart, job: Job, lines: Sequence[QueryLine], unit: str, limits_for: ReadLimits
) -> None:
    """
    Lines that stand still are counted, and only the others' limits are read.

    A limit moves the forecast of a trend, never whether there is one.
    """
    long = [line for line in lines if job.question != "leaks" or may_leak(line)]
    part.short += len(lines) - len(long)
    found = [line for line in long if has_trend(line, part.unit.metric, unit)]
    take_still(part, long, found)
    ids = sorted({line.subject.label("l_container_id") or "" for line in found} - {""})
    take(part, job, found, unit, limits_for(ids) if ids else {})


def limits_of(catalog: Catalog, unit: Unit, containers: Sequence[str] | None) -> Mapping[str, float]:
    return read_limits(engine_here(), catalog, unit.metric, containers, unit.from_ms, unit.to_ms)


def may_leak(line: QueryLine) -> bool:
    """A shorter life says nothing about leaks, neither that there is one nor that there is none."""
    times_ms = line.points.time_ms
    return len(times_ms) > 1 and (times_ms[-1] - times_ms[0]) / 1000 >= LEAK_SECONDS


def has_trend(line: QueryLine, metric: str, unit: str) -> bool:
    """Whether there is anything to tell a limit about, or to say that it is too short."""
    return STUDIES["trend"].run(make_series(line, metric, unit, None)).status != "none"


def take_still(part: UnitPart, lines: Sequence[QueryLine], found: Sequence[QueryLine]) -> None:
    """Looked at, and nothing there."""
    moving = {id(line) for line in found}
    for line in lines:
        if id(line) not in moving:
            owner = owner_of(line, part.unit.node)
            part.looked[owner.namespace, owner.workload, owner.image] += 1


def batches(catalog: Catalog, metric: str, unit: Unit, *, by_pod: bool) -> Iterator[list[str] | None]:
    """Container ids a few at a time; None for all of them, and for what has no container."""
    scopes = {
        scope
        for entry in catalog.entries
        if entry.sidecar
        for scope in entry.sidecar.scopes().get(metric, ())
    }
    if by_pod or scopes != {"container"}:
        yield None
        return
    ids = sorted({one.label("l_container_id") or "" for one in catalog.containers()})
    seconds = max(1, (unit.to_ms - unit.from_ms) // 1000)
    size = max(1, BATCH_SAMPLES // seconds)
    if len(ids) <= size:
        yield None
        return
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def take(
    part: UnitPart, job: Job, lines: Sequence[QueryLine], unit: str, limits: Mapping[str, float]
) -> None:
    if job.question == "changes":
        take_changes(part, job, lines, unit)
        return
    metric = part.unit.metric
    everything = [make_series(line, metric, unit, limits.get(name_line(line))) for line in lines]
    for line, series in zip(lines, everything):
        owner = owner_of(line, part.unit.node)
        if job.question == "top":
            take_figures(part, owner, line, series)
        else:
            take_study(part, job, owner, line, run_study(study_of(job), series, everything))


def study_of(job: Job) -> str:
    return "trend" if job.question == "leaks" else job.question


def take_study(part: UnitPart, job: Job, owner: Owner, line: QueryLine, answer: StudyAnswer) -> None:
    if answer.status in ("not_enough_data", "not_collected"):
        part.short += 1
        return
    part.looked[owner.namespace, owner.workload, owner.image] += 1
    for finding in answer.to_json()["findings"]:  # type: ignore[attr-defined]
        if job.question == "leaks" and not is_leak(finding):
            continue
        row = describe(part, owner, line, answer.study, answer.samples, finding)
        row["missing_share"] = answer.missing_share
        part.rows.append(row)


def is_leak(finding: Mapping[str, Any]) -> bool:
    """It grows to the end, and by enough to matter."""
    base = max(abs(finding["before"] or 0.0), LEAK_SHARE * (finding.get("limit") or 0.0))
    return finding.get("verdict") == "leak" and finding["magnitude"] >= LEAK_SHARE * base


def is_material(finding: Mapping[str, Any]) -> bool:
    """A new level, and one that somebody would notice."""
    before, after = finding["before"], finding["after"]
    if finding["evidence"]["change"] == "noise" or before is None or after is None:
        return False
    return bool(abs(after - before) >= CHANGE_SHARE * max(abs(before), abs(after)))


def describe(
    part: UnitPart, owner: Owner, line: QueryLine, study: str, samples: int, finding: Mapping[str, Any]
) -> dict[str, Any]:
    """One line of the findings table."""
    return {
        "node": owner.node,
        "day": part.unit.day,
        "metric": part.unit.metric,
        "namespace": owner.namespace,
        "workload": owner.workload,
        "image": owner.image,
        "pod": line.subject.label("l_pod_name") or "",
        "container": line.subject.label("l_container_name") or "",
        "container_id": line.subject.label("l_container_id") or "",
        "series": name_line(line),
        "study": study,
        "chance": chance_of(study, finding),
        "samples": samples,
        **finding,
    }


def take_figures(part: UnitPart, owner: Owner, line: QueryLine, series: Series) -> None:
    """Mean, 95th percentile and peak, and at which time of day most of it was."""
    values = series.values[np.isfinite(series.values)]
    if not len(values):
        part.short += 1
        return
    part.looked[owner.namespace, owner.workload, owner.image] += 1
    answer = STUDIES["summary"].run(series)
    finding: Mapping[str, Any] = answer.to_json()["findings"][0]  # type: ignore[index]
    row = describe(part, owner, line, "top", answer.samples, finding)
    row["missing_share"] = answer.missing_share
    row["side"] = part.unit.side
    row["busy_from"], row["busy_to"] = middle_of(series)
    part.rows.append(row)


def middle_of(series: Series) -> tuple[float | None, float | None]:
    held = np.isfinite(series.values)
    mass = np.cumsum(np.maximum(series.values[held], 0.0))
    if not len(mass) or mass[-1] <= 0:
        return None, None
    first, last = (int(np.searchsorted(mass, share * mass[-1])) for share in MIDDLE)
    times_at = series.times_at[held]
    return float(times_at[first]), float(times_at[min(last, len(times_at) - 1)])


def may_have_moved(series: Series) -> bool:
    """
    Whether any two blocks differ by as much as a change that counts.

    Where none do no study would find one: most of a fleet stands still, and a
    study costs a hundred times as much as this look.
    """
    heights = block_medians(series.values, BLOCK)
    heights = heights[np.isfinite(heights)]
    if not len(heights):
        return False
    low, high = float(heights.min()), float(heights.max())
    return high - low >= CHANGE_SHARE * max(abs(low), abs(high))


def take_changes(part: UnitPart, job: Job, lines: Sequence[QueryLine], unit: str) -> None:
    """Changes at the moment that was asked for, and how many there were elsewhere."""
    at, within = (job.at_ms or 0) / 1000, job.within_ms / 1000
    owned = [(owner_of(line, part.unit.node), line) for line in lines if len(line.points.time_ms)]
    for chain in link(owned):
        joined = join(chain, part.unit.metric, unit)
        if len(joined.series.values) < FEWEST_SAMPLES:
            part.short += 1
            continue
        owner, line = chain.owners[-1], chain.lines[-1]
        key = owner.namespace, owner.workload, owner.image
        part.looked[key] += 1
        span = float(joined.real_at[-1] - joined.real_at[0])
        part.seconds_elsewhere[key] = part.seconds_elsewhere.get(key, 0.0) + max(0.0, span - 2 * within)
        if not may_have_moved(joined.series):
            continue
        answer = study_changes(joined.series)
        near = []
        for finding in answer.to_json()["findings"]:  # type: ignore[attr-defined]
            if not is_material(finding):
                continue
            real = joined.real(finding["at"])
            if abs(real - at) > within:
                part.elsewhere[key] += 1
                continue
            near.append({**finding, "at": real, "from": real, "to": real})
        if near:
            best = max(near, key=lambda one: (one["confidence"], abs(one["magnitude"])))
            row = describe(part, owner, line, answer.study, answer.samples, best)
            row["missing_share"] = answer.missing_share
            row["image_before"] = chain.owners[0].image
            part.rows.append(row)
