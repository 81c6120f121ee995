"""
Go's gob, read only: the blobs that the original FPGA collector leaves behind.

A stream is a row of messages, each with its length before it:

    uint(length) int(-id) WireType      describes type id
    uint(length) int(id)  value         the value; not a struct: a 0 comes first

    uint     one byte up to 127, else a byte 256 - n and n bytes, big end first
    int      a uint: twice the number, or twice its complement plus one
    float    a uint: the eight bytes of the double, small end first
    string   uint(length) bytes; a type that encodes itself likewise
    slice    uint(count) elements; a map has twice as many
    struct   (uint(delta of the field's number) value)... 0; zero fields left out

The description of WireType itself is known to both sides and stands below.
Docs: https://pkg.go.dev/encoding/gob

Structs become dicts, slices and arrays lists, maps lists of pairs. Whoever
can patch a Node can write the blob: no length is believed beyond the bytes
that are there.
"""

import struct
from dataclasses import dataclass
from typing import Any

from nodescope.base.errors import ParseError

# Deeper than any value of the original's; a type may contain itself.
DEPTH = 16
BLOB_BYTES = 262144
# Seconds between Go's year 1 and 1970.
EPOCH_SECONDS = 62_135_596_800

TypeId = int | str


@dataclass(frozen=True, slots=True)
class Kind:
    """One type: how it is laid out, and of what."""

    form: str
    """bool, int, uint, float, bytes, string, complex, slice, array, map or struct."""
    fields: tuple[tuple[str, TypeId], ...] = ()
    """Of a struct, in order; of a slice or array one element; of a map key and element."""


# The built-in types in the order of their numbers, and what a field of each has that was left out.
ZERO = {"bool": False, "int": 0, "uint": 0, "float": 0.0, "bytes": b"", "string": "", "complex": 0j}
COMMON = ("Common", "common")
# The built-in types from 1 on, and the types that describe types.
KNOWN: dict[TypeId, Kind] = {
    **dict(enumerate(map(Kind, ZERO), 1)),
    "common": Kind("struct", (("Name", 6), ("Id", 2))),
    "field": Kind("struct", (("Name", 6), ("Id", 2))),
    "fields": Kind("slice", (("", "field"),)),
    "array": Kind("struct", (COMMON, ("Elem", 2), ("Len", 2))),
    "slice": Kind("struct", (COMMON, ("Elem", 2))),
    "struct": Kind("struct", (COMMON, ("Field", "fields"))),
    "map": Kind("struct", (COMMON, ("Key", 2), ("Elem", 2))),
    "self": Kind("struct", (COMMON,)),
    "wire": Kind(
        "struct",
        (
            ("array", "array"),
            ("slice", "slice"),
            ("struct", "struct"),
            ("map", "map"),
            ("gob", "self"),
            ("binary", "self"),
            ("text", "self"),
        ),
    ),
}


def parse_gob(blob: bytes) -> Any:
    """The first value of a stream; ParseError says what is wrong with it."""
    if len(blob) > BLOB_BYTES:
        raise ParseError(f"gob: {len(blob)} bytes, at most {BLOB_BYTES} are read")
    try:
        return _Stream(blob).read_value()
    except (IndexError, KeyError, RecursionError, UnicodeDecodeError, OverflowError) as error:
        raise ParseError(f"gob: not understood: {type(error).__name__} {str(error)[:60]}") from None


def parse_time_ms(content: bytes) -> int:
    """
    Milliseconds since 1970 of a time that encoded itself.

    A version byte (1, or 2 with a byte more), seconds since year 1 in eight
    bytes, nanoseconds in four, the zone's minutes in two.
    """
    if len(content) not in (15, 16) or content[0] not in (1, 2):
        raise ParseError(f"gob: {content[:16].hex()} is no time")
    seconds, ns = struct.unpack(">qi", content[1:13])
    return int((seconds - EPOCH_SECONDS) * 1000 + ns // 1_000_000)


class _Stream:
    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._at = 0
        self._kinds = dict(KNOWN)

    def read_value(self) -> Any:
        while self._at < len(self._blob):
            end = self._read_uint() + self._at
            number = self._read_int()
            if number >= 0:
                if self._kinds[number].form != "struct" and self._read_uint() != 0:
                    raise ParseError("gob: a value that is no struct starts with 0")
                return self._read(number, 0)
            self._kinds[-number] = derive_kind(self._read("wire", 0))
            if self._at != end:
                raise ParseError("gob: a description that is not as long as it says")
        raise ParseError("gob: no value")

    def _take(self, count: int) -> bytes:
        taken = self._blob[self._at : self._at + count]
        if len(taken) != count:
            raise ParseError("gob: it ends in the middle of a value")
        self._at += count
        return taken

    def _read_uint(self) -> int:
        first = self._take(1)[0]
        if first < 128:
            return first
        count = 256 - first
        if count > 8:
            raise ParseError("gob: a number of more than eight bytes")
        return int.from_bytes(self._take(count), "big")

    def _read_int(self) -> int:
        value = self._read_uint()
        return ~(value >> 1) if value & 1 else value >> 1

    def _read_float(self) -> float:
        value: float = struct.unpack(">d", self._read_uint().to_bytes(8, "little"))[0]
        return value

    def _read_count(self) -> int:
        """Every element has a byte at least."""
        count = self._read_uint()
        if count > len(self._blob) - self._at:
            raise ParseError(f"gob: {count} elements in {len(self._blob) - self._at} bytes")
        return count

    def _read(self, number: TypeId, depth: int) -> Any:
        if depth > DEPTH:
            raise ParseError(f"gob: a value deeper than {DEPTH}")
        kind = self._kinds[number]
        if kind.form == "struct":
            return self._read_struct(kind, depth)
        if kind.form in ("slice", "array"):
            return [self._read(kind.fields[0][1], depth + 1) for _ in range(self._read_count())]
        if kind.form == "map":
            (_, key), (_, element) = kind.fields
            return [
                (self._read(key, depth + 1), self._read(element, depth + 1))
                for _ in range(self._read_count())
            ]
        return self._read_plain(kind.form)

    def _read_plain(self, form: str) -> Any:
        if form == "bool":
            return bool(self._read_uint())
        if form == "int":
            return self._read_int()
        if form == "uint":
            return self._read_uint()
        if form == "float":
            return self._read_float()
        if form == "complex":
            return complex(self._read_float(), self._read_float())
        content = self._take(self._read_uint())
        return content.decode() if form == "string" else content

    def _read_struct(self, kind: Kind, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            name: ZERO[self._kinds[field].form]
            for name, field in kind.fields
            if field in self._kinds and self._kinds[field].form in ZERO
        }
        number = -1
        while delta := self._read_uint():
            number += delta
            name, field = kind.fields[number]
            found[name] = self._read(field, depth + 1)
        return found


def derive_kind(wire: dict[str, Any]) -> Kind:
    """A type from its description; exactly one of its forms is there."""
    if len(wire) != 1:
        raise ParseError("gob: a description of no type, or of several")
    form, about = next(iter(wire.items()))
    if form == "struct":
        return Kind("struct", tuple((one["Name"], one["Id"]) for one in about.get("Field", ())))
    if form in ("slice", "array"):
        return Kind(form, (("", about["Elem"]),))
    if form == "map":
        return Kind("map", (("", about["Key"]), ("", about["Elem"])))
    return Kind("bytes")
