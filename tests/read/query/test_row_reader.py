"""Rows of our own files as Arrow reads them: those that DuckDB finds in the same file, kept within bounds."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodescope.base.errors import ArchiveRefused
from nodescope.keep import parquet
from nodescope.keep.check.bounds import read_page_header
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.label_columns import IDENTITY
from nodescope.keep.rollup import renew_rollups
from nodescope.read.files.catalog import Catalog, read_catalog
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import find_rollups
from nodescope.read.query import container_rows, metric_rows, node_query, row_reader
from nodescope.read.query.container_rows import GroupPlaces
from nodescope.read.query.engine import Engine
from nodescope.read.query.fetch import Wanted
from nodescope.read.query.metric_rows import CONTAINER, MetricRows, join_parts, shorten_times
from nodescope.read.query.minutes import fetch_minutes
from nodescope.read.query.node_query import NodeQuery
from nodescope.read.query.row_reader import RowReader, ask_pairwise, read_ahead

# Half a minute after a whole one: the first minute of the archive has thirty samples.
END_MS = 1_770_000_030_000
METRICS = ("cgroup.v2.cpu.stat.usage_usec", "cgroup.v2.memory.current", "cgroup.v2.memory.max")
QUOTA = "cgroup.v2.cpu.max.quota"
EVER = (0, 2**42)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty minutes: a file as a consolidator leaves it, and ten of 90 s."""
    place = tmp_path_factory.mktemp("node")
    write_node(DemoRequest(place, 0.66, 6, 7, END_MS, "demo-1"), "0", lambda _: None)
    return place


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Catalog:
    return read_catalog([folder])


@pytest.mark.parametrize("small_rows", [0, 10**9])
@pytest.mark.parametrize("metric", METRICS)
def test_the_rows_are_those_that_duckdb_finds(
    monkeypatch: pytest.MonkeyPatch, catalog: Catalog, metric: str, small_rows: int
) -> None:
    """Read a metric at a time, or all metrics at once; of all containers, and of one."""
    monkeypatch.setattr(row_reader, "SMALL_ROWS", small_rows)
    reader = RowReader()
    ids = sorted(one.label("l_container_id") or "" for one in catalog.containers())
    for entry in catalog.entries:
        for containers in (None, ids[:1], ids[1:4]):
            rows = reader.read(entry, Wanted(metric, containers, "container", *EVER))
            named = np.repeat([one[CONTAINER] for one in rows.identities], np.diff(rows.starts))
            mine = list(zip(named.tolist(), rows.time_ms.tolist(), rows.value.tolist(), strict=True))
            wanted = ids if containers is None else containers
            assert mine == [row for row in ask_duckdb(entry.path, metric) if row[0] in wanted]


@pytest.mark.parametrize(
    ("page_rows", "group_rows", "is_plain"),
    [(2000, 2000, True), (15_000, 15_000, True), (30_000, 30_000, True), (70, 2000, False)],
)
def test_rows_are_cut_out_of_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page_rows: int, group_rows: int, is_plain: bool
) -> None:
    """
    Of few containers without the others, and of all.

    Whichever row group they begin and end in, of one metric and of several, with unlimited values and without; by Arrow of many pages.
    """
    monkeypatch.setattr(parquet, "PAGE_ROWS", page_rows)
    entry = write_groups(monkeypatch, tmp_path, group_rows)
    read: list[bool] = []

    def read_plain(*asked: Any) -> Any:
        found = container_rows.read_plain(*asked)
        read.append(found is not None)
        return found

    monkeypatch.setattr(metric_rows, "read_plain", read_plain)
    ids = sorted({its_id for its_id, *_ in ask_duckdb(entry.path, METRICS[1])})
    for metric in (*METRICS, QUOTA):
        for some in (*([one] for one in ids), [ids[4], ids[1]], ids, None):
            rows = RowReader().read(entry, Wanted(metric, some, "container", *EVER))
            named = np.repeat([one[CONTAINER] for one in rows.identities], np.diff(rows.starts))
            mine = list(zip(named.tolist(), rows.time_ms.tolist(), rows.value.tolist(), strict=True))
            assert mine == [row for row in ask_duckdb(entry.path, metric) if row[0] in (some or ids)]
    assert set(read) == {is_plain}


