"""A connection whose answer is not read: what a server holds for it, and whether it was cut off."""

import asyncio
from collections.abc import Callable

from nodescope.serve.connections import UNREAD_BYTES, Connections

# A round trip on loopback, on a machine that is busy.
MOST_SECONDS = 20.0
LOOK_SECONDS = 0.01


class Reader:
    """As a server sees it."""

    def __init__(self, address: str, unread_bytes: int, stalled_seconds: float) -> None:
        self.address = address
        self.unread_bytes = unread_bytes
        self.stalled_seconds = stalled_seconds
        self.in_handshake = False
        self.has_just_begun = False
        self.standing: tuple[int, float] | None = None
        self.is_aborted = False

    def rank(self) -> tuple[int, float] | None:
        return self.standing

    def abort(self) -> None:
        self.is_aborted = True


def hold_unread(connections: Connections) -> Reader:
    """More than all answers may take, by one that has read nothing for a minute."""
    reader = Reader("hostile", UNREAD_BYTES + 1, 60)
    connections.served.enter(reader, reader.address)
    connections.writing.add(reader)
    return reader


async def come_true(look: Callable[[], bool]) -> None:
    for _ in range(int(MOST_SECONDS / LOOK_SECONDS)):
        if look():
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError("not within the time")
