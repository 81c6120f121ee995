"""What was checked of a file is kept, and nothing of the file itself; headers of pages are read in two ways alike."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from nodescope.keep.check.bounds import check_pages, parse_any_header, parse_page_header

# What headers are made of: fields and numbers of one, two and five bytes, ends, structs, words.
PIECES = st.sampled_from(
    [
        *(b"\x15\x00", b"\x15\x06", b"\x15\x7f", b"\x15\x80\x01", b"\x15\xff\xff\xff\xff\x7f"),
        *(b"\x1c", b"\x2c", b"\x3c", b"\x4c", b"\x00", b"\x00\x00", b"\x11", b"\x12", b"\x18\x02ab"),
    ]
)
USUAL = (
    b"\x15\x00\x15\x80\x01\x15\x40\x15\x02\x1c\x15\x64\x15\x00\x15\x06\x15\x06\x00\x00",
    b"\x15\x00\x15\x80\x01\x15\x40\x2c\x15\x64\x15\x00\x15\x06\x15\x06\x00\x00",
    b"\x15\x04\x15\x80\x01\x15\x40\x15\x02\x3c\x15\x64\x15\x00\x11\x00\x00",
    b"\x15\x04\x15\x80\x01\x15\x40\x4c\x15\x64\x15\x00\x00\x00",
)


def read_or_refuse(parse: Callable[[bytes], tuple[int, int, int]], data: bytes) -> object:
    try:
        return parse(data)
    except (IndexError, ValueError) as error:
        return type(error)


@given(st.lists(PIECES, max_size=14).map(b"".join))
def test_a_header_is_read_alike_at_once_and_field_by_field(data: bytes) -> None:
    """forall bytes: both ways give the same sizes, or refuse for the same reason."""
    assert read_or_refuse(parse_page_header, data) == read_or_refuse(parse_any_header, data)


@given(st.sampled_from(USUAL), st.integers(0, 25), st.integers(0, 255))
def test_a_header_with_one_byte_changed_is_read_alike(data: bytes, place: int, byte: int) -> None:
    changed = data[:place] + bytes([byte]) + data[place + 1 :]
    assert read_or_refuse(parse_page_header, changed) == read_or_refuse(parse_any_header, changed)


def test_the_usual_headers_are_read_whole() -> None:
    assert [parse_page_header(data) for data in USUAL] == [(64, 32, len(data)) for data in USUAL]


def test_the_footer_of_a_checked_file_is_let_go(tmp_path: Path) -> None:
    """A footer of an hour takes 0.4 MiB; a week of them was held by the cache of what is good."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"value": pa.array(range(1000))}), path)
    metadata = pq.ParquetFile(path).metadata
    before = sys.getrefcount(metadata)
    for _ in range(3):
        check_pages(path, metadata)
    assert sys.getrefcount(metadata) == before
