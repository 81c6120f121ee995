"""
What a Parquet file may cost, told from its own sizes before anything is unpacked.

A small file can be prepared to need gigabytes: by a long footer, by millions of
equal rows, by a page that unpacks to thousands of times its size while the
footer says little. So the footer's length is compared with the file's before it
is parsed, then all that the footer announces, then the header of every page.
A file of ours is far below each limit.

A page's header is Thrift's compact protocol (PageHeader of the Parquet format):

    1  type   2  uncompressed_page_size   3  compressed_page_size   ...
"""

import os
import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from nodescope.base.errors import ArchiveRefused

# Ours have a row in one to two bytes. Metrics that never change pack to a tenth of that.
ROWS_PER_BYTE = 16
ROWS_FLOOR = 100_000
# Of a column in a row group, unpacked, beside its size in the file.
COLUMN_RATIO = 1000
COLUMN_FLOOR_BYTES = 64 * 2**20
# Of all columns in a row group. Ours have some 8 MiB; Spark writes 128.
GROUP_BYTES = 256 * 2**20
# Ours have seventeen, and at most a thousandth of the file in its footer.
COLUMNS_MOST = 1000
FOOTER_SHARE = 16
FOOTER_FLOOR_BYTES = 256 * 2**10
# Ours have half a MiB; others write one.
PAGE_BYTES = 16 * 2**20
# No codec packs better: a chunk below PAGE_BYTES by this has no page above it.
PACKED_MOST = 2**15
# A header has some fifty bytes; with statistics of long words some more.
HEADER_BYTES = 2**10
HEADER_MOST_BYTES = 64 * 2**10
_TAIL = struct.Struct("<I4s")
_MAGIC = b"PAR1"


def check_footer(path: Path) -> None:
    """Its length alone: it is parsed into some hundred times as much."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        tail = os.pread(file.fileno(), _TAIL.size, max(0, size - _TAIL.size))
    length, magic = _TAIL.unpack(tail.rjust(_TAIL.size, b"\0"))
    most = max(FOOTER_FLOOR_BYTES, size // FOOTER_SHARE)
    if magic == _MAGIC and length > most:
        raise ArchiveRefused(f"{path.name}: a footer of {length} bytes; accepted: up to {most}")


def check_bounds(metadata: Any, name: str, size_bytes: int) -> None:
    """Refuses what is prepared to unpack to gigabytes, by its footer, before a row is read."""
    groups = range(metadata.num_row_groups)
    rows = sum(metadata.row_group(number).num_rows for number in groups)
    most = max(ROWS_FLOOR, ROWS_PER_BYTE * size_bytes)
    if max(rows, metadata.num_rows) > most:
        raise ArchiveRefused(f"{name}: {rows} rows in {size_bytes} bytes; accepted: up to {most}")
    if metadata.num_columns > COLUMNS_MOST:
        raise ArchiveRefused(f"{name}: {metadata.num_columns} columns; accepted: up to {COLUMNS_MOST}")
    for group in map(metadata.row_group, groups):
        columns = [group.column(place) for place in range(metadata.num_columns)]
        for column in columns:
            check_column(column, name)
        unpacked = sum(column.total_uncompressed_size for column in columns)
        if unpacked > GROUP_BYTES:
            raise ArchiveRefused(
                f"{name}: a row group unpacks to {unpacked} bytes; accepted: up to {GROUP_BYTES}"
            )


def check_column(column: Any, name: str) -> None:
    most = max(COLUMN_FLOOR_BYTES, COLUMN_RATIO * column.total_compressed_size)
    if column.total_uncompressed_size > most:
        raise ArchiveRefused(
            f"{name}: column {column.path_in_schema} unpacks to {column.total_uncompressed_size} bytes; "
            f"accepted: up to {most}"
        )


# -- pages -----------------------------------------------------------------------------


def check_pages(path: Path, metadata: Any) -> None:
    """The headers of all pages that could unpack to more than a page may. Once per file version."""
    status = path.stat()
    reason = _find_excess(path, status.st_size, status.st_mtime_ns, status.st_ino, PagesOf(metadata))
    if reason:
        raise ArchiveRefused(f"{path.name}: {reason}")


class PagesOf:
    """A footer that is no part of a cache's key: the file is. It is taken once, because the cache keeps its keys."""

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata

    def take(self) -> Any:
        metadata, self._metadata = self._metadata, None
        return metadata

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PagesOf)


