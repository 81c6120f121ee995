"""One question over files, log and foreign files; corrupt ones are named and the rest is served."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.keep.frames import (
    CURRENT,
    MONO_NS,
    SECOND_NS,
    START_NS,
    USAGE,
    A,
    B,
    frame_at,
    frames,
    read_log_tail,
    write_log,
)

from nodescope.base.errors import RequestRejected
from nodescope.base.metric import Metric
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.label_columns import Subject
from nodescope.keep.sidecar import read_sidecar, render_sidecar
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.bucket import Points
from nodescope.read.query.engine import Engine, QueryLine, bound_share
from nodescope.read.query.resolve import resolve_metric

START_MS = START_NS // 10**6


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Three files of ten ticks."""
    folder = DataFolder(tmp_path)
    for number in range(3):
        write_log(folder, frames(10, number * 10), segment=number + 1)
    convert_all(Disk(), folder)
    return folder


def test_a_rate_does_not_notice_where_a_file_ends(engine: Engine, folder: DataFolder) -> None:
    """Container a uses 1 ms, b 2 ms of CPU a second: flat lines over all files."""
    answer = engine.query(read_catalog([folder.path]), "cpu")
    assert answer.asked.unit == "cores"
    rates = {line.subject.label("l_pod_name"): line.points.mean for line in answer.lines}
    assert {name: len(rate) for name, rate in rates.items()} == {"pod-a": 29, "pod-b": 29}
    np.testing.assert_allclose(rates["pod-a"], 0.001)
    np.testing.assert_allclose(rates["pod-b"], 0.002)


def test_rates_survive_a_stepped_clock(engine: Engine, tmp_path: Path) -> None:
    """The wall clock goes back an hour between two segments; the counter and its rate go on."""
    folder = DataFolder(tmp_path)
    write_log(folder, frames(10), segment=1)
    stepped = [frame_at(number, at_ns=START_NS + (number - 15) * SECOND_NS) for number in range(10, 20)]
    write_log(folder, stepped, segment=2)
    convert_all(Disk(), folder)
    answer = engine.query(read_catalog([folder.path]), "cpu", [A.ids[0]])
    np.testing.assert_allclose(answer.lines[0].points.mean, 0.001)
    assert len(answer.lines[0].points.mean) == 19


@pytest.mark.parametrize("step_ms", [-950, -100, 300, 900])
def test_rates_survive_a_small_step_within_a_segment(engine: Engine, tmp_path: Path, step_ms: int) -> None:
    """
    Ten ticks a second, and a clock that is set by less than a second: no new segment begins.

    Times overlap after a step back; every sample is there once, and in the
    order in which it was read the counter grows evenly. Merged, the same.
    """
    folder = DataFolder(tmp_path)
    steps = [0] * 20 + [step_ms] * 20
    many = [
        frame_at(number, mono_ns=MONO_NS + number * 10**8, at_ns=START_NS + number * 10**8 + step * 10**6)
        for number, step in enumerate(steps)
    ]
    write_log(folder, many[:30], segment=1)
    write_log(folder, many[30:], segment=2)
    convert_all(Disk(), folder)
    for _ in range(2):
        points = engine.query(read_catalog([folder.path]), "cpu", [A.ids[0]]).lines[0].points
        assert len(points.mean) == 39
        np.testing.assert_allclose(points.mean, 0.01)
        assert len(set(points.time_ms.tolist())) == 39
        Consolidator(Disk(), folder).run_pass(START_MS + 90 * 86_400_000)


def test_few_points_keep_the_extremes(engine: Engine, folder: DataFolder) -> None:
    """forall buckets: min <= mean <= max, and their extremes are the samples'."""
    answer = engine.query(read_catalog([folder.path]), "memory", [A.ids[0]], max_points=4)
    points = answer.lines[0].points
    assert len(points.time_ms) <= 4
    assert points.count.sum() == 30
    assert (points.minimum.min(), points.maximum.max()) == (0.0, 4096.0 * 29)
    assert ((points.minimum <= points.mean) & (points.mean <= points.maximum)).all()


