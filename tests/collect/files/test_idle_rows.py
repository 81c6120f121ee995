"""Idle rows: what did nothing is not read, and nothing that it did is missed."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.nodes import Node

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.collect.files.batch import FileGrid
from nodescope.collect.files.idle_rows import TRUST_READINGS, IdleRows
from nodescope.collect.files.layout import KeyValues, Number
from nodescope.collect.files.native import load_native
from nodescope.collect.files.roots import Descriptors, NodeRoot

USAGE = Number(Metric("usage", "counter", "CPU time."))
OTHER_USAGE = Number(Metric("other usage", "counter", "CPU time of the other version."))
CURRENT = Number(Metric("current", "gauge", "Memory."))
PARTS = KeyValues({"anon": Metric("anon", "gauge", "Anonymous."), "slab": Metric("slab", "gauge", "Kernel.")})
MAIN = Table(
    "container", "container", ("container",), (*USAGE.metrics, *OTHER_USAGE.metrics, *CURRENT.metrics)
)
STAT = Table("container.memory_stat", "container", ("container",), PARTS.metrics)


class Containers:
    """Each has a CPU time, memory in use, and what the memory is made of."""

    def __init__(self, folder: Path, count: int, reader: str, descriptors: int = 100) -> None:
        self.node = Node(folder)
        native, _ = load_native("auto") if reader == "native" else (None, "")
        if reader == "native" and native is None:
            pytest.skip("the native reader was not built")
        root = NodeRoot(self.node.path, native=native)
        self.descriptors = Descriptors(descriptors)
        self.main = FileGrid(MAIN, (USAGE, OTHER_USAGE, CURRENT), root, self.descriptors)
        self.stat = FileGrid(STAT, (PARTS,), root, self.descriptors)
        self.stat.idle_rows = IdleRows(self.main, ("usage", "other usage"), ("current",))
        self.usage, self.current, self.anon = [0] * count, [0] * count, [0] * count
        self.arrange(count)

    def arrange(self, count: int) -> None:
        for number in range(count):
            self.write(number)
            entity = Entity("container", (str(number),))
            self.main.add(entity, [(f"{number}/usage", USAGE), (f"{number}/current", CURRENT)])
            self.stat.add(entity, [(f"{number}/stat", PARTS)])
        entities = tuple(Entity("container", (str(number),)) for number in range(count))
        self.main.arrange(entities)
        self.stat.arrange(entities)

    def write(self, number: int) -> None:
        self.node.write(f"{number}/usage", f"{self.usage[number]}\n")
        self.node.write(f"{number}/current", f"{self.current[number]}\n")
        self.node.write(f"{number}/stat", f"anon {self.anon[number]}\n")

    def change(self, number: int, *, usage: int = 0, current: int = 0) -> None:
        self.usage[number] += usage
        self.current[number] += current
        self.anon[number] += 1
        self.write(number)

    def tick(self) -> list[float]:
        self.main.read()
        return self.read_stat()

    def read_stat(self) -> list[float]:
        self.stat.read()
        anon: list[float] = self.stat.matrix()[:, 0].tolist()
        return anon

    def close(self) -> None:
        self.main.close()
        self.stat.close()
        assert self.descriptors.pinned == 0


@pytest.fixture(params=["python", "native"])
def containers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Containers]:
    made = Containers(tmp_path, 6, request.param)
    made.tick()
    yield made
    made.close()


@pytest.mark.parametrize("what", ["usage", "current"])
def test_who_used_cpu_time_or_holds_other_memory_is_read_at_once(containers: Containers, what: str) -> None:
    for number in range(6):
        containers.change(number, **{what: 1})
        assert containers.tick() == containers.anon


def test_an_idle_container_is_read_every_fifth_time(containers: Containers) -> None:
    """What others did to its memory is seen then: its anon grows though it did nothing and holds as much."""
    containers.change(0)
    seen = [containers.tick()[0] for _ in range(TRUST_READINGS)]
    assert sorted(seen) == seen
    assert 0 in seen
    assert seen[-1] == 1


def test_files_of_idle_containers_are_not_read(tmp_path: Path) -> None:
    made = Containers(tmp_path, 50, "python", descriptors=1000)
    made.tick()
    made.change(3, usage=1)
    made.main.read()
    with mock.patch("os.pread", wraps=os.pread) as pread:
        made.stat.read()
    # The one that worked, and those whose turn it is.
    assert pread.call_count == 1 + 50 // TRUST_READINGS
    made.close()


def test_a_grid_that_was_not_read_again_tells_nothing(containers: Containers) -> None:
    """The budget may let the first grid wait for longer than the second."""
    containers.tick()
    for number in range(6):
        containers.change(number)
    assert containers.read_stat() == containers.anon


def test_work_since_a_reading_of_the_first_grid_alone_is_not_lost(containers: Containers) -> None:
    """The first grid saw the work; the second, which is read less often, sees it at its next reading."""
    containers.change(1, usage=1)
    containers.main.read()
    containers.main.read()
    assert containers.read_stat() == containers.anon


def test_after_a_file_that_could_not_be_read_all_are(containers: Containers) -> None:
    containers.node.write("4/stat", "anon nothing\n")
    containers.usage[4] += 1
    containers.node.write("4/usage", f"{containers.usage[4]}\n")
    containers.tick()
    for number in range(6):
        containers.change(number)
    assert containers.tick() == containers.anon


def test_a_set_that_was_arranged_anew_is_read_whole(containers: Containers) -> None:
    containers.tick()
    for number in range(6):
        containers.change(number)
    containers.stat.arrange(containers.main.entities)
    assert containers.tick() == containers.anon


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["usage", "current"])), max_size=4),
        min_size=1,
        max_size=25,
    )
)
def test_a_container_that_acts_is_never_shown_with_old_figures(ticks: list[list[tuple[int, str]]]) -> None:
    with TemporaryDirectory() as folder:
        made = Containers(Path(folder), 5, "python")
        made.tick()
        for acts in ticks:
            for number, what in acts:
                made.change(number, **{what: 1})
            assert made.tick() == made.anon
        made.close()
