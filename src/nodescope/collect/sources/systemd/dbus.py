"""
A client of D-Bus, as small as asking systemd needs: method calls with texts, answers of any type.

A message is a header and a body, both of values that are aligned to their size.
The header:

    byte 'l' (little endian), type, flags, version 1; uint32 bytes of the body; uint32 number of the message;
    array of (byte field, variant), filled up to 8 bytes

https://dbus.freedesktop.org/doc/dbus-specification.html

Answers are bounded; no bus, no answer and a refusal are a SourceFailed, garbage a ParseError.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from nodescope.base.errors import ParseError, SourceFailed

CALL, ANSWER, REFUSAL = 1, 2, 3
# Header fields by their number.
PATH, INTERFACE, MEMBER, REFUSED_AS, ANSWERS, DESTINATION, SIGNATURE = 1, 2, 3, 4, 5, 6, 8
FIXED_BYTES = 16
# A node has some hundred units of 200 bytes each; the specification allows 128 MiB.
MOST_BYTES = 8 * 2**20
TIMEOUT_SECONDS = 5.0
BUS = "org.freedesktop.DBus"
# Type -> struct's letter. A boolean is a uint32.
NUMBERS = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "h": "I"}
ALIGNED = {"v": 1, "g": 1, "s": 4, "o": 4, "a": 4, "(": 8, "{": 8}
CLOSING = {"(": ")", "{": "}"}
# The specification allows 32 arrays in each other and 32 structures.
DEPTH = 64


def pad(length: int, size: int) -> bytes:
    return b"\0" * (-length % size)


def write_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def write_field(number: int, kind: str, value: str) -> bytes:
    """A field of the header: its number and a variant."""
    text = bytes([len(value)]) + value.encode() + b"\0" if kind == "g" else write_text(value)
    return bytes([number, 1]) + kind.encode() + b"\0" + text


def write_call(number: int, *arguments: str) -> bytes:
    """Destination, path, interface, member; behind them the call's own arguments, all of them texts."""
    destination, path, interface, member, *texts = arguments
    body = b""
    for text in texts:
        body += pad(len(body), 4) + write_text(text)
    fields = [(PATH, "o", path), (DESTINATION, "s", destination), (INTERFACE, "s", interface)]
    fields.append((MEMBER, "s", member))
    if texts:
        fields.append((SIGNATURE, "g", "s" * len(texts)))
    array = b""
    for field in fields:
        array += pad(len(array), 8) + write_field(*field)
    header = struct.pack("<cBBBIII", b"l", CALL, 0, 1, len(body), number, len(array)) + array
    return header + pad(len(header), 8) + body


def split_types(signature: str) -> Iterator[str]:
    """The complete types of a signature, one after the other: `sa(ss)u` -> s, a(ss), u."""
    place = 0
    while place < len(signature):
        end = find_end(signature, place)
        yield signature[place:end]
        place = end


def find_end(signature: str, place: int) -> int:
    """The place behind the complete type that begins here."""
    while signature[place : place + 1] == "a":
        place += 1
    if signature[place : place + 1] not in CLOSING:
        return place + 1
    depth = 0
    for end in range(place, len(signature)):
        depth += (signature[end] in CLOSING) - (signature[end] in CLOSING.values())
        if depth == 0:
            return end + 1
    raise ParseError(f"a signature that does not end: {signature[:60]}")