def write_groups(monkeypatch: pytest.MonkeyPatch, folder: Path, group_rows: int) -> FileEntry:
    """The largest file of an archive with so many rows in a row group, read as a large one."""
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", group_rows)
    monkeypatch.setattr(row_reader, "SMALL_ROWS", 0)
    write_node(DemoRequest(folder, 0.4, 6, 7, END_MS, "demo-1"), "0", lambda _: None)
    return max(read_catalog([folder]).entries, key=lambda one: one.rows)


@pytest.mark.parametrize("group_rows", [2000, 262_144])
def test_unlimited_values_have_no_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, group_rows: int
) -> None:
    """Of one container, and of one that is not there."""
    entry = write_groups(monkeypatch, tmp_path, group_rows)
    asked = ask_duckdb(entry.path, QUOTA)
    unlimited = sorted({its_id for its_id, _, value in asked if np.isinf(value)})
    rows = RowReader().read(entry, Wanted(QUOTA, unlimited[:1], "container", *EVER))
    assert unlimited
    assert len(rows.value) == sum(its_id == unlimited[0] for its_id, *_ in asked)
    assert np.isinf(rows.value).all()
    for metric in (QUOTA, METRICS[1]):
        assert not len(RowReader().read(entry, Wanted(metric, ["5"], "container", *EVER)).value)


@pytest.mark.parametrize(
    "unlimited", [(), (3,), tuple(range(40)), tuple(range(0, 100, 3)), tuple(range(9, 100))]
)
def test_levels_say_which_rows_have_a_value(tmp_path: Path, unlimited: Sequence[int]) -> None:
    """Stretches of equal ones, bits, and both by turns, as Arrow writes them; of all rows, and of the first."""
    expected = np.array([place not in unlimited for place in range(100)])
    column = pa.array([1.0 if there else None for there in expected])
    path = tmp_path / "levels.parquet"
    pq.write_table(
        pa.table({"value": column}), path, compression="NONE", use_dictionary=False, write_statistics=False
    )
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    with path.open("rb") as file:
        _, packed, header = read_page_header(file.fileno(), start)
        page = memoryview(path.read_bytes())[start + header : start + header + packed]
    levels = bytes(page[4 : container_rows.skip_levels(page)])
    for count in (100, 41, 1):
        np.testing.assert_array_equal(container_rows.read_levels(levels, count), expected[:count])
    for broken in (levels[:-1], b"\x00\x00", b"\x01"):
        with pytest.raises((ValueError, IndexError)):
            container_rows.read_levels(broken, 100)


def test_where_containers_begin_is_decoded_once_for_metrics_that_were_read_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(container_rows, "PLACES", DerivedCache(2**20))
    entry = write_groups(monkeypatch, tmp_path, 2000)
    its_id = min(its_id for its_id, *_ in ask_duckdb(entry.path, METRICS[1]))
    decoded: list[int] = []
    inner = metric_rows.read_words

    def read_words(entry: FileEntry, number: int, words: Sequence[str]) -> Any:
        decoded.append(number)
        return inner(entry, number, words)

    monkeypatch.setattr(metric_rows, "read_words", read_words)
    for count, metric in enumerate(("cgroup.v2.memory.current", "cgroup.v2.memory.peak"), 1):
        before = len(decoded)
        assert len(RowReader().read(entry, Wanted(metric, [its_id], "container", *EVER)).value)
        assert (len(decoded) > before) == (count == 1)


def test_a_page_that_ends_before_its_rows_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = write_groups(monkeypatch, tmp_path, 2000)
    its_id = min(its_id for its_id, *_ in ask_duckdb(entry.path, METRICS[1]))
    far = GroupPlaces({("", its_id): slice(10**6, 10**6 + 5), (METRICS[1], its_id): slice(10**6, 10**6 + 5)})
    monkeypatch.setattr(container_rows, "find_places", lambda *_: far)
    for asked in ([its_id], None):
        with pytest.raises(ArchiveRefused, match=f"{entry.path.name}: a page ends before its rows do"):
            RowReader().read(entry, Wanted(METRICS[1], asked, "container", *EVER))