@lru_cache(maxsize=4096)
def _find_excess(path: Path, size: int, mtime_ns: int, inode: int, pages: PagesOf) -> str:
    del mtime_ns, inode
    with path.open("rb") as file:
        for name, start, length in list_chunks(pages.take()):
            reason = examine_chunk(file.fileno(), start, min(start + length, size))
            if reason:
                return f"column {name}: {reason}"
    return ""


def list_chunks(metadata: Any) -> Iterator[tuple[str, int, int]]:
    """(column, start, length) of each that is large enough for a page that is too large."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(metadata.num_columns)):
            length = column.total_compressed_size
            if length * PACKED_MOST > PAGE_BYTES:
                first = column.dictionary_page_offset if column.has_dictionary_page else None
                yield (
                    column.path_in_schema,
                    min(first or column.data_page_offset, column.data_page_offset),
                    length,
                )


def examine_chunk(descriptor: int, start: int, end: int) -> str:
    """Why its pages must not be unpacked; empty where they may."""
    while start < end:
        try:
            unpacked, packed, header = read_page_header(descriptor, start)
        except (IndexError, ValueError):
            return f"at byte {start} is no page that can be read"
        if unpacked > PAGE_BYTES:
            return f"a page unpacks to {unpacked} bytes; accepted: up to {PAGE_BYTES}"
        if packed < 0:
            return f"a page of {packed} bytes"
        start += header + packed
    return ""


def read_page_header(descriptor: int, start: int) -> tuple[int, int, int]:
    """(unpacked, packed, length of the header itself) of the page at an offset."""
    try:
        return parse_page_header(os.pread(descriptor, HEADER_BYTES, start))
    except IndexError:
        return parse_page_header(os.pread(descriptor, HEADER_MOST_BYTES, start))


# A page as Arrow writes it: type, both sizes, a checksum or none; then the numbers of a data page or of a
# dictionary, without statistics. A day has some ten thousand of them.
_NUMBER = rb"\x15[\x80-\xff]{0,4}[\x00-\x7f]"
_USUAL = re.compile(
    rb"%b(%b)(%b)(?:%b\x1c|\x2c)(?:%b){4}\x00\x00|%b(%b)(%b)(?:%b\x3c|\x4c)(?:%b){2}[\x11\x12]?\x00\x00".replace(
        b"%b", _NUMBER
    )
)


def parse_page_header(data: bytes) -> tuple[int, int, int]:
    """IndexError where the bytes end before it does; ValueError where it is none."""
    usual = _USUAL.match(data)
    if usual is None:
        return parse_any_header(data)
    unpacked, packed = (read_varint(group, 1)[0] for group in usual.groups() if group)
    if (unpacked | packed) & 1:
        raise ValueError("a page without sizes")
    return unpacked >> 1, packed >> 1, usual.end()


def parse_any_header(data: bytes) -> tuple[int, int, int]:
    """The same, field by field."""
    sizes = {2: -1, 3: -1}
    offset = number = 0
    while data[offset]:
        number, kind, offset = read_field(data, offset, number)
        if number in sizes and kind == _I32:
            value, offset = read_varint(data, offset)
            # Zigzag: the lowest bit is the sign.
            sizes[number] = (value >> 1) ^ -(value & 1)
        else:
            offset = skip(data, offset, kind)
    if min(sizes.values()) < 0:
        raise ValueError("a page without sizes")
    return sizes[2], sizes[3], offset + 1


_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
# A page header has structs in a struct; no more.
DEEPEST = 4


def read_field(data: bytes, offset: int, before: int) -> tuple[int, int, int]:
    """(number, type, offset of the value)."""
    delta, kind = data[offset] >> 4, data[offset] & 15
    if delta:
        return before + delta, kind, offset + 1
    number, offset = read_varint(data, offset + 1)
    return (number >> 1) ^ -(number & 1), kind, offset


def read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, offset
    raise ValueError("a number without an end")


def skip(data: bytes, offset: int, kind: int, depth: int = 0) -> int:
    """The offset behind a value."""
    if kind in (_TRUE, _FALSE):
        return offset
    if kind in (_I16, _I32, _I64):
        return read_varint(data, offset)[1]
    if kind in (_BYTE, _DOUBLE):
        return offset + (1 if kind == _BYTE else 8)
    if kind == _BINARY:
        length, offset = read_varint(data, offset)
        return offset + length
    if kind != _STRUCT or depth > DEEPEST:
        raise ValueError("nothing that a page header has")
    number = 0
    while data[offset]:
        number, inner, offset = read_field(data, offset, number)
        offset = skip(data, offset, inner, depth + 1)
    return offset + 1
