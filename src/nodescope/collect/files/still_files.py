"""
Still files: files of a row that stand still while another of the same row does.

A container that used no CPU time since the last tick has the same user and
system time. It was not throttled anew either, but for one case: who has used more
than his quota may stay throttled for a second and longer, period by period,
without running. So a file is left out only if it had not changed at the reading
before, and every row is read at least every fifth time.

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

    def __init__(self, table: Table, witnesses: Sequence[GridLayout], spared: Iterable[GridLayout]) -> None:
        """A row has one of the witnesses: that of v1 or that of v2."""
        places = table.columns
        self._witnesses = [id(layout) for layout in witnesses]
        self._group = [places[metric.name] for layout in witnesses for metric in layout.metrics]
        self._columns = {id(layout): [places[metric.name] for metric in layout.metrics] for layout in spared}
        self._settled: dict[int, Mask] = {}
        """By layout: rows whose file said at the last reading what it had said before."""
        self._readings = 0

    def pick_witnesses(self, wanted: Mask, slices: Mapping[int, slice]) -> Mask:
        """Takes them out of what is wanted."""
        first = np.zeros_like(wanted)
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
        idle = find_same([self._group], before, now)
        idle[self._readings % TRUST_READINGS :: TRUST_READINGS] = False
        for layout, settled in self._settled.items():
            place = slices.get(layout, slice(0))
            wanted[place] &= ~(idle & settled)[row_of[place]]

    def note(self, before: Values, now: Values) -> None:
        """After a reading; of other rows than before, nothing is known."""
        self._settled = {}
        if before.shape == now.shape:
            for layout, columns in self._columns.items():
                was, has = before[:, columns], now[:, columns]
                self._settled[layout] = ((was == has) | (np.isnan(was) & np.isnan(has))).all(axis=1)
