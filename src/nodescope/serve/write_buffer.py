"""
A connection that sends an answer's head and body in one system call.

uvicorn writes the head, then the body, then the end: each is a system call and
wakes the client. For an answer of two bytes that is a quarter of the cost.
"""

import asyncio
from typing import Any

# Above this size a copy costs more than a system call.
JOINED_BYTES = 65536


class JoinedTransport:
    """
    Buffers what is written until `flush`, or until the loop's next turn.

    The bytes and their order stay the same; only where they are cut differs.
    It has the methods of a transport that uvicorn uses, and no others.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.get_extra_info = transport.get_extra_info
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        if not data:
            return
        if not self._held:
            # A part of a longer answer must not wait for the rest.
            self._loop.call_soon(self.flush)
        self._held.append(bytes(data))
        self._held_bytes += len(data)
        if self._held_bytes > JOINED_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._held:
            held, self._held, self._held_bytes = self._held, [], 0
            self._transport.write(b"".join(held) if len(held) > 1 else held[0])

    def close(self) -> None:
        self.flush()
        self._transport.close()
