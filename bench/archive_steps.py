"""
The steps of the bench `archive`, each run in a process of its own: `python -m bench.archive_steps NAME ...`.

A step prints one line of JSON. Nodescope and its libraries are imported where
they are used, so that the peak of a step is that of its own work.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.result import median

SEGMENT_FRAMES = 90
DAY_SECONDS = 86_400
DAY_START_MS = 1_772_323_200_000
ROUNDS = 9


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes(key: str) -> int:
    """VmRSS or VmHWM of this process."""
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith(key)).split()[1]) * 1024


@dataclass(slots=True)
class Tally:
    """Counts what a disk is asked to write."""

    writes: int = 0
    written_bytes: int = 0
    syncs: int = 0

    def __call__(self, operation: Any) -> None:
        if operation.kind == "write":
            self.writes += 1
            self.written_bytes += len(operation.data)
        elif operation.kind.startswith("sync"):
            self.syncs += 1


def cut_capture(capture: Path, data: Path, segments: int | None = None) -> dict[str, float]:
    """The recording as closed segments of 90 ticks."""
    from nodescope.base.codec import Decoder
    from nodescope.keep.packed.log_encoder import LogEncoder

    wal = data / "wal"
    wal.mkdir(parents=True)
    encoder = LogEncoder()
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
            encoder = LogEncoder()
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
    """Fresh files of the whole recording, and what the disk was asked to do for them."""
    from nodescope.keep.convert import convert_all
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder

    facts = cut_capture(Path(capture), Path(data))
    tally = Tally()
    result = convert_all(Disk(tally), DataFolder(Path(data)))
    return {
        **facts,
        "rows": result.rows,
        "bytes": folder_bytes(Path(data), "dt=*/*/*"),
        "writes": tally.writes,
        "written_bytes": tally.written_bytes,
        "syncs": tally.syncs,
    }


def demo_size(data: str) -> dict[str, Any]:
    """Ten minutes of the demo, fresh and merged."""
    from nodescope.keep.demo.archive import write_node
    from nodescope.keep.demo.story import DemoRequest
    from nodescope.keep.folder import DataFolder

    folder = DataFolder(Path(data))
    made = write_node(
        DemoRequest(folder.path, 1 / 6, 24, 1, DAY_START_MS + 43_200_000, "n1"), "0", lambda _: None
    )
    fresh = folder_bytes(folder.path, "dt=*/*/*")
    merged = merge(data)
    return {"rows": made.rows, "fresh": fresh, "merged": merged["bytes"]}


def write_cost(capture: str, data: str) -> dict[str, Any]:
    """CPU of turning a segment into Parquet, and of writing the table it became with pyarrow alone."""
    import pyarrow.parquet as pq

    from nodescope.keep.convert import convert_all
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder
    from nodescope.keep.parquet import ROW_GROUP_ROWS

    first = Path(data) / "first"
    cut_capture(Path(capture), first, segments=1)
    log = (first / "wal" / "bench-000000.log").read_bytes()

    def prepare(number: int) -> Any:
        folder = DataFolder(Path(data) / str(number))
        folder.wal.mkdir(parents=True)
        (folder.wal / "bench-000000.log").write_bytes(log)
        return folder

    # The first warms up what is done once a process.
    rows = convert_all(Disk(), DataFolder(first)).rows
    path = next(iter(DataFolder(first).files())).path
    names = [name for name in pq.read_schema(path).names if name not in ("time", "value")]
    table = pq.read_table(path, read_dictionary=names, partitioning=None)
    options = {
        "compression": "zstd",
        "compression_level": 3,
        "row_group_size": ROW_GROUP_ROWS,
        "use_dictionary": names,
        "bloom_filter_options": {"l_container_id": {"ndv": 400, "fpp": 0.01}},
    }
    ours, bare = [], []
    for number in range(ROUNDS):
        folder = prepare(number)
        ours.append(spend(lambda folder=folder: convert_all(Disk(), folder))[0])  # type: ignore[misc]
        bare.append(spend(lambda: pq.write_table(table, Path(data) / "bare", **options))[0])
    million = 1e6 / rows
    # The least of each: what the work takes when nothing else disturbs.
    return {"ours": min(ours) * million, "bare": min(bare) * million, "rows": rows}


def cut(capture: str, data: str) -> dict[str, Any]:
    """One segment, ready to be converted by another process."""
    return dict(cut_capture(Path(capture), Path(data), segments=1))


def write_memory(data: str) -> dict[str, Any]:
    """Peak of a conversion above what the libraries take."""
    from nodescope.keep.convert import convert_all
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder

    before = resident_bytes("VmRSS")
    # Forgets the peak so far; Linux 4.0.
    Path("/proc/self/clear_refs").write_text("5")
    convert_all(Disk(), DataFolder(Path(data)))
    return {"extra_bytes": resident_bytes("VmHWM") - before}


def spend(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads."""
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def merge(data: str) -> dict[str, Any]:
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder
    from nodescope.keep.merge import merge_files
    from nodescope.keep.rollup import renew_rollups

    folder = DataFolder(Path(data))
    rows, seconds = 0, 0.0
    tally = Tally()
    for partition in folder.partitions():
        paths = [file.path for file in folder.files() if file.path.parent == partition]
        if len(paths) > 1:
            spent, merged = spend(lambda paths=paths: merge_files(Disk(tally), paths))  # type: ignore[misc]
            rows, seconds = rows + merged, seconds + spent
        renew_rollups(Disk(), folder, partition)
    return {
        "rows": rows,
        "written_bytes": tally.written_bytes,
        "seconds": seconds,
        "peak_bytes": peak_bytes(),
        "bytes": folder_bytes(folder.path, "dt=*/*/*"),
        "rollup_bytes": folder_bytes(folder.path, "rollup/dt=*/*/*"),
    }