def test_a_gap_is_a_gap(engine: Engine, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    write_log(folder, [*frames(10), *frames(10, 200)])
    convert_all(Disk(), folder)
    answer = engine.query(read_catalog([folder.path]), "memory", [A.ids[0]], max_points=21)
    points = answer.lines[0].points
    empty = points.count == 0
    assert empty.any()
    assert np.isnan(points.mean[empty]).all()


def test_the_log_is_the_live_tail(engine: Engine, folder: DataFolder) -> None:
    """What is not Parquet yet is seen, what is both is seen once."""
    write_log(folder, frames(15, 25), segment=4)
    catalog = read_catalog([folder.path])
    answer = engine.query(catalog, "memory", [B.ids[0]], tail=read_log_tail(folder.path, catalog))
    assert answer.lines[0].points.time_ms.tolist() == [START_MS + number * 1000 for number in range(40)]


def test_a_range_is_inclusive_at_both_ends(engine: Engine, folder: DataFolder) -> None:
    answer = engine.query(
        read_catalog([folder.path]), CURRENT.name, [A.ids[0]], START_MS + 5000, START_MS + 12000
    )
    assert answer.lines[0].points.time_ms.tolist() == [START_MS + number * 1000 for number in range(5, 13)]


def test_no_limit_is_no_share_of_it(engine: Engine, folder: DataFolder) -> None:
    """Container a has no memory limit, b has one of 1 GiB."""
    answer = engine.query(read_catalog([folder.path]), "memory_limit_share")
    assert [line.subject.label("l_pod_name") for line in answer.lines] == ["pod-b"]


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("memori", 'no metric "memori"; did you mean "memory"?'),
        ("pressure_io", "was not collected here"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(
    engine: Engine, folder: DataFolder, metric: str, words: str
) -> None:
    with pytest.raises(RequestRejected, match=words.replace("?", r"\?")):
        engine.query(read_catalog([folder.path]), metric)


# -- files of others, and broken ones ---------------------------------------------------


def write_fgm(path: Path, count: int = 20) -> None:
    """As fgm's own schema has it: value_int and value_float, time without a zone, no scope."""
    ids = ["c" * 64] * count
    table = pa.table(
        {
            "run_id": pa.array(["r"] * (2 * count)),
            "time": pa.array([START_MS + 1000 * n for n in range(count)] * 2, pa.timestamp("ms")),
            "fetch_index": pa.array(list(range(count)) * 2, pa.uint64()),
            "metric_name": pa.array([USAGE.name] * count + [CURRENT.name] * count),
            "metric_kind": pa.array(["counter"] * count + ["gauge"] * count),
            "value_int": pa.array([n * 5000 for n in range(count)] + [None] * count, pa.uint64()),
            "value_float": pa.array([None] * count + [7.0] * count, pa.float64()),
            "l_container_id": pa.array(ids * 2),
            "l_pod_name": pa.array(["fgm-pod"] * (2 * count)),
            "l_namespace": pa.array([""] * (2 * count)),
        }
    )
    pq.write_table(table, path)
    path.with_suffix(".containers").write_bytes(b"\x02\x01\x00\x00\x00bincode")


def test_fgms_own_files_are_read(engine: Engine, tmp_path: Path) -> None:
    write_fgm(tmp_path / "metrics-20260301T115900Z.parquet")
    catalog = read_catalog([tmp_path])
    assert [one.label("l_pod_name") for one in catalog.containers()] == ["fgm-pod"]
    for name, unit in ((USAGE.name, "seconds/s"), ("cpu", "cores")):
        rate = engine.query(catalog, name)
        assert rate.asked.unit == unit
        np.testing.assert_allclose(rate.lines[0].points.mean, 0.005)
    assert engine.query(catalog, CURRENT.name).lines[0].points.mean.tolist() == [7.0] * 20


def test_ours_without_its_sidecar_is_still_read(engine: Engine, folder: DataFolder) -> None:
    for file in folder.files():
        file.sidecar.unlink()
    answer = engine.query(read_catalog([folder.path]), CURRENT.name, [A.ids[0]])
    assert len(answer.lines[0].points.mean) == 30
    assert answer.asked.unit == "bytes"


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_sidecar_changes_no_value(engine: Engine, folder: DataFolder, lost: int) -> None:
    """
    Microseconds stay microseconds: the name says so, or the sidecar of a neighbour.

    Its rows name the node, and its clock goes on from its neighbours': no rate is lost between them.
    """
    whole = rates_of(engine, folder)
    for file in sorted(folder.files(), key=lambda file: file.from_ms)[-lost:]:
        file.sidecar.unlink()
    left = rates_of(engine, folder)
    assert len(whole) == len(left) == 29
    assert left == {at: pytest.approx(whole[at], rel=1e-6) for at in left}


def rates_of(engine: Engine, folder: DataFolder) -> dict[int, float]:
    lines = engine.query(read_catalog([folder.path]), "cpu", [A.ids[0]]).lines
    return {
        at: rate
        for line in lines
        for at, rate in zip(line.points.time_ms.tolist(), line.points.mean.tolist())
        if not math.isnan(rate)
    }


def test_a_unit_that_only_the_sidecar_knew_is_refused_by_name(engine: Engine, tmp_path: Path) -> None:
    """Pages are 4 KiB or 64 KiB: without the sidecar nobody knows."""
    path = tmp_path / "metrics-20260301T115900Z.parquet"
    write_fgm(path)
    table = pq.read_table(path)
    names = pa.array(["process.rss"] * len(table))
    pq.write_table(table.set_column(3, "metric_name", names), path)
    catalog = read_catalog([tmp_path])
    with pytest.raises(RequestRejected, match=r"sidecar that says which unit process\.rss is in was lost"):
        engine.query(catalog, "memory", scope="process")
    assert engine.query(catalog, "process.rss", rate="off").asked.unit == "unit not known"


def test_a_file_cut_at_any_kibibyte_is_refused_and_the_others_served(
    engine: Engine, folder: DataFolder
) -> None:
    """A Parquet file's footer comes last: without its end it is never read as a shorter one."""
    victim = sorted(folder.files(), key=lambda file: file.from_ms)[1]
    data = victim.path.read_bytes()
    for size in range(0, len(data), 1024):
        victim.path.write_bytes(data[:size])
        answer = engine.query(read_catalog([folder.path]), "memory", [A.ids[0]])
        assert len(answer.lines[0].points.mean) == 20, f"cut at {size}"
        catalog = read_catalog([folder.path])
        named = [refusal.reason for refusal in catalog.refusals] + answer.refused
        assert any(victim.path.name in reason for reason in named)


def test_flipped_bits_never_break_the_others(engine: Engine, folder: DataFolder) -> None:
    """A flipped bit is noticed, or changes a value of that file; no other file's rows change."""
    victim = sorted(folder.files(), key=lambda file: file.from_ms)[1]
    data = victim.path.read_bytes()
    for place in range(7, len(data), max(1, len(data) // 60)):
        broken = bytearray(data)
        broken[place] ^= 0x40
        victim.path.write_bytes(bytes(broken))
        answer = engine.query(read_catalog([folder.path]), "memory", [A.ids[0]])
        times = set(answer.lines[0].points.time_ms.tolist())
        assert {START_MS + number * 1000 for number in (*range(10), *range(20, 30))} <= times


def test_foreign_newer_and_empty_files_are_named(engine: Engine, folder: DataFolder) -> None:
    partition = folder.partitions()[0]
    pq.write_table(pa.table({"colour": ["blue"]}), partition / "metrics-20260301T100000Z.parquet")
    (partition / "metrics-20260301T100100Z.parquet").write_bytes(b"")
    newer = pa.table({"time": pa.array([1], pa.timestamp("ms", "UTC")), "metric_name": ["x"], "value": [1.0]})
    newer = newer.replace_schema_metadata({"nodescope": '{"version": 99}'})
    pq.write_table(newer, partition / "metrics-20260301T100200Z.parquet")
    catalog = read_catalog([folder.path])
    reasons = " | ".join(refusal.reason for refusal in catalog.refusals)
    assert "no column" in reasons
    assert "too short" in reasons
    assert "version 99" in reasons
    assert len(engine.query(catalog, "memory", [A.ids[0]]).lines[0].points.mean) == 30


def test_an_unknown_column_is_ignored(engine: Engine, folder: DataFolder) -> None:
    file = next(iter(folder.files()))
    table = pq.read_table(file.path, partitioning=None)
    wider = table.append_column("l_colour", pa.array(["blue"] * table.num_rows))
    pq.write_table(wider, file.path)
    # Somebody else's bytes have no checksum of ours.
    sidecar = read_sidecar(file.sidecar).whole()
    sidecar.head = replace(sidecar.head, sum=None)
    file.sidecar.write_bytes(render_sidecar(sidecar))
    assert len(engine.query(read_catalog([folder.path]), "memory", [A.ids[0]]).lines[0].points.mean) == 30


def test_nobody_waits_for_more_than_all_of_the_time() -> None:
    """A file that is read late has more waiting than its second has time; a share ends at 1, a hole stays one."""
    waited = np.array([0.2, 1.7, np.nan])
    points = Points(np.arange(3) * 1000, waited, waited, waited, np.array([1, 1, 0]))
    bounded = bound_share(QueryLine(Subject(()), points)).points
    for values in (bounded.minimum, bounded.mean, bounded.maximum):
        np.testing.assert_array_equal(values, [0.2, 1.0, np.nan])


def test_only_a_share_of_time_has_a_whole() -> None:
    """Cores and bytes a second have none; the limit of a container may be exceeded for a moment."""
    total = Metric("cgroup.v2.cpu.pressure.some.total", "counter", "", unit="microseconds")
    usage = Metric("cgroup.v2.cpu.stat.usage_usec", "counter", "", unit="microseconds")
    known = {one.name: one for one in (total, usage)}
    assert resolve_metric("pressure_cpu", known, "auto").is_share_of_time
    assert not resolve_metric("cpu", known, "auto").is_share_of_time
