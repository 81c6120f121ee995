"""The largest first, from files, rollups and log; a crash loop takes one place."""

from pathlib import Path

import numpy as np
import pytest
from tests.keep.frames import A, B, container, frame_at, frames, read_log_tail, write_log

from nodescope.base.entity import Entity
from nodescope.base.errors import RequestRejected
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine
from nodescope.read.query.ranking import rank_containers


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Two files of ten ticks and a log of ten: a uses 1 ms of CPU a second, b 2 ms."""
    folder = DataFolder(tmp_path)
    write_log(folder, frames(10), segment=1)
    write_log(folder, frames(10, 10), segment=2)
    convert_all(Disk(), folder)
    write_log(folder, frames(10, 20), segment=3)
    return folder


def test_the_largest_comes_first_with_a_curve_that_reaches_into_the_log(
    engine: Engine, folder: DataFolder
) -> None:
    catalog = read_catalog([folder.path])
    tail = read_log_tail(folder.path, catalog)
    ranking = rank_containers(engine, catalog, "cpu", max_points=10, tail=tail)
    assert [one.subject.label("l_pod_name") for one in ranking.rows] == ["pod-b", "pod-a"]
    assert (ranking.total, ranking.asked.unit) == (2, "cores")
    first = ranking.rows[0]
    np.testing.assert_allclose([first.value, first.mean, first.maximum, first.last], 0.002)
    assert first.points.count.sum() == 29
    assert len(first.points.mean) <= 10


@pytest.mark.parametrize(("by", "value"), [("mean", 4096 * 14.5), ("max", 4096 * 29), ("last", 4096 * 29)])
def test_mean_maximum_and_last_are_of_the_samples(
    engine: Engine, folder: DataFolder, by: str, value: float
) -> None:
    catalog = read_catalog([folder.path])
    tail = read_log_tail(folder.path, catalog)
    ranking = rank_containers(engine, catalog, "memory", by=by, tail=tail)  # type: ignore[arg-type]
    assert [one.value for one in ranking.rows] == [value, value]


def test_the_limit_cuts_and_the_total_says_of_how_many(engine: Engine, folder: DataFolder) -> None:
    ranking = rank_containers(engine, read_catalog([folder.path]), "cpu", limit=1)
    assert (len(ranking.rows), ranking.total) == (1, 2)


def test_the_lives_of_a_restarted_container_are_one_row(engine: Engine, tmp_path: Path) -> None:
    """Three lives of ten ticks in one pod: one row of thirty samples under the newest id."""
    uid = ("pod_uid", "u-1")
    lives = [
        Entity("container", (letter * 64, "7"), A.labels, (("container_id", letter * 64), uid))
        for letter in "xyz"
    ]
    folder = DataFolder(tmp_path)
    for place, life in enumerate(lives):
        many = [frame_at(number, (B, life)) for number in range(place * 10, place * 10 + 10)]
        write_log(folder, many, segment=place + 1)
    convert_all(Disk(), folder)
    for points in (5, 1000):
        ranking = rank_containers(engine, read_catalog([folder.path]), "memory", max_points=points)
        mine = next(one for one in ranking.rows if one.subject.label("l_pod_name") == "pod-a")
        assert (mine.lives, mine.points.count.sum(), ranking.total) == (3, 30, 2)
        assert mine.subject.label("l_container_id") == "z" * 64
        assert mine.mean == pytest.approx(4096 * 14.5)
        catalog = read_catalog([folder.path])
        assert catalog.resolve_lives("pod-a") == [letter * 64 for letter in "xyz"]
        assert catalog.resolve_lives("yy") == ["y" * 64]
        apart = rank_containers(engine, read_catalog([folder.path]), "memory", max_points=points, apart=True)
        each = [one for one in apart.rows if one.subject.label("l_pod_name") == "pod-a"]
        assert [(one.lives, one.points.count.sum()) for one in each] == [(1, 10)] * 3
        assert [one.mean for one in each] == pytest.approx([4096 * 24.5, 4096 * 14.5, 4096 * 4.5])


def test_a_container_without_a_sample_is_not_in_the_list(engine: Engine, tmp_path: Path) -> None:
    """Container a has no memory limit, hence no share of it."""
    folder = DataFolder(tmp_path)
    write_log(folder, frames(5))
    convert_all(Disk(), folder)
    ranking = rank_containers(engine, read_catalog([folder.path]), "memory_limit_share")
    assert [one.subject.label("l_pod_name") for one in ranking.rows] == ["pod-b"]


def test_a_wrong_word_is_answered_with_the_right_one(engine: Engine, folder: DataFolder) -> None:
    catalog = read_catalog([folder.path])
    with pytest.raises(RequestRejected, match='no namespace "shopp"; did you mean "shop"'):
        rank_containers(engine, catalog, namespace="shopp")
    with pytest.raises(RequestRejected, match="accepted: mean, max, last"):
        rank_containers(engine, catalog, by="median")  # type: ignore[arg-type]
    with pytest.raises(RequestRejected, match="limit = 0"):
        rank_containers(engine, catalog, limit=0)
    assert rank_containers(engine, catalog, namespace="shop").total == 2
    assert rank_containers(engine, catalog, containers=[container("b").ids[0]]).total == 1
