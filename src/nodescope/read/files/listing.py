"""
The listing of archive files: Parquet with sidecars under some paths, without what a merge replaced.

Rows are never read. A file that cannot be read is named with its reason, and
the others are served. Files without a sidecar of ours (fgm's own, or one that
was lost) are opened for their footer.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.base.errors import ArchiveDamaged, ArchiveRefused, ArchiveTruncated, NodescopeError
from nodescope.keep.check.sums import check_file
from nodescope.keep.disk import read_json
from nodescope.keep.folder import NOT_DATA, PARQUET, SIDECAR, DataFolder
from nodescope.keep.sidecar import OpenSidecar, SidecarStory, Ticks, read_sidecar

if TYPE_CHECKING:
    # Arrow is not needed to list a folder.
    from nodescope.read.files.remote_parquet import RemoteFile

# Two magic words and the length of the footer.
PARQUET_LEAST_BYTES = 12
# A node's files of a day are in a folder that is called so and its identifier.
PARTITION = "identifier="


@dataclass(slots=True)
class FileEntry:
    """One Parquet file that is served."""

    path: Path
    from_ms: int
    to_ms: int
    rows: int
    size_bytes: int
    sidecar: OpenSidecar | None
    """None: not written by us, or its sidecar was lost."""
    mtime_ns: int = 0
    remote: "RemoteFile | None" = None
    """Where the rows are read when they lie in an object store."""
    named: str = ""
    """Without a sidecar: the node by the file's own column, its folder, or session.json."""

    @property
    def node(self) -> str:
        """Empty where nothing tells."""
        return self.sidecar.head.node if self.sidecar else self.named

    @property
    def is_local(self) -> bool:
        """Written by us, and on this machine."""
        return self.sidecar is not None and self.remote is None

    def story(self) -> SidecarStory | None:
        """Events and outcomes; parsed once."""
        return self.sidecar.story if self.sidecar else None

    def ticks(self) -> Ticks | None:
        return self.sidecar.ticks if self.sidecar else None

    def find_damage(self) -> str:
        """Why its rows must not be read; empty where they may. Its bytes are read once per version of the file."""
        expected = self.sidecar.head.sum if self.sidecar else None
        if self.remote:
            return ""
        try:
            if expected:
                check_file(self.path, expected)
            status = self.path.stat()
            return find_excess(self.path, status.st_size, status.st_mtime_ns)
        except (ArchiveRefused, OSError) as error:
            return str(error)


@lru_cache(maxsize=4096)
def find_excess(path: Path, size_bytes: int, mtime_ns: int) -> str:
    """Whether its footer announces more than a file of this size can hold; by Arrow, for DuckDB does not ask."""
    # Arrow is not needed to list a folder.
    from nodescope.read.files.row_groups import read_row_groups  # noqa: PLC0415

    try:
        read_row_groups(path, size_bytes, mtime_ns)
    except ArchiveRefused as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file or folder that is not served, and why."""

    path: Path
    reason: str


@dataclass(slots=True)
class FileListing:
    """What there is under some paths at one moment."""

    opened: dict[Path, FileEntry] = field(default_factory=dict)
    """In the order of the folders; with the files that another one replaces."""
    refusals: list[Refusal] = field(default_factory=list)

    def add(self, paths: Iterable[Path], open_file: Callable[[Path], FileEntry]) -> None:
        for path in paths:
            try:
                self.opened[path] = open_file(path)
            except FileNotFoundError:
                # Merged away between listing and opening; its rows are in the output.
                continue
            except (NodescopeError, OSError) as error:
                self.refusals.append(Refusal(path, str(error)))

    def served(self) -> list[FileEntry]:
        return drop_replaced(self.opened.values())


def list_files(roots: Iterable[Path], known: Mapping[Path, FileEntry]) -> FileListing:
    """Opens what is new; an entry that is known already is taken over."""
    listing = FileListing()

    def note(error: OSError) -> None:
        reason = f"{error.filename}: {error.strerror}"
        listing.refusals.append(Refusal(Path(error.filename), reason))

    for root in roots:
        listing.add(find_parquet(root, note), lambda path: known.get(path) or open_entry(path))
    return listing


def drop_replaced(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """A merged file names the files it was made of; they stay for a while, and are not served."""
    entries = list(entries)
    replaced = {
        entry.path.with_name(name)
        for entry in entries
        if entry.sidecar
        for name in entry.sidecar.head.replaces
    }
    return [entry for entry in entries if entry.path not in replaced]


def find_parquet(path: Path, note: Callable[[OSError], None]) -> Iterator[Path]:
    """
    Data files under a path: a folder of ours, any folder, or one file. Rollups are not data.

    What may not be looked at is noted: a folder that cannot be read is not an empty one.
    """
    try:
        is_file = path.is_file()
    except OSError as error:
        note(error)
        return
    if is_file:
        yield path
        return

    def note_standing(error: OSError) -> None:
        # Gone since it was listed: merged or removed, as files are.
        if not isinstance(error, FileNotFoundError):
            note(error)

    for folder, folders, names in os.walk(path, onerror=note_standing):
        folders[:] = sorted(name for name in folders if name not in NOT_DATA)
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(PARQUET))


def open_entry(path: Path) -> FileEntry:
    """By its sidecar; where there is none that can be read, by its footer."""
    status = path.stat()
    try:
        sidecar = read_sidecar(path.with_suffix(SIDECAR))
    except (ArchiveDamaged, ArchiveTruncated):
        # Ours, and not readable: units and clocks would be guessed.
        raise
    except (ArchiveRefused, OSError):
        # Lost, or fgm's bincode: the file itself can tell.
        return open_foreign(path, status.st_size, status.st_mtime_ns)
    if status.st_size < PARQUET_LEAST_BYTES:
        raise ArchiveRefused(f"{path.name}: too short to be Parquet")
    return make_entry(path, status.st_size, sidecar, status.st_mtime_ns)


def make_entry(path: Path, size_bytes: int, sidecar: OpenSidecar, mtime_ns: int = 0) -> FileEntry:
    head = sidecar.head
    return FileEntry(path, head.from_ms, head.to_ms, head.rows, size_bytes, sidecar, mtime_ns)


def open_foreign(path: Path, size_bytes: int, mtime_ns: int = 0) -> FileEntry:
    """Arrow is loaded only when such a file is met."""
    from nodescope.read.files.other_parquet import read_node, read_span  # noqa: PLC0415

    span = read_span(path)
    named = read_node(path) or name_by_folder(path)
    return FileEntry(path, *span, size_bytes, None, mtime_ns, named=named)


def name_by_folder(path: Path) -> str:
    """By DATA/dt=.../identifier=ID/file: the node that session.json of the data folder has for ID, else ID itself."""
    folder = path.parent.name
    identifier = folder.removeprefix(PARTITION) if folder.startswith(PARTITION) else None
    sessions = (read_json(DataFolder(parent).session) for parent in path.parents[:3])
    named = (one.get("node_name") for one in sessions if identifier in (None, one.get("identifier")))
    return str(next((name for name in named if name), identifier or ""))
