"""One metric of everything in one file, one sample a step: what a sweep keeps of a large file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import ID_COLUMNS, IDENTITY
from nodescope.read.files.listing import FileEntry
from nodescope.read.query.fetch import Wanted
from nodescope.read.query.metric_rows import ROWS_AT_ONCE, count_rows, is_small, read_rows


@dataclass(frozen=True, slots=True)
class Sought:
    """Which metrics of which scope, when, and in steps of how long."""

    metrics: Sequence[str]
    scope: str
    span: TimeRange
    step_ms: int

    def step_of(self, time_ms: Integers) -> NDArray[np.int32]:
        return ((time_ms - self.span.from_ms) // self.step_ms).astype(np.int32)


class Thinned(NamedTuple):
    """One metric: for each sample its series (a place in a list of names), time and value; by series, then time."""

    series: Integers
    time_ms: Integers
    value: Floats


@dataclass(frozen=True, slots=True)
class FileSweep:
    """Of one file; kept for the next question with the same steps."""

    words: Sequence[str]
    series: NDArray[np.int32]
    time_ms: Integers
    value: Floats

    @property
    def size_bytes(self) -> int:
        return self.series.nbytes + self.time_ms.nbytes + self.value.nbytes + 100 * len(self.words)


@dataclass(frozen=True, slots=True)
class AskedSweep:
    """What DuckDB answered about some files and metrics."""

    samples: list[tuple[str, Thinned]]

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for _, one in self.samples for column in one) + 1000


def column_of(scope: str) -> str:
    return ID_COLUMNS[scope][0] if scope in ID_COLUMNS else "l_scope"


def can_keep(entry: FileEntry, metric: str) -> bool:
    """Whether it is large, and not of a whole day."""
    return not is_small(entry) and count_rows(entry, metric) <= ROWS_AT_ONCE


def name_sweep(entry: FileEntry, sought: Sought, metric: str) -> tuple[Any, ...]:
    """All times of a file have the same steps in every span that begins at the same part of a step."""
    phase_ms = sought.span.from_ms % sought.step_ms
    return entry.path, entry.mtime_ns, metric, sought.scope, sought.step_ms, phase_ms


def sweep_file(entry: FileEntry, sought: Sought, metric: str) -> FileSweep:
    """All its times; ArchiveRefused where it cannot be read."""
    span = sought.span
    wanted = Wanted(metric, None, sought.scope, span.from_ms, span.to_ms)
    place = IDENTITY.index(column_of(sought.scope))
    rows = read_rows(entry, wanted)
    words: dict[str, int] = {}
    # A series by the column that names it in its scope.
    codes = [words.setdefault(one[place], len(words)) for one in rows.identities]
    series = np.repeat(np.array(codes, np.int32), np.diff(rows.starts))
    step = sought.step_of(rows.time_ms)
    is_last = np.ones(len(step), bool)
    is_last[:-1] = (step[1:] != step[:-1]) | (series[1:] != series[:-1])
    return FileSweep(list(words), series[is_last], rows.time_ms[is_last], rows.value[is_last])
