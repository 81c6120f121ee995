"""
TLS on a connection, at a tenth of the memory that asyncio's own takes.

asyncio gives every TLS connection a buffer of 256 KiB before its first byte. A
record has at most 16 KiB, and requests here are smaller still.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

# A record's length, and the most that one read can give.
RECORD_BYTES = 16384
# Its type, two bytes of version, two of length.
RECORD_HEAD_BYTES = 5
HANDSHAKE_RECORD = 22
# What is read from the socket at once: requests are smaller, and every connection has such a buffer.
READ_BYTES = 8192
# A round trip or two; a client that needs longer is broken, or hostile.
HANDSHAKE_SECONDS = 5
# How long the other side may take to read what is left, and to say goodbye.
GOODBYE_SECONDS = 15


class SmallTls(SSLProtocol):
    """asyncio's own TLS with a small buffer; tells the protocol inside when the socket is full, and its owner when it ends."""

    max_size = READ_BYTES

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        inside: Any,
        context: ssl.SSLContext,
        hear_pause: Callable[[bool], None],
        hear_end: Callable[[BaseException | None], None],
    ) -> None:
        super().__init__(
            loop,
            inside,
            context,
            None,  # type: ignore[arg-type] # nobody waits for the handshake
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )
        self._hear_pause = hear_pause
        self._hear_end = hear_end

    def pause_writing(self) -> None:
        super().pause_writing()
        self._hear_pause(True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._hear_pause(False)

    def connection_lost(self, exc: BaseException | None) -> None:
        # While there is still a socket.
        self._hear_end(exc)
        super().connection_lost(exc)
        # They know the protocol inside, which knows this one: a circle.
        self._hear_pause, self._hear_end = forget_pause, forget_end


def forget_pause(paused: bool) -> None:
    """After the end."""
    del paused


def forget_end(error: BaseException | None) -> None:
    """After the end."""
    del error


def count_missing(head: bytes, available: int) -> int | None:
    """
    Bytes that a client's first record still lacks; None where it is no TLS handshake.

    An SSL object takes tens of KiB: none is made before the whole hello is there.
    """
    if len(head) < RECORD_HEAD_BYTES:
        return RECORD_HEAD_BYTES - len(head) if head[:1] in (b"", b"\x16") else None
    length = int.from_bytes(head[3:5], "big")
    if head[0] != HANDSHAKE_RECORD or head[1] != 3 or not 0 < length <= RECORD_BYTES:
        return None
    return max(0, RECORD_HEAD_BYTES + length - available)
