"""A service inside another one: every sum has one of them, never both."""

import statistics
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.agents import TurnableClock
from tests.keep.frames import CONTAINERS, MONO_NS, SECOND_NS, START_NS, frame_at, write_log
from tests.use.viewer.asking import Asker

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.frame import Frame
from nodescope.base.time_range import TimeRange
from nodescope.keep.folder import DataFolder
from nodescope.use.answers.minutes.node_minutes import read_minutes

SECONDS = 40
MIB = 2.0**20
# Bytes in use and cores, of each: what is inside docker.service is in its figure.
USE = {
    "system.slice/docker.service": (100 * MIB, 0.5),
    "system.slice/docker.service/builder": (80 * MIB, 0.4),
    "system.slice/docker.service/builder/step-1": (60 * MIB, 0.3),
    "system.slice/docker.service-proxy": (5 * MIB, 0.1),
}
MEMORY, CORES = 105 * MIB, 0.6
SERVICES = Table("container", "container", ("service",), CONTAINERS.metrics)


def frame_of_services(number: int) -> Frame:
    entities = tuple(Entity("service", (path, str(place)), (), ()) for place, path in enumerate(USE))
    rows = [[number * 1e6 * cores, memory, np.inf] for memory, cores in USE.values()]
    block = Block(SERVICES, entities, np.array(rows), MONO_NS + number * SECOND_NS)
    _, *rest = frame_at(number, ()).blocks
    return replace(frame_at(number, ()), blocks=(block, *rest))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    folder = DataFolder(tmp_path_factory.mktemp("nested") / "data")
    write_log(folder, [frame_of_services(number) for number in range(SECONDS)])
    with Asker(folder.path, clock=TurnableClock(wall=START_NS + SECONDS * SECOND_NS)) as asker:
        yield asker


def test_all_are_in_the_list(services: Asker) -> None:
    rows = services.json("/api/containers", metric="memory", range="all")["containers"]
    assert {row["name"].strip("/") for row in rows} == set(USE)


def test_the_tiles_count_nothing_twice(services: Asker) -> None:
    tiles = {tile["id"]: tile for tile in services.json("/api/summary", range="all")["tiles"]}
    assert tiles["memory"]["value"] == pytest.approx(MEMORY)
    assert tiles["cpu"]["value"] == pytest.approx(CORES, rel=0.05)


@pytest.mark.parametrize("kind", ["namespace", "node", "workload"])
def test_sums_of_groups_count_nothing_twice(services: Asker, kind: str) -> None:
    groups = services.json("/api/groups", metric="memory", group=kind, range="all")["groups"]
    total = sum(statistics.fmean(value for value in one["mean"] if value is not None) for one in groups)
    assert total == pytest.approx(MEMORY)


def test_one_that_was_chosen_alone_has_its_own_figure(services: Asker) -> None:
    (tile,) = [
        one
        for one in services.json("/api/summary", range="all", search="step-1")["tiles"]
        if one["id"] == "memory"
    ]
    assert tile["value"] == pytest.approx(60 * MIB)


def test_the_total_of_workloads_counts_nothing_twice(services: Asker) -> None:
    answer = services.json("/api/workloads", metric="memory", range="all")
    assert len(answer["workloads"]) == len(USE)
    assert answer["total_over_span"] == pytest.approx(MEMORY, rel=0.01)


def test_cells_of_the_cluster_count_nothing_twice(services: Asker) -> None:
    start_ms = START_NS // 1_000_000
    (node,) = read_minutes(services.viewer.view(), TimeRange(start_ms, start_ms + SECONDS * 1000), 60_000)
    assert float(np.nanmax(node.memory)) == pytest.approx(MEMORY)
    assert float(np.nanmax(node.cpu)) == pytest.approx(CORES, rel=0.05)
