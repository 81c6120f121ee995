"""
Columns of a table over a window as arrays: ticks x rows, joined by entity.

A cell is NaN where it was not measured. Whether its row was there at all is
kept apart: a container that did not exist yet used nothing, one that could not
be read used an unknown amount.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Block, Floats, Integers, Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.rates import derive_elapsed_seconds, judge_increase
from nodescope.hold.ring import Moment, Ring

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TableGrid:
    """One table over a window."""

    table: Table
    entities: tuple[Entity, ...]
    moments: Sequence[Moment]
    skipped: int
    """1 where the first moment lies before the window, for growth alone."""
    places: Sequence[Integers | None]
    """By moment: the row of each entity, -1 where it is not there; None where the rows are the same."""

    def values(self, column: int) -> Floats:
        """Every sample of the window."""
        return self._stack(column)[self.skipped :]

    def growth(self, column: int, metric: Metric) -> Floats:
        """Of a counter between neighbouring moments, in its unit; NaN at its first moment and at a reset."""
        return judge_increase(np.diff(self._stack(column), axis=0), metric) * metric.scale

    def elapsed_seconds(self) -> Floats:
        times_ns = np.array([moment.block.mono_ns for moment in self.moments], dtype=np.int64)
        return derive_elapsed_seconds(times_ns)

    def is_there(self) -> Mask:
        """Samples of the window x entities."""
        return self._there()[self.skipped :]

    def was_there(self) -> Mask:
        """Intervals x entities: whether an entity was there at both ends."""
        there = self._there()
        return there[1:] & there[:-1]

    def _there(self) -> Mask:
        everybody = np.ones(len(self.entities), bool)
        return np.array([everybody if places is None else places >= 0 for places in self.places])

    def _stack(self, column: int) -> Floats:
        return np.array(
            [pick_column(moment.block, column, places) for moment, places in zip(self.moments, self.places)]
        )


def pick_column(block: Block, column: int, places: Integers | None) -> Floats:
    cells = block.values[:, column]
    if places is None:
        return cells
    picked = np.full(len(places), np.nan)
    known = places >= 0
    picked[known] = cells[places[known]]
    return picked


def take_grid(ring: Ring, table: str, after_mono_ns: int, until_mono_ns: int) -> TableGrid | None:
    """None where the table has no moment in the window."""
    before, inside = ring.moments(table, after_mono_ns, until_mono_ns)
    if not inside:
        return None
    newest = inside[-1].block
    moments = [before, *inside] if before else inside
    places = [find_places(moment.block, newest.entities) for moment in moments]
    return TableGrid(newest.table, newest.entities, moments, 1 if before else 0, places)


def find_places(block: Block, entities: tuple[Entity, ...]) -> Integers | None:
    if block.entities is entities:
        return None
    rows = {entity.key: row for row, entity in enumerate(block.entities)}
    return np.array([rows.get(entity.key, -1) for entity in entities], dtype=np.int64)
