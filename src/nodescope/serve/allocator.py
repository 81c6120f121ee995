"""
The C library's allocator: told to keep less, and to give back what is free.

Elsewhere than with glibc (musl, macOS) there is nothing to tell, and these do nothing.
"""

import ctypes
import functools

# mallopt(3), malloc.h.
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
# A block of 500 containers is larger. Without this glibc raises the threshold to the largest
# block it has seen freed, and what lies below is not given back as long as anything above it lives.
MAPPED_BYTES = 128 * 1024
# By default there are eight a core, each with its own leftovers, and nothing is given back of the end of a
# thread's own. The threads of one interpreter mostly wait for each other anyway. Figures: decision 1126.
ARENAS = 1


@functools.cache
def find_libc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None


def settle_allocator() -> None:
    """At the start of a long-lived process, before its threads."""
    share_one_arena()
    libc = find_libc()
    if libc:
        libc.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def share_one_arena() -> None:
    """For who reads whole days: large arrays that come and go are not mapped anew each time."""
    libc = find_libc()
    if libc:
        libc.mallopt(M_ARENA_MAX, ARENAS)


def give_back_memory() -> None:
    """Free memory goes back to the kernel; some ms on a large heap."""
    libc = find_libc()
    if libc:
        libc.malloc_trim(0)
