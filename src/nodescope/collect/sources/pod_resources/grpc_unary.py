"""
One gRPC call over a unix socket: a request without content, an answer in one message.

All that kubelet's pod-resources API needs, for which the grpc package would
bring 20 MiB. HTTP/2 as RFC 9113 has it, in frames:

    length (3 bytes)  type (1)  flags (1)  stream (4)  payload

    client: preface, SETTINGS, WINDOW_UPDATE, HEADERS (literal, nothing indexed), DATA (end of stream)
    server: SETTINGS, HEADERS, DATA..., HEADERS (trailers, end of stream)

A message is one byte for compression, four for its length, and the message.
Headers of the answer are not decoded: where the server refuses there is no
message, which is all we need to know.
"""

import socket
import struct
from collections.abc import Iterator

from nodescope.base.errors import ParseError, SourceFailed

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
INITIAL_WINDOW = 4
# A node with 1,000 pods answers with some 500 KB; kubelet's own limit is 16 MiB.
ANSWER_BYTES = 16 * 2**20
FRAME_BYTES = 2**14
ANSWER_SECONDS = 5.0


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack("!I", len(payload))[1:] + bytes((kind, flags)) + struct.pack("!I", stream) + payload


def encode_headers(pairs: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Literals without indexing; no name or value of ours has 127 bytes or more."""
    return b"".join(
        b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in pairs
    )


def build_request(method: str) -> bytes:
    headers = encode_headers(
        (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", method.encode()),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        )
    )
    window = struct.pack("!HI", INITIAL_WINDOW, ANSWER_BYTES)
    return (
        PREFACE
        + frame(SETTINGS, 0, 0, window)
        + frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", ANSWER_BYTES))
        + frame(HEADERS, END_HEADERS, 1, headers)
        + frame(DATA, END_STREAM, 1, b"\x00" * 5)
    )


def read_exactly(connection: socket.socket, count: int) -> bytes:
    chunks = []
    while count:
        chunk = connection.recv(count)
        if not chunk:
            raise SourceFailed("the server closed the connection")
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def read_answer(connection: socket.socket) -> bytes:
    """The data of stream 1 until its end; questions of the protocol are answered."""
    data = b""
    while True:
        head = read_exactly(connection, 9)
        length, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
        stream = int.from_bytes(head[5:]) & 0x7FFFFFFF
        if length > FRAME_BYTES:
            raise SourceFailed("not HTTP/2: a frame larger than agreed")
        payload = read_exactly(connection, length)
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind in (RESET, GOAWAY):
            raise SourceFailed("the server refused the call")
        elif kind == DATA and stream == 1:
            data += payload[1 : len(payload) - payload[0]] if flags & PADDED else payload
            if len(data) > ANSWER_BYTES:
                raise SourceFailed("the answer is larger than any node's")
        if kind in (DATA, HEADERS) and stream == 1 and flags & END_STREAM:
            return data


def call_unary(path: str, method: str, timeout_seconds: float = ANSWER_SECONDS) -> bytes:
    """The message that a method without arguments returns; SourceFailed when it does not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_seconds)
        try:
            connection.connect(path)
            connection.sendall(build_request(method))
            data = read_answer(connection)
        except OSError as error:
            raise SourceFailed(f"{path}: {error}") from error
    if len(data) < 5 or data[0] != 0:
        raise SourceFailed(f"{path}: {method} was refused")
    return data[5 : 5 + int.from_bytes(data[1:5])]


# -- protocol buffers, as far as messages and texts go --------------------------


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ParseError("protocol buffers: a number breaks off")


def parse_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(field number, content) of every field with a length; numbers are skipped."""
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place)
        kind = tag & 7
        if kind == 0:
            _, place = read_varint(data, place)
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        elif kind == 2:
            length, place = read_varint(data, place)
            if place + length > len(data):
                raise ParseError("protocol buffers: a field breaks off")
            yield tag >> 3, data[place : place + length]
            place += length
        else:
            raise ParseError(f"protocol buffers: wire type {kind} is not known")
