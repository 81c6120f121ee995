"""
Nothing is lost, nothing is there twice, at whatever operation the machine stops.

A run is recorded as file operations. For every prefix of them, with the last
write torn, the folder is put together, recovered, and asked.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.keep.frames import (
    CURRENT,
    A,
    Recorder,
    Stopped,
    archived_times,
    frame_at,
    frames,
    replay,
    write_log,
)

from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all, sweep
from nodescope.keep.disk import Disk, Operation
from nodescope.keep.folder import CLOSED, OPEN, DataFolder
from nodescope.keep.log_writer import LogWriter
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine

FACTS = {"run": "run1", "node": "n1", "identifier": "n1"}
# Long after every sample of these tests.
LATER_MS = 1_772_366_340_000 + 90 * 86_400_000


def recover(folder: DataFolder) -> None:
    """What an agent does at its start."""
    if folder.wal.is_dir():
        for left in folder.wal.glob(f"*{OPEN}"):
            left.rename(left.with_suffix(CLOSED))
    sweep(Disk(), folder)
    result = convert_all(Disk(), folder)
    assert not result.failures


def record_run(folder: DataFolder) -> tuple[list[Operation], dict[int, int]]:
    """Two segments of four ticks, the first converted; which operation ended each tick's write."""
    recorder = Recorder()
    disk = recorder.disk()
    disk.make_folder(folder.wal)
    done: dict[int, int] = {}
    for segment in (1, 2):
        first = frame_at(segment * 4 - 4)
        writer = LogWriter.begin(disk, folder, segment, FACTS, first)
        for number in range(segment * 4 - 4, segment * 4):
            writer.append(frame_at(number))
            done[number] = len(recorder.operations)
        writer.close()
        convert_all(disk, folder)
    return recorder.operations, done


