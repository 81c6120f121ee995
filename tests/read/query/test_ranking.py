"""The largest first, from files, rollups and log."""

from pathlib import Path

import numpy as np
import pytest
from tests.keep.frames import A, B, frame_at, frames, read_log_tail, write_log

from nodescope.base.entity import Entity
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine
from nodescope.read.query.ranking import place_of, rank_containers


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
    ranked = rank_containers(engine, catalog, "cpu", max_points=10, tail=tail)
    assert [one.subject.label("l_pod_name") for one in ranked] == ["pod-b", "pod-a"]
    first = ranked[0]
    np.testing.assert_allclose([first.mean, first.maximum, first.last], 0.002)
    assert first.points.count.sum() == 29
    assert len(first.points.mean) <= 10


def test_mean_maximum_and_last_are_of_the_samples(engine: Engine, folder: DataFolder) -> None:
    catalog = read_catalog([folder.path])
    tail = read_log_tail(folder.path, catalog)
    for one in rank_containers(engine, catalog, "memory", tail=tail):
        assert (one.mean, one.maximum, one.last) == (4096 * 14.5, 4096 * 29, 4096 * 29)


def test_every_run_of_a_restarted_container_has_a_row_and_a_place_in_common(
    engine: Engine, tmp_path: Path
) -> None:
    """Three of ten ticks in one pod, each with its own mean, and known to be one container."""
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
    catalog = read_catalog([folder.path])
    for points in (5, 1000):
        ranked = rank_containers(engine, catalog, "memory", max_points=points)
        mine = [one for one in ranked if one.subject.label("l_pod_name") == "pod-a"]
        assert [one.points.count.sum() for one in mine] == [10] * 3
        assert [one.mean for one in mine] == pytest.approx([4096 * 24.5, 4096 * 14.5, 4096 * 4.5])
        assert len({place_of(one.subject) for one in mine}) == 1
        assert len({place_of(one.subject) for one in ranked}) == 2


def test_a_container_without_a_sample_is_not_in_the_list(engine: Engine, tmp_path: Path) -> None:
    """Container a has no memory limit, hence no share of it."""
    folder = DataFolder(tmp_path)
    write_log(folder, frames(5))
    convert_all(Disk(), folder)
    ranked = rank_containers(engine, read_catalog([folder.path]), "memory_limit_share")
    assert [one.subject.label("l_pod_name") for one in ranked] == ["pod-b"]
