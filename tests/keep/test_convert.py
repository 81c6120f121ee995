"""From the log to Parquet: every sample once, sorted, with its names."""

import math
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.keep.frames import (
    CURRENT,
    LIMIT,
    LOAD,
    SECOND_NS,
    START_NS,
    A,
    B,
    archived_times,
    container,
    frame_at,
    frames,
    write_log,
)

from nodescope.base.frame import Event
from nodescope.keep.check.quarantine import read_damage
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import SIDECAR, DataFolder
from nodescope.keep.packed.log_encoder import CHAPTER_FRAMES
from nodescope.keep.parquet import SCHEMA, open_parquet, read_footer
from nodescope.keep.sidecar import read_sidecar


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path)


def the_file(folder: DataFolder) -> Path:
    (file,) = folder.files()
    return file.path


def test_every_sample_is_in_the_file_and_the_log_is_gone(folder: DataFolder) -> None:
    """2 containers x 3 metrics x 10 ticks, and the node's load where it was measured."""
    write_log(folder, frames(10))
    result = convert_all(Disk(), folder)
    assert result.rows == 60 + 8
    assert not list(folder.wal.glob("*.log"))
    assert the_file(folder).name == "metrics-20260301T115900Z.parquet"


def test_columns_are_as_the_contract_names_them(folder: DataFolder) -> None:
    write_log(folder, frames(3))
    convert_all(Disk(), folder)
    schema = pq.read_schema(the_file(folder))
    assert schema.names[:8] == [
        "time", "metric_name", "value", "l_container_id", "l_pod_name", "l_namespace", "l_qos_class", "l_node_name",
    ]  # fmt: skip
    assert str(schema.field("time").type) == "timestamp[ms, tz=UTC]"
    assert set(schema.names) == set(SCHEMA.names)


def test_rows_are_sorted_by_metric_series_and_time(folder: DataFolder) -> None:
    """Containers come and go; the order of rows does not notice."""
    many = [frame_at(number, (B, A) if number % 3 else (A,)) for number in range(12)]
    write_log(folder, many)
    convert_all(Disk(), folder)
    rows = duckdb.execute(
        f"SELECT metric_name, l_container_id, epoch_ms(time) FROM '{the_file(folder)}'"
    ).fetchall()
    assert rows == sorted(rows, key=lambda row: (row[0], row[1] or "", row[2]))


def test_unlimited_is_null_and_not_measured_is_no_row(folder: DataFolder) -> None:
    write_log(folder, frames(8))
    convert_all(Disk(), folder)
    path = the_file(folder)
    limits = duckdb.execute(
        f"SELECT l_pod_name, count(*), count(value) FROM '{path}' WHERE metric_name = '{LIMIT.name}' GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert limits == [("pod-a", 8, 0), ("pod-b", 8, 8)]
    load = duckdb.execute(f"SELECT count(*) FROM '{path}' WHERE metric_name = '{LOAD.name}'").fetchall()
    assert load == [(6,)]


def test_a_name_that_arrives_late_stands_on_all_rows(folder: DataFolder) -> None:
    unnamed, named = container("a"), container("a", "pod-a")
    write_log(folder, [frame_at(0, (unnamed,)), frame_at(1, (named,)), frame_at(2, (named,))])
    convert_all(Disk(), folder)
    rows = duckdb.execute(
        f"SELECT DISTINCT l_pod_name FROM '{the_file(folder)}' WHERE l_scope = 'container'"
    ).fetchall()
    assert rows == [("pod-a",)]


def test_a_segment_across_midnight_lands_in_two_partitions(folder: DataFolder) -> None:
    midnight_ns = 1_772_409_600 * SECOND_NS
    many = [frame_at(number, at_ns=midnight_ns + (number - 3) * SECOND_NS) for number in range(6)]
    write_log(folder, many)
    convert_all(Disk(), folder)
    days = {file.day: open_parquet(file.path).metadata.num_rows for file in folder.files()}
    assert set(days) == {"2026-03-01", "2026-03-02"}
    assert sum(days.values()) == 36 + 5


def test_a_clock_that_stands_on_the_same_time_makes_no_row_ambiguous(folder: DataFolder) -> None:
    """Each `time` has one monotonic moment, also when the clock was stepped back onto itself."""
    many = [frame_at(0), frame_at(1), frame_at(2, at_ns=START_NS)]
    write_log(folder, many)
    convert_all(Disk(), folder)
    ticks = read_sidecar(the_file(folder).with_suffix(".containers")).whole().ticks
    assert len(set(ticks.time_ms.tolist())) == len(set(ticks.mono_ns.tolist())) == 3


def test_patterns_choose_what_is_kept(folder: DataFolder) -> None:
    write_log(folder, frames(3), include=["cgroup.*"], exclude=["*.max"])
    convert_all(Disk(), folder)
    names = duckdb.execute(f"SELECT DISTINCT metric_name FROM '{the_file(folder)}' ORDER BY 1").fetchall()
    assert names == [("cgroup.v2.cpu.stat.usage_usec",), ("cgroup.v2.memory.current",)]


def test_the_sidecar_lists_exactly_what_is_in_the_file(folder: DataFolder) -> None:
    """First and last sight are those of rows; obituaries are kept."""
    gone = Event("oom_exit", START_NS + 5 * SECOND_NS, "container", B.ids, B.labels, {"oom_kills": 1.0})
    many = [frame_at(number, (A, B) if number < 5 else (A,)) for number in range(9)]
    many[5] = frame_at(5, (A,), events=(gone,))
    write_log(folder, many)
    convert_all(Disk(), folder)
    sidecar = read_sidecar(the_file(folder).with_suffix(".containers")).whole()
    seen = {
        subject.label("l_container_id"): (subject.first_ms, subject.last_ms)
        for subject in sidecar.subjects
        if subject.label("l_scope") == "container"
    }
    start_ms = START_NS // 10**6
    assert seen == {"a" * 64: (start_ms, start_ms + 8000), "b" * 64: (start_ms, start_ms + 4000)}
    assert [event["kind"] for event in sidecar.events] == ["oom_exit"]
    assert sidecar.head.rows == open_parquet(the_file(folder)).metadata.num_rows


@given(cut=st.integers(0, 4000))
@settings(max_examples=40, deadline=None)
def test_a_torn_log_gives_every_whole_frame(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """forall cut: the archive has the frames whose last byte is before the cut, each once."""
    folder = DataFolder(tmp_path_factory.mktemp("data"))
    path = write_log(folder, frames(12))
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - cut)])
    convert_all(Disk(), folder)
    times = archived_times(folder)
    assert times == list(range(len(times)))
    if cut == 0:
        assert len(times) == 12