def torn_sizes(operation: Operation) -> Sequence[int | None]:
    """Where the last write is torn: a log's in four ways, a temporary file's in one."""
    if operation.kind != "write":
        return [None]
    size = len(operation.data)
    is_log = operation.path.suffix == OPEN
    return [None, 0, size // 2, max(0, size - 1)] if is_log else [size // 2]


def test_every_prefix_of_a_run_is_recovered(tmp_path: Path) -> None:
    """
    forall prefix, tear: ticks whose write is in the prefix are archived once, in order, no other.

    A torn write is no write; the tick before it stays.
    """
    source = DataFolder(tmp_path / "source")
    operations, done = record_run(source)
    for length in range(1, len(operations) + 1):
        for number, torn in enumerate(torn_sizes(operations[length - 1])):
            target = DataFolder(tmp_path / f"{length}-{number}")
            target.path.mkdir()
            replay(operations[:length], source.path, target.path, torn)
            recover(target)
            whole = length if torn is None else length - 1
            expected = [tick for tick, ended in done.items() if ended <= whole]
            assert archived_times(target) == expected, (
                f"after {operations[length - 1].kind} {length}, torn {torn}"
            )


def make_fresh(folder: DataFolder, files: int = 4) -> None:
    for number in range(files):
        write_log(folder, frames(5, number * 5), segment=number + 1)
    convert_all(Disk(), folder)


def count_operations(tmp_path: Path) -> int:
    folder = DataFolder(tmp_path / "count")
    make_fresh(folder)
    recorder = Recorder()
    Consolidator(recorder.disk(), folder).run_pass(LATER_MS)
    return len(recorder.operations)


def test_a_consolidator_stopped_anywhere_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """forall n: stopped before operation n, readers see every row once; the next pass finishes."""
    total = count_operations(tmp_path)
    assert total > 10
    make_fresh(DataFolder(tmp_path / "fresh"))
    for stop_at in range(total):
        folder = DataFolder(tmp_path / f"stop-{stop_at}")
        shutil.copytree(tmp_path / "fresh", folder.path)
        with pytest.raises(Stopped):
            Consolidator(Recorder(stop_at).disk(), folder).run_pass(LATER_MS)
        assert archived_times(folder) == list(range(20)), f"stopped before operation {stop_at}"
        Consolidator(Disk(), folder).run_pass(LATER_MS)
        assert archived_times(folder) == list(range(20)), f"finished after {stop_at}"
        assert [file.kind for file in folder.files()] == ["consolidated"]
        assert not list(folder.path.rglob("*.tmp"))


# 12:00, the first frame of an hour, and when what it has may be merged.
NOON, NOON_MS, RIPE_MS = 60, 1_772_366_400_000, 400_000


def make_parts(folder: DataFolder) -> None:
    """An hour that is not over: two merged parts of two minutes, each with its rollup."""
    for part in range(2):
        for half in range(2):
            segment = 2 * part + half
            write_log(folder, frames(60, NOON + 60 * segment), segment=segment + 1)
        convert_all(Disk(), folder)
        Consolidator(Disk(), folder, least=2).run_pass(NOON_MS + 120_000 * (part + 1) + RIPE_MS)
    assert len(list(folder.rollup.files())) == 2


def count_in_minutes(folder: DataFolder) -> int:
    """Samples of one container, by buckets of whole minutes."""
    answer = Engine().query(read_catalog([folder.path]), "memory", [A.ids[0]], max_points=4)
    return int(answer.lines[0].points.count.sum())


def test_the_rollups_of_an_hours_parts_become_one(tmp_path: Path) -> None:
    """forall n: stopped before operation n, no minute counts twice or is missing; in the end there is one rollup."""
    make_parts(DataFolder(tmp_path / "parts"))
    hour_over_ms = NOON_MS + 3_600_000 + RIPE_MS
    recorder = Recorder()
    shutil.copytree(tmp_path / "parts", tmp_path / "count")
    Consolidator(recorder.disk(), DataFolder(tmp_path / "count")).run_pass(hour_over_ms)
    for stop_at in range(len(recorder.operations)):
        folder = DataFolder(tmp_path / f"stop-{stop_at}")
        shutil.copytree(tmp_path / "parts", folder.path)
        with pytest.raises(Stopped):
            Consolidator(Recorder(stop_at).disk(), folder).run_pass(hour_over_ms)
        assert count_in_minutes(folder) == 240, f"stopped before operation {stop_at}"
        Consolidator(Disk(), folder).run_pass(hour_over_ms)
        assert count_in_minutes(folder) == 240, f"finished after {stop_at}"
        (rollup,) = folder.rollup.files()
        assert (rollup.from_ms, pq.read_metadata(rollup.path).num_rows) == (NOON_MS, 4 * 7)
        before = rollup.path.stat().st_mtime_ns
        Consolidator(Disk(), folder).run_pass(hour_over_ms)
        assert [file.path.stat().st_mtime_ns for file in folder.rollup.files()] == [before]


def test_a_file_is_not_merged_while_its_log_is_there(tmp_path: Path) -> None:
    """Otherwise the agent, coming back, would find no trace of the segment and write it again."""
    folder = DataFolder(tmp_path)
    make_fresh(folder)
    log = write_log(folder, frames(5, 5), segment=2)
    (folder.wal / "keep").write_bytes(log.read_bytes())
    consolidator = Consolidator(Disk(), folder)
    partition = folder.partitions()[0]
    planned = {path.name for batch in consolidator.plan(partition, "hour", LATER_MS) for path in batch}
    assert "metrics-20260301T115905Z.parquet" not in planned
    consolidator.run_pass(LATER_MS)
    assert archived_times(folder) == list(range(20))


def test_consolidation_changes_no_answer(tmp_path: Path) -> None:
    """The same question before and after has the same numbers."""
    folder = DataFolder(tmp_path)
    make_fresh(folder)
    engine = Engine()

    def ask(metric: str) -> list[tuple[str | None, list[float]]]:
        answer = engine.query(read_catalog([folder.path]), metric)
        return [(line.subject.label("l_pod_name"), line.points.mean.tolist()) for line in answer.lines]

    before = [ask("cpu"), ask("memory"), ask(CURRENT.name)]
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert [ask("cpu"), ask("memory"), ask(CURRENT.name)] == before


def test_the_consolidator_keeps_what_it_cannot_read(tmp_path: Path) -> None:
    """Truncated, foreign, newer, empty: left where they are, said by name; the rest is merged."""
    folder = DataFolder(tmp_path)
    make_fresh(folder)
    partition = folder.partitions()[0]
    good = next(iter(folder.files())).path
    cut = partition / "metrics-20260301T110000Z.parquet"
    cut.write_bytes(good.read_bytes()[:-100])
    empty = partition / "metrics-20260301T110100Z.parquet"
    empty.write_bytes(b"")
    report = Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert {cut.name, empty.name} <= set(report.refused)
    assert cut.exists()
    assert empty.exists()
    assert report.outputs == 1
    assert archived_times(folder) == list(range(20))


def test_a_torn_name_learned_later_fills_earlier_files(tmp_path: Path) -> None:
    from tests.keep.frames import container

    folder = DataFolder(tmp_path)
    write_log(folder, [frame_at(0, (container("a"),))], segment=1)
    write_log(folder, [frame_at(1, (container("a", "pod-a"),))], segment=2)
    convert_all(Disk(), folder)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    (entry,) = read_catalog([folder.path]).entries
    import duckdb

    names = duckdb.execute(
        f"SELECT DISTINCT l_pod_name FROM '{entry.path}' WHERE l_scope = 'container'"
    ).fetchall()
    assert names == [("pod-a",)]


def test_a_consolidator_does_not_load_pandas(tmp_path: Path) -> None:
    """It lives as long as its node; pandas, where it is installed, would be a third of its memory."""
    make_fresh(DataFolder(tmp_path))
    code = (
        "import sys; from nodescope.cli import main; "
        "code = main(['consolidate', '--once', '--no-retention', '--data', sys.argv[1]]); "
        "sys.exit(code or 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert [file.kind for file in DataFolder(tmp_path).files()] == ["consolidated"]
