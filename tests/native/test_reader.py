"""The batch call with and without the native reader: same values, same faults."""

import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.errors import SettingsRejected
from nodescope.base.metric import Metric
from nodescope.base.settings import Settings
from nodescope.collect.files.batch import FileGrid
from nodescope.collect.files.layout import KeyValues, Number
from nodescope.collect.files.native import INTERFACE, Native, describe_reader, load_native
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.wiring import build_context

NATIVE, WHY = load_native("auto")
needs_native = pytest.mark.skipif(NATIVE is None, reason=WHY)

CURRENT = Metric("current", "gauge", "A number.")
USAGE, KILLS = (Metric(name, "counter", "A number.") for name in ("usage_usec", "oom_kill"))
TABLE = Table("t", "t", ("container",), (CURRENT, USAGE, KILLS))
LAYOUTS = (Number(CURRENT), KeyValues({"usage_usec": USAGE, "oom_kill": KILLS}))


def make_grid(folder: Path, native: Native | None, limit: int = 1000) -> FileGrid:
    root = NodeRoot(folder, native=native)
    grid = FileGrid(TABLE, LAYOUTS, root, Descriptors(limit))
    for number in range(5):
        entity = Entity("container", (str(number),))
        grid.add(entity, [(f"{number}/current", LAYOUTS[0]), (f"{number}/stat", LAYOUTS[1])])
    grid.arrange(tuple(Entity("container", (str(number),)) for number in range(5)))
    return grid


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "current").write_text(f"{number * 1000}\n")
        (tmp_path / str(number) / "stat").write_text(f"usage_usec {number}\nuser_usec 3\noom_kill 1\n")
    return tmp_path


@needs_native
def test_both_readers_give_the_same_cells_and_faults(folder: Path) -> None:
    """Good files, a garbled one, one with twenty digits, an empty one, one larger than any buffer."""
    (folder / "1" / "stat").write_text("usage_usec twelve\n")
    (folder / "2" / "current").write_text("18446744073709551615\n")
    (folder / "3" / "current").write_text("")
    (folder / "4" / "stat").write_text("filler 1\n" * 20_000 + "oom_kill 7\n")
    grids = [make_grid(folder, native) for native in (None, NATIVE)]
    for grid in grids:
        grid.read()
    plain, native = (grid.matrix() for grid in grids)
    np.testing.assert_array_equal(plain, native)
    assert [str(fault) for fault in grids[0].faults] == [str(fault) for fault in grids[1].faults]
    assert {fault.status for fault in grids[1].faults} == {"unparsable"}
    assert native[2, 0] == 18446744073709551615.0
    assert native[4, 2] == 7


@needs_native
def test_a_descriptor_that_fails_is_a_fault_in_both(folder: Path) -> None:
    """A descriptor that was closed under us answers EBADF: failed, with NaN cells."""
    statuses = []
    for native in (None, NATIVE):
        grid = make_grid(folder, native)
        os.close(grid._entries[0].descriptor)
        grid.read()
        statuses.append([fault.status for fault in grid.faults])
        assert np.isnan(grid.matrix()[0, 0])
        assert not np.isnan(grid.matrix()[1:, 0]).any()
    assert statuses == [["failed"], ["failed"]]


@needs_native
def test_files_over_the_descriptor_limit_are_read_by_opening_them(folder: Path) -> None:
    """Of ten files three stay open; all ten are read."""
    grid = make_grid(folder, NATIVE, limit=3)
    grid.read()
    assert not np.isnan(grid.matrix()).any()


@needs_native
def test_both_sides_compiled_in_the_same_interface() -> None:
    """The number in native/module.c and the one in collect/files/native.py grow together."""
    assert NATIVE is not None
    assert NATIVE.INTERFACE == INTERFACE


@pytest.mark.parametrize(("constants", "found"), [({}, 0), ({"INTERFACE": INTERFACE + 1}, INTERFACE + 1)])
def test_an_extension_of_another_interface_is_refused(
    monkeypatch: pytest.MonkeyPatch, constants: dict[str, int], found: int
) -> None:
    """One left over from before an update is not called at all; plain Python reads, and one line says why."""
    stale = ModuleType("nodescope._native")
    vars(stale).update(constants)
    monkeypatch.setitem(sys.modules, "nodescope._native", stale)
    line = f"the native reader has interface {found}, not {INTERFACE}: install nodescope again"
    assert load_native("auto") == (None, line)
    assert describe_reader("auto") == f"plain Python ({line})"
    with pytest.raises(SettingsRejected, match="install nodescope again; accepted here: python, auto"):
        build_context(Settings(reader="native"))
    assert build_context(Settings(reader="auto")).root.native is None


def test_python_is_taken_when_it_is_asked_for() -> None:
    native, reason = load_native("python")
    assert native is None
    assert reason == "plain Python, as set"
