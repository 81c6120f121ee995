"""
Unpacked frames: in memory as long as they are few, then in files without a name.

The files are in the data folder, whose disk has room for a log that is not
packed. They are gone with the process, whatever ends it.
"""

import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nodescope.base.codec import Payload

# Five minutes of 100 containers are 15 MiB. Beside a slab of columns it is within the 64 MiB of a
# converter.
MEMORY_BYTES = 32 * 2**20
# Mapped at once: a descriptor each.
FILE_BYTES = 64 * 2**20


@dataclass(slots=True)
class Spool:
    """Of one segment."""

    folder: Path
    memory_bytes: int = MEMORY_BYTES
    file_bytes: int = FILE_BYTES
    _held_bytes: int = 0
    _file: "SpoolFile | None" = None

    def keep(self, payload: bytes) -> Payload:
        """The same bytes, from wherever they are held now."""
        self._held_bytes += len(payload)
        if self._held_bytes <= self.memory_bytes:
            return payload
        if self._file is None or not self._file.has_room(len(payload)):
            self.close()
            self._file = SpoolFile(self.folder, max(self.file_bytes, len(payload)))
        return self._file.append(payload)

    def close(self) -> None:
        """What is held stays readable."""
        if self._file:
            self._file.close()


class SpoolFile:
    """Written through its descriptor, so that a full disk is an error; read through a map that outlives it."""

    def __init__(self, folder: Path, size: int) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by Spool.close
        os.truncate(self._file.fileno(), size)
        self._view = memoryview(mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ))
        self._end = 0

    def close(self) -> None:
        self._file.close()

    def has_room(self, size: int) -> bool:
        return self._end + size <= len(self._view)

    def append(self, payload: bytes) -> memoryview:
        start, self._end = self._end, self._end + len(payload)
        left = memoryview(payload)
        while left:
            written = os.pwrite(self._file.fileno(), left, self._end - len(left))
            left = left[written:]
        return self._view[start : self._end]
