"""What is lost costs its own part only, and is named: workers, files, sidecars, folders."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.conftest import Fleet, start_dask

from nodescope.read.files.file_survey import survey_roots
from nodescope.use.fleet.cluster import open_cluster, run_units
from nodescope.use.fleet.unit import Job, split_by_day
from nodescope.use.fleet.worker import run_unit

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]


def test_a_worker_killed_in_the_middle_changes_nothing(fleet: Fleet, tmp_path: Path) -> None:
    survey = survey_roots([str(fleet.path)])
    units = split_by_day(survey, ["memory_anon"], None, None)
    job = Job("trend")
    expected = {unit.name: run_unit(unit, job).rows for unit in units}
    running = start_dask(tmp_path, 3)
    dask = next(running)
    try:
        with open_cluster(dask.address, 0, 0) as client:
            found = {}
            for part in run_units(client, units, job):
                found[part.unit.name] = part.rows
                assert part.faults == []
                if len(found) == 3:
                    dask.workers[0].kill()
            assert len(client.nthreads()) == 2
    finally:
        running.close()
    assert round_off(found) == round_off(expected)


def round_off(value: Any) -> Any:
    """Sums of another process may differ in their last bit: where an array lies decides how it is added up."""
    if isinstance(value, dict):
        return {key: round_off(one) for key, one in value.items()}
    if isinstance(value, list):
        return [round_off(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv: apt-get install util-linux")
def test_corrupt_missing_and_forbidden_are_named_and_the_rest_is_answered(
    fleet: Fleet, tmp_path: Path
) -> None:
    """By the command, with workers of its own, and without root's right to read everything."""
    nodes = tmp_path / "nodes"
    leaking = fleet.truth("leak")[0]["node"]
    chosen = [leaking, *(f"demo-{number}" for number in (1, 2, 3))]
    for name in chosen:
        shutil.copytree(fleet.path / name, nodes / name)
    corrupt = next((nodes / "demo-1").rglob("consolidated-*.parquet"))
    content = bytearray(corrupt.read_bytes())
    content[1000:-100_000] = bytes(len(content) - 101_000)
    corrupt.write_bytes(content)
    orphan = next((nodes / "demo-2").rglob("consolidated-*.parquet"))
    orphan.with_suffix(".containers").unlink()
    (nodes / "demo-3").chmod(0)
    try:
        done = subprocess.run(
            [
                *unprivileged(),
                *(sys.executable, "-m", "nodescope", "fleet", "leaks", str(nodes)),
                *("--json", "--workers", "1"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        (nodes / "demo-3").chmod(0o755)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [(row["node"], row["container"]) for row in answer["findings"]] == [(leaking, "cache")]
    named = {one["where"]: one["reason"] for one in answer["not_looked_at"]}
    assert named.pop(str(nodes / "demo-3")) == "Permission denied"
    assert "sidecar" in named.pop(str(orphan))
    assert [where for where, reason in named.items() if corrupt.name in reason] == ["demo-1"]
    assert len(named) == 1


def unprivileged() -> list[str]:
    """Root reads every folder; without these two capabilities it does not."""
    if os.geteuid():
        return []
    caps = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere"])
def test_a_scheduler_that_is_not_there_is_one_clear_line(fleet: Fleet, address: str) -> None:
    words = ["fleet", "leaks", str(fleet.path / "demo-1"), "--scheduler", address]
    done = subprocess.run(
        [sys.executable, "-m", "nodescope", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"nodescope fleet: no Dask scheduler answers at {address}: ")
