"""
All rows of one metric in one file as one table of numbers, with the places where its series begin.

Large files are read by Arrow, row group by row group as the statistics say:
nothing is planned, and no word is compared. A small file has all metrics in
one row group: DuckDB reads many of those in one question, and skips in them
what is of other metrics.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveRefused, NodescopeError
from nodescope.keep.label_columns import IDENTITY, Identity
from nodescope.keep.parquet import cut_rows, first_line, unwrap
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.row_groups import METRIC, RowGroup, read_row_groups
from nodescope.read.query.fetch import (
    SeriesNames,
    Wanted,
    fetch_samples,
    identity_of,
    list_scopes,
    name_series,
)

SCOPE, CONTAINER = IDENTITY.index("l_scope"), IDENTITY.index("l_container_id")
# A file with more rows has row groups of one or two metrics each.
SMALL_ROWS = 1_000_000
# Of one metric in a file: more are not read at once.
ROWS_AT_ONCE = 2_000_000
# Read together: of 100 containers and files of 90 s, 600,000 rows of a metric.
SMALL_AT_ONCE = 64


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

    def within(self, from_ms: int, to_ms: int) -> "MetricRows":
        inside = (self.time_ms >= from_ms) & (self.time_ms <= to_ms)
        if inside.all():
            return self
        counted = np.concatenate([[0], np.cumsum(inside)])[self.starts]
        there = np.flatnonzero(np.diff(counted))
        identities = [self.identities[place] for place in there.tolist()]
        starts = np.append(counted[there], counted[-1])
        return MetricRows(identities, starts, self.time_ms[inside], self.value[inside])


# Threads are started when a question needs them, and end with the process.
READERS = ThreadPoolExecutor(2, "read-ahead")
NO_ROWS = MetricRows([], np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0))


def is_small(entry: FileEntry) -> bool:
    """Also what was not written by us, or lies elsewhere: only DuckDB reads it."""
    return entry.rows < SMALL_ROWS or entry.sidecar is None


def count_rows(entry: FileEntry, metric: str) -> int:
    """At most so many are of this metric, by the footer."""
    return sum(group.rows for group in groups_of(entry) if group.may_have(metric, None))


def groups_of(entry: FileEntry) -> tuple[RowGroup, ...]:
    return read_row_groups(entry.path, entry.size_bytes, entry.mtime_ns)


# -- a large file ---------------------------------------------------------------------


def read_rows(
    entry: FileEntry, wanted: Wanted, groups: Sequence[int] | None = None, names: SeriesNames | None = None
) -> MetricRows:
    """All times of the file, or of these row groups; ArchiveRefused where it cannot be read."""
    scopes = list_scopes([entry], wanted.metric)
    picked = scopes & {wanted.scope} if wanted.scope else scopes
    groups = list_groups(entry, wanted) if groups is None else groups
    if not picked or not groups:
        return NO_ROWS
    names = names or name_series([entry], scopes)
    known = groups_of(entry)
    is_mixed = any(known[number].metrics != (wanted.metric, wanted.metric) for number in groups)
    table = read_groups(entry, groups, [*names.columns, *([METRIC] if is_mixed else [])])
    if is_mixed:
        first, count = find_stretch(table.column(METRIC), wanted.metric)
        table = table.slice(first, count)
    cut = cut_table(table, names)
    has_all = picked == scopes and wanted.containers is None
    return cut if has_all else choose_series(cut, picked, wanted.containers)


def read_parts(entry: FileEntry, wanted: Wanted) -> Iterator[MetricRows]:
    """The rows of the range, a row group at a time: a file of a day has more than fit into memory."""
    names = name_series([entry], list_scopes([entry], wanted.metric))
    for number in list_groups(entry, wanted):
        yield read_rows(entry, wanted, [number], names).within(wanted.from_ms, wanted.to_ms)


def list_groups(entry: FileEntry, wanted: Wanted) -> list[int]:
    """The numbers of the row groups that may have such rows."""
    known = enumerate(groups_of(entry))
    return [number for number, one in known if one.may_have(wanted.metric, wanted.containers)]


def read_groups(entry: FileEntry, groups: Sequence[int], words: Sequence[str]) -> pa.Table:
    try:
        file = pq.ParquetFile(entry.path, read_dictionary=list(words))
        table = file.read_row_groups(groups, columns=["time", "value", *words], use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveRefused(f"{entry.path.name}: {first_line(error)}") from error
    return table.unify_dictionaries()


def find_stretch(names: pa.ChunkedArray, metric: str) -> tuple[int, int]:
    """(first row, number of rows): a file is in order of its metrics."""
    first, count, offset = 0, 0, 0
    for chunk in names.chunks:
        words = chunk.dictionary.to_pylist()
        code = words.index(metric) if metric in words else -1
        places = np.flatnonzero(unwrap(chunk.indices, -1) == code)
        if code >= 0 and len(places):
            first = first if count else offset + int(places[0])
            count += len(places)
        offset += len(chunk)
    return first, count


def cut_table(table: pa.Table, names: SeriesNames) -> MetricRows:
    words = [table.column(name).combine_chunks() for name in names.columns]
    starts, identities = [], []
    for rows, labels in cut_rows(table.num_rows, words):
        starts.append(rows.start)
        identities.append(names.identities.get(labels) or identity_of(names.columns, labels))
    moments = table.column("time").combine_chunks().cast(pa.int64())
    # Null means unlimited.
    value = unwrap(table.column("value").combine_chunks(), np.inf)
    return MetricRows(identities, np.array([*starts, table.num_rows], np.int64), unwrap(moments, 0), value)


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


# -- small files ----------------------------------------------------------------------


def read_small(
    connection: duckdb.DuckDBPyConnection, entries: Sequence[FileEntry], wanted: Wanted
) -> list[MetricRows]:
    """Of each file, in one question; the files are in order of time and do not overlap."""
    fetched = fetch_samples(connection, entries, wanted)
    ends = np.array([entry.to_ms for entry in entries])
    found: list[list[tuple[Identity, Integers, Floats]]] = [[] for _ in entries]
    for identity, pieces in sorted(fetched.items()):
        time_ms, value = (join_column(pieces, name) for name in ("time_ms", "value"))
        # DuckDB gives the rows of a file in order, and files as they are done.
        order = np.argsort(time_ms, kind="stable")
        time_ms, value = time_ms[order], value[order]
        edges = [0, *np.searchsorted(time_ms, ends, side="right").tolist()]
        for place, (start, end) in enumerate(pairwise(edges)):
            if end > start:
                found[place].append((identity, time_ms[start:end], value[start:end]))
    return [join_rows(series) for series in found]


def join_column(pieces: Sequence[Mapping[str, Any]], name: str) -> Any:
    return pieces[0][name] if len(pieces) == 1 else np.concatenate([piece[name] for piece in pieces])


class RowSource:
    """
    The rows of some metrics, file by file.

    Of small files many are read ahead together; the next large one is read on
    another thread while the one before it is derived.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        wanted: Sequence[Wanted],
        entries: Sequence[FileEntry],
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._small = [entry for entry in entries if is_small(entry)]
        self._ahead: dict[Path, list[MetricRows]] = {}
        self._large = [entry for entry in reversed(entries) if not is_small(entry)]
        self._coming: dict[Path, Future[list[MetricRows]]] = {}

    def take(self, entry: FileEntry) -> list[MetricRows]:
        """One for each metric, of all times of the file."""
        if not is_small(entry):
            return self._take_large(entry)
        if entry.path not in self._ahead:
            self._read_ahead(entry)
        return self._ahead.pop(entry.path, None) or self._read([entry])[0]

    def _take_large(self, entry: FileEntry) -> list[MetricRows]:
        coming = self._coming.pop(entry.path, None)
        rows = coming.result() if coming else self._read_large(entry)
        while self._large and self._large[-1].from_ms <= entry.from_ms:
            self._large.pop()
        if self._large:
            following = self._large.pop()
            self._coming[following.path] = READERS.submit(self._read_large, following)
        return rows

    def _read_large(self, entry: FileEntry) -> list[MetricRows]:
        return [read_rows(entry, one) for one in self._wanted]

    def _read_ahead(self, first: FileEntry) -> None:
        """From this file on; where one of them is broken, each is read alone."""
        places = [place for place, one in enumerate(self._small) if one.path == first.path]
        batch = self._small[places[0] : places[0] + SMALL_AT_ONCE] if places else []
        try:
            self._ahead = {one.path: rows for one, rows in zip(batch, self._read(batch))} if batch else {}
        except (duckdb.Error, pa.ArrowException, NodescopeError):
            self._small = []

    def _read(self, entries: Sequence[FileEntry]) -> list[list[MetricRows]]:
        """For each file one for each metric."""
        whole = (replace(one, from_ms=entries[0].from_ms, to_ms=entries[-1].to_ms) for one in self._wanted)
        return list(map(list, zip(*(read_small(self._connection, entries, one) for one in whole))))
