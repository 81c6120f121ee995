"""
Rows of one metric from one row group: a page is unpacked as far as the containers reach, and nothing behind them is.

A row group of ours holds 262,144 rows, and an hour of one container is 3,600 of them. Its numbers
lie plainly in one page each (decision 0108), so that the place of a row tells where its bytes are. Where
series begin and end is the same for all metrics that were read in the same ticks: those words are decoded
once, also where all series are read. A row group of any other kind is read by Arrow (metric_rows.py).
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from numpy.typing import NDArray

from nodescope.base.block import Floats, Integers
from nodescope.base.errors import ArchiveRefused
from nodescope.keep.check.bounds import PAGE_BYTES, read_page_header, read_varint
from nodescope.keep.label_columns import IDENTITY
from nodescope.keep.parquet import cut_rows, first_line, join_chunks
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.files.row_groups import METRIC

BoolColumn = NDArray[np.bool_]
# Of more containers hardly anything of a page would be left out.
FEW = 16
# Of a hundred containers some 30 KiB; hours in which nobody came or went have the same. A day has some kinds:
# what all containers have, and what only those with a limit or a disk have.
PLACES_BYTES = 3 * 2**20
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
    has_nulls: bool
    """Values that are unlimited have no bytes."""
    words: Mapping[str, int]
    """Columns that tell series apart: each one's place in `chunks`. All row groups of a file share it."""
    chunks: Integers
    """Start and length of each."""

    def chunk_of(self, name: str) -> ColumnChunk:
        return ColumnChunk(*self.chunks[self.words[name]].tolist())


# A day of hours; an entry is some 10 KiB.
@lru_cache(maxsize=64)
def list_plain(path: Path, size_bytes: int, mtime_ns: int) -> tuple[PlainGroup | None, ...]:
    """By row group; None of one that must be read in another way. Its bounds were checked when row groups were listed."""
    del size_bytes, mtime_ns
    footer = pq.read_metadata(path)
    places = {name: place for place, name in enumerate(footer.schema.names)}
    if not {"time", "value", METRIC} <= set(places):
        return tuple(None for _ in range(footer.num_row_groups))
    words = {name: place for place, name in enumerate(one for one in (METRIC, *IDENTITY) if one in places)}
    is_ms = footer.schema.column(places["time"]).converted_type == "TIMESTAMP_MILLIS"
    groups = map(footer.row_group, range(footer.num_row_groups))
    return tuple(make_plain(group, places, words) if is_ms else None for group in groups)


def make_plain(group: Any, places: Mapping[str, int], words: Mapping[str, int]) -> PlainGroup | None:
    time, value = (group.column(places[name]) for name in ("time", "value"))
    if not is_plain(time, "INT64") or not is_plain(value, "DOUBLE") or time.statistics.null_count:
        return None
    chunks = np.array([chunk_of(group.column(places[name])) for name in words], np.int64)
    return PlainGroup(chunk_of(time), chunk_of(value), value.statistics.null_count > 0, words, chunks)


def is_plain(column: Any, kind: str) -> bool:
    """And it is known whether it has nulls."""
    statistics = column.statistics
    is_known = statistics is not None and statistics.has_null_count
    is_packed_so = column.compression == "ZSTD" and set(column.encodings) <= PLAIN
    return is_known and is_packed_so and column.physical_type == kind and not column.has_dictionary_page


def chunk_of(column: Any) -> ColumnChunk:
    first = column.dictionary_page_offset if column.has_dictionary_page else None
    return ColumnChunk(first or column.data_page_offset, column.total_compressed_size)


# -- where series begin and end ----------------------------------------------------------

Labels = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """By metric (empty where there is one alone) and the words of its series: the rows of a row group, in their order."""

    rows: dict[Labels, slice]

    @property
    def size_bytes(self) -> int:
        return 300 * len(self.rows)

    def of_metric(self, metric: str) -> list[tuple[Labels, slice]]:
        """Its series, without its name."""
        return [(labels[1:], rows) for labels, rows in self.rows.items() if labels[0] == metric]


