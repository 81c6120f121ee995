"""The batch reader: descriptors over the limit, files that fail, rows that come and go."""

import errno
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collect.nodes import Node

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.errors import ParseError
from nodescope.base.metric import Metric
from nodescope.collect.files.batch import DeviceTable, FileGrid, describe_fault
from nodescope.collect.files.layout import DeviceRows, KeyValues, Number
from nodescope.collect.files.roots import FILE_BYTES, RARE_SPARE, Descriptors, NodeRoot

CURRENT = Number(Metric("current", "gauge", "Memory."))
STAT = KeyValues(
    {"user": Metric("user", "counter", "User."), "system": Metric("system", "counter", "Kernel.")}
)
TABLE = Table("container", "container", ("container",), (*CURRENT.metrics, *STAT.metrics))


def make_grid(root: NodeRoot, limit: int) -> tuple[FileGrid, Descriptors]:
    descriptors = Descriptors(limit)
    return FileGrid(TABLE, (CURRENT, STAT), root, descriptors), descriptors


def add(grid: FileGrid, node: Node, name: str, number: int) -> Entity:
    node.write(f"{name}/current", f"{number}\n")
    node.write(f"{name}/stat", f"user {number + 1}\nsystem {number + 2}\n")
    entity = Entity("container", (name,))
    grid.add(entity, [(f"{name}/current", CURRENT), (f"{name}/stat", STAT)])
    return entity


def values(grid: FileGrid) -> list[list[float]]:
    grid.read()
    block = grid.block(0)
    assert block is not None
    rows: list[list[float]] = block.values.tolist()
    return rows


