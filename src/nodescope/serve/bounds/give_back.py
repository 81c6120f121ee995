"""
Free memory given back to the machine when a crowd has left.

The C library keeps what was freed between pieces still in use: after a
thousand TLS handshakes that is some 15 MiB, which nothing else would return.
"""

import asyncio

from nodescope.serve.allocator import give_back_memory

# Ended connections after which it is worth a look, and the time between two looks.
ENDED = 32
PAUSE_SECONDS = 2.0


class MemoryReturn:
    """Counts connections that ended; gives memory back after many."""

    def __init__(self) -> None:
        self._ended = 0
        self._timer: asyncio.TimerHandle | None = None

    def note_end(self) -> None:
        self._ended += 1
        if self._ended >= ENDED and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._give_back)

    def _give_back(self) -> None:
        self._timer, self._ended = None, 0
        give_back_memory()
