"""
Idle rows: containers that did nothing since their files were last read.

A container that used no CPU time and holds as much memory as before has
allocated, touched and freed nothing: what memory.stat says of it is known. One
grid (CPU time, memory in use) tells it of the rows of another that is read
after it (memory.stat).

What others do to its memory without changing its size is seen late: pages of
its files that are written to disk, or that reclaim moves from one list to
another. So every row is read at least every fifth time.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Table, Values
from nodescope.base.entity import Entity

# An idle row is read all the same once in so many readings.
TRUST_READINGS = 5

Mask = NDArray[np.bool_]


class WatchedGrid(Protocol):
    """The grid that is read first."""

    table: Table
    readings: int

    @property
    def entities(self) -> tuple[Entity, ...]: ...

    def matrix(self) -> Values: ...


class IdleRows:
    """Which rows need not be read, by what another grid of the same rows has read."""

    def __init__(self, grid: WatchedGrid, *alternatives: Sequence[str]) -> None:
        """Each of the alternatives names columns of which a row has one: of v1 or of v2."""
        self._grid = grid
        known = grid.table.columns
        self._alternatives = [[known[name] for name in names if name in known] for names in alternatives]
        self._groups: list[Sequence[int]] = [*self._alternatives]
        """Without those that no row had a number in when the set was new: who gets one later is not idle."""
        self._entities: tuple[Entity, ...] = ()
        self._before: Values = np.empty((0, 0))
        """What the other grid had read when this one was."""
        self._seen = 0
        """Readings of the other grid."""
        self._readings = 0

    def find(self, entities: tuple[Entity, ...]) -> Mask | None:
        """True for rows that are as they were at the last reading; None when all must be read."""
        seen, self._seen = self._seen, self._grid.readings
        if seen == self._seen or self._grid.entities is not entities:
            # The other grid has nothing newer to tell, or speaks of other rows.
            return None
        before, self._before = self._before, self._grid.matrix()
        known, self._entities = self._entities, entities
        self._readings += 1
        if known is not entities:
            self._groups = [leave_out_empty(columns, self._before) for columns in self._alternatives]
            return None
        idle = find_same(self._groups, before, self._before)
        idle[self._readings % TRUST_READINGS :: TRUST_READINGS] = False
        return idle if idle.any() else None


def leave_out_empty(columns: Sequence[int], values: Values) -> Sequence[int]:
    """The columns in which some row has a number; all where none has."""
    return [column for column in columns if not np.isnan(values[:, column]).all()] or columns


def find_same(groups: Sequence[Sequence[int]], before: Values, now: Values) -> Mask:
    """Rows that have the same numbers as before in each of these groups of columns, and at least one in each."""
    alike: Mask = np.ones(len(now), dtype=np.bool_)
    for columns in groups:
        if len(columns) == 1:
            # What is not a number is not equal to itself.
            alike &= before[:, columns[0]] == now[:, columns[0]]
            continue
        was, has = before[:, columns], now[:, columns]
        # A row needs one that is a number.
        same = was == has
        alike &= same.any(axis=1) & (same | (np.isnan(was) & np.isnan(has))).all(axis=1)
    return alike
