"""A container's CPU limit is its quota over its period, in curves and in findings alike."""

import json
from pathlib import Path

import pytest
from tests.use.viewer.archives import write_demo
from tests.use.viewer.asking import Asker

from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.metric_names import PERIOD, QUOTA
from nodescope.cli import main
from nodescope.read.files.file_survey import survey_roots
from nodescope.use.fleet.unit import Job, split_by_day
from nodescope.use.fleet.worker import run_unit


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six minutes of six containers."""
    return write_demo(tmp_path_factory.mktemp("limits") / "demo", containers=6, hours=0.1)


@pytest.fixture(scope="module")
def expected(archive: Path) -> dict[str, float | None]:
    """By id, from the raw values; None: no quota was set."""
    with Asker(archive) as asker:
        names = {row["name"] for row in asker.json("/api/metrics")["metrics"]}
        everybody = ",".join(row["id"] for row in asker.json("/api/containers", range="all")["containers"])
        quota, period = (
            {
                one["id"]: one["max"][-1]
                for one in asker.json(
                    "/api/timeseries", metric=metric, containers=everybody, range="all", max_points=1
                )["series"]
            }
            for metric in (
                next(row for row in list_raw_names(kind) if row in names) for kind in (QUOTA, PERIOD)
            )
        )
    assert quota
    return {key: quota[key] / period[key] if quota.get(key, -1) > 0 else None for key in period}


def test_curves_of_cpu_carry_the_cpu_limit(archive: Path, expected: dict[str, float | None]) -> None:
    with Asker(archive) as asker:
        series = asker.json("/api/timeseries", metric="cpu", range="all")["series"]
        millicores = asker.json("/api/timeseries", metric="cpu_millicores", range="all")["series"]
    assert any(one["limit"] for one in series)
    assert {one["id"]: one["limit"] for one in series} == {one["id"]: expected[one["id"]] for one in series}
    assert {one["id"]: one["limit"] for one in millicores} == {
        key: limit and 1000 * limit for key, limit in expected.items() if key in {one["id"] for one in series}
    }


def test_findings_about_cpu_carry_the_cpu_limit_in_the_api_and_the_command_alike(
    archive: Path, expected: dict[str, float | None], capsys: pytest.CaptureFixture[str]
) -> None:
    with Asker(archive) as asker:
        results = asker.json("/api/study/summary", metric="cpu", range="all")["results"]
    assert main(["study", "summary", str(archive), "--metric", "cpu", "--json"]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    command = {answer["series"]["id"]: answer for answer in lines}
    assert any(expected[answer["series"]["id"]] for answer in results)
    for answer in results:
        limit = expected[answer["series"]["id"]]
        assert answer["findings"][0].get("limit") == limit
        assert ("limit" in answer["sentence"]) == (limit is not None)
        assert command[answer["series"]["id"]] == answer


def test_a_fleet_s_rows_about_cpu_carry_the_cpu_limit(
    archive: Path, expected: dict[str, float | None]
) -> None:
    """Fleet reads limits where the page and the command do."""
    units = split_by_day(survey_roots([str(archive)]), ["cpu"], None, None)
    rows = [row for unit in units for row in run_unit(unit, Job("top")).rows]
    assert any(row["limit"] for row in rows)
    assert {row["container_id"]: row["limit"] for row in rows} == {
        row["container_id"]: expected[row["container_id"]] for row in rows
    }
