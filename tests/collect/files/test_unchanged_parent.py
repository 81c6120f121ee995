"""Unchanged parents: their children are not read, and no change is missed."""

import math
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
from nodescope.collect.files.layout import GridLayout, KeyValues, Number, PairSums
from nodescope.collect.files.native import load_native
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.files.unchanged_parent import TRUST_READINGS, TRUST_SUMS_READINGS

KILLS = KeyValues({"oom_kill": Metric("kills", "counter", "Kills.")})
CURRENT = Number(Metric("current", "gauge", "Memory."))
TABLE = Table("container", "container", ("container",), (*CURRENT.metrics, *KILLS.metrics))
TOP = "kubepods/events"


class Tree:
    """Containers below one parent; the parent counts all of their kills, as the kernel does."""

    def __init__(self, folder: Path, count: int, reader: str, descriptors: int = 100) -> None:
        self.node = Node(folder)
        self.kills = [0] * count
        self.parents_word = ""
        native, _ = load_native("auto") if reader == "native" else (None, "")
        if reader == "native" and native is None:
            pytest.skip("the native reader was not built")
        self.root = NodeRoot(self.node.path, native=native)
        self.descriptors = Descriptors(descriptors)
        self.grid = FileGrid(TABLE, (CURRENT, KILLS), self.root, self.descriptors)
        self.write_parent()
        self.entities = tuple(self.add(number) for number in range(count))
        self.grid.arrange(self.entities)

    def add(self, number: int) -> Entity:
        self.write(number)
        entity = Entity("container", (str(number),))
        files: list[tuple[str, GridLayout]] = [(f"{number}/current", CURRENT), (f"{number}/events", KILLS)]
        self.grid.add(entity, files, {f"{number}/events": TOP})
        return entity

    def write(self, number: int) -> None:
        self.node.write(f"{number}/current", f"{number}\n")
        self.node.write(f"{number}/events", f"oom_kill {self.kills[number]}\n")

    def write_parent(self) -> None:
        self.node.write(TOP, self.parents_word or f"oom_kill {sum(self.kills)}\n")

    def kill(self, number: int) -> None:
        self.kills[number] += 1
        self.write(number)
        self.write_parent()

    def read(self) -> list[float]:
        self.grid.read()
        kills: list[float] = self.grid.matrix()[:, 1].tolist()
        return kills


@pytest.fixture(params=["python", "native"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path, 3, request.param)
    yield made
    made.grid.close()
    assert made.descriptors.pinned == 0


@given(
    history=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=20),
    reader=st.sampled_from(["python", "native"]),
)
def test_a_change_that_the_parent_counts_is_never_late(history: list[list[int]], reader: str) -> None:
    """forall histories: at every reading, every container's value is the one in its file."""
    with TemporaryDirectory() as folder:
        tree = Tree(Path(folder), 4, reader)
        for killed in history:
            for number in killed:
                tree.kill(number)
            assert tree.read() == tree.kills
            assert tree.grid.matrix()[:, 0].tolist() == [0, 1, 2, 3]
        tree.grid.close()


def count_reads(tree: Tree) -> int:
    """How many descriptors one reading of the plain reader asked."""
    asked = []
    read = os.pread

    def watching(descriptor: int, size: int, offset: int) -> bytes:
        if offset == 0:
            asked.append(descriptor)
        return read(descriptor, size, offset)

    with mock.patch("os.pread", watching):
        tree.read()
    return len(asked)


def test_children_of_a_quiet_parent_are_asked_at_every_fifth_reading(tmp_path: Path) -> None:
    tree = Tree(tmp_path, 3, "python")
    tree.read()
    counts = [count_reads(tree) for _ in range(2 * TRUST_READINGS)]
    # The parent and `current` of each, always; `events` of each when nobody is believed.
    assert sorted(counts) == [4] * (2 * TRUST_READINGS - 2) + [7] * 2


