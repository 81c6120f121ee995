"""Minutes of files, derived at once and kept: the same figures as sample by sample, whatever lies between the files."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.keep.frames import START_NS, A, frame_at, write_log

from nodescope.base.time_range import TimeRange
from nodescope.keep import parquet
from nodescope.keep.convert import convert_all
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import Catalog, read_catalog
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.query import minute_cells, row_reader
from nodescope.read.query.engine import Engine, QueryResult
from nodescope.read.query.file_sweep import Sought
from nodescope.read.query.metric_rows import MetricRows
from nodescope.read.query.minute_cells import MinuteCells
from nodescope.read.query.node_query import NodeQuery
from nodescope.read.query.row_reader import RowSource
from nodescope.read.query.sweep import Names, sweep_metrics, sweep_node

END_MS = 1_770_000_030_000
METRICS = ("memory", "cpu", "cpu_throttled", "memory_limit_share", "cpu_limit_share", "memory_working_set")
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty minutes of containers, some of which crash and come back: hours, and files of 90 s."""
    folder = tmp_path_factory.mktemp("whole")
    write_node(DemoRequest(folder, 1.33, 6, 7, END_MS, "demo-1"), "0", lambda _: None)
    return folder


@pytest.fixture(params=["as it is", "a hole", "damaged"])
def catalog(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> Catalog:
    folder = shutil.copytree(whole, tmp_path / "node")
    files = sorted(folder.rglob("*.parquet"))
    if request.param == "a hole":
        for file in files[-5:-3]:
            file.unlink()
            file.with_suffix(".containers").unlink()
    if request.param == "damaged":
        content = bytearray(files[-4].read_bytes())
        content[len(content) // 2] ^= 1
        files[-4].write_bytes(content)
    return read_catalog([folder])


@pytest.fixture(params=["large", "small"])
def _reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read as large ones, a metric at a time and some series at once, or as small ones, all metrics at once."""
    monkeypatch.setattr(row_reader, "SMALL_ROWS", 0 if request.param == "large" else 10**9)
    if request.param == "large":
        monkeypatch.setattr(minute_cells, "ROWS_DERIVED", 5_000)


def ask_exact(monkeypatch: pytest.MonkeyPatch, *question: object) -> QueryResult:
    """Sample by sample, of an engine that has kept nothing."""
    with monkeypatch.context() as patched:
        patched.setattr(NodeQuery, "_can_keep", lambda *_: False)
        return Engine().query(*question)  # type: ignore[arg-type]


def assert_same(found: QueryResult, exact: QueryResult) -> None:
    assert found.refused == exact.refused
    assert [line.subject.identity for line in found.lines] == [line.subject.identity for line in exact.lines]
    for mine, theirs in zip(found.lines, exact.lines, strict=True):
        np.testing.assert_array_equal(mine.points.time_ms, theirs.points.time_ms)
        np.testing.assert_array_equal(mine.points.count, theirs.points.count)
        for name in ("minimum", "mean", "maximum"):
            first, second = (getattr(one.points, name) for one in (mine, theirs))
            np.testing.assert_allclose(first, second, rtol=1e-12, atol=0)


def list_spans(catalog: Catalog) -> list[TimeRange]:
    """All of it; from within a file to within another; from a place that no question began at before."""
    first, last = catalog.from_ms or 0, catalog.to_ms or 0
    return [
        TimeRange(first, last),
        TimeRange(first + 20 * MINUTE_MS + 12_345, last - 4 * MINUTE_MS + 777),
        TimeRange(last - 14 * MINUTE_MS, last),
    ]


@pytest.mark.usefixtures("_reader")
@pytest.mark.parametrize("metric", METRICS)
def test_minutes_that_are_kept_are_the_samples(
    monkeypatch: pytest.MonkeyPatch, catalog: Catalog, metric: str
) -> None:
    """Asked for again, with other buckets and of fewer containers, they are used again."""
    engine = Engine()
    few = sorted({one.label("l_container_id") or "" for one in catalog.containers()})[:2]
    for span in list_spans(catalog):
        for containers in (None, few):
            for points in (1, 5, 1):
                question = (catalog, metric, containers, span.from_ms, span.to_ms, points)
                assert_same(engine.query(*question), ask_exact(monkeypatch, *question))
    assert engine.minutes.size_bytes > 0


@pytest.mark.parametrize("group_rows", [2000, 5000])
def test_a_series_that_goes_on_in_the_next_row_group_has_the_same_minutes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, group_rows: int
) -> None:
    """Row groups are not joined: one ends within a minute of a series, and a counter goes on from there."""
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", group_rows)
    monkeypatch.setattr(row_reader, "SMALL_ROWS", 0)
    write_node(DemoRequest(tmp_path, 0.7, 5, 7, END_MS, "demo-1"), "0", lambda _: None)
    catalog, engine = read_catalog([tmp_path]), Engine()
    pieces: list[int] = []
    take = RowSource.take

    def count_pieces(source: RowSource, entry: FileEntry) -> list[list[MetricRows]]:
        found = take(source, entry)
        pieces.append(len(found))
        return found

    monkeypatch.setattr(RowSource, "take", count_pieces)
    for metric in METRICS:
        for points in (1, 7):
            question = (catalog, metric, None, catalog.from_ms, catalog.to_ms, points)
            assert_same(engine.query(*question), ask_exact(monkeypatch, *question))
    assert max(pieces) > 1


@pytest.mark.usefixtures("_reader")
def test_what_is_kept_is_not_read_again(monkeypatch: pytest.MonkeyPatch, whole: Path) -> None:
    catalog, engine = read_catalog([whole]), Engine()
    engine.query(catalog, "cpu", max_points=1)
    for name in ("read_large", "read_small"):
        monkeypatch.setattr(row_reader, name, lambda *_: pytest.fail("read again"))
    assert engine.query(catalog, "cpu", max_points=3).lines


@pytest.mark.parametrize("step_seconds", [-30, -2, 40])
def test_a_clock_that_is_set_within_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step_seconds: int
) -> None:
    """The counter grows evenly in the order in which it was read."""
    folder = DataFolder(tmp_path)
    same = frame_at(0).blocks[0].entities
    for segment in range(3):
        numbers = range(segment * 100, segment * 100 + 100)
        shift = [step_seconds * 10**9 if number > 150 else 0 for number in numbers]
        many = [
            frame_at(number, same, at_ns=START_NS + number * 10**9 + late)
            for number, late in zip(numbers, shift, strict=True)
        ]
        write_log(folder, many, segment=segment + 1)
    convert_all(Disk(), folder)
    monkeypatch.setattr(row_reader, "SMALL_ROWS", 0)
    question = (read_catalog([folder.path]), "cpu", [A.ids[0]], None, None, 2)
    found = Engine().query(*question)
    assert_same(found, ask_exact(monkeypatch, *question))
    np.testing.assert_allclose(found.lines[0].points.mean, 0.001)


def test_a_file_that_changed_is_not_answered_from_what_was_kept(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "node")
    catalog, engine = read_catalog([folder]), Engine()
    before = engine.query(catalog, "memory", max_points=2)
    file = sorted(folder.rglob("*.parquet"))[-3]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    after = engine.query(catalog, "memory", max_points=2)
    assert [file.name in one for one in after.refused] == [True]
    assert sum(line.points.count.sum() for line in after.lines) < sum(
        line.points.count.sum() for line in before.lines
    )


def test_an_answer_that_is_kept_cannot_be_written_to(whole: Path) -> None:
    catalog, engine = read_catalog([whole]), Engine()
    points = engine.query(catalog, "memory", max_points=3).lines[0].points
    for column in (points.time_ms, points.minimum, points.mean, points.maximum, points.count):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 7
    again = engine.query(catalog, "memory", max_points=3)
    again.lines.clear()
    assert engine.query(catalog, "memory", max_points=3).lines


def test_a_sweep_is_the_same_by_both_readers(monkeypatch: pytest.MonkeyPatch, whole: Path) -> None:
    """Steps of five seconds from any moment; asked twice, the second time from what was kept."""
    catalog = read_catalog([whole])
    names = [f"cgroup.v2.{name}" for name in ("cpu.stat.usage_usec", "memory.current", "memory.stat.file")]
    span = TimeRange((catalog.from_ms or 0) + 601_234, (catalog.to_ms or 0) - 1000)
    sought, found = Sought(names, "container", span, 5000), []
    for small in (0, 10**9):
        monkeypatch.setattr(row_reader, "SMALL_ROWS", small)
        engine = Engine()
        found += [sweep_node(engine, catalog, None, sought) for _ in range(2)]
    for other in found[1:]:
        assert other.names == found[0].names
        assert other.samples.keys() == found[0].samples.keys() == set(names)
        for name in names:
            for mine, theirs in zip(other.samples[name], found[0].samples[name], strict=True):
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("step_ms", [5000, 7000])
def test_a_sweep_is_the_same_in_row_groups_of_any_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step_ms: int
) -> None:
    """A row group may end within a series and within a step; metric by metric it is what it is at once."""
    monkeypatch.setattr(row_reader, "SMALL_ROWS", 0)
    name, found = "cgroup.v2.cpu.stat.usage_usec", []
    for rows in (997, 10**6):
        monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", rows)
        place = tmp_path / str(rows)
        write_node(DemoRequest(place, 0.4, 6, 7, END_MS, "demo-1"), "0", lambda _: None)
        catalog = read_catalog([place])
        span = TimeRange((catalog.from_ms or 0) + 61_234, (catalog.to_ms or 0) - 1000)
        sought, names = Sought([name, "no.such.metric"], "container", span, step_ms), Names()
        alone = dict(sweep_metrics(Engine(), catalog, None, sought, names))
        together = sweep_node(Engine(), catalog, None, sought)
        assert alone.pop("no.such.metric") is None
        assert (names.words, alone.keys()) == (together.names, together.samples.keys())
        found += [alone[name], together.samples[name]]
    for other in found[1:]:
        assert other is not None
        for mine, theirs in zip(other, found[0] or (), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def make_kept(bytes_: int) -> MinuteCells:
    nothing = np.empty(0, np.int32)
    return MinuteCells([], [], [], nothing, nothing, np.empty(0), np.zeros(bytes_ // 8), np.empty(0), nothing)


def test_what_is_kept_has_a_bound() -> None:
    """The least recently used goes first; what takes more than half is not kept at all."""
    cache: DerivedCache[MinuteCells] = DerivedCache(1000)
    for name in ("a", "b"):
        cache.put(name, make_kept(400))
    cache.get("a")
    cache.put("c", make_kept(400))
    cache.put("large", make_kept(504))
    assert [name for name in ("a", "b", "c", "large") if cache.get(name)] == ["a", "c"]
    assert cache.size_bytes == 800
    cache.put("a", make_kept(80))
    assert cache.size_bytes == 480
