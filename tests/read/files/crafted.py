"""
Parquet files made by hand, with sizes that no writer would write.

Enough of Thrift's compact protocol for a footer and a page header: a struct is
its fields, each (number, type, value), and a zero.
"""

import struct
from collections.abc import Sequence

import zstandard

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
INT64, DOUBLE, BYTES = 2, 5, 6
ZSTD = 6
TIME_MS = 1_772_366_340_000
Field = tuple[int, int, bytes]


def pack_varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def pack_number(number: int) -> bytes:
    return pack_varint(number << 1)


def pack_text(text: str) -> bytes:
    return pack_varint(len(text)) + text.encode()


def pack_list(kind: int, items: Sequence[bytes]) -> bytes:
    head = (
        bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + pack_varint(len(items))
    )
    return head + b"".join(items)


def pack_struct(fields: Sequence[Field]) -> bytes:
    before, parts = 0, []
    for number, kind, value in fields:
        parts.append(bytes([number - before << 4 | kind]) + value)
        before = number
    return b"".join(parts) + b"\0"


def make_element(name: str, kind: int | None, children: int = 0, converted: int | None = None) -> bytes:
    """Of the schema: a column, or a group with children."""
    fields: list[Field] = [] if kind is None else [(1, I32, pack_number(kind))]
    fields += [(3, I32, pack_number(1)), (4, BINARY, pack_text(name))]
    if children:
        fields.append((5, I32, pack_number(children)))
    if converted is not None:
        fields.append((6, I32, pack_number(converted)))
    return pack_struct(fields)


COLUMNS = [
    make_element("time", INT64, converted=9),
    make_element("metric_name", BYTES, converted=0),
    make_element("value", DOUBLE),
]


def make_page(data: bytes, unpacked: int, values: int) -> bytes:
    encodings: list[Field] = [(number, I32, pack_number(code)) for number, code in ((2, 0), (3, 3), (4, 3))]
    inner = pack_struct([(1, I32, pack_number(values)), *encodings])
    sizes: list[Field] = [(2, I32, pack_number(unpacked)), (3, I32, pack_number(len(data)))]
    return pack_struct([(1, I32, pack_number(0)), *sizes, (5, STRUCT, inner)]) + data


def make_chunk(name: str, kind: int, values: int, size: int, offset: int) -> bytes:
    """Its unpacked size is said to be a hundred bytes, whatever its pages say."""
    fields: list[Field] = [
        (1, I32, pack_number(kind)),
        (2, LIST, pack_list(I32, [pack_number(0)])),
        (3, LIST, pack_list(BINARY, [pack_text(name)])),
        (4, I32, pack_number(ZSTD)),
        (5, I64, pack_number(values)),
        (6, I64, pack_number(100)),
        (7, I64, pack_number(size)),
        (9, I64, pack_number(offset)),
    ]
    return pack_struct([(2, I64, pack_number(offset)), (3, STRUCT, pack_struct(fields))])


def make_group(chunks: Sequence[bytes], rows: int) -> bytes:
    return pack_struct(
        [(1, LIST, pack_list(STRUCT, chunks)), (2, I64, pack_number(100)), (3, I64, pack_number(rows))]
    )


def make_file(body: bytes, schema: Sequence[bytes], top: int, rows: int, groups: Sequence[bytes]) -> bytes:
    root = make_element("schema", None, top)
    footer = pack_struct(
        [
            (1, I32, pack_number(1)),
            (2, LIST, pack_list(STRUCT, [root, *schema])),
            (3, I64, pack_number(rows)),
            (4, LIST, pack_list(STRUCT, groups)),
        ]
    )
    return b"PAR1" + body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def make_rows(names: bytes | None = None, names_unpacked: int = 0, page_values: int = 10) -> bytes:
    """Ten rows; the page of metric_name as given."""
    plain = {
        "time": (INT64, struct.pack("<q", TIME_MS) * 10),
        "metric_name": (BYTES, (struct.pack("<I", 1) + b"m") * 10),
        "value": (DOUBLE, struct.pack("<d", 1.0) * 10),
    }
    body, chunks = b"", []
    for name, (kind, content) in plain.items():
        # A level for each value: all are there.
        whole = struct.pack("<IBB", 2, 10 << 1, 1) + content
        data, unpacked = zstandard.compress(whole), len(whole)
        if name == "metric_name" and names_unpacked:
            data, unpacked = names or data, names_unpacked
        page = make_page(data, unpacked, page_values)
        chunks.append(make_chunk(name, kind, 10, len(page), 4 + len(body)))
        body += page
    return make_file(body, COLUMNS, 3, 10, [make_group(chunks, 10)])


def make_columns(count: int) -> bytes:
    more = [make_element(f"c{number}", INT64) for number in range(count)]
    return make_file(b"", [*COLUMNS, *more], 3 + count, 0, [])


def make_deep(depth: int) -> bytes:
    nested = [make_element("g", None, 1) for _ in range(depth)]
    return make_file(b"", [*COLUMNS, *nested, make_element("x", INT64)], 4, 0, [])


def make_groups(count: int) -> bytes:
    names = (("time", INT64), ("metric_name", BYTES), ("value", DOUBLE))
    group = make_group([make_chunk(name, kind, 0, 0, 4) for name, kind in names], 0)
    return make_file(b"", COLUMNS, 3, 0, [group] * count)
