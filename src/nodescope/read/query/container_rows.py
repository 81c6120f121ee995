"""
Rows of a few containers from one row group: a page is unpacked as far as they reach, and nothing behind them is.

A row group of ours holds 262,144 rows, and an hour of one container is 3,600 of them. Its numbers
lie plainly in one page each (decision 0108), so that the place of a row tells where its bytes are. Where
containers begin and end is the same for all metrics that were read in the same ticks: those words are decoded
once. A row group of any other kind is read as a whole (metric_rows.py).
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from numpy.typing import NDArray

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.check.bounds import PAGE_BYTES, read_page_header
from nodescope.keep.parquet import cut_rows, first_line, join_chunks
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.row_groups import CONTAINER, METRIC

# Of more containers hardly anything of a page would be left out.
FEW = 16
# Of a hundred containers some 10 KiB; hours in which nobody came or went have the same.
PLACES_BYTES = 2**20
NUMBER_BYTES = 8
# As Parquet's footer names what we write.
PLAIN = {"PLAIN", "RLE"}
DATA_PAGE = b"\x15\x00"


class ColumnChunk(NamedTuple):
    """Where a column of a row group lies in its file."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class PlainGroup:
    """A row group whose times and values lie one after the other."""

    time: ColumnChunk
    value: ColumnChunk
    words: tuple[ColumnChunk, ...]
    """Of its metrics and containers."""


# A day of hours; an entry is some 10 KiB.
@lru_cache(maxsize=64)
def list_plain(path: Path, size_bytes: int, mtime_ns: int) -> tuple[PlainGroup | None, ...]:
    """By row group; None of one that must be read in another way. Its bounds were checked when row groups were listed."""
    del size_bytes, mtime_ns
    footer = pq.read_metadata(path)
    names = footer.schema.names
    if not {"time", "value", METRIC, CONTAINER} <= set(names):
        return tuple(None for _ in range(footer.num_row_groups))
    is_ms = footer.schema.column(names.index("time")).converted_type == "TIMESTAMP_MILLIS"
    groups = map(footer.row_group, range(footer.num_row_groups))
    return tuple(make_plain(group, names) if is_ms else None for group in groups)


def make_plain(group: Any, names: Sequence[str]) -> PlainGroup | None:
    time, value, *words = (group.column(names.index(name)) for name in ("time", "value", METRIC, CONTAINER))
    if not is_plain(time, "INT64") or not is_plain(value, "DOUBLE"):
        return None
    return PlainGroup(chunk_of(time), chunk_of(value), tuple(map(chunk_of, words)))


def is_plain(column: Any, kind: str) -> bool:
    """Without a null, which has no bytes: an unlimited value is one."""
    statistics = column.statistics
    has_all = statistics is not None and statistics.has_null_count and statistics.null_count == 0
    is_packed_so = column.compression == "ZSTD" and set(column.encodings) <= PLAIN
    return has_all and is_packed_so and column.physical_type == kind and not column.has_dictionary_page


def chunk_of(column: Any) -> ColumnChunk:
    first = column.dictionary_page_offset if column.has_dictionary_page else None
    return ColumnChunk(first or column.data_page_offset, column.total_compressed_size)


# -- where containers begin and end ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """By metric (empty where there is one alone) and container: the rows of a row group."""

    rows: dict[tuple[str, str], slice]

    @property
    def size_bytes(self) -> int:
        return 250 * len(self.rows)


PLACES: DerivedCache[GroupPlaces] = DerivedCache(PLACES_BYTES)


def find_places(
    descriptor: int, group: PlainGroup, words: Sequence[str], decode: Callable[[], pa.Table]
) -> GroupPlaces:
    """By the bytes of these words: the same bytes say the same, in whichever file and of whichever metric."""
    chunks = group.words[-len(words) :]
    content = b"".join(os.pread(descriptor, one.length, one.start) for one in chunks)
    key = hashlib.blake2b(content, digest_size=16).digest()
    known = PLACES.get(key)
    if known is None:
        table = decode()
        columns = [join_chunks(table.column(name)) for name in words]
        cuts = cut_rows(table.num_rows, columns)
        known = GroupPlaces({(("", *labels)[-2] or "", labels[-1] or ""): rows for rows, labels in cuts})
        PLACES.put(key, known)
    return known


# -- numbers -----------------------------------------------------------------------------


class FewRows(NamedTuple):
    """Of each container that is there its times and values, in order of the row group."""

    containers: list[str]
    starts: NDArray[np.int64]
    time_ms: NDArray[np.int64]
    value: NDArray[np.float64]


def read_few(
    entry: FileEntry, number: int, containers: Sequence[str], metric: str, decode: Callable[[], pa.Table]
) -> FewRows | None:
    """
    From one row group; the metric is named where it has others as well. None where it must be read as a whole.

    `decode` gives the words of its rows: of its containers, and of its metrics where one is named.
    """
    try:
        group = list_plain(entry.path, entry.size_bytes, entry.mtime_ns)[number]
        return cut_group(entry.path, group, containers, metric, decode) if group else None
    except (OSError, pa.ArrowException, zstandard.ZstdError, IndexError, ValueError) as error:
        raise ArchiveRefused(f"{entry.path.name}: {first_line(error)}") from error


def cut_group(
    path: Path, group: PlainGroup, containers: Sequence[str], metric: str, decode: Callable[[], pa.Table]
) -> FewRows | None:
    words = [METRIC, CONTAINER] if metric else [CONTAINER]
    with path.open("rb", buffering=0) as file:
        places = find_places(file.fileno(), group, words, decode).rows
        there = [(places[metric, one], one) for one in set(containers) if (metric, one) in places]
        there.sort(key=lambda one: one[0].start)
        rows = [one for one, _ in there]
        time_ms = unpack_rows(file.fileno(), group.time, rows, is_optional=False)
        value = unpack_rows(file.fileno(), group.value, rows, is_optional=True)
    if time_ms is None or value is None:
        return None
    starts = np.cumsum([0, *(one.stop - one.start for one in rows)])
    return FewRows(
        [one for _, one in there], starts, np.frombuffer(time_ms, "<i8"), np.frombuffer(value, "<f8")
    )


def unpack_rows(
    descriptor: int, chunk: ColumnChunk, rows: Sequence[slice], *, is_optional: bool
) -> bytes | None:
    """The bytes of these rows, which are in order; None where the column has more than one page."""
    if not rows:
        return b""
    _, packed, header = read_page_header(descriptor, chunk.start)
    if header + packed != chunk.length or os.pread(descriptor, 2, chunk.start) != DATA_PAGE:
        return None
    content = os.pread(descriptor, packed, chunk.start + header)
    # Arrow needs no window; what is prepared to ask for a large one is refused.
    with zstandard.ZstdDecompressor(max_window_size=PAGE_BYTES).stream_reader(content) as page:
        # What may be null has its levels first, which say that nothing is: their length, then they.
        first = 4 + int.from_bytes(take(page, 4), "little") if is_optional else 0
        return b"".join([cut_page(page, first, one) for one in rows])


def cut_page(page: Any, first: int, rows: slice) -> bytes:
    page.seek(first + NUMBER_BYTES * rows.start)
    return take(page, NUMBER_BYTES * (rows.stop - rows.start))


def take(page: Any, size: int) -> bytes:
    found: bytes = page.read(size)
    if len(found) != size:
        raise ValueError("a page ends before its rows do")
    return found