def test_converting_twice_writes_once(folder: DataFolder) -> None:
    """A crash between the file's name and the log's end: the segment's number is in the footer."""
    log = write_log(folder, frames(5))
    data = log.read_bytes()
    convert_all(Disk(), folder)
    log.write_bytes(data)
    convert_all(Disk(), folder)
    assert archived_times(folder) == [0, 1, 2, 3, 4]
    footer = read_footer(open_parquet(the_file(folder)), "")
    assert footer is not None
    assert footer["segments"] == {"run1": [[1, 1]]}


@pytest.mark.parametrize("part", ["row group", "footer", "sidecar"])
def test_a_log_is_not_removed_for_a_file_that_is_damaged(folder: DataFolder, part: str) -> None:
    """A crash left both, and a disk flips bits: the file is set aside by name and written again from the log."""
    write_log(folder, frames(10))
    (log,) = folder.wal.glob("*.log")
    content = log.read_bytes()
    convert_all(Disk(), folder)
    path = the_file(folder)
    whole = archived_times(folder)
    log.write_bytes(content)
    damaged = path.with_suffix(SIDECAR) if part == "sidecar" else path
    data = bytearray(damaged.read_bytes())
    place = len(data) - 30 if part == "footer" else len(data) // 3
    data[place : place + 8] = bytes(8) if any(data[place : place + 8]) else b"damaged!"
    damaged.write_bytes(data)
    convert_all(Disk(), folder)
    assert not list(folder.wal.glob("*.log"))
    assert archived_times(folder) == whole
    assert open_parquet(the_file(folder)).metadata.num_rows == 60 + 8
    (note,) = read_damage(folder).notes
    assert "written again from its log" in note.reason
    assert list(folder.damaged.rglob(path.name))


def test_a_damaged_log_keeps_what_it_could_not_give(folder: DataFolder) -> None:
    """Damage in its midst: frames up to the next first one are lost; the log is set aside, not deleted, and named."""
    log = write_log(folder, frames(400))
    data = bytearray(log.read_bytes())
    # More than a record: where only the length of one is spoiled, it is found by its checksum.
    data[len(data) // 2 : len(data) // 2 + 120] = bytes(120)
    log.write_bytes(bytes(data))
    convert_all(Disk(), folder)
    times = archived_times(folder)
    assert 400 - CHAPTER_FRAMES <= len(times) < 400
    assert times[-1] == 399
    assert [note.file for note in read_damage(folder).notes] == ["wal/run1-000001.log"]
    assert [path.suffix for path in folder.wal.glob("run1*")] == [".damaged"]


def test_what_is_no_log_is_set_aside(folder: DataFolder) -> None:
    folder.wal.mkdir()
    (folder.wal / "run1-000001.log").write_bytes(b"")
    (folder.wal / "run1-000002.log").write_bytes(b"not a log at all, by far")
    write_log(folder, frames(3), segment=3)
    convert_all(Disk(), folder)
    assert archived_times(folder) == [0, 1, 2]


def test_the_values_are_the_frames_values(folder: DataFolder) -> None:
    many = frames(20)
    write_log(folder, many)
    convert_all(Disk(), folder)
    rows = duckdb.execute(
        f"SELECT value FROM '{the_file(folder)}' WHERE metric_name = '{CURRENT.name}' AND l_pod_name = 'pod-b' ORDER BY time"
    ).fetchall()
    assert [row[0] for row in rows] == [float(frame.blocks[0].values[1, 1]) for frame in many]
    assert not any(math.isnan(row[0]) for row in rows)
    assert np.isfinite([row[0] for row in rows]).all()


def test_every_id_of_an_entity_tells_its_series_apart() -> None:
    """forall a, b of one scope: equal identity iff equal ids, an inode aside."""
    from nodescope.base.entity import Entity
    from nodescope.keep.label_columns import identify_entity

    many = [
        Entity("gpu", ("GPU-1",)),
        Entity("gpu", ("GPU-1", "MIG-2")),
        Entity("gpu", ("GPU-1", "xid", "31")),
        Entity("pcm", ("rapl", "intel-rapl:0")),
        Entity("pcm", ("rapl", "intel-rapl:1")),
        Entity("process", ("12", "900")),
        Entity("process", ("12", "901")),
        Entity("cpu", ("12",)),
    ]
    assert len({identify_entity(entity, "n1") for entity in many}) == len(many)
