"""
The C library's allocator: told to keep less, and to give back what is free.

Elsewhere than with glibc (musl, macOS) there is nothing to tell, and these do nothing.
"""

import ctypes
import functools
from collections.abc import Callable

# mallopt(3), malloc.h.
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
# A block of 500 containers is larger. Without this glibc raises the threshold to the largest
# block it has seen freed, and what lies below is not given back as long as anything above it lives.
MAPPED_BYTES = 128 * 1024
# One arena more than the sampler needs: by default there are eight a core, each with its own leftovers.
ARENAS = 2


@functools.cache
def find_libc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None


def settle_allocator() -> None:
    """At the start of a long-lived process, before its threads."""
    libc = find_libc()
    if libc:
        libc.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
        libc.mallopt(M_ARENA_MAX, ARENAS)


def build_trim() -> Callable[[], None]:
    """What gives free memory back to the kernel; some ms on a large heap."""
    libc = find_libc()

    def trim() -> None:
        if libc:
            libc.malloc_trim(0)

    return trim
