"""
All rows of one metric in one file as one table of numbers, with the places where its series begin.

Arrow reads the row groups that the statistics of the footer name: nothing is
planned, and no word is compared. A small file has all metrics in one row group
or two; it is read once for all of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveRefused
from nodescope.keep.label_columns import IDENTITY, Identity
from nodescope.keep.parquet import cut_rows, first_line, join_chunks, unwrap
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.row_groups import METRIC, RowGroup, read_row_groups
from nodescope.read.query.container_rows import FEW, read_plain
from nodescope.read.query.fetch import SeriesNames, Wanted, identity_of

LABEL = "l_container_id"
SCOPE, CONTAINER = IDENTITY.index("l_scope"), IDENTITY.index(LABEL)
# A file with more rows has row groups of one or two metrics each.
SMALL_ROWS = 400_000
# Of one metric in a file: more are not read at once.
ROWS_AT_ONCE = 2_000_000
# Of files that are read metric by metric: the footer of eight hours takes 2 ms and 2.4 MiB.
# That of one hour is parsed in 0.3 ms, and 24 of them would take 12 MiB.
FOOTER_BYTES, FOOTER_LEAST_BYTES = 6 * 2**20, 200_000


@dataclass(frozen=True, slots=True)
class MetricRows:
    """Samples of one metric: series after series, each in order of time. An infinite value means unlimited."""

    identities: Sequence[Identity]
    starts: Integers
    """Where each series begins, and at last the number of rows."""
    time_ms: Integers
    value: Floats

    def slices(self) -> list[slice]:
        edges = self.starts.tolist()
        return [slice(start, end) for start, end in pairwise(edges)]

    def has_places_of(self, other: "MetricRows") -> bool:
        """Whether the same series have samples at the same moments: they were read in the same ticks."""
        return (
            self.identities == other.identities
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.time_ms, other.time_ms)
        )

    def take(self, first: int, end: int) -> "MetricRows":
        """The series at these places; nothing is copied."""
        edges = self.starts[first : end + 1]
        rows = slice(int(edges[0]), int(edges[-1]))
        return MetricRows(self.identities[first:end], edges - edges[0], self.time_ms[rows], self.value[rows])

    def within(self, from_ms: int, to_ms: int) -> "MetricRows":
        """Each series is cut where its times say: nothing is looked at row by row."""
        there = [cut_times(self.time_ms, where, from_ms, to_ms) for where in self.slices()]
        if all(one == where for one, where in zip(there, self.slices())):
            return self
        return join_rows(
            [
                (identity, self.time_ms[where], self.value[where])
                for identity, where in zip(self.identities, there)
                if where.stop > where.start
            ]
        )


def cut_times(time_ms: Integers, where: slice, from_ms: int, to_ms: int) -> slice:
    """Of these rows, which are in order of time, those from one moment to another."""
    mine = time_ms[where]
    first = int(np.searchsorted(mine, from_ms, "left"))
    return slice(where.start + first, where.start + int(np.searchsorted(mine, to_ms, "right")))


NO_ROWS = MetricRows([], np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))


def count_rows(entry: FileEntry, metric: str) -> int:
    """At most so many are of this metric, by the footer."""
    return sum(group.rows for group in groups_of(entry) if group.may_have(metric, None))


def groups_of(entry: FileEntry) -> tuple[RowGroup, ...]:
    return read_row_groups(entry.path, entry.size_bytes, entry.mtime_ns)


def list_groups(entry: FileEntry, wanted: Wanted) -> list[int]:
    """The numbers of the row groups that may have such rows."""
    known = enumerate(groups_of(entry))
    return [number for number, one in known if one.may_have(wanted.metric, wanted.containers)]


# -- from tables ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptFooter:
    """Of a file that may be read again for the next metric."""

    metadata: pq.FileMetaData

    @property
    def size_bytes(self) -> int:
        """Some eight times what it takes in the file."""
        return 8 * int(self.metadata.serialized_size)


FOOTERS: DerivedCache[KeptFooter] = DerivedCache(FOOTER_BYTES)


def open_entry(entry: FileEntry, words: Sequence[str]) -> pq.ParquetFile:
    """By the footer that is known of this version of the file; its bounds were checked when its row groups were listed."""
    key = (entry.path, entry.size_bytes, entry.mtime_ns)
    known = FOOTERS.get(key)
    file = open_plain(entry.path, words, known.metadata if known else None)
    if known is None and file.metadata.serialized_size >= FOOTER_LEAST_BYTES:
        FOOTERS.put(key, KeptFooter(file.metadata))
    return file


def open_plain(path: Path, words: Sequence[str], footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Words come as codes. Of a file on this machine nothing is read ahead: it would be copied once more."""
    return pq.ParquetFile(path, metadata=footer, read_dictionary=list(words), pre_buffer=False)


