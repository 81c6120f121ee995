"""
The allocators of the C library and of Python: told to keep less, and to give back what is free.

glibc has the large blocks, Python's own heap the objects of up to 512 bytes (`native/arenas.c`). Elsewhere (musl,
macOS, without our extension, a version of Python that it does not know) these do nothing.
"""

import ctypes
import functools
from importlib import import_module
from typing import Protocol, cast

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


class PythonHeap(Protocol):
    """Of our extension."""

    def watch_arenas(self) -> bool: ...

    def give_back_pools(self) -> int: ...


@functools.cache
def find_heap() -> PythonHeap | None:
    try:
        module = import_module("nodescope._native")
    except ImportError:
        return None
    # A library left over from an older version has no such functions.
    return cast("PythonHeap", module) if hasattr(module, "give_back_pools") else None


def settle_allocator() -> None:
    """At the start of a long-lived process, before its threads."""
    share_one_arena()
    heap = find_heap()
    if heap:
        heap.watch_arenas()
    libc = find_libc()
    if libc:
        libc.mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def share_one_arena() -> None:
    """For who reads whole days: large arrays that come and go are not mapped anew each time."""
    libc = find_libc()
    if libc:
        libc.mallopt(M_ARENA_MAX, ARENAS)


def give_back_memory() -> None:
    """Free memory goes back to the kernel; some ms on a large heap. Python's heap: if it was settled at the start."""
    heap = find_heap()
    if heap:
        heap.give_back_pools()
    libc = find_libc()
    if libc:
        libc.malloc_trim(0)
