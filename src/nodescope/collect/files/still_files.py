"""
Still files: files of a row that stand still while another of the same row does.

A container that used no CPU time since the last tick has the same user and
system time. It was not throttled anew either, but for one case: who has used more
than his quota may stay throttled for a second and longer, period by period,
without running. So a file is left out only if it had not changed at the reading
before, and every row is read at least every fifth time.

Who never had a quota has a file of zeros about it, which stays so while he works:
it is left out as long as it is, and read every fifth time as well.

The witness (CPU time) is read first: work between the two readings moves it at
the next tick.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Table, Values
from nodescope.collect.files.idle_rows import TRUST_READINGS, Mask, find_same
from nodescope.collect.files.layout import GridLayout


class StillFiles:
    """Which files of which rows of one grid need not be read."""

    def __init__(
        self,
        table: Table,
        witnesses: Sequence[GridLayout],
        spared: Iterable[GridLayout],
        unused: Iterable[GridLayout] = (),
    ) -> None:
        """A row has one of the witnesses: that of v1 or that of v2. Unused are those of the spared that may be all zeros."""
        places = table.columns
        self._witnesses = {
            id(layout): [places[metric.name] for metric in layout.metrics] for layout in witnesses
        }
        self._columns = {id(layout): [places[metric.name] for metric in layout.metrics] for layout in spared}
        self._unused = {id(layout) for layout in unused}
        self._settled: dict[int, Mask] = {}
        """By layout: rows whose file said at the last reading what it had said before."""
        self._empty: dict[int, Mask] = {}
        """By layout: rows whose file was all zeros."""
        self._readings = 0

    def pick_witnesses(self, wanted: Mask, slices: Mapping[int, slice]) -> Mask:
        """Takes them out of what is wanted."""
        first = np.zeros(len(wanted), dtype=np.bool_)
        for layout in self._witnesses:
            place = slices.get(layout, slice(0))
            first[place] = wanted[place]
            wanted[place] = False
        return first

    def leave_out(
        self,
        wanted: Mask,
        slices: Mapping[int, slice],
        row_of: NDArray[np.int64],
        before: Values,
        now: Values,
    ) -> None:
        """What stands still is wanted no more."""
        self._readings += 1
        # Files that no row has tell nothing.
        group = [
            place
            for layout, places in self._witnesses.items()
            if has_files(slices, layout)
            for place in places
        ]
        idle = find_same([group], before, now)
        turn = slice(self._readings % TRUST_READINGS, None, TRUST_READINGS)
        for layout, settled in self._settled.items():
            spare = idle & settled
            empty = self._empty.get(layout)
            if empty is not None:
                spare |= empty
            spare[turn] = False
            place = slices.get(layout, slice(0))
            wanted[place] &= ~spare[row_of[place]]

    def note(self, slices: Mapping[int, slice], before: Values, now: Values) -> None:
        """After a reading; of other rows than before, nothing is known."""
        self._settled, self._empty = {}, {}
        if before.shape != now.shape:
            return
        # Bit by bit: what is not a number is what it was, too. Column by column: there are two or three.
        was, has = before.view(np.int64), now.view(np.int64)
        for layout, columns in self._columns.items():
            if has_files(slices, layout):
                settled = np.ones(len(now), dtype=np.bool_)
                for column in columns:
                    settled &= was[:, column] == has[:, column]
                self._settled[layout] = settled
                if layout in self._unused:
                    self._empty[layout] = find_zeros(now, columns)


def has_files(slices: Mapping[int, slice], layout: int) -> bool:
    place = slices.get(layout)
    return place is not None and place.stop > place.start


def find_zeros(values: Values, columns: Sequence[int]) -> Mask:
    """Rows with nothing but zeros there; what could not be read is none."""
    zeros: Mask = np.ones(len(values), dtype=np.bool_)
    for column in columns:
        zeros &= values[:, column] == 0.0
    return zeros
