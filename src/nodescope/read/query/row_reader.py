"""
Reads rows of our own files on this machine, for all questions.

Small files that were read last are kept, because each has all metrics. Files
are read on two threads ahead of who derives: Arrow and numpy need no
interpreter while they work.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TypeVar

import numpy as np

from nodescope.keep.sidecar import Ticks
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.query.fetch import LabelRows, SeriesNames, Wanted, list_scopes, name_labels
from nodescope.read.query.metric_rows import (
    NO_ROWS,
    SMALL_ROWS,
    MetricRows,
    SmallFile,
    choose_series,
    groups_of,
    join_parts,
    list_groups,
    read_large,
    read_small,
)
from nodescope.serve.allocator import give_back_memory

# A file of 90 s with 100 containers takes 2 MiB.
SMALL_BYTES = 20 * 2**20
# Threads are started when a question needs them, and end with the process.
AHEAD = 2
READERS = ThreadPoolExecutor(AHEAD, "read-ahead")
# Of files with more rows than these one is read ahead: an hour of 100 containers takes 6 MiB a metric,
# and twice as much while it is read.
ROWS_AHEAD = 300_000
# A metric of 100 containers over four hours; giving back takes some milliseconds.
ROWS_HELD = 1_500_000
Item = TypeVar("Item")
Made = TypeVar("Made")


def read_ahead(make: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """What is made of each, in order; the next ones are made meanwhile."""
    left = iter(items)
    coming = deque(READERS.submit(make, one) for one in islice(left, AHEAD))
    while coming:
        made = coming.popleft().result()
        coming.extend(READERS.submit(make, one) for one in islice(left, 1))
        yield made


def ask_pairwise(ask: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    """
    What is answered about each, in order; two are asked at a time, so that one is read while one is studied.

    On threads of their own: what they ask waits for those that read ahead.
    """
    with ThreadPoolExecutor(2, "ask") as pool:
        # The mark of the call goes along (use/mcp/nodes/stop.py).
        coming = [pool.submit(copy_context().run, ask, item) for item in items]
        return [one.result() for one in coming]


@dataclass(slots=True)
class RowReader:
    """Reads files of ours on this machine; the small ones that were read last are kept."""

    small: DerivedCache[SmallFile] = field(default_factory=lambda: DerivedCache(SMALL_BYTES))
    rows_read: int = 0
    """Since memory was given back."""
    turn: Lock = field(default_factory=Lock)
    """Of those that read large files into minutes: two at a time hold twice as much, and are hardly sooner."""

    def read(self, entry: FileEntry, wanted: Wanted) -> MetricRows:
        """All times of the file; ArchiveRefused where it cannot be read."""
        return self._read(entry, wanted, list_groups(entry, wanted), name_all(entry, wanted.metric))

    def read_pieces(self, entry: FileEntry, wanted: Wanted) -> Iterator[MetricRows]:
        """The same, a row group at a time: a file of a day has more than fit into memory."""
        names, groups = name_all(entry, wanted.metric), list_groups(entry, wanted)
        for some in [groups] if entry.rows <= SMALL_ROWS else [[number] for number in groups]:
            yield self._read(entry, wanted, some, names)

    def read_parts(self, entry: FileEntry, wanted: Wanted) -> Iterator[MetricRows]:
        """And only those of the range."""
        return (one.within(wanted.from_ms, wanted.to_ms) for one in self.read_pieces(entry, wanted))

    def read_all(self, entries: Sequence[FileEntry], wanted: Wanted) -> Iterator[MetricRows]:
        """The rows of the range in these files, of which the next is read while one is looked at."""
        for parts in read_ahead(lambda entry: list(self.read_parts(entry, wanted)), entries):
            yield from parts

    def _read(
        self, entry: FileEntry, wanted: Wanted, groups: Sequence[int], names: SeriesNames
    ) -> MetricRows:
        scopes = list_scopes([entry], wanted.metric)
        picked = scopes & {wanted.scope} if wanted.scope else scopes
        if not picked or not groups:
            return NO_ROWS
        is_small = entry.rows <= SMALL_ROWS
        rows = (
            self._take_small(entry, wanted, names) if is_small else read_large(entry, wanted, groups, names)
        )
        self.rows_read += sum(groups_of(entry)[one].rows for one in groups)
        has_all = picked == scopes and wanted.containers is None
        return rows if has_all else choose_series(rows, picked, wanted.containers)

    def give_back(self) -> None:
        """After much was read: between what is kept lies what was freed, which the C library would hold."""
        if self.rows_read > ROWS_HELD:
            self.rows_read = 0
            give_back_memory()

    def _take_small(self, entry: FileEntry, wanted: Wanted, names: SeriesNames) -> MetricRows:
        key = (entry.path, entry.mtime_ns, tuple(names.columns))
        found = self.small.get(key)
        if found is None:
            found = read_small(entry, names.columns)
            self.small.put(key, found)
        return found.take(wanted.metric, names)


def name_all(entry: FileEntry, metric: str) -> SeriesNames:
    return name_labels(LabelRows(entry), frozenset(list_scopes([entry], metric)))


class RowSource:
    """The rows of some metrics, file by file in order of time; the next files are read meanwhile."""

    def __init__(self, reader: RowReader, wanted: Sequence[Wanted], entries: Sequence[FileEntry]) -> None:
        self._reader = reader
        self._wanted = wanted
        self._left = deque(entries)
        self._coming: dict[Path, Future[list[list[MetricRows]]]] = {}

    def take(self, entry: FileEntry) -> list[list[MetricRows]]:
        """Of all times of the file, piece by piece: one for each metric. A series may go on in the next piece."""
        while self._left and self._left[0].from_ms <= entry.from_ms:
            self._left.popleft()
        coming = self._coming.pop(entry.path, None)
        pieces = coming.result() if coming else self._read(entry)
        ahead = AHEAD if sum(len(one.value) for rows in pieces for one in rows) < ROWS_AHEAD else 1
        while self._left and len(self._coming) < ahead:
            following = self._left.popleft()
            self._coming[following.path] = READERS.submit(self._read, following)
        return pieces

    def _read(self, entry: FileEntry) -> list[list[MetricRows]]:
        """
        Row groups are not joined: that would copy all of an hour.

        They are where metrics were not read in the same ticks, and where the clock was set: a series is put in
        order as a whole then.
        """
        first, *others = ([*self._reader.read_pieces(entry, wanted)] for wanted in self._wanted)
        if not is_in_order(entry.ticks()) or not all(has_same_places(first, pieces) for pieces in others):
            return [[join_parts([one for one in pieces if len(one.value)]) for pieces in (first, *others)]]
        same = [share_times(first, pieces) for pieces in others]
        return [list(rows) for rows in zip(first, *same)] or [[NO_ROWS for _ in self._wanted]]


def is_in_order(ticks: Ticks | None) -> bool:
    return ticks is not None and bool((np.diff(ticks.mono_ns) >= 0).all())


def share_times(first: Sequence[MetricRows], pieces: Sequence[MetricRows]) -> list[MetricRows]:
    """Those of the first metric, kept once."""
    return [replace(one, starts=part.starts, time_ms=part.time_ms) for part, one in zip(first, pieces)]


def has_same_places(first: Sequence[MetricRows], second: Sequence[MetricRows]) -> bool:
    """Whether they were read in the same ticks, and cut in the same places."""
    return len(first) == len(second) and all(one.has_places_of(part) for part, one in zip(first, second))
