"""Long ranges from rollups: the same answer, and still one when the samples have gone."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.keep.frames import A, frame_at, write_log

from nodescope.keep import rollup
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.files.rollups import choose, find_rollups, reach
from nodescope.read.query.engine import Engine, QueryResult

LATER_MS = 1_772_366_340_000 + 90 * 86_400_000
# 12:00, in frames after the first, and in milliseconds.
NOON, NOON_MS = 60, 1_772_366_400_000
SAME = frame_at(0).blocks[0].entities


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Twenty minutes in two segments, consolidated and rolled up."""
    folder = DataFolder(tmp_path)
    for segment in (1, 2):
        first = (segment - 1) * 600
        write_log(folder, [frame_at(number, SAME) for number in range(first, first + 600)], segment=segment)
    convert_all(Disk(), folder)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    return folder


def ask(folder: DataFolder, metric: str, points: int) -> QueryResult:
    return Engine().query(read_catalog([folder.path]), metric, [A.ids[0]], max_points=points)


def test_buckets_from_rollups_are_those_of_the_samples(folder: DataFolder) -> None:
    """count, minimum and maximum agree; a minute on a bucket's border goes to one side."""
    rolled = ask(folder, "memory", 4).lines[0].points
    for file in folder.rollup.files():
        file.path.unlink()
    exact = ask(folder, "memory", 4).lines[0].points
    assert rolled.count.sum() == exact.count.sum() == 1200
    assert rolled.minimum.min() == exact.minimum.min()
    assert rolled.maximum.max() == exact.maximum.max()
    np.testing.assert_allclose(rolled.mean, exact.mean, rtol=0.2)


def test_a_rate_from_rollups_is_flat_where_the_counter_grows_evenly(folder: DataFolder) -> None:
    points = ask(folder, "cpu", 4).lines[0].points
    np.testing.assert_allclose(points.mean[points.count > 0], 0.001, rtol=0.02)


def test_rollups_answer_when_the_samples_have_gone(folder: DataFolder) -> None:
    catalog = read_catalog([folder.path])
    write_log(folder, [frame_at(number, SAME) for number in range(90_000, 90_060)], segment=3)
    convert_all(Disk(), folder)
    for entry in catalog.entries:
        entry.path.unlink()
        entry.path.with_suffix(".containers").unlink()
    later = read_catalog([folder.path])
    answer = Engine().query(later, "memory", [A.ids[0]], catalog.from_ms, later.to_ms, max_points=100)
    assert answer.lines[0].points.count.sum() == 1200 + 60


def test_no_segment_is_rolled_up_twice(folder: DataFolder) -> None:
    before = [file.path.name for file in folder.rollup.files()]
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert [file.path.name for file in folder.rollup.files()] == before
    assert len(before) == 1


def test_rollups_of_hours_stand_for_the_file_that_the_hours_became(tmp_path: Path) -> None:
    """A question about one of the hours reads its minutes, not the samples of the whole file."""
    folder = DataFolder(tmp_path)
    for hour in (0, 1):
        for half in (0, 1):
            first = NOON + 3600 * hour + 60 * half
            many = [frame_at(number, SAME) for number in range(first, first + 60)]
            write_log(folder, many, segment=2 * hour + half + 1)
        convert_all(Disk(), folder)
        Consolidator(Disk(), folder).run_pass(NOON_MS + (hour + 1) * 3_600_000 + 400_000)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    (entry,), paths = read_catalog([folder.path]).entries, [folder.path]
    span = NOON_MS, NOON_MS + 600_000
    assert len(list(folder.rollup.files())) == 2
    assert reach([entry], *span) == (NOON_MS, entry.to_ms)
    files, minutes = choose([entry], find_rollups(paths, *reach([entry], *span)), *span)
    assert (files, [one.from_ms for one in minutes]) == ([], [NOON_MS])
    # Where the other hour has lost its rollup, the file is read, and no minute beside it.
    max(folder.rollup.files(), key=lambda file: file.from_ms).path.unlink()
    assert choose([entry], find_rollups(paths, *reach([entry], *span)), *span) == ([entry], [])


def test_a_row_group_of_a_rollup_ends_with_a_metric(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where enough rows are together, the next metric begins another; the rows are the same."""
    (file,) = folder.rollup.files()
    together = pq.read_table(file.path)
    assert pq.read_metadata(file.path).num_row_groups == 1
    file.path.unlink()
    monkeypatch.setattr(rollup, "ROW_GROUP_LEAST", 60)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    apart = pq.ParquetFile(file.path)
    groups = (apart.read_row_group(number) for number in range(apart.metadata.num_row_groups))
    metrics = [set(group.column("metric_name").to_pylist()) for group in groups]
    # Twenty minutes of two containers are too few rows for a row group of their own.
    assert [len(one) for one in metrics] == [2, 2]
    assert apart.read().to_pylist() == together.to_pylist()


def test_only_what_a_reader_may_skip_by_has_statistics(folder: DataFolder) -> None:
    """Of a chunk of one page a page index says what the footer has said."""
    (file,) = folder.rollup.files()
    group = pq.read_metadata(file.path).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    told = {column.path_in_schema for column in columns if column.statistics}
    assert told == {"time", "metric_name", "l_container_id", "l_scope"}
    assert not any(column.has_column_index or column.has_offset_index for column in columns)
