"""
The node's files: the only module that opens them.

A root is `/` on the machine itself, `/host` in a container with the host
mounted there, or a captured fixture node. A fixture may carry answers that a
file cannot give: an errno for a path (`faults.toml` beside it) and the saved
answers of call sources (`calls/NAME.json` inside it).
"""

import errno
import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from nodescope.base.status import OpenFilesStatus
from nodescope.collect.files.native import Native, Pidlist

# A file of the node larger than this is not one we know how to read; /proc
# and cgroup files are some KiB, smaps_rollup of any process is below 1 KiB.
FILE_BYTES = 4 * 2**20
# One descriptor in so many is not for files that are read every few ticks.
RARE_SPARE = 6
# Files that are read twice a minute may have one in so many.
SELDOM_SHARE = 4


class NodeRoot:
    """One node's file tree; paths are relative, such as `proc/stat`."""

    def __init__(
        self, path: Path, faults: Mapping[str, int] | None = None, native: Native | None = None
    ) -> None:
        self.path = path
        self.native = native
        """The native reader, where there is one and it is wanted."""
        self._prefix = "" if str(path) == "/" else str(path)
        self._faults = dict(faults or {})
        self._calls = path / "calls"
        self.is_fixture = (path.parent / "node.toml").exists()

    def full(self, path: str) -> str:
        return f"{self._prefix}/{path}"

    def open(self, path: str) -> int:
        """A descriptor to keep; OSError as the kernel gave it."""
        if self._faults and path in self._faults:
            number = self._faults[path]
            raise OSError(number, os.strerror(number), path)
        return os.open(self.full(path), os.O_RDONLY | os.O_CLOEXEC)

    def read(self, path: str) -> bytes:
        """The whole of a small file."""
        descriptor = self.open(path)
        try:
            return read_whole(descriptor)
        finally:
            os.close(descriptor)

    def read_text(self, path: str) -> str | None:
        """A small file as text, stripped; None when it cannot be had."""
        try:
            return os.fsdecode(self.read(path)).strip()
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.full(path))

    def names(self, path: str) -> list[str]:
        """What a folder holds; OSError when it cannot be listed."""
        return os.listdir(self.full(path))

    def pidlist(self, path: str) -> Pidlist:
        """The pids that a folder such as proc lists, again and again."""
        return Pidlist(self.native, self.full(path))

    def folders(self, path: str, most: int | None = None) -> Iterator[str]:
        """The names of a folder's folders, `most` of them if there are more; nothing when it is gone."""
        try:
            with os.scandir(self.full(path)) as entries:
                # cgroup and proc folders carry d_type, so this costs no stat.
                names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                yield from list(islice(names, most))
        except OSError:
            return

    def may_list(self, path: str) -> bool:
        """False where a folder is there and its permissions keep us out."""
        full = self.full(path)
        return os.access(full, os.R_OK | os.X_OK, effective_ids=True) or not os.path.lexists(full)

    def count_folders(self, path: str) -> int | None:
        """
        How many folders a folder holds, by its number of links; None where that does not tell.

        cgroupfs counts two links and one for each folder inside; overlayfs
        and btrfs always say 1.
        """
        try:
            links = os.stat(self.full(path)).st_nlink
        except OSError:
            return None
        return links - 2 if links >= 2 else None

    def owner(self, path: str) -> int | None:
        """The user whom a file or folder belongs to; None when it is gone."""
        try:
            return os.stat(self.full(path)).st_uid
        except OSError:
            return None

    def made_at_ns(self, path: str) -> int | None:
        """When a folder of cgroupfs was made, which a captured one no longer tells; None then."""
        try:
            return None if self.is_fixture else os.stat(self.full(path)).st_mtime_ns
        except OSError:
            return None

    def inode(self, path: str) -> int | None:
        try:
            return os.stat(self.full(path)).st_ino
        except OSError:
            return None

    def link(self, path: str) -> str | None:
        """Where a link of /proc points, such as net:[4026531840]."""
        try:
            return os.readlink(self.full(path))
        except OSError:
            return None

    def call(self, name: str, ask: Callable[[], Any]) -> Any:
        """The answer of something that is not a file; a fixture replays a saved one."""
        saved = self._calls / f"{name}.json"
        if saved.exists():
            return json.loads(saved.read_bytes())
        if self.is_fixture:
            raise FileNotFoundError(errno.ENOENT, "not captured on this fixture node", f"calls/{name}.json")
        return ask()


def read_whole(descriptor: int) -> bytes:
    """All bytes of a file of the node, bounded."""
    chunks = []
    offset = 0
    while offset < FILE_BYTES:
        chunk = os.pread(descriptor, 65536, offset)
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)


def open_root(path: Path, native: Native | None = None) -> NodeRoot:
    """A root with the faults of a fixture node, if it is one."""
    listed = path.parent / "faults.toml"
    if not listed.exists():
        return NodeRoot(path, native=native)
    written = tomllib.loads(listed.read_text())
    return NodeRoot(path, {key: getattr(errno, value) for key, value in written.items()}, native)


class Descriptors:
    """
    How many descriptors may stay open.

    A fixed set is pinned, first come first served (sources ask in the order
    of their value); the rest is opened and closed at each reading. An LRU
    under a cyclic scan would miss every time. Files that are not read at every
    tick leave a sixth to those that are, and those that are read twice a minute
    three quarters: on a node of 1,000 containers nothing is opened second by second.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: Counter[str] = Counter()
        """Files that stay open, by table."""
        self.reopened: Counter[str] = Counter()
        """Files that are opened and closed at each reading, by table."""

    @property
    def pinned(self) -> int:
        return self.kept.total()

    @property
    def rare_limit(self) -> int:
        """How many may be open when one more that is not read at every tick asks."""
        return self.limit - self.limit // RARE_SPARE

    @property
    def seldom_limit(self) -> int:
        """The same for one that is read twice a minute."""
        return self.limit // SELDOM_SHARE

    def take(self, table: str, *, is_rare: bool = False, is_seldom: bool = False) -> bool:
        """Whether one more file of this table may stay open."""
        limit = self.seldom_limit if is_seldom else self.rare_limit if is_rare else self.limit
        may_stay = self.pinned < limit
        (self.kept if may_stay else self.reopened)[table] += 1
        return may_stay

    def give_back(self, table: str, *, kept: bool = True) -> None:
        """A file is no longer read."""
        (self.kept if kept else self.reopened)[table] -= 1

    def keep(self, table: str, descriptor: int, *, is_rare: bool = False, is_seldom: bool = False) -> int:
        """A descriptor that may stay open, or -1: then it is closed, and its file opened for each reading."""
        if self.take(table, is_rare=is_rare, is_seldom=is_seldom):
            return descriptor
        os.close(descriptor)
        return -1

    def close(self, table: str, descriptor: int) -> None:
        """The counterpart of `keep`."""
        self.give_back(table, kept=descriptor >= 0)
        if descriptor >= 0:
            os.close(descriptor)

    def status(self) -> OpenFilesStatus:
        tables = {name: (self.kept[name], count) for name, count in sorted(self.reopened.items()) if count}
        return OpenFilesStatus(self.limit, self.pinned, sum(self.reopened.values()), tables)
