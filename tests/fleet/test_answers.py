"""A fleet's answers: true to what was planted, the same as one by one, on disk and in S3."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.conftest import Dask, Fleet

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.read.files.file_survey import Survey, survey_roots
from nodescope.use.answers.findings import POINTS, read_series
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.answers.timeseries import TimeseriesRequest
from nodescope.use.fleet.answer import FleetAnswer, build_answer, is_common
from nodescope.use.fleet.cluster import open_cluster, run_units
from nodescope.use.fleet.unit import Job, Unit, split_by_day, units_around
from nodescope.use.fleet.worker import is_leak, is_material
from nodescope.use.studies import STUDIES
from nodescope.use.studies.series import Series

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
SPAN_MS, WITHIN_MS = 600_000, 120_000
Findings = dict[tuple[str, str], dict[str, Any]]
"""By node and container."""


def ask(dask: Dask, survey: Survey, units: Sequence[Unit], job: Job) -> FleetAnswer:
    with open_cluster(dask.address, 0, 0) as client:
        parts = list(run_units(client, units, job))
    return build_answer(parts, survey.faults, job, "workload", 0.05)


@pytest.fixture(scope="module")
def leaks(fleet: Fleet, dask: Dask) -> FleetAnswer:
    survey = survey_roots([str(fleet.path)])
    return ask(dask, survey, split_by_day(survey, ["memory_anon"], None, None), Job("leaks"))


@pytest.fixture(scope="module")
def changes(fleet: Fleet, dask: Dask) -> FleetAnswer:
    survey = survey_roots([str(fleet.path)])
    at_ms = round(fleet.truth("bad_image")[0]["minute"] * 1000)
    units = units_around(survey, ["memory"], at_ms - SPAN_MS, at_ms + SPAN_MS)
    return ask(dask, survey, units, Job("changes", at_ms, WITHIN_MS))


def plain(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            row["node"],
            row["container_id"],
            row["from"],
            row["to"],
            row["at"],
            row["magnitude"],
            row["sentence"],
        )
        for row in rows
    )


def test_leaks_are_the_planted_ones(fleet: Fleet, leaks: FleetAnswer) -> None:
    planted = {(one["node"], one["container_ids"][0]) for one in fleet.truth("leak")}
    found = {(row["node"], row["container_id"]) for row in leaks.kept}
    print(
        f"leaks: recall {len(found & planted)} of {len(planted)}, "
        f"false {len(found - planted)} of {len(found)}, {leaks.series} series looked at"
    )
    assert found == planted
    assert [group.name for group in leaks.groups] == ["shop/cache"]
    assert leaks.groups[0].series == len(planted)
    assert leaks.faults == []


def test_leaks_are_those_of_the_one_node_study_run_one_by_one(fleet: Fleet, leaks: FleetAnswer) -> None:
    """Every field of every finding, of every container of every node."""
    expected = {
        (series.node or "", series.container or ""): finding.to_json()
        for node in sorted(fleet.path.glob("demo-*"))
        for series in read_node(node, "memory_anon", TimeRange(0, 2**43))
        for finding in STUDIES["trend"].run(series).findings
        if is_leak(finding)
    }
    assert expected
    assert told(leaks.rows, expected) == expected


def read_node(folder: Path, metric: str, span: TimeRange) -> list[Series]:
    """Every series of a node, as `nodescope study` reads them."""
    view = NodeFolders([folder], SystemClock()).view()
    first, last = view.snapshot.from_ms, view.snapshot.to_ms
    assert first is not None
    assert last is not None
    span = TimeRange(max(first, span.from_ms), min(last, span.to_ms))
    request = TimeseriesRequest(metric, span, POINTS, is_bounded=False)
    return [series for _, series in read_series(view, request)]


def told(rows: Sequence[dict[str, Any]], expected: Findings) -> Findings:
    """Of each row what a finding has; the rest says whose it is."""
    fields = next(iter(expected.values())).keys()
    return {(row["node"], row["series"]): {name: row[name] for name in fields} for row in rows}


def test_changes_are_the_bad_image_on_a_third_of_the_nodes(fleet: Fleet, changes: FleetAnswer) -> None:
    truth = fleet.truth("bad_image")
    planted = {(one["node"], one["container_ids"][1]) for one in truth}
    found = {(row["node"], row["container_id"]) for row in changes.kept}
    print(
        f"changes: recall {len(found & planted)} of {len(planted)}, "
        f"false {len(found - planted)} of {len(found)}, {changes.series} series looked at"
    )
    assert found == planted
    best = changes.group_tests[0]
    assert (best.by, best.group.name) == ("image", truth[0]["image_after"])
    assert best.group.series == best.group.looked_at == len(truth) == 3
    assert is_common(best, 0.05)
    moments = {one["node"]: one["at"] for one in truth}
    assert all(abs(row["at"] - moments[row["node"]]) <= 2 for row in changes.kept)


def test_changes_are_those_of_the_one_node_study_run_one_by_one(fleet: Fleet, changes: FleetAnswer) -> None:
    """
    Every field, of every container that lives throughout.

    Where a container took another's place the fleet looks at both lives as one
    line (docs/decisions/0903), which no study of one container does.
    """
    at_ms = round(fleet.truth("bad_image")[0]["minute"] * 1000)
    expected: Findings = {}
    throughout: set[tuple[str, str]] = set()
    for node in sorted(fleet.path.glob("demo-*")):
        for series in read_node(node, "memory", TimeRange(at_ms - SPAN_MS, at_ms + SPAN_MS)):
            key = series.node or "", series.container or ""
            if series.times_at[-1] - series.times_at[0] < 2 * SPAN_MS / 1000 - 2:
                continue
            throughout.add(key)
            near = [
                finding
                for finding in STUDIES["changepoint"].run(series).findings
                if is_material(finding) and abs(finding.start_at * 1000 - at_ms) <= WITHIN_MS
            ]
            if near:
                best = max(near, key=lambda one: (one.confidence, abs(one.magnitude or 0.0)))
                expected[key] = best.to_json()
    rows = [row for row in changes.rows if (row["node"], row["series"]) in throughout]
    assert len(throughout) > 80
    assert len(expected) >= 10
    assert told(rows, expected) == expected
    # A cron job every five minutes is no news.
    assert not any(row["kept"] for row in rows)


def test_the_nightly_throttled_are_found_with_their_time(fleet: Fleet, dask: Dask) -> None:
    survey = survey_roots([str(fleet.path)])
    answer = ask(dask, survey, split_by_day(survey, ["cpu_throttled"], None, None), Job("top"))
    truth = {one["node"]: one["spans"][0] for one in fleet.truth("nightly_throttling")}
    hit = {row["node"]: row for row in answer.rows if row["magnitude"] > 0.01}
    assert set(hit) == set(truth)
    for node, (start, end) in truth.items():
        assert start <= hit[node]["busy_from"] <= hit[node]["busy_to"] <= end
    assert answer.groups[0].name == "media/encoder"
    assert answer.groups[0].looked_at == 10


def test_the_bucket_gives_the_answers_of_the_disk(copied: str, dask: Dask, leaks: FleetAnswer) -> None:
    survey = survey_roots([copied])
    units = split_by_day(survey, ["memory_anon"], None, None)
    answer = ask(dask, survey, units, Job("leaks"))
    assert plain(answer.rows) == plain(leaks.rows)
    assert (answer.series, answer.samples) == (leaks.series, leaks.samples)
    assert 0 < answer.fetched_bytes < sum(file.size for file in survey.files)
