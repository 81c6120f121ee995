"""
Every change the archive makes to the disk, in one place, so that it can be watched.

A file gets its name only when its content is whole and synced: written under
a name that ends in `.tmp`, synced, renamed, folder synced. The watcher hears
of every operation before it is done; tests record them, replay any prefix,
or raise from it to stop the work there.
"""

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp"
# A ledger of ten thousand files is one MiB; longer text is cut, and so is none of ours.
JSON_BYTES = 16 * 2**20
# What runs on a node is not for every user of it. A group may be let in: a
# folder with the set-group-id bit hands its group on.
FILE_MODE = 0o640
FOLDER_MODE = 0o750
# A write that comes late must fail: the number of a closed file is soon another file's.
CLOSED_DESCRIPTOR = -1


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of the disk: create, write, sync, truncate, rename, remove, folder, sync_folder."""

    kind: str
    path: Path
    data: bytes = b""
    target: Path | None = None
    size: int = 0


Watcher = Callable[[Operation], None]


def watch_nothing(operation: Operation) -> None:
    del operation


def read_json(path: Path) -> dict[str, Any]:
    """A small file of ours, as `write_whole` leaves it; empty where there is none that can be read."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(JSON_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


# macOS has no fdatasync; fsync does the same and a little more.
sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the file that is open."""
    try:
        there, here = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def may_be_there(path: Path) -> bool:
    """False only where it is known that there is no such file."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def make_folders(path: Path) -> None:
    """Every folder on the way that is not there; pathlib would give the mode to the last only."""
    missing = [one for one in (path, *path.parents) if not one.is_dir()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)


class Output(io.RawIOBase):
    """A file that is written front to back; pyarrow takes it as a file object, too."""

    def __init__(self, path: Path, descriptor: int, watcher: Watcher) -> None:
        self.path = path
        self._descriptor = descriptor
        self._watcher = watcher
        self._size = 0

    def write(self, data: Any) -> int:
        """All of these bytes or an OSError; a short write is written on."""
        view = memoryview(data).cast("B")
        if self._watcher is not watch_nothing:
            self._watcher(Operation("write", self.path, bytes(view)))
        whole = len(view)
        while view:
            written = os.write(self._descriptor, view)
            view = view[written:]
        self._size += whole
        return whole

    def tell(self) -> int:
        return self._size

    def cut_to(self, size: int) -> None:
        """Takes back what a failed write left behind the given size."""
        self._watcher(Operation("truncate", self.path, size=size))
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)
        self._size = size

    def sync(self) -> None:
        self._watcher(Operation("sync", self.path))
        sync_data(self._descriptor)

    def is_at_its_path(self) -> bool:
        """False when somebody removed or replaced the file, or its folder, under us."""
        return leads_to(self.path, self._descriptor)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            super().close()
            descriptor, self._descriptor = self._descriptor, CLOSED_DESCRIPTOR
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Disk:
    """The operations; one instance a process."""

    watcher: Watcher = field(default=watch_nothing)

    def create(self, path: Path) -> Output:
        self.watcher(Operation("create", path))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        return Output(path, descriptor, self.watcher)

    def rename(self, path: Path, target: Path) -> None:
        self.watcher(Operation("rename", path, target=target))
        os.rename(path, target)

    def remove(self, path: Path) -> None:
        """Gone already is as good."""
        self.watcher(Operation("remove", path))
        path.unlink(missing_ok=True)

    def make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self.watcher(Operation("folder", path))
            make_folders(path)

    def sync_folder(self, path: Path) -> None:
        """A rename is safe from a power cut only when its folder is on disk."""
        self.watcher(Operation("sync_folder", path))
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def removing_half(self, temporary: Path) -> Iterator[None]:
        """What could not be written whole takes no room: on a full disk that is what others wait for."""
        try:
            yield
        except OSError:
            with suppress(OSError):
                self.remove(temporary)
            raise

    def write_whole(self, path: Path, data: bytes) -> None:
        """A small file, there with its whole content or not at all."""
        temporary = path.with_name(path.name + TEMPORARY)
        with self.removing_half(temporary), self.create(temporary) as output:
            output.write(data)
            output.sync()
        self.rename(temporary, path)
        self.sync_folder(path.parent)