PLACES: DerivedCache[GroupPlaces] = DerivedCache(PLACES_BYTES)


def find_places(
    descriptor: int, group: PlainGroup, words: Sequence[str], decode: Callable[[], pa.Table]
) -> GroupPlaces | None:
    """
    By the bytes of these words: the same bytes say the same, in whichever file and of whichever metric.

    None where the rows are not in order of their series.
    """
    known_as = hashlib.blake2b(" ".join(words).encode(), digest_size=16)
    for chunk in map(group.chunk_of, words):
        known_as.update(os.pread(descriptor, chunk.length, chunk.start))
    known = PLACES.get(known_as.digest())
    if known is None:
        table = decode()
        columns = [join_chunks(table.column(name)) for name in words]
        first = () if words[0] == METRIC else ("",)
        # The same words in every file: each is kept once.
        cuts = ((rows, map(share_word, labels)) for rows, labels in cut_rows(table.num_rows, columns))
        known = GroupPlaces({(*first, *labels): rows for rows, labels in cuts})
        if sum(rows.stop - rows.start for rows in known.rows.values()) < table.num_rows:
            return None
        PLACES.put(known_as.digest(), known)
    return known


def share_word(word: str | None) -> str | None:
    return None if word is None else intern(word)


# -- numbers -----------------------------------------------------------------------------


class PlainRows(NamedTuple):
    """Of each series that is there its words, times and values, in order of the row group."""

    labels: list[Labels]
    starts: Integers
    time_ms: Integers
    value: Floats


def read_plain(
    entry: FileEntry,
    number: int,
    metric: str,
    columns: Sequence[str],
    containers: Sequence[str] | None,
    decode: Callable[[Sequence[str]], pa.Table],
) -> PlainRows | None:
    """
    From one row group: of some containers, which `columns` tell apart, or of all series. None where Arrow must read it.

    The metric is named where the row group has others as well. `decode` gives words of its rows.
    """
    words = [METRIC, *columns] if metric else list(columns)
    try:
        group = list_plain(entry.path, entry.size_bytes, entry.mtime_ns)[number]
        if group is None or not words or not set(words) <= set(group.words):
            return None
        return cut_group(entry.path, group, metric, words, containers, lambda: decode(words))
    except (OSError, pa.ArrowException, zstandard.ZstdError, IndexError, ValueError) as error:
        raise ArchiveRefused(f"{entry.path.name}: {first_line(error)}") from error


def cut_group(
    path: Path,
    group: PlainGroup,
    metric: str,
    words: Sequence[str],
    containers: Sequence[str] | None,
    decode: Callable[[], pa.Table],
) -> PlainRows | None:
    with path.open("rb", buffering=0) as file:
        places = find_places(file.fileno(), group, words, decode)
        if places is None:
            return None
        if containers is None:
            there = places.of_metric(metric)
            # Series follow each other: they are one piece of the page.
            pieces = [slice(there[0][1].start, there[-1][1].stop)] if there else []
        else:
            asked = ((metric, one) for one in set(containers))
            there = [(labels[1:], places.rows[labels]) for labels in asked if labels in places.rows]
            there.sort(key=lambda one: one[1].start)
            pieces = [rows for _, rows in there]
        time_ms = unpack_rows(file.fileno(), group.time, pieces, is_optional=False)
        value: bytes | memoryview | None
        if group.has_nulls:
            some = unpack_some(file.fileno(), group.value, pieces)
            value = None if some is None else some.data
        else:
            value = unpack_rows(file.fileno(), group.value, pieces, is_optional=True)
    if time_ms is None or value is None:
        return None
    starts = np.cumsum([0, *(rows.stop - rows.start for _, rows in there)])
    return PlainRows(
        [labels for labels, _ in there], starts, np.frombuffer(time_ms, "<i8"), np.frombuffer(value, "<f8")
    )