def write_day(folder: Path, containers: int) -> None:
    """One day-sized file: a counter and a gauge of each container."""
    import numpy as np

    from nodescope.base.entity import Entity
    from nodescope.base.metric import Metric
    from nodescope.keep.disk import Disk
    from nodescope.keep.file_writer import publish
    from nodescope.keep.folder import DataFolder
    from nodescope.keep.label_columns import describe_entity
    from nodescope.keep.parquet import SampleRows, create_archive
    from nodescope.keep.sidecar import Head, Sidecar, Ticks, render_sidecar

    start_ms = DAY_START_MS
    dice = np.random.default_rng(1)
    times = start_ms + np.arange(DAY_SECONDS, dtype=np.int64) * 1000 + dice.integers(0, 5, DAY_SECONDS)
    ids = sorted(dice.bytes(32).hex() for _ in range(containers))
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
    footer = {"segments": {"b": [[1, 960]]}, "replaces": []}
    with create_archive(disk, temporary, subjects, footer) as writer:
        for metric in (usage, current):
            for rank in range(containers):
                steps = dice.integers(0, 20_000, DAY_SECONDS).astype(float)
                value = np.cumsum(steps) if metric is usage else 2.0**28 + np.rint(steps / 2000) * 4096
                writer.add(SampleRows(metric, np.full(DAY_SECONDS, rank, np.int64), times, value))
    ticks = Ticks(times, times * 1_000_000, np.zeros(DAY_SECONDS, np.int64), ("b",))
    head = Head(writer.rows, int(times[0]), int(times[-1]), "n1", "n1", {"b": [[1, 960]]})
    scopes = {usage.name: ("container",), current.name: ("container",)}
    publish(
        disk, temporary, path, render_sidecar(Sidecar(head, (usage, current), tuple(subjects), ticks, scopes))
    )


def select(folder: Path, metric: str, ids: list[str]) -> str:
    """The same rows, asked of DuckDB directly."""
    words = ", ".join(f"'{one}'" for one in ids)
    return (
        f"SELECT time, value, l_container_id FROM read_parquet('{folder}/dt=*/identifier=*/*.parquet') "
        f"WHERE metric_name = '{metric}' AND l_container_id IN ({words})"
    )


def make_day(data: str, containers: str) -> dict[str, Any]:
    """A day as the consolidator leaves it: one file, and its minutes."""
    from nodescope.keep.disk import Disk
    from nodescope.keep.folder import DataFolder
    from nodescope.keep.rollup import renew_rollups

    folder = DataFolder(Path(data))
    write_day(folder.path, int(containers))
    return {"rollups": renew_rollups(Disk(), folder, folder.partitions()[0])}


def list_ids(folder: Path) -> list[str]:
    from nodescope.read.files.catalog import read_catalog

    return sorted(one.label("l_container_id") or "" for one in read_catalog([folder]).containers())


@contextmanager
def without_minutes(folder: Path) -> Iterator[Path]:
    """The same day without its rollups: every sample has to be read."""
    with tempfile.TemporaryDirectory() as place:
        shown = Path(place)
        for path in folder.glob("dt=*/*/*"):
            link = shown / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        yield shown