def test_a_page_that_unpacks_to_another_size_than_it_says_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = write_groups(monkeypatch, tmp_path, 2000)

    def read_less(descriptor: int, start: int) -> tuple[int, int, int]:
        unpacked, packed, header = read_page_header(descriptor, start)
        return unpacked - 8, packed, header

    monkeypatch.setattr(container_rows, "read_page_header", read_less)
    with pytest.raises(ArchiveRefused, match=f"{entry.path.name}: a page that unpacks to another size"):
        RowReader().read(entry, Wanted(METRICS[1], None, "container", *EVER))


def test_rows_that_are_not_in_order_of_their_series_are_read_by_arrow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A series that comes twice in a row group has no place of its own."""
    entry = write_groups(monkeypatch, tmp_path, 2000)
    wanted = Wanted(METRICS[1], None, "container", *EVER)
    expected = RowReader().read(entry, wanted)
    monkeypatch.setattr(container_rows, "PLACES", DerivedCache(2**20))

    def cut_twice(rows: int, columns: Sequence[Any]) -> Any:
        cuts = list(parquet.cut_rows(rows, columns))
        return [*cuts, (slice(0, 0), cuts[0][1])]

    monkeypatch.setattr(container_rows, "cut_rows", cut_twice)
    found = RowReader().read(entry, wanted)
    np.testing.assert_array_equal(found.value, expected.value)
    assert not container_rows.PLACES.size_bytes


def test_a_footer_is_parsed_once_for_each_version_of_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All metrics of a file are read by one footer; a file that took its place is read by its own."""
    monkeypatch.setattr(row_reader, "SMALL_ROWS", 0)
    monkeypatch.setattr(metric_rows, "FOOTER_LEAST_BYTES", 0)
    parsed: list[Path] = []
    inner = metric_rows.open_plain

    def open_plain(path: Path, words: Sequence[str], footer: Any = None) -> Any:
        parsed.extend([] if footer else [path])
        return inner(path, words, footer)

    monkeypatch.setattr(metric_rows, "open_plain", open_plain)
    for containers in (3, 5):
        write_node(DemoRequest(tmp_path, 0.4, containers, 7, END_MS, "demo-1"), "0", lambda _: None)
        entry = max(read_catalog([tmp_path]).entries, key=lambda one: one.rows)
        for metric in METRICS:
            rows = RowReader().read(entry, Wanted(metric, None, "container", *EVER))
            assert len(rows.value) == len(ask_duckdb(entry.path, metric))
    assert len(parsed) == len(set(parsed)) * 2 == 2


def ask_duckdb(path: Path, metric: str) -> list[tuple[str, int, float]]:
    found = duckdb.execute(
        "select l_container_id, epoch_ms(time), coalesce(value, 'inf'::DOUBLE) from read_parquet(?) "
        "where metric_name = ? order by 1, 2",
        [str(path), metric],
    )
    return [(str(one), int(time_ms), float(value)) for one, time_ms, value in found.fetchall()]


def test_a_small_file_is_decoded_once_for_all_metrics(
    monkeypatch: pytest.MonkeyPatch, catalog: Catalog
) -> None:
    reader, entry = RowReader(), catalog.entries[-1]
    reader.read(entry, Wanted(METRICS[0], None, "container", *EVER))
    assert 0 < reader.small.size_bytes < 100 * entry.rows
    monkeypatch.setattr(row_reader, "read_small", lambda *_: pytest.fail("decoded again"))
    assert len(reader.read(entry, Wanted(METRICS[1], None, "container", *EVER)).value)
    assert not len(reader.read(entry, Wanted("no.such.metric", None, "container", *EVER)).value)


def test_a_file_that_is_cut_off_is_refused_by_name(catalog: Catalog, tmp_path: Path) -> None:
    entry = catalog.entries[-1]
    broken = tmp_path / entry.path.name
    broken.write_bytes(entry.path.read_bytes()[:-100])
    whole = entry.path
    try:
        entry.path = broken
        with pytest.raises(ArchiveRefused, match=broken.name):
            RowReader().read(entry, Wanted(METRICS[0], None, "container", *EVER))
    finally:
        entry.path = whole


