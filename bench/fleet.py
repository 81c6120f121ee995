"""
A fleet: series studied a second, workers, memory, bytes fetched, catalog, copy; and what is found.

A demo fleet of NODESCOPE_BENCH_FLEET nodes x hours x containers (50x6x40
unless set; written once by two processes, some minutes, kept in artifacts/), a
real S3 server on loopback, workers of this machine. The anchor of the studies is a
plain loop over the same files in one process: read the metric's rows with
pyarrow, cut them by container, run the same study.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.fleet_shapes import FALSE_SHARE
from bench.fleet_truth import (
    END_MS,
    Score,
    ask_changes,
    ask_leaks,
    seed_rows,
    shape_rows,
    truth_of,
    write_member,
)
from bench.result import Options, Row
from nodescope.keep.demo.fleet import plan_fleet
from nodescope.keep.demo.story import DemoRequest

ARTIFACTS = Path("artifacts")
SEED = 5
STUDIED = "memory_anon"
CATALOG_FILES = 10_000


def run(options: Options) -> list[Row]:
    del options
    nodes, hours, containers = map(float, os.environ.get("NODESCOPE_BENCH_FLEET", "50x6x40").split("x"))
    data = ARTIFACTS / f"fleet-{nodes:g}x{hours:g}x{containers:g}"
    seconds = write_fleet(data, round(nodes), hours, round(containers))
    rows = [
        Row(
            "demo fleet written, a node",
            seconds / nodes,
            "seconds",
            remark=f"CPU; {nodes:.0f} nodes x {hours:g} h x {containers:.0f} containers, {size_of(data) / 2**20:.0f} MiB",
        )
    ]
    rows += study_rows(data)
    rows += truth_rows(data)
    rows += [*seed_rows(), *shape_rows()]
    with workplace() as place:
        rows += bucket_rows(place, data)
    return rows


@contextmanager
def workplace() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="nodescope-bench-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def size_of(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


def write_fleet(data: Path, nodes: int, hours: float, containers: int) -> float:
    """CPU seconds; nodes by turns in two processes, each day in one file, as a consolidator leaves it."""
    told = data / "truth.json"
    if not told.exists():
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        words = [sys.executable, "-m", "bench.fleet", str(data), str(nodes), str(hours), str(containers)]
        turns = [subprocess.Popen([*words, str(turn)]) for turn in range(2)]
        codes = [turn.wait() for turn in turns]
        if any(codes):
            raise SystemExit("the demo fleet could not be written")
        parts = [json.loads((data / f"truth-{turn}.json").read_text()) for turn in range(2)]
        content = {
            "seconds": sum(part["seconds"] for part in parts),
            "planted": [one for part in parts for one in part["planted"]],
        }
        told.write_text(json.dumps(content))
    seconds: float = json.loads(told.read_text())["seconds"]
    return seconds


def write_turn(arguments: Sequence[str]) -> None:
    data, nodes, hours, containers, turn = Path(arguments[0]), *map(float, arguments[1:])
    planted = []
    for number in range(int(turn), int(nodes), 2):
        wish = DemoRequest(data, hours, int(containers), SEED, END_MS, "", number, int(nodes))
        planted += write_member(wish, plan_fleet)
    content = {"seconds": time.process_time(), "planted": planted}
    (data / f"truth-{int(turn)}.json").write_text(json.dumps(content))


# -- studies -----------------------------------------------------------------------


def plain_loop(data: Path) -> tuple[int, float]:
    """(series, CPU seconds): what somebody would write in an afternoon."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from nodescope.use.studies import STUDIES
    from nodescope.use.studies.series import Series

    raw = "cgroup.v2.memory.stat.anon"
    start = time.process_time()
    count = 0
    for path in sorted(data.glob("*/dt=*/*/*.parquet")):
        table = pq.read_table(
            path, columns=["time", "value", "l_container_id"], filters=[("metric_name", "=", raw)]
        )
        for container in table.column("l_container_id").unique().to_pylist():
            own = table.filter(pc.equal(table.column("l_container_id"), container))
            times = own.column("time").cast("int64").to_numpy() / 1000.0
            STUDIES["trend"].run(Series(times, own.column("value").to_numpy(), unit="bytes", metric=raw))
            count += 1
    return count, time.process_time() - start


