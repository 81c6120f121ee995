"""
Block: one table read at one moment.

Rows are entities, columns are metrics, cells are float64. NaN means "not
measured", +inf means "unlimited", and neither is ever the same as zero.
A block is immutable once made: whoever holds one may read it from any
thread, for as long as it likes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nodescope.base.entity import Entity
from nodescope.base.metric import Metric

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Values = Floats


@dataclass(frozen=True, slots=True)
class Info:
    """An info metric: value 1, the entity's attributes as labels."""

    published: str
    help: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The schema of the blocks that one class of files of one source gives."""

    name: str
    """Unique: the source's name, or source.class such as `container.pss`."""
    source: str
    scopes: tuple[str, ...]
    """What its rows may be: containers and services share their files."""
    metrics: tuple[Metric, ...]
    info: Info | None = None

    @cached_property
    def columns(self) -> dict[str, int]:
        """Column numbers by archive name."""
        return {metric.name: number for number, metric in enumerate(self.metrics)}


@dataclass(frozen=True, slots=True)
class Block:
    table: Table
    entities: tuple[Entity, ...]
    """The same object while the set is unchanged: compare with `is`."""
    values: Values
    mono_ns: int
    """When it was read: sources read at their own moment within a tick."""

    def __post_init__(self) -> None:
        expected = (len(self.entities), len(self.table.metrics))
        if self.values.shape != expected:
            raise ValueError(f"{self.table.name}: values are {self.values.shape}, expected {expected}")
        self.values.flags.writeable = False


def make_block(table: Table, rows: Mapping[Entity, Sequence[float]], mono_ns: int) -> Block:
    values = np.array(list(rows.values()), dtype=np.float64).reshape(len(rows), len(table.metrics))
    return Block(table, tuple(rows), values, mono_ns)
