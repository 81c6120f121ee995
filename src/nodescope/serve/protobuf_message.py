"""
Protocol Buffers by hand: the few forms of a field that OTLP and Perfetto need.

A message is the concatenation of its fields; a field is a key (number and wire
type) and a value. https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Iterator

from nodescope.base.errors import ParseError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_DOUBLE = struct.Struct("<d")
_FIXED = struct.Struct("<Q")
# Ten groups of seven bits hold 64.
VARINT_BYTES = 10


def encode_varint(value: int) -> bytes:
    """A negative number is written as its two's complement, in ten bytes."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def encode_key(number: int, wire_type: int) -> bytes:
    return encode_varint(number << 3 | wire_type)


def integer_field(number: int, value: int) -> bytes:
    return encode_key(number, VARINT) + encode_varint(value)


def fixed_field(number: int, value: int) -> bytes:
    """fixed64 and, of numbers that are not negative, sfixed64."""
    return encode_key(number, FIXED64) + _FIXED.pack(value)


def double_field(number: int, value: float) -> bytes:
    return encode_key(number, FIXED64) + _DOUBLE.pack(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Bytes, and messages inside of messages."""
    return encode_key(number, LENGTH) + encode_varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode("utf-8", "replace"))


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field by its number; ParseError where the message is cut or has a wire type of the past."""
    offset = 0
    while offset < len(message):
        key, offset = _read_varint(message, offset)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, offset = _read_varint(message, offset)
            yield number, value
            continue
        if wire_type == LENGTH:
            size, offset = _read_varint(message, offset)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise ParseError(f"a field of wire type {wire_type}")
        if offset + size > len(message):
            raise ParseError("a field is cut short")
        yield number, message[offset : offset + size]
        offset += size


def _read_varint(message: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[offset : offset + VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, offset + place + 1
    raise ParseError("a number is cut short")
