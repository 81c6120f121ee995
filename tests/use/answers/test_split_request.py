"""A question about many containers, asked about a few at a time: the same series, and never all of them at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.keep.frames import A, B, container, frame_at, frames, write_log

from nodescope.base.block import Block, Table
from nodescope.base.clock import SystemClock
from nodescope.base.entity import Entity
from nodescope.base.frame import Frame
from nodescope.base.time_range import TimeRange
from nodescope.keep.folder import DataFolder
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.refusal import Refused
from nodescope.use.answers.snapshots import NodeFolders, View
from nodescope.use.answers.timeseries import (
    MeasuredSeries,
    TimeseriesRequest,
    batch_lives,
    read_measured,
    split_request,
)

SERVICE = Entity("service", ("system.slice/cron.service", "9"), (), ())
OTHERS = (A, B, container("c", "pod-c"))
EVER = TimeRange(0, 2**43)
EVERYTHING = TimeseriesRequest("memory", EVER, 2**40, is_bounded=False)


def with_service(frame: Frame) -> Frame:
    """Services have the files that containers have, in the same table."""
    block, *rest = frame.blocks
    table = Table(block.table.name, block.table.source, ("container", "service"), block.table.metrics)
    values = np.vstack([block.values, block.values[:1]])
    return replace(frame, blocks=(Block(table, (*block.entities, SERVICE), values, block.mono_ns), *rest))


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    folder = DataFolder(tmp_path_factory.mktemp("split") / "data")
    write_log(folder, [with_service(frame_at(number, OTHERS)) for number in range(10)])
    return NodeFolders([folder.path], SystemClock()).view()


def read(view: View, *requests: TimeseriesRequest) -> list[MeasuredSeries]:
    resolved = resolve(view.nodes, "memory")
    return [
        series
        for request in requests
        for node in read_measured(view, request, resolved)
        for series in node.series
    ]


def split(view: View, request: TimeseriesRequest, most: int) -> list[TimeseriesRequest]:
    return list(split_request(view, request, resolve(view.nodes, "memory"), most))


@pytest.mark.parametrize(("most", "parts"), [(1, 4), (18, 3), (27, 1), (10**6, 1)])
def test_the_parts_are_the_whole(view: View, most: int, parts: int) -> None:
    """Nine seconds each: services first, then as many containers together as may be held."""
    requests = split(view, EVERYTHING, most)
    assert len(requests) == parts
    whole, found = read(view, EVERYTHING), read(view, *requests)
    assert [one.id for one in found] == [one.id for one in whole]
    assert len(found) == 4
    for ours, theirs in zip(whole, found, strict=True):
        np.testing.assert_array_equal(ours.points.time_ms, theirs.points.time_ms)
        np.testing.assert_array_equal(ours.points.mean, theirs.points.mean)


def test_containers_that_were_named_are_split_alone(view: View) -> None:
    lives = tuple(view.lives())[:2]
    requests = split(view, replace(EVERYTHING, lives=lives), 1)
    assert [request.lives for request in requests] == [(life,) for life in lives]


def test_what_is_not_of_containers_is_one_part(view: View) -> None:
    request = replace(EVERYTHING, metric="cpu.load_1m")
    assert list(split_request(view, request, resolve(view.nodes, "cpu.load_1m"), 1)) == [request]


def test_no_batch_is_larger_than_one_life_needs(view: View) -> None:
    lives = view.lives()
    assert [len(batch) for batch in batch_lives(lives, EVER, 0)] == [1, 1, 1]
    assert list(batch_lives((), EVER, 5)) == []


def test_too_much_is_refused_as_a_whole_and_not_part_by_part(tmp_path: Path) -> None:
    """Each half could be read; both together are more than one request may cost."""
    folder = DataFolder(tmp_path / "data")
    write_log(folder, [*frames(2), *frames(2, first=20_000_000)])
    view = NodeFolders([folder.path], SystemClock()).view()
    halves = split(view, EVERYTHING, 20_000_002)
    assert len(halves) == 2
    with pytest.raises(Refused, match="accepted: up to 30,000,000"):
        split(view, replace(EVERYTHING, is_bounded=True), 20_000_002)
    assert len(read(view, *(replace(half, is_bounded=True) for half in halves))) == 2