def study_rows(data: Path) -> list[Row]:
    from nodescope.read.files.file_survey import survey_roots
    from nodescope.use.fleet.cluster import open_cluster, run_units
    from nodescope.use.fleet.unit import Job, split_by_day

    loop_series, loop_seconds = plain_loop(data)
    units = split_by_day(survey_roots([str(data)]), [STUDIED], None, None)
    walls: dict[int, float] = {}
    cpu = peak = 0.0
    series = 0
    for workers in (1, 2):
        with open_cluster(None, workers, 2**30) as client:
            # Warm: imports are paid once a worker, not once a question.
            list(run_units(client, units[:workers], Job("leaks")))
            before = sum(client.run(cpu_seconds).values())
            start = time.monotonic()
            parts = list(run_units(client, units, Job("leaks")))
            walls[workers] = time.monotonic() - start
            if workers == 1:
                cpu = sum(client.run(cpu_seconds).values()) - before
                series = sum(part.looked.total() + part.short for part in parts)
            peak = max(peak, *client.run(peak_bytes).values())
    return [
        Row(
            "fleet leaks, series a core second",
            series / cpu,
            "series",
            loop_series / loop_seconds,
            "plain loop",
            remark=f"{series} series; limits are read as well",
        ),
        Row("fleet leaks, 2 workers", walls[2], "seconds", walls[1], "1 worker"),
        Row("fleet leaks, a worker's peak", peak, "resident", remark="limit 1 GiB"),
    ]


def cpu_seconds() -> float:
    return time.process_time()


def peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def truth_rows(data: Path) -> list[Row]:
    """Recall and false discoveries of both questions that have a planted truth, on two workers."""
    from nodescope.read.files.file_survey import survey_roots
    from nodescope.use.fleet.answer import build_answer
    from nodescope.use.fleet.cluster import open_cluster, run_units

    planted: list[dict[str, Any]] = json.loads((data / "truth.json").read_text())["planted"]
    survey = survey_roots([str(data)])
    at_ms = round(next(one["minute"] for one in planted if one["kind"] == "bad_image") * 1000)
    leaking, changed = truth_of(planted)
    rows = []
    with open_cluster(None, 2, 2**30) as client:
        for name, (units, job), truth in (
            ("fleet leaks", ask_leaks(survey), leaking),
            ("fleet changes", ask_changes(survey, at_ms), changed),
        ):
            start = time.monotonic()
            parts = list(run_units(client, units, job))
            seconds = time.monotonic() - start
            score = Score()
            score.add(name, build_answer(parts, survey.faults, job, "workload", FALSE_SHARE), truth)
            rows.append(score.row(f"{name}, {len(survey.nodes)} nodes", f"; {seconds:.0f} s, 2 workers"))
    return rows


# -- the bucket --------------------------------------------------------------------


def bucket_rows(place: Path, data: Path) -> list[Row]:
    from tests.s3.server import serve

    with serve(place / "s3") as server:
        os.environ.update(server.environment)
        url = f"{server.make_bucket('fleet')}/archive"
        return [*copy_rows(data, url, server), *fetch_rows(url, server), *catalog_rows(server)]