def test_children_of_a_parent_that_adds_up_are_asked_less_often(tmp_path: Path) -> None:
    """Bytes and operations are sums: nothing that a child did is missing in its parent."""
    node = Node(tmp_path)
    moved = PairSums({"rbytes": Metric("read", "counter", "Bytes.")})
    table = Table("container", "container", ("container",), moved.metrics)
    grid = FileGrid(table, (moved,), NodeRoot(node.path), Descriptors(100))
    for path in ("kubepods/io.stat", "0/io.stat", "1/io.stat"):
        node.write(path, "8:0 rbytes=1\n")
    entities = tuple(Entity("container", (str(number),)) for number in range(2))
    for number, entity in enumerate(entities):
        path = f"{number}/io.stat"
        grid.add(entity, [(path, moved)], {path: "kubepods/io.stat"})
    grid.arrange(entities)
    grid.read()
    with mock.patch("os.pread", wraps=os.pread) as pread:
        for _ in range(2 * TRUST_SUMS_READINGS):
            grid.read()
    asked = [call for call in pread.call_args_list if call.args[2] == 0]
    # The parent each time; its children when it is not believed, and at the first of these readings.
    assert len(asked) == 2 * TRUST_SUMS_READINGS + 2 * 2
    grid.close()


def test_what_a_parent_does_not_count_is_late_by_four_readings_at_most(tree: Tree) -> None:
    """Pressure is a mean over cores: a tiny stall may leave the parent's figure as it was."""
    tree.read()
    tree.kills[1] += 1
    tree.write(1)
    said = [tree.read()[1] for _ in range(TRUST_READINGS)]
    assert said[-1] == 1
    assert said == sorted(said)


@pytest.mark.parametrize("word", ["", "other 1\n", "\xff\n", "oom_kill many\n"])
def test_a_parent_that_says_nothing_of_use_is_not_believed(tree: Tree, word: str) -> None:
    tree.parents_word = word or "\n"
    tree.write_parent()
    for kills in range(1, 2 * TRUST_READINGS):
        tree.kills[2] = kills
        tree.write(2)
        assert tree.read()[2] == kills


def test_a_tree_without_that_file_is_read_as_ever(tmp_path: Path) -> None:
    tree = Tree(tmp_path, 2, "python")
    tree.grid.close()
    tree.node.remove(TOP)
    tree.grid.arrange(tuple(tree.add(number) for number in range(2)))
    for kills in range(1, 7):
        tree.kills[0] = kills
        tree.write(0)
        assert tree.read() == [kills, 0]


def test_a_child_that_cannot_be_read_is_asked_again_at_once(tree: Tree) -> None:
    """Missing is not what it was: the cell is empty, the fault stays, and health is seen in the next reading."""
    tree.read()
    tree.node.write("1/events", "")
    tree.kills[0] += 1
    tree.write(0)
    tree.write_parent()
    for _ in range(2 * TRUST_READINGS):
        found = tree.read()
        assert math.isnan(found[1])
        assert [fault.path for fault in tree.grid.faults] == ["1/events"]
    tree.write(1)
    assert tree.read() == [1, 0, 0]
    assert tree.grid.faults == []


def test_who_comes_is_read_though_the_parent_is_quiet(tree: Tree) -> None:
    tree.read()
    tree.kills.append(5)
    tree.parents_word = "oom_kill 0\n"
    tree.grid.arrange((*tree.entities, tree.add(3)))
    assert tree.read() == [0, 0, 0, 5]


def test_without_a_descriptor_for_the_parent_everybody_is_asked(tmp_path: Path) -> None:
    tree = Tree(tmp_path, 2, "python", descriptors=4)
    assert tree.descriptors.pinned == 4
    tree.read()
    tree.kills[0] = 9
    tree.write(0)
    assert tree.read() == [9, 0]
    assert tree.descriptors.status().reopened == 0
    tree.grid.close()
    assert tree.descriptors.pinned == 0


def test_a_parent_that_fails_later_is_not_believed(tree: Tree) -> None:
    tree.read()
    # Its descriptor becomes a folder's: reading it is an error for both readers.
    parent = tree.grid._parents._open[TOP]
    folder = os.open(tree.node.path, os.O_RDONLY)
    os.dup2(folder, parent)
    os.close(folder)
    for kills in range(1, 2 * TRUST_READINGS):
        tree.kills[0] = kills
        tree.write(0)
        assert tree.read()[0] == kills