class DbusReader:
    """Values of a message, one after the other."""

    def __init__(self, data: bytes, order: str) -> None:
        self._data = data
        self._order = order
        self._place = 0

    def read(self, kind: str, depth: int = 0) -> Any:
        """One value of a complete type."""
        if depth > DEPTH:
            raise ParseError("values that are nested too deep")
        first = kind[:1]
        if first in NUMBERS:
            value = self._number(NUMBERS[first])
            return bool(value) if first == "b" else value
        self._align(ALIGNED.get(first, 0))
        if first in ("s", "o"):
            return self._text(self._number("I"))
        if first == "g":
            return self._text(self._number("B"))
        if first == "v":
            return self.read(self.read("g"), depth + 1)
        if first == "a":
            return self._array(kind[1:], depth + 1)
        return tuple(self.read(one, depth + 1) for one in split_types(kind[1:-1]))

    def _align(self, size: int) -> None:
        if not size:
            raise ParseError("a type that D-Bus does not have")
        self._place += -self._place % size

    def _take(self, length: int) -> bytes:
        taken = self._data[self._place : self._place + length]
        if len(taken) < length:
            raise ParseError("a message that ends too early")
        self._place += length
        return taken

    def _number(self, letter: str) -> Any:
        size = struct.calcsize(letter)
        self._align(size)
        return struct.unpack(f"{self._order}{letter}", self._take(size))[0]

    def _text(self, length: int) -> str:
        return self._take(length + 1)[:-1].decode("utf-8", "replace")

    def _array(self, kind: str, depth: int) -> list[Any]:
        length = self._number("I")
        first = kind[:1]
        self._align(ALIGNED.get(first) or struct.calcsize(NUMBERS.get(first, "B")))
        end = self._place + length
        if end > len(self._data):
            raise ParseError("a message that ends too early")
        found = []
        while self._place < end:
            before = self._place
            found.append(self.read(kind, depth))
            if self._place == before:
                raise ParseError("an array of nothing")
        return found


class DbusConnection:
    """One connection to a bus; not for several threads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_SECONDS)
        with ExitStack() as stack:
            stack.callback(self._socket.close)
            self._enter()
            # We are in: it stays open.
            stack.pop_all()

    def _enter(self) -> None:
        """Say who we are, which the kernel confirms to the bus, and ask for a name."""
        try:
            self._socket.connect(self._path)
            user = str(os.geteuid()).encode().hex()
            self._socket.sendall(f"\0AUTH EXTERNAL {user}\r\n".encode())
            said = self._socket.recv(512)
            if not said.startswith(b"OK "):
                raise SourceFailed(f"{self._path}: the bus does not let us in")
            self._socket.sendall(b"BEGIN\r\n")
        except OSError as error:
            raise SourceFailed(f"{self._path}: {error.strerror or error}") from error
        self.call(BUS, "/org/freedesktop/DBus", BUS, "Hello")

    def call(self, destination: str, path: str, interface: str, member: str, *texts: str) -> tuple[Any, ...]:
        """The values of the answer."""
        kind, fields, values = self._exchange(destination, path, interface, member, *texts)
        if kind == REFUSAL:
            said = values[0] if values and isinstance(values[0], str) else ""
            raise SourceFailed(f"{member}: {fields.get(REFUSED_AS, '')} {said}".strip())
        return values

    def try_call(
        self, destination: str, path: str, interface: str, member: str, *texts: str
    ) -> tuple[Any, ...] | None:
        """The values of the answer; None where it is a refusal."""
        kind, _, values = self._exchange(destination, path, interface, member, *texts)
        return None if kind == REFUSAL else values

    def _exchange(self, *arguments: str) -> tuple[int, dict[int, Any], tuple[Any, ...]]:
        """A call and what answers it; what the bus tells beside that is passed over."""
        self._number += 1
        try:
            self._socket.sendall(write_call(self._number, *arguments))
            while True:
                kind, fields, body, order = self._read_message()
                if fields.get(ANSWERS) == self._number:
                    break
        except OSError as error:
            raise SourceFailed(f"{self._path}: {error.strerror or error}") from error
        reader = DbusReader(body, order)
        values = tuple(reader.read(one) for one in split_types(fields.get(SIGNATURE, "")))
        return kind, fields, values

    def _read_message(self) -> tuple[int, dict[int, Any], bytes, str]:
        fixed = self._receive(FIXED_BYTES)
        order = "<" if fixed[:1] == b"l" else ">"
        body_bytes, _, fields_bytes = struct.unpack(f"{order}III", fixed[4:])
        if max(body_bytes, fields_bytes) > MOST_BYTES:
            raise ParseError(f"a message of more than {MOST_BYTES} bytes")
        rest = self._receive(fields_bytes + -fields_bytes % 8 + body_bytes)
        reader = DbusReader(fixed + rest, order)
        reader.read("(yyyyuu)")
        fields = dict(reader.read("a(yv)"))
        return fixed[1], fields, rest[len(rest) - body_bytes :], order

    def _receive(self, length: int) -> bytes:
        parts = []
        while length:
            part = self._socket.recv(min(length, 65536))
            if not part:
                raise SourceFailed(f"{self._path}: the bus closed the connection")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._socket.close()
