"""Still files: what stands still with the CPU time of its row is not read, and what moves without it is."""

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
from nodescope.collect.files.idle_rows import TRUST_READINGS
from nodescope.collect.files.layout import Number
from nodescope.collect.files.native import load_native
from nodescope.collect.files.roots import SELDOM_SHARE, Descriptors, NodeRoot
from nodescope.collect.files.still_files import StillFiles

USAGE = Number(Metric("usage", "counter", "CPU time."))
OTHER_USAGE = Number(Metric("other usage", "counter", "CPU time of the other version."))
CURRENT = Number(Metric("current", "gauge", "Memory."))
THROTTLED = Number(Metric("throttled", "counter", "Periods in which it was throttled."))
LAYOUTS = (USAGE, OTHER_USAGE, CURRENT, THROTTLED)
MAIN = Table("container", "container", ("container",), tuple(layout.metric for layout in LAYOUTS))
SEEN = ("usage", "current", "throttled")


class Containers:
    """Each has a CPU time, memory in use, and how often it was throttled."""

    def __init__(self, folder: Path, count: int, reader: str, unused: tuple[Number, ...] = ()) -> None:
        self.node = Node(folder)
        native, _ = load_native("auto") if reader == "native" else (None, "")
        if reader == "native" and native is None:
            pytest.skip("the native reader was not built")
        self.grid = FileGrid(MAIN, LAYOUTS, NodeRoot(self.node.path, native=native), Descriptors(1000))
        self.grid.still_files = StillFiles(MAIN, (USAGE, OTHER_USAGE), (THROTTLED,), unused)
        self.numbers = [dict.fromkeys(SEEN, 0) for _ in range(count)]
        entities = tuple(Entity("container", (str(row),)) for row in range(count))
        for row, entity in enumerate(entities):
            for what in SEEN:
                self.add(row, what, 0)
            files = [(f"{row}/usage", USAGE), (f"{row}/current", CURRENT), (f"{row}/throttled", THROTTLED)]
            self.grid.add(entity, files)
        self.grid.arrange(entities)

    def add(self, row: int, what: str, more: int) -> None:
        self.numbers[row][what] += more
        self.node.write(f"{row}/{what}", f"{self.numbers[row][what]}\n")

    def read(self) -> list[dict[str, float]]:
        self.grid.read()
        places = [MAIN.columns[what] for what in SEEN]
        return [dict(zip(SEEN, row)) for row in self.grid.matrix()[:, places].tolist()]

    def settle(self) -> None:
        """So often that nobody's file is known to move."""
        for _ in range(3):
            self.read()


@pytest.fixture(params=["python", "native"])
def containers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Containers]:
    made = Containers(tmp_path, 6, request.param)
    made.settle()
    yield made
    made.grid.close()


@given(
    history=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=4), max_size=20),
    reader=st.sampled_from(["python", "native"]),
)
def test_who_runs_is_never_late(history: list[list[tuple[int, int]]], reader: str) -> None:
    """forall histories in which nobody is throttled without running: every reading says what the files say."""
    with TemporaryDirectory() as folder:
        made = Containers(Path(folder), 4, reader)
        for tick in history:
            for row, more in tick:
                made.add(row, "throttled", more)
                made.add(row, "usage", more)
                made.add(row, "current", 1)
            assert made.read() == made.numbers
        made.grid.close()


def test_memory_is_read_at_every_tick(containers: Containers) -> None:
    """Others may take the pages of a container that does nothing."""
    for _ in range(7):
        containers.add(2, "current", 1)
        assert containers.read() == containers.numbers


def test_what_moves_alone_is_seen_within_five_ticks_and_from_then_on_at_once(containers: Containers) -> None:
    """forall rows: who has used more than his quota is throttled again and again, and does not run."""
    seen = []
    for _ in range(3 * TRUST_READINGS):
        containers.add(3, "throttled", 1)
        seen.append(containers.read() == containers.numbers)
    assert True in seen[:TRUST_READINGS]
    assert all(seen[TRUST_READINGS:])


