"""
The archive: bytes per sample, cost of writing, time to answer, merging.

Figures of size come from a recording of a real machine: artifacts/capture.frames
where there is one (`python -m bench.recording artifacts/capture.frames`, ten
minutes), else one that is recorded now, for --seconds. Each costly step runs
in a process of its own, so that its peak memory is its own.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.result import Goal, Options, Row, median

CAPTURE = Path("artifacts/capture.frames")
SEGMENT_FRAMES = 90
DAY_SECONDS = 86_400
DAY_CONTAINERS = 300
MIB = 2**20


def run(options: Options) -> list[Row]:
    with workplace() as place:
        capture = find_capture(place, options)
        facts = call("size_up", str(capture), str(place / "data"))
        cost = call("write_cost", str(capture), str(place / "cost"))
        merged = call("merge", str(place / "data"))
        day = call("day_query", str(place / "day"))
        listing = call("list_files", str(place / "many"))
    return [*size_rows(facts, merged), *cost_rows(cost, merged), *answer_rows(day, listing)]


@contextmanager
def workplace() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="nodescope-bench-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def find_capture(place: Path, options: Options) -> Path:
    if CAPTURE.exists():
        return CAPTURE.absolute()
    out = place / "capture.frames"
    words = [sys.executable, "-m", "bench.recording", str(out), "--seconds", str(round(options.seconds))]
    subprocess.run(words, check=True)
    return out


def call(step: str, *arguments: str) -> dict[str, Any]:
    """A step of this module in a process of its own; its last line is JSON."""
    words = [sys.executable, "-m", "bench.archive", step, *arguments]
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def size_rows(facts: dict[str, Any], merged: dict[str, Any]) -> list[Row]:
    fresh = facts["bytes"] / facts["rows"]
    consolidated = merged["bytes"] / facts["rows"]
    per_day = merged["bytes"] / facts["seconds"] / facts["containers"] * 100 * DAY_SECONDS
    words = f"{facts['containers']:.0f} containers, {facts['rows']} samples, sidecars included"
    return [
        Row("archive, fresh", fresh, "bytes/sample", goal=Goal(1.2, "ours"), remark=words),
        Row("archive, consolidated", consolidated, "bytes/sample", goal=Goal(0.6, "ours")),
        Row("a node-day of 100 containers", per_day / 1e6, "MB", 75.0, "fgm's claim of 50-100 MB"),
        Row("rollups of it", merged["rollup_bytes"] / facts["rows"], "bytes/sample"),
        Row("log written per second", facts["log_bytes"] / facts["seconds"], "bytes"),
    ]


def cost_rows(cost: dict[str, Any], merged: dict[str, Any]) -> list[Row]:
    return [
        Row(
            "writing a million samples",
            cost["ours"],
            "s",
            cost["bare"],
            "a bare pyarrow write",
            Goal(1.3, "ratio"),
        ),
        Row("its extra memory", cost["extra_bytes"], "resident", goal=Goal(64 * MIB, "ours")),
        Row("merging, rows a second", merged["rows"] / merged["seconds"], "rows/s"),
        Row("its peak memory", merged["peak_bytes"], "resident", goal=Goal(256 * MIB, "ours")),
    ]


def answer_rows(day: dict[str, Any], listing: dict[str, Any]) -> list[Row]:
    words = f"24 h of {DAY_CONTAINERS} containers, {day['points']} points of one"
    return [
        Row("one series of a day", day["ours"], "s", day["raw"], "raw DuckDB", Goal(0.15, "ours"), words),
        Row("its rate", day["rate"], "s"),
        Row("catalog of 1,000 files", listing["seconds"], "s", goal=Goal(0.1, "ours")),
        Row("and every container in them", listing["containers_seconds"], "s"),
    ]


# -- the steps ---------------------------------------------------------------------


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cut_capture(capture: Path, data: Path, segments: int | None = None) -> dict[str, float]:
    """The recording as closed segments of 90 ticks."""
    from nodescope.base.codec import Decoder, Encoder

    wal = data / "wal"
    wal.mkdir(parents=True)
    encoder = Encoder()
    parts: list[bytes] = []
    number = ticks = log_bytes = containers = 0
    first_ns = last_ns = 0

    def flush() -> None:
        nonlocal parts, log_bytes, number
        if parts:
            whole = b"".join(parts)
            log_bytes += len(whole)
            (wal / f"bench-{number:06d}.log").write_bytes(whole)
            number += 1
            parts = []

    for frame in Decoder().decode(capture.read_bytes()):
        if not parts:
            encoder = Encoder()
            parts = [encoder.hello(run="bench", segment=number, node="bench")]
        parts.append(encoder.encode(frame))
        first_ns, last_ns = first_ns or frame.mono_ns, frame.mono_ns
        containers += sum(len(block.entities) for block in frame.blocks if block.table.name == "container")
        ticks += 1
        if ticks % SEGMENT_FRAMES == 0:
            flush()
            if segments and number >= segments:
                break
    flush()
    return {"seconds": (last_ns - first_ns) / 1e9, "log_bytes": log_bytes, "containers": containers / ticks}


def folder_bytes(path: Path, pattern: str) -> int:
    return sum(file.stat().st_size for file in path.glob(pattern) if file.is_file())


def size_up(capture: str, data: str) -> dict[str, Any]:
    from nodescope.keep.convert import convert_all
    from nodescope.keep.disk import Disk
    from nodescope.keep.layout import DataFolder

    facts = cut_capture(Path(capture), Path(data))
    result = convert_all(Disk(), DataFolder(Path(data)))
    return {**facts, "rows": result.rows, "bytes": folder_bytes(Path(data), "dt=*/*/*")}


def write_cost(capture: str, data: str) -> dict[str, Any]:
    """CPU of converting one segment, and of writing the table it became with pyarrow alone."""
    import pyarrow.parquet as pq

    from nodescope.keep.convert import convert_all
    from nodescope.keep.disk import Disk
    from nodescope.keep.layout import DataFolder
    from nodescope.keep.parquet import ROW_GROUP_ROWS

    folder = DataFolder(Path(data))
    cut_capture(Path(capture), folder.path, segments=2)
    second = (folder.wal / "bench-000001.log").read_bytes()
    (folder.wal / "bench-000001.log").unlink()
    # The first warms up what is done once a process.
    convert_all(Disk(), folder)
    (folder.wal / "bench-000001.log").write_bytes(second)
    del second
    before = peak_bytes()
    ours, result = spend(lambda: convert_all(Disk(), folder))
    extra = peak_bytes() - before
    path = max(folder.files(), key=lambda file: file.from_ms).path
    names = [name for name in pq.read_schema(path).names if name not in ("time", "value")]
    table = pq.read_table(path, read_dictionary=names, partitioning=None)
    options = {
        "compression": "zstd",
        "compression_level": 3,
        "row_group_size": ROW_GROUP_ROWS,
        "use_dictionary": names,
        "write_page_index": True,
        "bloom_filter_options": {"l_container_id": {"ndv": 400, "fpp": 0.01}},
    }
    bare = median(
        [spend(lambda: pq.write_table(table, folder.path / "bare", **options))[0] for _ in range(5)]
    )
    million = 1e6 / result.rows
    return {"ours": ours * million, "bare": bare * million, "extra_bytes": extra, "rows": result.rows}


def spend(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads."""
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def merge(data: str) -> dict[str, Any]:
    from nodescope.keep.disk import Disk
    from nodescope.keep.layout import DataFolder
    from nodescope.keep.merge import merge_files
    from nodescope.keep.rollup import renew_rollups

    folder = DataFolder(Path(data))
    rows, seconds = 0, 0.0
    for partition in folder.partitions():
        paths = [file.path for file in folder.files() if file.path.parent == partition]
        if len(paths) > 1:
            spent, merged = spend(lambda paths=paths: merge_files(Disk(), paths))  # type: ignore[misc]
            rows, seconds = rows + merged.rows, seconds + spent
        renew_rollups(Disk(), folder, partition)
    return {
        "rows": rows,
        "seconds": seconds,
        "peak_bytes": peak_bytes(),
        "bytes": folder_bytes(folder.path, "dt=*/*/*"),
        "rollup_bytes": folder_bytes(folder.path, "rollup/dt=*/*/*"),
    }


