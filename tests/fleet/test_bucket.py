"""The copy in a real S3: killed at random instants, resumed, read meanwhile; and by Spark."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from tests.fleet.conftest import END_MS, Fleet, copy_all, write_node_again
from tests.s3.server import S3

from nodescope.keep.copy.manifest import parse_manifest
from nodescope.keep.copy.object_store import open_store
from nodescope.read.files.file_survey import survey_roots
from nodescope.use.fleet.unit import Job, split_by_day
from nodescope.use.fleet.worker import run_unit

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
KILLS = 8
# What `consolidate --once --copy-to` does after its merging, in a process that
# says when it begins.
CHILD = f"""
import sys
from pathlib import Path
from tests.fleet.conftest import Clock
from nodescope.keep.copy.copier import Copier
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.copy.object_store import open_store
copier = Copier(Disk(), DataFolder(Path(sys.argv[1])), open_store(sys.argv[2]), Clock())
print("ready", flush=True)
done = copier.run_pass(everything=True)
print(done.files, len(done.failures), {END_MS}, flush=True)
"""


def start_copy(data: Path, url: str) -> "subprocess.Popen[str]":
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(data), url],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    return child


def rows_served(url: str) -> int:
    """
    As a reader sees it now; everything that is listed is there, whole.

    Killed between a partition's first file and its first list, the file is
    there and verified, and is read by its sidecar, as a plain copy of a folder is.
    A request that was on its way is still carried out: then the second look counts.
    """
    for _ in range(2):
        listed, served = rows_listed(url), sum(file.rows for file in survey_roots([url]).files)
        if listed in (served, None):
            break
    assert listed in (served, None)
    return served


def rows_listed(url: str) -> int | None:
    """None: there is no list yet."""
    store = open_store(url)
    listed = None
    for one in store.list():
        if not one.key.endswith("_files.json"):
            continue
        partition = one.key.rpartition("/")[0]
        for listing in parse_manifest(store.read(one.key) or b"").files.values():
            assert store.digest(f"{partition}/{listing.name}").sha256 == listing.sha256
            assert store.digest(f"{partition}/{listing.sidecar}").sha256 == listing.sidecar_sha256
            listed = (listed or 0) + listing.rows
    return listed


def test_killed_at_random_instants_and_resumed(fleet: Fleet, s3: S3, tmp_path: Path) -> None:
    """First the hours, then the days that replace them; SIGKILL in both, readers in between."""
    url = f"{s3.make_bucket('killed')}/archive"
    hours, days = tmp_path / "hours", tmp_path / "days"
    write_node_again(hours, "demo-4")
    for fresh in hours.glob("dt=*/*/metrics-*"):
        fresh.unlink()
    shutil.copytree(fleet.path / "demo-4", days)
    # Both are the same node: the days are what a consolidation made of the hours.
    rows_hours = sum(file.rows for file in survey_roots([str(hours)]).files)
    rows_days = sum(file.rows for file in survey_roots([str(days)]).files)
    assert rows_hours < rows_days
    dice = random.Random(11)
    longest = copy_once(hours, f"{s3.make_bucket('measured')}/archive")
    for data, before, after in ((hours, 0, rows_hours), (days, rows_hours, rows_days)):
        for _ in range(KILLS // 2):
            child = start_copy(data, url)
            time.sleep(dice.uniform(0, longest))
            child.send_signal(signal.SIGKILL)
            child.communicate()
            assert rows_served(url) in (before, after)
        copy_once(data, url)
        assert rows_served(url) == after
    names = [one.key.rpartition("/")[2] for one in open_store(url).list("dt=2026-03-01")]
    assert len([name for name in names if name.endswith(".parquet")]) == 1
    assert copy_all(days, url).files == 0
    there = answer_of(url)
    assert there == answer_of(str(days))
    assert there
    emptied_and_copied_again(days, url)


def emptied_and_copied_again(data: Path, url: str) -> None:
    """Somebody deletes every object; the ledger here still says that all was copied."""
    store = open_store(url)
    rows = rows_served(url)
    names = [one.key for one in store.list()]
    for name in names:
        store.delete(name)
    assert rows_served(url) == 0
    done = copy_all(data, url)
    assert (done.files > 0, done.failures) == (True, {})
    assert rows_served(url) == rows > 0
    assert sorted(one.key for one in store.list()) == sorted(names)


def copy_once(data: Path, url: str) -> float:
    """How long it took."""
    child = start_copy(data, url)
    start = time.monotonic()
    out, _ = child.communicate()
    assert out.split()[1] == "0"
    return time.monotonic() - start


def answer_of(root: str) -> list[tuple[object, ...]]:
    units = split_by_day(survey_roots([root]), ["memory_anon"], None, None)
    parts = [run_unit(unit, Job("leaks")) for unit in units]
    assert not any(part.faults for part in parts)
    return sorted(
        (row["container_id"], row["magnitude"], row["sentence"]) for part in parts for row in part.rows
    )


def test_the_command_copies_and_says_so(fleet: Fleet, s3: S3, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(fleet.path / "demo-1", data)
    url = f"{s3.make_bucket('command')}/archive"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "nodescope", "consolidate", "--data", str(data), "--once"),
            *("--no-retention", "--copy-to", url),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 copied" in done.stdout
    assert "0 waiting" in done.stdout
    local = next(data.glob("dt=*/*/consolidated-*.parquet"))
    assert (
        open_store(url).digest(str(local.relative_to(data))).sha256
        == hashlib.sha256(local.read_bytes()).hexdigest()
    )
    status = json.loads((data / "copy" / "status.json").read_text())
    assert status["copied_files"] == 1


@pytest.mark.parametrize(
    ("bucket", "without", "told"),
    [
        (
            "asked",
            ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
            "credentials come from the environment: AWS_ACC",
        ),
        ("nowhere", (), 'there is no bucket "nowhere"'),
        ("asked", ("AWS_ENDPOINT_URL",), "Could not connect"),
    ],
)
def test_no_credentials_no_bucket_no_server_are_one_clear_line(
    s3: S3, bucket: str, without: tuple[str, ...], told: str
) -> None:
    if bucket == "asked":
        s3.make_bucket(bucket)
    environment = {**os.environ, "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    for name in without:
        del environment[name]
    environment.setdefault("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "nodescope", "fleet", "leaks", f"s3://{bucket}/archive"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"nodescope fleet: s3://{bucket}/archive: ")
    assert told in line


@pytest.mark.skipif(not shutil.which("java"), reason="needs Java: apt-get install default-jre-headless")
def test_spark_counts_the_same_rows_per_metric(fleet: Fleet, s3: S3, copied: str) -> None:
    """
    Over the files that `fleet files` names.

    Spark's S3 connector is a download of its own; the server keeps objects as
    plain files, and Spark reads those.
    """
    from pyspark.sql import SparkSession

    files = [file.name for file in survey_roots([copied]).files]
    local = [str(s3.folder / name.removeprefix("s3://")) for name in files]
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    try:
        found = {
            row["metric_name"]: row["count"]
            for row in spark.read.parquet(*local).groupBy("metric_name").count().collect()
        }
    finally:
        spark.stop()
    expected: Counter[str] = Counter()
    for node in fleet.path.glob("demo-*"):
        question = f"SELECT metric_name, count(*) FROM read_parquet('{node}/dt=*/*/*.parquet') GROUP BY 1"
        expected.update(dict(duckdb.execute(question).fetchall()))
    assert found == dict(expected)
    assert len(found) > 15