def test_files_of_idle_rows_are_not_read(tmp_path: Path) -> None:
    made = Containers(tmp_path, 50, "python")
    made.settle()
    made.add(7, "usage", 1)
    with mock.patch("os.pread", wraps=os.pread) as pread:
        made.read()
    # Two of each, and the third of the one that worked and of those whose turn it is.
    assert pread.call_count in (2 * 50 + 50 // TRUST_READINGS, 2 * 50 + 50 // TRUST_READINGS + 1)
    made.grid.close()


@pytest.mark.parametrize("reader", ["python", "native"])
def test_zeros_of_who_never_had_a_quota_are_read_in_turns(tmp_path: Path, reader: str) -> None:
    """Its first period is seen within five ticks although it works, and from then on every one at once."""
    made = Containers(tmp_path, 50, reader, unused=(THROTTLED,))
    made.settle()
    seen = []
    for tick in range(3 * TRUST_READINGS):
        for row in range(50):
            made.add(row, "usage", 1)
        made.add(3, "throttled", int(tick >= 2))
        seen.append(made.read() == made.numbers)
    late = seen.index(False)
    assert late == 2
    assert True in seen[late : late + TRUST_READINGS]
    assert all(seen[late + TRUST_READINGS :])
    made.grid.close()


def test_zeros_are_not_read_while_the_container_works(tmp_path: Path) -> None:
    made = Containers(tmp_path, 50, "python", unused=(THROTTLED,))
    made.add(7, "throttled", 1)
    made.settle()
    for row in range(50):
        made.add(row, "usage", 1)
    with mock.patch("os.pread", wraps=os.pread) as pread:
        made.read()
    # Two of each, the third of those whose turn it is, and of the one that was throttled once.
    assert pread.call_count in (2 * 50 + 50 // TRUST_READINGS, 2 * 50 + 50 // TRUST_READINGS + 1)
    made.grid.close()


def test_a_witness_that_cannot_be_read_spares_nothing(containers: Containers) -> None:
    """Missing is not unchanged."""
    containers.node.write("4/usage", "nothing\n")
    containers.read()
    for _ in range(3):
        containers.add(4, "throttled", 1)
        assert containers.read()[4]["throttled"] == containers.numbers[4]["throttled"]


def test_settings_are_read_in_turns_and_have_few_descriptors(tmp_path: Path) -> None:
    """forall rows: read once in six readings, idle or not; the first reading has them all."""
    node, rows, period = Node(tmp_path), 12, 6
    table = Table("container.limits", "container", ("container",), (CURRENT.metric, THROTTLED.metric))
    descriptors = Descriptors(8 * rows)
    grid = FileGrid(table, (CURRENT, THROTTLED), NodeRoot(node.path), descriptors, is_rare=True)
    grid.seldom = {id(CURRENT): period}
    entities = tuple(Entity("container", (str(row),)) for row in range(rows))
    for row, entity in enumerate(entities):
        for what in ("current", "throttled"):
            node.write(f"{row}/{what}", "1\n")
        grid.add(entity, [(f"{row}/current", CURRENT), (f"{row}/throttled", THROTTLED)])
    # Both files of each row, until a quarter is taken; then only the other one.
    quarter = 8 * rows // SELDOM_SHARE
    assert descriptors.pinned == quarter + (rows - quarter // 2)
    grid.arrange(entities)
    grid.read()
    assert grid.matrix().tolist() == [[1.0, 1.0]] * rows
    for row in range(rows):
        node.write(f"{row}/current", "2\n")
        node.write(f"{row}/throttled", "2\n")
    known = []
    for _ in range(period):
        grid.read()
        assert grid.matrix()[:, 1].tolist() == [2.0] * rows
        known.append(int((grid.matrix()[:, 0] == 2).sum()))
    assert known == [2, 4, 6, 8, 10, 12]
    grid.close()
    assert descriptors.pinned == 0
