"""
A lock that the kernel frees when its holder dies, with a note of who holds it.

flock(2) on a file: no stale locks after SIGKILL, nothing to clean up. The
file's content is JSON about the holder, for the sentence that refuses the next.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nodescope.keep.disk import FILE_MODE, leads_to


class FolderLock:
    """Held from `take` until `release`, or until the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self, holder: Mapping[str, Any]) -> bool:
        """False when another process holds it."""
        # Not open for writing: a held lock must not keep anybody from
        # remounting the file system read-only.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        # On a full disk the lock holds without the note.
        with suppress(OSError):
            self.path.write_text(json.dumps(dict(holder)))
        self._descriptor = descriptor
        return True

    def adopt(self, descriptor: object) -> bool:
        """Whether this descriptor, of an earlier program of this process, holds the lock of our path."""
        if not isinstance(descriptor, int):
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not leads_to(self.path, descriptor):
                # The folder was replaced meanwhile.
                os.close(descriptor)
                return False
        except OSError:
            return False
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        return True

    @property
    def descriptor(self) -> int | None:
        """What the next program of this process holds it by."""
        return self._descriptor

    def is_held_here(self) -> bool:
        """Whether we hold it, and the path still leads to the file we hold."""
        return self._descriptor is not None and leads_to(self.path, self._descriptor)

    def release(self) -> None:
        if self._descriptor is not None:
            # It is free whatever close says.
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock now."""
    lock = FolderLock(path)
    try:
        return lock.take({})
    except OSError:
        return True
    finally:
        lock.release()
