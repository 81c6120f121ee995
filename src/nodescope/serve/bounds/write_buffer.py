"""
A connection that sends an answer's head and body in one system call, and does not wait forever for its reader.

uvicorn writes the head, then the body, then the end: each is a system call and
wakes the client. For an answer of two bytes that is a quarter of the cost.
What the kernel does not take at once stays in our memory until the other side
reads; one that does not read is cut off.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Above this size a copy costs more than a system call.
JOINED_BYTES = 65536
# What is handed on at once. TLS keeps a buffer as long as the longest piece: one record.
PIECE_BYTES = 256 * 1024
TLS_PIECE_BYTES = 16 * 1024
# How often the progress of a reader is looked at, while there is something to read.
WATCH_SECONDS = 0.5
# What a reader must take ...
LEAST_BYTES = 65536
# ... within this time, or all there is.
STALL_SECONDS = 10.0


def ignore(_: bool) -> None:
    """For those who need not know."""


@dataclass(slots=True)
class Listening:
    """Who wants to hear about the reader of a connection."""

    full: Callable[[bool], None] = ignore
    """Whether more than the socket takes is waiting."""
    unread: Callable[[bool], None] = ignore
    """Whether anything is in our memory that was not read."""
    stalled: Callable[[], None] = lambda: None
    """The reader has taken next to nothing for STALL_SECONDS."""


class JoinedTransport:
    """
    Buffers what is written until `flush`, or until the loop's next turn.

    The bytes and their order stay the same; only where they are cut differs.
    It has the methods of a transport that uvicorn uses, and few others. A long
    answer is handed on in pieces, as fast as the socket takes them.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        raw: asyncio.Transport | None = None,
        listening: Listening | None = None,
    ) -> None:
        self._transport = transport
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.get_extra_info = transport.get_extra_info
        self._loop = loop
        # Below TLS: it has a buffer of its own.
        self._raw = raw if raw is not None else transport
        self._piece_bytes = PIECE_BYTES if self._raw is transport else TLS_PIECE_BYTES
        self._listening = listening or Listening()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._pending: deque[memoryview[Any]] = deque()
        self._pending_bytes = 0
        self._is_full = False
        self._is_closed = False
        self._is_lost = False
        self._said_full = False
        self._watch: asyncio.TimerHandle | None = None
        self._taken_bytes = 0
        self._read_bytes = 0
        self._read_at = 0.0

    @property
    def unread_bytes(self) -> int:
        """What was written and is still in our memory."""
        below = self._raw.get_write_buffer_size() if self._raw is not self._transport else 0
        return self._held_bytes + self._pending_bytes + self._transport.get_write_buffer_size() + below

    @property
    def stalled_seconds(self) -> float:
        """For how long the reader has taken nothing worth mentioning; 0 where there is nothing to take."""
        if self._watch is None:
            return 0.0
        self._note_progress()
        return self._loop.time() - self._read_at

    def _note_progress(self) -> None:
        read = self._taken_bytes - self.unread_bytes
        if read - self._read_bytes >= LEAST_BYTES:
            self._read_bytes, self._read_at = read, self._loop.time()

    def is_closing(self) -> bool:
        return self._is_closed or self._is_lost or self._transport.is_closing()

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        if not data or self._is_lost:
            return
        if not self._held:
            # A part of a longer answer must not wait for the rest.
            self._loop.call_soon(self.flush)
        self._held.append(bytes(data))
        self._held_bytes += len(data)
        if self._held_bytes > JOINED_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._held:
            return
        held, self._held = self._held, []
        # A body that is larger alone is not copied to join its head.
        parts = held if self._held_bytes > JOINED_BYTES else [b"".join(held) if len(held) > 1 else held[0]]
        self._pending.extend(memoryview(part) for part in parts)
        self._pending_bytes += self._held_bytes
        self._taken_bytes += self._held_bytes
        self._held_bytes = 0
        self._hand_on()

    def close(self) -> None:
        self.flush()
        self._is_closed = True
        if not self._pending:
            self._transport.close()

    def hear_pause(self, paused: bool) -> None:
        """The socket takes no more, or some more again."""
        self._is_full = paused
        if not paused:
            self._hand_on()

    def _hand_on(self) -> None:
        while self._pending and not self._is_full and not self._transport.is_closing():
            first = self._pending.popleft()
            if len(first) > self._piece_bytes:
                self._pending.appendleft(first[self._piece_bytes :])
                first = first[: self._piece_bytes]
            self._pending_bytes -= len(first)
            self._transport.write(first)
        if self._is_closed and not self._pending:
            self._transport.close()
        self._say_full(bool(self._pending) or self._is_full)
        if self._watch is None and self.unread_bytes:
            self._begin_watch()

    def _say_full(self, full: bool) -> None:
        if full != self._said_full:
            self._said_full = full
            self._listening.full(full)

    def _begin_watch(self) -> None:
        self._read_bytes = self._taken_bytes - self.unread_bytes
        self._read_at = self._loop.time()
        self._watch = self._loop.call_later(WATCH_SECONDS, self._look)
        self._listening.unread(True)

    def _look(self) -> None:
        if not self.unread_bytes:
            self._end_watch()
            return
        if self.stalled_seconds >= STALL_SECONDS:
            self._listening.stalled()
            return
        self._watch = self._loop.call_later(WATCH_SECONDS, self._look)

    def detach(self) -> None:
        """The connection is lost: what nobody can read is forgotten."""
        self._is_lost = True
        self._end_watch()
        self._held.clear()
        self._pending.clear()
        self._held_bytes = self._pending_bytes = 0
        self._listening = Listening()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
            self._listening.unread(False)