@given(count=st.integers(0, 8), limit=st.integers(0, 20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_do_not_depend_on_how_many_descriptors_may_stay_open(
    tmp_path: Path, count: int, limit: int
) -> None:
    """forall limits: the same values; pinned == min(limit, files), first come first served."""
    node = Node(tmp_path)
    grid, descriptors = make_grid(node.root(), limit)
    grid.arrange(tuple(add(grid, node, f"c{number}", number * 10) for number in range(count)))
    assert descriptors.pinned == min(limit, 2 * count)
    assert values(grid) == [[n * 10.0, n * 10.0 + 1, n * 10.0 + 2] for n in range(count)]
    assert values(grid) == values(grid)
    assert descriptors.pinned == min(limit, 2 * count)
    grid.close()
    assert descriptors.pinned == 0


def test_no_descriptor_is_left_behind_by_coming_and_going(tmp_path: Path) -> None:
    node = Node(tmp_path)
    grid, descriptors = make_grid(node.root(), 10)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for number in range(50):
        entity = add(grid, node, "c", number)
        grid.arrange((entity,))
        values(grid)
        grid.remove(entity)
    grid.arrange(())
    assert descriptors.pinned == 0
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before + 1


def test_a_file_larger_than_its_buffer_is_read_whole(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for limit in (0, 10):
        grid, _ = make_grid(node.root(), limit)
        entity = add(grid, node, "c", 1)
        node.write("c/stat", "".join(f"k{n} 0\n" for n in range(500)) + "user 5\nsystem 6\n")
        grid.arrange((entity,))
        assert values(grid) == [[1.0, 5.0, 6.0]]
        grid.close()


def test_a_file_beyond_any_sense_is_a_fault_not_a_flood(tmp_path: Path) -> None:
    node = Node(tmp_path)
    grid, _ = make_grid(node.root(), 10)
    entity = add(grid, node, "c", 1)
    node.write("c/stat", b"x" * (FILE_BYTES + 100))
    grid.arrange((entity,))
    (row,) = values(grid)
    assert row[0] == 1.0
    assert np.isnan(row[1:]).all()
    assert [fault.status for fault in grid.faults] == ["too_large"]
    grid.close()


def test_one_bad_file_costs_its_own_cells_only(tmp_path: Path) -> None:
    node = Node(tmp_path)
    grid, _ = make_grid(node.root(), 10)
    entities = tuple(add(grid, node, f"c{number}", number) for number in range(2))
    grid.arrange(entities)
    node.write("c0/current", "garbage\n")
    first, second = values(grid)
    assert np.isnan(first[0])
    assert first[1:] == [1.0, 2.0]
    assert second == [1.0, 2.0, 3.0]
    assert [(fault.path, fault.status) for fault in grid.faults] == [("c0/current", "unparsable")]
    grid.close()


@pytest.mark.parametrize("limit", [0, 10])
def test_the_last_good_row_outlives_new_neighbours(tmp_path: Path, limit: int) -> None:
    """An obituary needs the last reading also when the set changed since."""
    node = Node(tmp_path)
    grid, _ = make_grid(node.root(), limit)
    first = add(grid, node, "c0", 7)
    grid.arrange((first,))
    values(grid)
    grid.arrange((first, add(grid, node, "c1", 20)))
    assert grid.last_row(first) == {"current": 7.0, "user": 8.0, "system": 9.0}
    grid.close()


def test_a_row_with_new_labels_keeps_its_descriptors_and_its_last_reading(tmp_path: Path) -> None:
    node = Node(tmp_path)
    grid, descriptors = make_grid(node.root(), 10)
    old = add(grid, node, "c0", 7)
    grid.arrange((old,))
    values(grid)
    new = Entity("container", ("c0",), (("pod", "web"),))
    grid.replace(old, new)
    grid.arrange((new,))
    assert descriptors.pinned == 2
    assert grid.last_row(new)["current"] == 7.0
    assert values(grid) == [[7.0, 8.0, 9.0]]
    grid.close()


def test_a_last_look_reads_one_row_now(tmp_path: Path) -> None:
    node = Node(tmp_path)
    grid, _ = make_grid(node.root(), 1)
    entity = add(grid, node, "c0", 7)
    node.write("c0/current", "99\n")
    assert grid.read_row(entity) == [99.0, 8.0, 9.0]
    node.remove("c0/stat")
    row = grid.read_row(entity)
    assert row[0] == 99.0
    assert np.isnan(row[1:]).all()
    grid.close()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENODEV, ""), "gone"),
        (OSError(errno.ESRCH, ""), "gone"),
        (FileNotFoundError(errno.ENOENT, ""), "not_offered"),
        (OSError(errno.EOPNOTSUPP, ""), "not_offered"),
        (PermissionError(errno.EACCES, ""), "denied"),
        (OSError(errno.EFBIG, ""), "too_large"),
        (OSError(errno.EIO, ""), "failed"),
        (ParseError("no number"), "unparsable"),
    ],
)
def test_every_error_has_its_word(error: Exception, status: str) -> None:
    """Gone and not offered are quiet; the rest is said in /status."""
    assert describe_fault("x", error).status == status


# -- rows -----------------------------------------------------------------------


def make_rows(node: Node, limit: int = 10) -> DeviceTable:
    layout = DeviceRows({0: Metric("m", "counter", "A count.")}, separator=b":")
    table = Table("network", "network", ("network",), layout.metrics)
    return DeviceTable(table, "dev", layout, lambda name: Entity("network", (name,)), node.root(), limit)