def read_groups(
    file: Path | FileEntry, groups: Sequence[int], numbers: Sequence[str], words: Sequence[str]
) -> pa.Table:
    """Some columns of numbers and of words, the time first; words come as codes. ArchiveRefused where it cannot be read."""
    path = file if isinstance(file, Path) else file.path
    try:
        opened = open_plain(file, words) if isinstance(file, Path) else open_entry(file, words)
        table = opened.read_row_groups(groups, columns=["time", *numbers, *words], use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveRefused(f"{path.name}: {first_line(error)}") from error
    return table.unify_dictionaries()


def find_stretch(column: pa.ChunkedArray, word: str) -> tuple[int, int]:
    """(first row, number of rows): a file is in order of its metrics, and a metric in order of its containers."""
    first, count, offset = 0, 0, 0
    for chunk in column.chunks:
        place, number = find_word(chunk, word)
        if number:
            first = first if count else offset + place
            count += number
        offset += len(chunk)
    return first, count


def find_word(chunk: pa.DictionaryArray, word: str) -> tuple[int, int]:
    """(first row, number of rows) of one chunk; (0, 0) where it does not have the word."""
    words = chunk.dictionary.to_pylist()
    if word not in words:
        return 0, 0
    places = np.flatnonzero(unwrap(chunk.indices, -1) == words.index(word))
    return (int(places[0]), len(places)) if len(places) else (0, 0)


def cut_table(table: pa.Table, names: SeriesNames) -> MetricRows:
    if not table.num_rows:
        return NO_ROWS
    words = [join_chunks(table.column(name)) for name in names.columns]
    starts, identities = [], []
    for rows, labels in cut_rows(table.num_rows, words):
        starts.append(rows.start)
        identities.append(names.identities.get(labels) or identity_of(names.columns, labels))
    time_ms = unwrap(join_chunks(table.column("time")), 0)
    # Null means unlimited.
    value = unwrap(join_chunks(table.column("value")), np.inf)
    return MetricRows(identities, np.array([*starts, table.num_rows], np.int64), time_ms, value)


def choose_series(
    rows: MetricRows, scopes: Collection[str], containers: Collection[str] | None
) -> MetricRows:
    wanted = None if containers is None else set(containers)
    chosen = [
        (identity, where)
        for identity, where in zip(rows.identities, rows.slices())
        if (identity[SCOPE] or "container") in scopes and (wanted is None or identity[CONTAINER] in wanted)
    ]
    return join_rows([(one, rows.time_ms[where], rows.value[where]) for one, where in chosen])


def join_rows(series: Sequence[tuple[Identity, Integers, Floats]]) -> MetricRows:
    if not series:
        return NO_ROWS
    identities, times, values = zip(*series)
    starts = np.concatenate([[0], np.cumsum([len(one) for one in times])])
    return MetricRows(list(identities), starts, np.concatenate(times), np.concatenate(values))


# -- a large file -----------------------------------------------------------------------


def read_large(entry: FileEntry, wanted: Wanted, groups: Sequence[int], names: SeriesNames) -> MetricRows:
    """Of these row groups; all times, and all series of the metric or, where it is less work, those of the containers."""
    few = wanted.containers if names.columns == [LABEL] and len(wanted.containers or ()) <= FEW else None
    parts = []
    for number in groups:
        is_mixed = groups_of(entry)[number].metrics != (wanted.metric, wanted.metric)
        metric = wanted.metric if is_mixed else ""
        part = read_bytes(entry, number, few, metric, names)
        parts.append(part or read_decoded(entry, number, metric, names))
    return join_parts([part for part in parts if len(part.value)])


def read_bytes(
    entry: FileEntry, number: int, containers: Sequence[str] | None, metric: str, names: SeriesNames
) -> MetricRows | None:
    """Of these containers alone or of all series, where the row group is of the kind that allows it."""
    found = read_plain(
        entry, number, metric, names.columns, containers, lambda words: read_words(entry, number, words)
    )
    if found is None:
        return None
    identities = [
        names.identities.get(labels) or identity_of(names.columns, labels) for labels in found.labels
    ]
    return MetricRows(identities, found.starts, found.time_ms, found.value)


def read_words(entry: FileEntry, number: int, words: Sequence[str]) -> pa.Table:
    try:
        table = open_entry(entry, words).read_row_groups([number], columns=list(words), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveRefused(f"{entry.path.name}: {first_line(error)}") from error
    return table.unify_dictionaries()


def read_decoded(entry: FileEntry, number: int, metric: str, names: SeriesNames) -> MetricRows:
    """All series, by Arrow; the metric is named where the row group has others as well."""
    table = read_groups(entry, [number], ["value"], [*names.columns, *([METRIC] if metric else [])])
    return cut_table(table.slice(*find_stretch(table.column(METRIC), metric)) if metric else table, names)


def join_parts(parts: list[MetricRows]) -> MetricRows:
    """Of row groups that follow each other; a series may go on from one to the next. The parts are given up one by one."""
    if len(parts) < 2:
        return parts[0] if parts else NO_ROWS
    ends = np.cumsum([0, *(len(one.value) for one in parts)])
    time_ms, value = np.empty(ends[-1], np.int64), np.empty(ends[-1])
    identities: list[Identity] = []
    starts: list[int] = []
    for end in ends[:-1].tolist():
        part = parts.pop(0)
        time_ms[end : end + len(part.value)], value[end : end + len(part.value)] = part.time_ms, part.value
        goes_on = int(bool(identities) and identities[-1] == part.identities[0])
        identities += part.identities[goes_on:]
        starts += (part.starts[goes_on:-1] + end).tolist()
    return MetricRows(identities, np.array([*starts, len(value)], np.int64), time_ms, value)


# -- a small file -----------------------------------------------------------------------


class SeriesRows(NamedTuple):
    """Where a metric's series begin, its last row at the end, and the words that name each series."""

    starts: Integers
    labels: Sequence[tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class SmallFile:
    """All metrics of a file, with the words of some columns."""

    first_ms: int
    later_ms: NDArray[Any]
    """Of each row, after the first moment."""
    value: Floats
    stretches: Mapping[str, SeriesRows]

    @property
    def size_bytes(self) -> int:
        series = sum(len(one.labels) for one in self.stretches.values())
        return self.later_ms.nbytes + self.value.nbytes + 100 * series

    def take(self, metric: str, names: SeriesNames) -> MetricRows:
        stretch = self.stretches.get(metric)
        if stretch is None:
            return NO_ROWS
        identities = [
            names.identities.get(labels) or identity_of(names.columns, labels) for labels in stretch.labels
        ]
        first, end = int(stretch.starts[0]), int(stretch.starts[-1])
        time_ms = self.first_ms + self.later_ms[first:end].astype(np.int64)
        return MetricRows(identities, stretch.starts - first, time_ms, self.value[first:end])


def read_small(entry: FileEntry, columns: Sequence[str]) -> SmallFile:
    groups = range(len(groups_of(entry)))
    table = read_groups(entry.path, groups, ["value"], [METRIC, *columns])
    words = [join_chunks(table.column(name)) for name in (METRIC, *columns)]
    cuts = cut_rows(table.num_rows, words)
    stretches = {}
    for metric, some in groupby(cuts, lambda cut: cut[1][0] or ""):
        rows, labels = zip(*some)
        starts = np.array([*(one.start for one in rows), rows[-1].stop], np.int64)
        stretches[metric] = SeriesRows(starts, [one[1:] for one in labels])
    time_ms = unwrap(join_chunks(table.column("time")), 0)
    first_ms = int(time_ms.min())
    value = unwrap(join_chunks(table.column("value")), np.inf)
    return SmallFile(first_ms, shorten_times(time_ms, first_ms), value, stretches)


def shorten_times(time_ms: Integers, first_ms: int) -> NDArray[Any]:
    """After the first, in half of the bytes, unless a clock was set by months within a file."""
    later_ms = time_ms - first_ms
    return later_ms if len(later_ms) and later_ms.max() >= 2**31 else later_ms.astype(np.int32)
