"""
Unchanged parents: one file that shows that many others have not changed.

The kernel counts the stalls, the I/O and the kills of a cgroup in every cgroup
above it as well. While kubepods/io.stat stands still, so does io.stat of every
container in it, and reading them again would give what is known.

A parent is read before its children: what happens between the two readings
moves it at the next. At every fifth reading its children are read all the
same, because pressure is a mean over cores: a stall of microseconds may be too
small to move the figure of a large parent. Bytes and operations of devices are
plain sums, which cannot hide anything; their children are read every 30th time.
"""

import contextlib
import os
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Values
from nodescope.base.errors import ParseError
from nodescope.collect.files.layout import GridLayout, OperationSums, PairSums
from nodescope.collect.files.native import Native, NativeGrid
from nodescope.collect.files.roots import Descriptors, NodeRoot, read_whole

# The children of an unchanged parent are read themselves at least every so many readings.
TRUST_READINGS = 5
TRUST_SUMS_READINGS = 30
# What is to be read, by which parents have changed: 1,000 containers take 10 KB for each.
TURNS_MOST = 64

Numbers = NDArray[np.intp]
Mask = NDArray[np.bool_]


class WatchedFile(NamedTuple):
    """One file of a program, and its parent (empty where it has none)."""

    parent: str
    layout: GridLayout


class UnchangedParents:
    """The parents of one grid's files."""

    def __init__(self, table: str, root: NodeRoot, descriptors: Descriptors) -> None:
        self._table = table
        self._root = root
        self._descriptors = descriptors
        self._open: dict[str, int] = {}
        """Descriptors of the parents, by path."""
        self._reader: ParentReader | None = None
        # Of every file the number of its parent. Not as objects: there may be 100,000.
        self._numbers: dict[str, int] = {}
        self._parents: Numbers = np.empty(0, dtype=np.intp)
        self._turns: dict[bytes, Mask] = {}
        self._periods: Numbers = np.empty(0, dtype=np.intp)
        """Of every open parent: how often its children are read at the least."""
        self._readings = 0

    def arrange(self, files: Iterable[WatchedFile]) -> None:
        """The program changed."""
        self._numbers = {}
        layouts: dict[str, GridLayout] = {}
        numbers = array("q")
        for file in files:
            numbers.append(self._numbers.setdefault(file.parent, len(self._numbers)))
            if file.parent:
                layouts[file.parent] = file.layout
        self._parents = np.array(numbers, dtype=np.intp)
        self._turns.clear()
        known = self._open.keys()
        if known != layouts.keys():
            for path in known - layouts.keys():
                self._close(path)
            for path in sorted(layouts.keys() - known):
                self._open_parent(path)
            opened = [(descriptor, layouts[path]) for path, descriptor in self._open.items()]
            self._periods = np.array([find_period(layout) for _, layout in opened], dtype=np.intp)
            self._reader = ParentReader(opened, self._root.native) if opened else None

    def _open_parent(self, path: str) -> None:
        try:
            descriptor = self._root.open(path)
        except OSError:
            # Without it its children are read every time.
            return
        if self._descriptors.take(self._table):
            self._open[path] = descriptor
        else:
            self._descriptors.give_back(self._table, kept=False)
            os.close(descriptor)

    def _close(self, path: str) -> None:
        os.close(self._open.pop(path))
        self._descriptors.give_back(self._table)

    def next_turn(self) -> Mask | None:
        """Of every file whether it must be read now; None when it is everything."""
        if self._reader is None:
            return None
        quiet = self._reader.find_unchanged()
        # One in turn counts as changed, so that no reading has much more to do than the others.
        self._readings += 1
        quiet[(self._readings + np.arange(len(quiet))) % self._periods == 0] = False
        if not quiet.any():
            return None
        key = quiet.tobytes()
        if key not in self._turns:
            if len(self._turns) >= TURNS_MOST:
                self._turns.clear()
            paths = list(self._open)
            self._turns[key] = self._plan({paths[number] for number in np.flatnonzero(quiet)})
        return self._turns[key]

    def _plan(self, quiet: set[str]) -> Mask:
        return np.isin(self._parents, [self._numbers[path] for path in quiet], invert=True)

    def close(self) -> None:
        self.arrange(())


def find_period(layout: GridLayout) -> int:
    return TRUST_SUMS_READINGS if isinstance(layout, PairSums | OperationSums) else TRUST_READINGS


class ParentReader:
    """What the parents hold, and what they held before."""

    def __init__(self, opened: Sequence[tuple[int, GridLayout]], native: Native | None) -> None:
        descriptors, layouts = zip(*opened)
        widths = [len(layout.metrics) for layout in layouts]
        self._starts: list[int] = np.cumsum([0, *widths[:-1]]).tolist()
        self._before: Values = np.full(sum(widths), np.nan)
        self._plain = [
            (descriptor, layout.parser(), start, start + width)
            for descriptor, layout, start, width in zip(descriptors, layouts, self._starts, widths)
        ]
        self._native = NativeGrid(native, layouts) if native else None
        if self._native:
            self._native.arrange(list(zip(descriptors, layouts, self._starts)))

    def find_unchanged(self) -> NDArray[np.bool_]:
        """Of every parent: whether it holds what it held. One that cannot be read counts as changed."""
        found = self._read()
        # What is not a number is not equal to itself.
        same: NDArray[np.bool_] = np.logical_and.reduceat(found == self._before, self._starts)
        self._before = found
        return same

    def _read(self) -> Values:
        found: Values
        if self._native:
            found, unread = self._native.read(len(self._before))
            undecided = [self._plain[number] for number, code in unread if code < 0]
        else:
            found, undecided = np.full(len(self._before), np.nan), self._plain
        for descriptor, parse, start, stop in undecided:
            with contextlib.suppress(OSError, ParseError):
                found[start:stop] = parse(read_whole(descriptor))
        return found