def test_the_set_of_devices_is_the_same_object_while_it_is_the_same_set(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write("dev", "a: 1\nb: 2\n")
    rows = make_rows(node)
    rows.open()
    blocks = []
    for content in ("a: 1\nb: 2\n", "a: 3\nb: 4\n", "b: 5\nc: 6\n"):
        node.write("dev", content)
        rows.read()
        blocks.append(rows.block(0))
    first, second, third = blocks
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.entities is second.entities
    assert second.values[:, 0].tolist() == [3.0, 4.0]
    assert [entity.ids[0] for entity in third.entities] == ["b", "c"]
    rows.close()


def test_rows_over_the_limit_are_dropped_and_counted_and_twins_shown_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write("dev", "a: 1\na: 9\nb: 2\nc: 3\n")
    rows = make_rows(node, limit=2)
    rows.open()
    rows.read()
    block = rows.block(0)
    assert block is not None
    assert [entity.ids[0] for entity in block.entities] == ["a", "b"]
    assert block.values[:, 0].tolist() == [1.0, 2.0]
    assert rows.dropped == 1
    rows.close()


def test_a_file_that_breaks_gives_no_rows_and_says_why(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.write("dev", "a: x\n")
    rows = make_rows(node)
    rows.open()
    rows.read()
    block = rows.block(0)
    assert block is not None
    assert block.entities == ()
    assert rows.faults[0].status == "unparsable"
    rows.close()


class CountingRoot(NodeRoot):
    """Which paths were opened, and how often."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.opened: Counter[str] = Counter()

    def open(self, path: str) -> int:
        self.opened[path] += 1
        return super().open(path)


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_where_descriptors_are_short_no_file_of_every_tick_is_opened_again(
    tmp_path: Path, share: float
) -> None:
    """
    A tenth of 1,000 containers with a tenth of 20,000 descriptors: six files of every tick, thirteen of every fifth.

    Their processes and other tables take the rest of the descriptors.
    """
    node = Node(tmp_path)
    root = CountingRoot(node.path)
    descriptors = Descriptors(int(share * 1_948))
    quick_table = Table("container", "container", ("container",), CURRENT.metrics)
    slow_table = Table("container.limits", "container", ("container",), STAT.metrics)
    quick = FileGrid(quick_table, (CURRENT,), root, descriptors)
    slow = FileGrid(slow_table, (STAT,), root, descriptors, is_rare=True)
    names = [f"c{number}" for number in range(100)]
    quick_rows, slow_rows = [], []
    for number, name in enumerate(names):
        node.write(f"{name}/current", f"{number}\n")
        node.write(f"{name}/stat", f"user {number}\nsystem {number}\n")
        for part in range(13):
            row = Entity("container", (name, str(part)))
            if part < 6:
                quick.add(row, [(f"{name}/current", CURRENT)])
                quick_rows.append(row)
            slow.add(row, [(f"{name}/stat", STAT)])
            slow_rows.append(row)
    quick.arrange(tuple(quick_rows))
    slow.arrange(tuple(slow_rows))
    root.opened.clear()
    for tick in range(10):
        quick.read()
        if tick % 5 == 0:
            slow.read()
    assert not any(path.endswith("/current") for path in root.opened)
    assert not descriptors.reopened["container"]
    assert descriptors.reopened["container.limits"]
    assert descriptors.pinned <= descriptors.limit
    block = slow.block(0)
    assert block is not None
    assert block.values.tolist() == [[number, number] for number in range(100) for _ in range(13)]
    quick.close()
    slow.close()
    assert descriptors.pinned == 0


def test_a_file_below_a_parent_is_rare(tmp_path: Path) -> None:
    """It is read every few ticks, and leaves the last descriptors to those of every tick."""
    node = Node(tmp_path)
    grid, descriptors = make_grid(node.root(), 6)
    node.write("top", "1\n")
    for number in range(3):
        node.write(f"c{number}/current", f"{number}\n")
        node.write(f"c{number}/stat", "user 1\nsystem 2\n")
        paths = f"c{number}/current", f"c{number}/stat"
        entity = Entity("container", (f"c{number}",))
        grid.add(entity, [(paths[0], CURRENT), (paths[1], STAT)], {paths[1]: "top"})
    assert descriptors.pinned == 6 - 6 // RARE_SPARE
    node.write("c3/current", "3\n")
    grid.add(Entity("container", ("c3",)), [("c3/current", CURRENT)])
    assert descriptors.pinned == 6
    grid.close()
