"""One metric of everything in one file, one sample a step: what a sweep keeps of a file."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.time_range import TimeRange
from nodescope.keep.label_columns import ID_COLUMNS, IDENTITY
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.rollups import Rollup
from nodescope.read.query.fetch import Wanted
from nodescope.read.query.metric_rows import (
    ROWS_AT_ONCE,
    MetricRows,
    count_rows,
    join_rows,
    shorten_times,
)
from nodescope.read.query.minutes import fetch_rollup, name_columns
from nodescope.read.query.row_reader import RowReader

# A rollup has the last sample of each minute.
LAST_MS = 59_000
EVER = (0, 2**62)


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
    series: NDArray[Any]
    first_ms: int
    later_ms: NDArray[Any]
    """Of each sample, after the first moment."""
    value: Floats

    @property
    def size_bytes(self) -> int:
        return self.series.nbytes + self.later_ms.nbytes + self.value.nbytes + 100 * len(self.words)

    @property
    def time_ms(self) -> Integers:
        return self.first_ms + self.later_ms.astype(np.int64)


def column_of(scope: str) -> str:
    return ID_COLUMNS[scope][0] if scope in ID_COLUMNS else "l_scope"


def is_long(entry: FileEntry, metric: str) -> bool:
    """A file of a whole day: only the span of it is read and kept."""
    return count_rows(entry, metric) > ROWS_AT_ONCE


def name_sweep(file: FileEntry | Rollup, sought: Sought, metric: str) -> Hashable:
    """All times of a file have the same steps in every span that begins at the same part of a step."""
    steps: tuple[int, ...] = (sought.step_ms, sought.span.from_ms % sought.step_ms)
    if isinstance(file, FileEntry) and is_long(file, metric):
        steps = (sought.step_ms, sought.span.from_ms, sought.span.to_ms)
    return file.path, file.mtime_ns, metric, sought.scope, steps


def sweep_file(reader: RowReader, entry: FileEntry, sought: Sought, metric: str) -> FileSweep:
    """All its times, or of a long one those of the span; ArchiveRefused where it cannot be read."""
    ends = (sought.span.from_ms, sought.span.to_ms) if is_long(entry, metric) else EVER
    return thin_rows(reader.read_parts(entry, Wanted(metric, None, sought.scope, *ends)), sought)


def sweep_rollup(rollup: Rollup, sought: Sought, metric: str) -> FileSweep:
    """The last sample of each minute, at its end."""
    wanted = Wanted(metric, None, sought.scope, *EVER)
    found = fetch_rollup(rollup, name_columns({sought.scope}), wanted, ("last",))
    series = [(identity, piece["time_ms"] + LAST_MS, piece["last"]) for identity, piece in found]
    return thin_rows([join_rows(series)], sought)


def thin_rows(parts: Iterable[MetricRows], sought: Sought) -> FileSweep:
    """The last row of each series and step; a series is known by the column that names it in its scope."""
    place = IDENTITY.index(column_of(sought.scope))
    words: dict[str, int] = {}
    columns = []
    for rows in parts:
        codes = [words.setdefault(one[place], len(words)) for one in rows.identities]
        series = np.repeat(np.array(codes, np.int32), np.diff(rows.starts))
        step = sought.step_of(rows.time_ms)
        is_last = np.ones(len(step), bool)
        is_last[:-1] = (step[1:] != step[:-1]) | (series[1:] != series[:-1])
        columns.append((series[is_last], rows.time_ms[is_last], rows.value[is_last]))
    if not columns:
        return FileSweep([], np.empty(0, np.int16), 0, np.empty(0, np.int32), np.empty(0))
    series, time_ms, value = map(np.concatenate, zip(*columns))
    first_ms = int(time_ms.min(initial=2**62))
    small = np.int16 if len(words) < 2**15 else np.int32
    return FileSweep(list(words), series.astype(small), first_ms, shorten_times(time_ms, first_ms), value)
