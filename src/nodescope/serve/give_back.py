"""
Free memory given back to the machine when a crowd has left.

The C library keeps what was freed between pieces still in use: after a
thousand TLS handshakes that is some 15 MiB, which nothing else would return.
"""

import asyncio
import ctypes

# Ended connections after which it is worth a look, and the time between two looks.
ENDED = 32
PAUSE_SECONDS = 2.0


# The number of glibc's parameter, from malloc.h.
M_ARENA_MAX = -8


def share_one_arena() -> None:
    """
    To be called before there are threads: they get no memory pools of their own.

    glibc makes one for each thread, and returns nothing of the end of such a pool. The
    threads of one interpreter mostly wait for each other anyway.
    """
    call_glibc("mallopt", M_ARENA_MAX, 1)


def give_back_memory() -> None:
    call_glibc("malloc_trim", 0)


def call_glibc(name: str, *arguments: int) -> None:
    """Other C libraries have none of these: they give back by themselves, or cannot."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)


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
