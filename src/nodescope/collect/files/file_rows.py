"""
Many files of one layout, one row each, that come and go all the time.

A grid is arranged anew, file by file, when its set changes; that is too dear
for processes, of which some end every second. Here a change moves arrays.
"""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Values
from nodescope.base.errors import ParseError
from nodescope.collect.files.batch import FileFault, describe_fault, read_again
from nodescope.collect.files.layout import GridLayout
from nodescope.collect.files.native import NativeGrid
from nodescope.collect.files.roots import Descriptors, NodeRoot


class FileRows:
    """Rows in the order in which they came."""

    def __init__(self, table: str, layout: GridLayout, root: NodeRoot, descriptors: Descriptors) -> None:
        self.faults: list[FileFault] = []
        self.gone: set[int] = set()
        """Rows whose file has ended since they were last looked at."""
        self.width = len(layout.metrics)
        self.paths: list[str] = []
        self._table = table
        self._layout = layout
        self._parse = layout.parser()
        self._root = root
        self._descriptors = descriptors
        self._native = NativeGrid(root.native, (layout,)) if root.native else None
        self._open: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._values: Values = np.empty((0, self.width))

    def __len__(self) -> int:
        return len(self.paths)

    def change(self, kept: Sequence[int], came: Sequence[tuple[str, int]]) -> None:
        """These rows stay, in ascending order; behind them (path, open descriptor) of new ones."""
        stays = np.zeros(len(self.paths), dtype=np.bool_)
        stays[kept] = True
        for descriptor in self._open[~stays].tolist():
            self._descriptors.close(self._table, descriptor)
        self.gone.clear()
        self.paths = [self.paths[row] for row in kept] + [path for path, _ in came]
        kept_open = [self._descriptors.keep(self._table, descriptor) for _, descriptor in came]
        self._open = np.concatenate([self._open[stays], np.array(kept_open, dtype=np.int32)])
        self._values = np.concatenate([self._values[stays], np.full((len(came), self.width), np.nan)])

    def favour(self, rows: Sequence[int]) -> None:
        """These are read at every tick: where descriptors are short, they take those of the others."""
        if not len(rows) or (self._open[rows] >= 0).all():
            return
        wanting = [row for row in rows if self._open[row] < 0]
        favoured = set(rows)
        givers = (row for row in np.flatnonzero(self._open >= 0).tolist() if row not in favoured)
        for row, giver in zip(wanting, givers):
            try:
                descriptor = self._root.open(self.paths[row])
            except OSError:
                # It has ended; the next reading says so.
                continue
            os.close(int(self._open[giver]))
            self._open[row], self._open[giver] = descriptor, -1

    def read(self, rows: NDArray[np.intp]) -> Values:
        """These rows anew, the others as they were read last; one row a file."""
        self.faults = []
        plain: list[int] = rows.tolist()
        if self._native:
            self._native.arrange_rows(self._open[rows], self.width)
            found, unread = self._native.read(len(rows) * self.width)
            self._values[rows] = found.reshape(-1, self.width)
            for place, code in unread:
                if code > 0:
                    self._note(int(rows[place]), OSError(code, os.strerror(code)))
            plain = [int(rows[place]) for place, code in unread if code < 0]
        else:
            self._values[rows] = np.nan
        for row in plain:
            self._read_plainly(row)
        return self._values

    def _read_plainly(self, row: int) -> None:
        descriptor, size = int(self._open[row]), self._layout.read_bytes
        try:
            if descriptor < 0:
                data = self._root.read(self.paths[row])
            else:
                data = os.pread(descriptor, size, 0)
                if len(data) == size:
                    data = read_again(descriptor, data, size)
            self._values[row] = self._parse(data)
        except (OSError, ParseError) as error:
            self._note(row, error)

    def _note(self, row: int, error: Exception) -> None:
        fault = describe_fault(self.paths[row], error)
        if fault.status == "gone" or (fault.status == "not_offered" and not self._root.is_fixture):
            self.gone.add(row)
        elif fault.status != "not_offered":
            self.faults.append(fault)

    def close(self) -> None:
        self.change([], [])
