"""
The native reader, where it was built: the same values as the plain one, cheaper.

It fills all cells that it is certain about without holding the interpreter
lock. A file it is not certain about (an error, an odd number, a file not kept
open) is left to the plain reader, so the two cannot disagree.
"""

import os
from array import array
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from nodescope.collect.files.layout import (
    NAN,
    Fields,
    GridLayout,
    KeyValues,
    Number,
    OperationSums,
    PairSums,
    Pids,
    PressureLines,
    ProcessStat,
    RowPlan,
)

# As in native/module.c: what the extension's functions take and give.
INTERFACE = 1
# As in native/parse.h.
NUMBER, KEY_VALUES, PRESSURE, FIELDS, PROCESS_STAT, PAIR_SUMS, OPERATION_SUMS, ROWS, PIDS = range(9)
# struct entry of native/module.c.
ENTRY = np.dtype([("descriptor", "=i4"), ("layout", "=i4"), ("cell", "=i8")])
PRESSURE_PLACES = {"avg10": 1, "avg60": 2, "avg300": 3, "total": 4}


class Native(Protocol):
    """What the extension module offers."""

    INTERFACE: int

    def make_layouts(self, layouts: list[Any]) -> object: ...

    def read_grid(self, layouts: object, program: Any, values: Any, status: Any) -> int: ...

    def list_pids(self, descriptor: int) -> bytes: ...


def load_native(wish: str) -> tuple[Native | None, str]:
    """The extension, or why there is none."""
    if wish == "python":
        return None, "plain Python, as set"
    try:
        module = import_module("nodescope._native")
    except ImportError:
        return None, "the native reader was not built: there was no C compiler at installation"
    # One that is older than the number has none.
    found = getattr(module, "INTERFACE", 0)
    if found != INTERFACE:
        return None, f"the native reader has interface {found}, not {INTERFACE}: install nodescope again"
    return cast("Native", module), ""


def describe_reader(wish: str) -> str:
    """For people: who reads, and why not the faster one."""
    native, reason = load_native(wish)
    return "the native reader" if native else f"plain Python ({reason})"


def describe_layout(layout: GridLayout | RowPlan) -> tuple[int, tuple[bytes, ...], tuple[int, ...], float]:
    """A layout as the extension takes it: kind, keys, places, unlimited from."""
    match layout:
        case Number(unlimited_from=limit):
            return NUMBER, (), (), NAN if limit is None else limit
        case KeyValues(wanted=keys):
            return KEY_VALUES, tuple(key.encode() for key in keys), (), NAN
        case PressureLines(wanted=fields):
            places = tuple((5 if line == "full" else 0) + PRESSURE_PLACES[name] for line, name in fields)
            return PRESSURE, (), places, NAN
        case Fields(wanted=numbers):
            return FIELDS, (), tuple(numbers), NAN
        case ProcessStat(wanted=numbers):
            return PROCESS_STAT, (), tuple(number - 3 for number in numbers), NAN
        case PairSums(wanted=keys):
            return PAIR_SUMS, tuple(key.encode() for key in keys), (), NAN
        case OperationSums(wanted=keys):
            return OPERATION_SUMS, tuple(key.encode() for key in keys), (), NAN
        case Pids():
            return PIDS, (), (), NAN
        case RowPlan(starts=starts, slots=slots, layout=rows):
            head = (len(rows.wanted), rows.least_fields, int(bool(rows.separator)))
            return ROWS, starts, (*head, *rows.wanted, *slots), NAN


class Pidlist:
    """The pids there are, by the names in /proc, as int32 in bytes: equal bytes, equal pids."""

    def __init__(self, native: Native | None, folder: str) -> None:
        self._native = native
        self._folder = folder
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if native else -1

    def read(self) -> bytes:
        if self._native:
            return self._native.list_pids(self._descriptor)
        return array("i", [int(name) for name in os.listdir(self._folder) if name.isdecimal()]).tobytes()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class NativeGrid:
    """One grid's layouts and program, in the extension's own form."""

    def __init__(self, native: Native, layouts: Sequence[GridLayout | RowPlan]) -> None:
        self._native = native
        self._numbers = {id(layout): number for number, layout in enumerate(layouts)}
        self._layouts = native.make_layouts([describe_layout(layout) for layout in layouts])
        self._program = np.empty(0, dtype=ENTRY)
        self._status = np.zeros(0, dtype=np.int32)

    def arrange(self, entries: Sequence[tuple[int, GridLayout | RowPlan, int]]) -> None:
        """(descriptor, layout, first cell) of every file."""
        numbers = self._numbers
        placed = [(descriptor, numbers[id(layout)], cell) for descriptor, layout, cell in entries]
        self._program = np.array(placed, dtype=ENTRY)
        self._status = np.zeros(len(placed), dtype=np.int32)

    def arrange_columns(
        self, descriptors: NDArray[np.int32], layouts: Sequence[GridLayout], cells: NDArray[np.int64]
    ) -> None:
        """The same, a column each."""
        self._program = np.zeros(len(descriptors), dtype=ENTRY)
        self._program["descriptor"] = descriptors
        self._program["layout"] = [self._numbers[id(layout)] for layout in layouts]
        self._program["cell"] = cells
        self._status = np.zeros(len(descriptors), dtype=np.int32)

    def arrange_rows(self, descriptors: NDArray[np.int32], width: int) -> None:
        """One file a row, all of the first layout."""
        self._program = np.zeros(len(descriptors), dtype=ENTRY)
        self._program["descriptor"] = descriptors
        self._program["cell"] = np.arange(len(descriptors)) * width
        self._status = np.zeros(len(descriptors), dtype=np.int32)

    def read(self, cells: int) -> tuple[Any, list[tuple[int, int]]]:
        """Fresh values of all files, and what `read_into` says of them."""
        # Not np.full, which takes twice as long for a few cells.
        values = np.empty(cells)
        values.fill(NAN)
        return values, self.read_into(values)

    def read_into(self, values: Any, files: NDArray[np.intp] | None = None) -> list[tuple[int, int]]:
        """
        (number, errno) of the files not read; -1 where the plain reader must decide. Their cells are not touched, or NaN.

        All files, or those of these numbers.
        """
        program = self._program if files is None else self._program[files]
        status = self._status[: len(program)]
        failed = self._native.read_grid(self._layouts, program, values, status)
        if not failed:
            return []
        places = np.flatnonzero(status)
        numbers = places if files is None else files[places]
        return list(zip(numbers.tolist(), status[places].tolist()))