def test_memory_is_given_back_after_many_rows(monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> None:
    given: list[int] = []
    monkeypatch.setattr(row_reader, "give_back_memory", lambda: given.append(1))
    monkeypatch.setattr(row_reader, "ROWS_HELD", 10 * catalog.rows)
    engine = Engine()
    for points in (1, 2, 3):
        engine.query(catalog, "memory_limit_share", max_points=points)
    assert not given
    monkeypatch.setattr(row_reader, "ROWS_HELD", 1)
    engine.query(catalog, "cpu", max_points=1)
    assert given == [1]
    assert engine.reader.rows_read == 0


def test_what_is_read_ahead_comes_in_order_and_an_error_at_its_place() -> None:
    def make(number: int) -> int:
        if number == 3:
            raise ArchiveRefused("three")
        return number * 10

    assert list(read_ahead(make, range(3))) == [0, 10, 20]
    coming = read_ahead(make, range(6))
    assert [next(coming) for _ in range(3)] == [0, 10, 20]
    with pytest.raises(ArchiveRefused, match="three"):
        next(coming)


@pytest.mark.parametrize("days", [1, 24, 25, 400])
def test_times_of_a_clock_that_was_set_by_months_are_kept(days: int) -> None:
    time_ms = np.array([5, 5 + days * 86_400_000], np.int64)
    np.testing.assert_array_equal(5 + shorten_times(time_ms, 5).astype(np.int64), time_ms)


def test_rollups_have_the_first_minute_which_is_not_whole(folder: Path, catalog: Catalog) -> None:
    """The same figures from rollups as from samples, from the first sample on."""
    exact = Engine().query(catalog, "memory", max_points=1)
    data = DataFolder(folder)
    assert sum(renew_rollups(Disk(), data, one) for one in data.partitions())
    rollups = find_rollups([folder], *EVER)
    found = fetch_minutes(rollups, {"container"}, Wanted(METRICS[1], None, "container", *EVER), ("count",))
    assert min(int(piece["count"][0]) for pieces in found.values() for piece in pieces) <= 30
    rolled = Engine().query(catalog, "memory", max_points=1)
    counts = [[int(line.points.count.sum()) for line in one.lines] for one in (rolled, exact)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("cuts", [(), (5,), (4,), (1, 2, 3), (3, 7, 9)])
def test_row_groups_are_joined_where_a_series_goes_on(cuts: Sequence[int]) -> None:
    """Cut between two series, within one, and within one twice: the rows are the same."""
    names = [tuple(f"{name}{place}" for place in range(len(IDENTITY))) for name in "abc"]
    whole = MetricRows(names, np.array([0, 4, 6, 10]), np.arange(10), np.arange(10) / 8)
    edges = [0, *cuts, 10]
    parts = [cut_part(whole, first, end) for first, end in pairwise(edges)]
    joined = join_parts(parts)
    assert joined.identities == whole.identities
    for name in ("starts", "time_ms", "value"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))


def cut_part(whole: MetricRows, first: int, end: int) -> MetricRows:
    """What a row group of these rows holds."""
    inside = [
        (identity, max(where.start, first), min(where.stop, end))
        for identity, where in zip(whole.identities, whole.slices(), strict=True)
        if where.start < end and where.stop > first
    ]
    starts = np.array([*(start - first for _, start, _ in inside), end - first])
    rows = slice(first, end)
    return MetricRows([one for one, *_ in inside], starts, whole.time_ms[rows], whole.value[rows])


@pytest.mark.parametrize(("small_rows", "is_in_turn"), [(0, True), (10**9, False)])
def test_one_question_at_a_time_holds_large_files(
    monkeypatch: pytest.MonkeyPatch, catalog: Catalog, small_rows: int, is_in_turn: bool
) -> None:
    """However many are asked at once: an hour of a hundred containers takes 20 MiB while it is derived."""
    engine = Engine()
    held: list[bool] = []
    add_files = NodeQuery._add_files

    def add(query: NodeQuery, *rest: Any) -> None:
        held.append(engine.reader.turn.locked())
        add_files(query, *rest)

    monkeypatch.setattr(NodeQuery, "_add_files", add)
    monkeypatch.setattr(node_query, "SMALL_ROWS", small_rows)
    found = ask_pairwise(
        lambda metric: engine.query(catalog, metric, max_points=1), ("memory", "cpu", "memory_anon")
    )
    assert all(one.lines for one in found)
    assert set(held) == {is_in_turn}
    assert not engine.reader.turn.locked()