def day_query(data: str) -> dict[str, Any]:
    """One series of a day, catalog and all; DuckDB on the same file in the same turns."""
    import duckdb

    from nodescope.read.files.catalog import read_catalog
    from nodescope.read.query.engine import Engine

    folder = Path(data)
    ids = list_ids(folder)
    one = [ids[len(ids) // 2]]
    engine, connection = Engine(), duckdb.connect()
    question = select(folder, "cgroup.v2.memory.current", one)

    def ask(place: Path, metric: str, points: int) -> int:
        answer = engine.query(read_catalog([place]), metric, one, max_points=points)
        return len(answer.lines[0].points.time_ms)

    with without_minutes(folder) as samples:
        figures = take_turns(
            ours=lambda: ask(folder, "memory", 1000),
            rate=lambda: ask(folder, "cpu", 1000),
            samples=lambda: ask(samples, "memory", 1000),
            every=lambda: ask(folder, "memory", DAY_SECONDS),
            raw=lambda: connection.cursor().sql(question).to_arrow_table(),
        )
    return {**figures, "points": ask(folder, "memory", 1000)}


def panel(data: str) -> dict[str, Any]:
    """What a viewer asks: eight series of a day, and the ten largest; from rollups and from samples."""
    import duckdb

    from nodescope.read.files.catalog import read_catalog
    from nodescope.read.query.engine import Engine
    from nodescope.read.query.ranking import rank_containers

    folder = Path(data)
    ids = list_ids(folder)
    eight = ids[:: len(ids) // 8][:8]
    engine, connection = Engine(), duckdb.connect()
    question = select(folder, "cgroup.v2.cpu.stat.usage_usec", eight)
    catalogs: dict[Path, Any] = {}

    def ask(place: Path, points: int) -> None:
        # As a viewer does: what is known of a file is kept.
        catalogs[place] = read_catalog([place], catalogs.get(place))
        assert len(engine.query(catalogs[place], "cpu", eight, max_points=points).lines) == 8

    def rank() -> None:
        assert len(rank_containers(engine, catalogs[folder], "cpu")[:10]) == 10

    with without_minutes(folder) as samples:
        return take_turns(
            minutes=lambda: ask(folder, 1000),
            samples=lambda: ask(samples, 1000),
            ranking=rank,
            raw=lambda: connection.cursor().sql(question).to_arrow_table(),
        )


def take_turns(**works: Callable[[], object]) -> dict[str, float]:
    """
    Seconds of each, in turns, the median: on a busy machine all suffer alike.

    `<name>_cpu` is the least CPU time of a turn, which others hardly touch.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            before = time.perf_counter()
            spent[name].append(spend(work)[0])
            taken[name].append(time.perf_counter() - before)
    return {
        **{name: median(many) for name, many in taken.items()},
        **{f"{name}_cpu": min(many) for name, many in spent.items()},
    }


def make_many(data: str, files: str) -> dict[str, Any]:
    """Many files of 100 containers each, a segment after the other."""
    from nodescope.keep import sidecar as sidecars
    from nodescope.keep.demo.archive import write_node
    from nodescope.keep.demo.story import DemoRequest
    from nodescope.keep.folder import DataFolder, render_stamp

    many = DataFolder(Path(data))
    partition = many.partition("2026-03-01", "n1")
    partition.mkdir(parents=True)
    end_ms = 1_772_366_400_000
    with tempfile.TemporaryDirectory() as place:
        made = DataFolder(Path(place))
        write_node(DemoRequest(made.path, 0.05, 100, 1, end_ms, "n1"), "0", lambda _: None)
        source = next(iter(made.files()))
        whole = sidecars.read_sidecar(source.sidecar).whole()
        content = source.path.read_bytes()
    for number in range(int(files)):
        from_ms = end_ms + number * 90_000
        stem = partition / f"metrics-{render_stamp(from_ms)}"
        span = whole.head.to_ms - whole.head.from_ms
        for subject in whole.subjects:
            subject.first_ms, subject.last_ms = from_ms, from_ms + span
        whole.head = replace(whole.head, from_ms=from_ms, to_ms=from_ms + span)
        Path(f"{stem}.containers").write_bytes(sidecars.render_sidecar(whole))
        Path(f"{stem}.parquet").write_bytes(content)
    return {}


def list_files(data: str) -> dict[str, Any]:
    """A thousand files; every reading starts without a cache."""
    from nodescope.keep import sidecar as sidecars
    from nodescope.read.files.catalog import read_catalog

    many = Path(data)

    def forget() -> None:
        for cache in (sidecars._metrics_from, sidecars._scopes_from, sidecars._series_from):  # noqa: SLF001
            cache.cache_clear()

    def list_all() -> None:
        forget()
        assert len(read_catalog([many]).entries) == 1000

    def list_containers() -> None:
        forget()
        assert len(read_catalog([many]).containers()) >= 100

    return take_turns(listing=list_all, containers=list_containers)


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "size_up": size_up,
    "demo_size": demo_size,
    "cut": cut,
    "write_cost": write_cost,
    "write_memory": write_memory,
    "merge": merge,
    "make_day": make_day,
    "make_panel": make_day,
    "make_many": make_many,
    "day_query": day_query,
    "panel": panel,
    "list_files": list_files,
}

if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](*sys.argv[2:])))