def write_day(folder: Path) -> str:
    """One day-sized file: a counter and a gauge of 300 containers. Returns the id in the middle."""
    import numpy as np

    from nodescope.base.entity import Entity
    from nodescope.base.metric import Metric
    from nodescope.keep.convert import publish
    from nodescope.keep.disk import Disk
    from nodescope.keep.layout import DataFolder
    from nodescope.keep.parquet import ArchiveWriter, Rows
    from nodescope.keep.series import describe_entity
    from nodescope.keep.sidecar import Head, Sidecar, Ticks, render_sidecar

    start_ms = 1_772_323_200_000
    dice = np.random.default_rng(1)
    times = start_ms + np.arange(DAY_SECONDS, dtype=np.int64) * 1000 + dice.integers(0, 5, DAY_SECONDS)
    ids = sorted(dice.bytes(32).hex() for _ in range(DAY_CONTAINERS))
    subjects = [
        describe_entity(
            Entity("container", (one,), (("namespace", "shop"), ("pod", f"pod-{one[:5]}"))), "n1", start_ms
        )
        for one in ids
    ]
    for subject in subjects:
        subject.first_ms, subject.last_ms = int(times[0]), int(times[-1])
    usage = Metric("cgroup.v2.cpu.stat.usage_usec", "counter", "", unit="seconds", scale=1e-6)
    current = Metric("cgroup.v2.memory.current", "gauge", "", unit="bytes")
    partition = DataFolder(folder).partition("2026-03-01", "n1")
    partition.mkdir(parents=True)
    path = partition / "consolidated-20260301T000000Z-20260301T235959Z.parquet"
    disk = Disk()
    temporary = path.with_suffix(".tmp")
    with (
        disk.create(temporary) as output,
        ArchiveWriter(output, subjects, {"segments": {"b": [[1, 960]]}, "replaces": []}) as writer,
    ):
        for metric in (usage, current):
            for rank in range(DAY_CONTAINERS):
                steps = dice.integers(0, 20_000, DAY_SECONDS).astype(float)
                value = np.cumsum(steps) if metric is usage else 2.0**28 + np.rint(steps / 2000) * 4096
                writer.add(Rows(metric.name, metric.kind, np.full(DAY_SECONDS, rank, np.int64), times, value))
    ticks = Ticks(times, times * 1_000_000, np.zeros(DAY_SECONDS, np.int64), ("b",))
    head = Head(writer.rows, int(times[0]), int(times[-1]), "n1", "n1", {"b": [[1, 960]]})
    scopes = {usage.name: ("container",), current.name: ("container",)}
    publish(
        disk, temporary, path, render_sidecar(Sidecar(head, (usage, current), tuple(subjects), ticks, scopes))
    )
    return ids[DAY_CONTAINERS // 2]


def day_query(data: str) -> dict[str, Any]:
    import duckdb

    from nodescope.read.catalog import read_catalog
    from nodescope.read.query import Engine

    folder = Path(data)
    container = write_day(folder)
    engine = Engine()
    connection = duckdb.connect()
    question = (
        f"SELECT time, value FROM read_parquet('{folder}/dt=*/identifier=*/*.parquet') "
        f"WHERE metric_name = 'cgroup.v2.memory.current' AND l_container_id = '{container}'"
    )
    points = 0

    def ours(metric: str) -> Callable[[], None]:
        def ask() -> None:
            nonlocal points
            answer = engine.query(read_catalog([folder]), metric, [container], max_points=1000)
            points = len(answer.lines[0].points.time_ms)

        return ask

    return {
        "ours": clock(ours("memory")),
        "rate": clock(ours("cpu")),
        "raw": clock(lambda: connection.cursor().sql(question).to_arrow_table()),
        "points": points,
    }


def clock(work: Callable[[], object], rounds: int = 9) -> float:
    taken = []
    for _ in range(rounds):
        before = time.perf_counter()
        work()
        taken.append(time.perf_counter() - before)
    return median(taken)


def list_files(data: str) -> dict[str, Any]:
    """A thousand files of 100 containers each; every reading starts without a cache."""
    from nodescope.keep import sidecar as sidecars
    from nodescope.keep.demo import Wish, write_node
    from nodescope.keep.layout import DataFolder, render_stamp
    from nodescope.read.catalog import read_catalog

    made = DataFolder(Path(data) / "made")
    end_ms = 1_772_366_400_000
    write_node(Wish(made.path, 0.05, 100, 1, end_ms, "n1"), "0", lambda _: None)
    source = next(iter(made.files()))
    whole = sidecars.read_sidecar(source.sidecar).whole()
    content = source.path.read_bytes()
    many = DataFolder(Path(data) / "many")
    partition = many.partition("2026-03-01", "n1")
    partition.mkdir(parents=True)
    for number in range(1000):
        from_ms = end_ms + number * 90_000
        stem = partition / f"metrics-{render_stamp(from_ms)}"
        span = whole.head.to_ms - whole.head.from_ms
        for subject in whole.subjects:
            subject.first_ms, subject.last_ms = from_ms, from_ms + span
        whole.head = replace(whole.head, from_ms=from_ms, to_ms=from_ms + span)
        Path(f"{stem}.containers").write_bytes(sidecars.render_sidecar(whole))
        Path(f"{stem}.parquet").write_bytes(content)

    def forget() -> None:
        for cache in (sidecars._metrics_from, sidecars._scopes_from, sidecars._series_from):  # noqa: SLF001
            cache.cache_clear()

    def list_all() -> None:
        forget()
        assert len(read_catalog([many.path]).entries) == 1000

    def list_containers() -> None:
        forget()
        assert len(read_catalog([many.path]).containers()) >= 100

    return {"seconds": clock(list_all, 5), "containers_seconds": clock(list_containers, 3)}


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "size_up": size_up,
    "write_cost": write_cost,
    "merge": merge,
    "day_query": day_query,
    "list_files": list_files,
}

if __name__ == "__main__":
    os.nice(0)
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
