"""
inotify on cgroup folders: a container is seen in the first second of its life.

A thin face on three system calls through ctypes; the packages that offer the
same cost 4 MiB of resident memory. Elsewhere than on Linux AttributeError says
that there is no inotify.
"""

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

from nodescope.collect.files.fit import fit

IN_MODIFY = 0x0002
IN_CREATE = 0x0100
IN_DELETE = 0x0200
IN_ONLYDIR = 0x01000000
IN_IGNORED = 0x8000
IN_Q_OVERFLOW = 0x4000
IN_NONBLOCK = 0o4000
IN_CLOEXEC = 0o2000000

# wd, mask, cookie, length of the name behind it; see inotify(7).
_HEADER = struct.Struct("iIII")


Meaning = TypeVar("Meaning")


class CgroupWatch(Generic[Meaning]):
    """One inotify instance, and what each of its watches stands for."""

    def __init__(self) -> None:
        self._meanings: dict[int, Meaning] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._check(self._libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC))
        # Told when there is nothing more to wait for: no wake-ups to look whether.
        self._bell, self._button = os.pipe()
        # Not select(): it refuses descriptors of 1024 and above.
        self._poll = select.poll()
        self._poll.register(self.descriptor, select.POLLIN)
        self._poll.register(self._bell, select.POLLIN)

    @staticmethod
    def _check(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def add(self, path: str, mask: int, meaning: Meaning) -> int:
        """A watch number; OSError when the limit of watches is reached or the path is gone."""
        number = self._check(
            self._libc.inotify_add_watch(self.descriptor, os.fsencode(path), ctypes.c_uint32(mask))
        )
        self._meanings[number] = meaning
        return number

    def remove(self, number: int) -> None:
        self._meanings.pop(number, None)
        self._meanings = fit(self._meanings)
        self._libc.inotify_rm_watch(self.descriptor, number)

    def wait(self) -> bool:
        """Sleep until something happened; False when there is nothing more to wait for."""
        return self._bell not in (descriptor for descriptor, _ in self._poll.poll())

    def wake(self) -> None:
        """From another thread: end the waiting."""
        os.write(self._button, b".")

    def read(self) -> Iterator[tuple[Meaning | None, int, str]]:
        """(what is watched, mask, name inside the folder) of what happened since, up to 64 KiB of it."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return
        offset = 0
        while offset + _HEADER.size <= len(data):
            number, mask, _, length = _HEADER.unpack_from(data, offset)
            name = data[offset + _HEADER.size : offset + _HEADER.size + length].rstrip(b"\0")
            offset += _HEADER.size + length
            known = None if mask & IN_IGNORED else self._meanings.get(number)
            yield known, mask, os.fsdecode(name)

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._bell)
        os.close(self._button)