def copy_rows(data: Path, url: str, server: Any) -> list[Row]:
    import pyarrow.fs as pafs

    from nodescope.base.clock import SystemClock
    from nodescope.keep.copy.copied_files import end_copying
    from nodescope.keep.copy.copier import Copier
    from nodescope.keep.copy.object_store import open_store
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder

    start = time.monotonic()
    sent = 0
    for node in sorted({day.parent for day in data.glob("*/dt=*")}):
        folder = DataFolder(node)
        # The fleet is kept from an earlier run, its store is not.
        end_copying(Disk(), folder)
        done = Copier(Disk(), folder, open_store(url), SystemClock()).run_pass(everything=True)
        sent += done.bytes
    ours = time.monotonic() - start
    plain = f"{server.make_bucket('plain')}/archive"
    files, base = pafs.FileSystem.from_uri(plain)
    start = time.monotonic()
    for path in sorted(data.glob("*/dt=*/*/consolidated-*")):
        with files.open_output_stream(f"{base}/{path.name}-{path.parts[-4]}") as output:
            output.write(path.read_bytes())
    anchor = time.monotonic() - start
    return [
        Row(
            "copy to S3, seconds a GiB",
            ours / sent * 2**30,
            "seconds",
            anchor / sent * 2**30,
            "upload alone",
            remark=f"{sent / 2**20:.0f} MiB; hashed, sent, read back, named, listed",
        )
    ]


def fetch_rows(url: str, server: Any) -> list[Row]:
    """One series of each node: what leaves the store against what lies there."""
    from tests.s3.server import sent_bytes

    from nodescope.read.files.file_survey import open_files, survey_roots
    from nodescope.read.query.engine import Engine
    from nodescope.use.fleet.unit import by_node

    survey = survey_roots([url])
    before = sent_bytes(server)
    start = time.monotonic()
    samples = 0
    for files in by_node(survey.files).values():
        catalog, _ = open_files(files)
        container = next(
            one.label("l_container_id") or ""
            for one in catalog.containers()
            if one.label("l_container_name") == "api"
        )
        answer = Engine().query(catalog, "memory", [container], max_points=90_000)
        samples += sum(len(line.points.time_ms) for line in answer.lines)
    seconds = time.monotonic() - start
    fetched = sent_bytes(server) - before
    whole = sum(file.size for file in survey.files)
    return [
        Row(
            f"one series over {len(survey.nodes)} nodes, fetched",
            float(fetched),
            "bytes",
            float(whole),
            "all files",
            remark=f"{samples:,} samples in {seconds:.1f} s",
        )
    ]


def catalog_rows(server: Any) -> list[Row]:
    """Days of 24 hours each with their manifests, written where the server keeps its objects."""
    from nodescope.keep.copy.manifest import MANIFEST, Listing, Manifest, render_manifest
    from nodescope.keep.folder import render_day, render_stamp
    from nodescope.read.files.file_survey import survey_roots

    bucket = server.make_bucket("catalog")
    root = server.folder / "catalog" / "archive"
    per_day = 24
    for number in range(CATALOG_FILES // per_day):
        start_ms = END_MS - number % 30 * 86_400_000
        partition = root / f"dt={render_day(start_ms)}" / f"identifier=node-{number // 30}"
        partition.mkdir(parents=True)
        manifest = Manifest()
        for hour in range(per_day):
            first = start_ms + hour * 3_600_000
            name = f"consolidated-{render_stamp(first)}-{render_stamp(first + 3_599_000)}.parquet"
            (partition / name).write_bytes(b"PAR1")
            (partition / name).with_suffix(".containers").write_bytes(b"x")
            manifest.replace(
                Listing(name, 4, "", 1, "", 1, first, first + 3_599_000, f"node-{number // 30}"), ()
            )
        (partition / MANIFEST).write_bytes(render_manifest(manifest))
    start = time.monotonic()
    survey = survey_roots([f"{bucket}/archive"])
    seconds = time.monotonic() - start
    return [
        Row(
            f"catalog of {len(survey.files):,} files in S3",
            seconds,
            "seconds",
            remark=f"{CATALOG_FILES // per_day} partitions, one manifest each; {2 * len(survey.files):,} names listed",
        )
    ]


if __name__ == "__main__":
    write_turn(sys.argv[1:])