def unpack_rows(
    descriptor: int, chunk: ColumnChunk, rows: Sequence[slice], *, is_optional: bool
) -> bytes | memoryview | None:
    """The bytes of these rows, which are in order; None where the column has more than one page."""
    if not rows:
        return b""
    page = find_page(descriptor, chunk)
    if page is None:
        return None
    if len(rows) == 1 and 2 * NUMBER_BYTES * rows[0].stop >= page.unpacked:
        # Most of the page: in one go it needs no window beside it.
        whole = memoryview(unpack_page(page))
        return cut_bytes(whole, skip_levels(whole) if is_optional else 0, rows[0])
    with page.unpacker.stream_reader(page.content) as stream:
        # What may be null has its levels first, which say that nothing is: their length, then they.
        first = 4 + int.from_bytes(take(stream, 4), "little") if is_optional else 0
        return b"".join([cut_page(stream, first, one) for one in rows])


def unpack_some(descriptor: int, chunk: ColumnChunk, rows: Sequence[slice]) -> Floats | None:
    """The same of values of which some are unlimited: their levels say which, and these have no bytes."""
    page = find_page(descriptor, chunk) if rows else None
    if page is None:
        return None if rows else np.empty(0)
    whole = memoryview(unpack_page(page))
    first = skip_levels(whole)
    is_there = read_levels(bytes(whole[4:first]), rows[-1].stop)
    ends = np.concatenate([[0], np.cumsum(is_there)])
    parts = []
    for one in rows:
        part = np.full(one.stop - one.start, np.inf)
        values = cut_bytes(whole, first, slice(int(ends[one.start]), int(ends[one.stop])))
        part[is_there[one]] = np.frombuffer(values, "<f8")
        parts.append(part)
    return np.concatenate(parts)


class PackedPage(NamedTuple):
    """The only page of a column chunk."""

    content: bytes
    unpacked: int
    unpacker: zstandard.ZstdDecompressor


def find_page(descriptor: int, chunk: ColumnChunk) -> PackedPage | None:
    unpacked, packed, header = read_page_header(descriptor, chunk.start)
    if header + packed != chunk.length or os.pread(descriptor, 2, chunk.start) != DATA_PAGE:
        return None
    content = os.pread(descriptor, packed, chunk.start + header)
    # Arrow needs no window; what is prepared to ask for a large one is refused.
    return PackedPage(content, unpacked, zstandard.ZstdDecompressor(max_window_size=PAGE_BYTES))


def unpack_page(page: PackedPage) -> bytes:
    if zstandard.frame_content_size(page.content) != page.unpacked:
        raise ValueError("a page that unpacks to another size than it says")
    return page.unpacker.decompress(page.content)


def skip_levels(page: memoryview) -> int:
    """Where the values begin."""
    return 4 + int.from_bytes(page[:4], "little")


def read_levels(data: bytes, count: int) -> BoolColumn:
    """Of so many rows whether each has a value: stretches of equal ones and stretches of bits, by turns."""
    parts, offset, left = [], 0, count
    while left > 0:
        header, offset = read_varint(data, offset)
        length = header >> 1
        if header & 1:
            found = np.unpackbits(np.frombuffer(data, np.uint8, length, offset), bitorder="little")[:left]
            offset += length
        else:
            found = np.full(min(length, left), data[offset] & 1, np.uint8)
            offset += 1
        if not len(found):
            raise ValueError("levels that say nothing")
        parts.append(found)
        left -= len(found)
    return np.concatenate(parts).view(np.bool_)


def cut_bytes(page: memoryview, first: int, rows: slice) -> memoryview:
    found = page[first + NUMBER_BYTES * rows.start : first + NUMBER_BYTES * rows.stop]
    if len(found) != NUMBER_BYTES * (rows.stop - rows.start):
        raise ValueError("a page ends before its rows do")
    return found


def cut_page(page: Any, first: int, rows: slice) -> bytes:
    page.seek(first + NUMBER_BYTES * rows.start)
    return take(page, NUMBER_BYTES * (rows.stop - rows.start))


def take(page: Any, size: int) -> bytes:
    found: bytes = page.read(size)
    if len(found) != size:
        raise ValueError("a page ends before its rows do")
    return found
