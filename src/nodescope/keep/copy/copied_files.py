"""
What was copied to the object store, and how far the copy is behind: two small files.

    DATA/copy/ledger.json   which files the store is known to have; read by retention
    DATA/copy/status.json   figures of the last pass: the agent publishes them

The store's own manifests decide; ledger.json is what this node knows of them
without asking. It is written after the store has answered, so a file
that is missing here may be there, and is found there before it is sent again.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nodescope.keep.disk import Disk, may_be_there, read_json
from nodescope.keep.folder import ArchiveFile, DataFolder

VERSION = 1


def copied_files_path(folder: DataFolder) -> Path:
    return folder.path / "copy" / "ledger.json"


def status_path(folder: DataFolder) -> Path:
    return folder.path / "copy" / "status.json"


@dataclass(slots=True)
class CopiedFiles:
    """Files that the store has, by their path within the data folder, with their size."""

    url: str
    files: dict[str, int] = field(default_factory=dict)

    def has(self, folder: DataFolder, file: ArchiveFile) -> bool:
        try:
            return self.files.get(name_of(folder, file)) == file.path.stat().st_size
        except OSError:
            return False

    def forget_missing(self, folder: DataFolder) -> None:
        """Files that merging or retention has removed here; the store keeps its own."""
        self.files = {name: size for name, size in self.files.items() if (folder.path / name).exists()}


def name_of(folder: DataFolder, file: ArchiveFile) -> str:
    return str(file.path.relative_to(folder.path))


def read_copied_files(folder: DataFolder) -> CopiedFiles | None:
    """None where nothing is copied: then retention need not wait. A note that cannot be read lists no file."""
    content = read_json(copied_files_path(folder))
    if content.get("version") != VERSION:
        return CopiedFiles("") if may_be_there(copied_files_path(folder)) else None
    return CopiedFiles(str(content["url"]), {str(name): int(size) for name, size in content["files"].items()})


def write_copied_files(disk: Disk, folder: DataFolder, copied: CopiedFiles) -> None:
    disk.make_folder(copied_files_path(folder).parent)
    content = {"version": VERSION, "url": copied.url, "files": copied.files}
    disk.write_whole(copied_files_path(folder), (json.dumps(content, indent=0) + "\n").encode())


def end_copying(disk: Disk, folder: DataFolder) -> bool:
    """Copying was turned off: retention waits for nothing any more."""
    was_on = copied_files_path(folder).exists()
    disk.remove(copied_files_path(folder))
    disk.remove(status_path(folder))
    return was_on


@dataclass(slots=True)
class Status:
    """How the copy stands. Totals go on from one process to the next."""

    url: str
    oldest_waiting_ms: int | None = None
    """The oldest sample that only this node has."""
    waiting_files: int = 0
    """Finished files that are not in the store."""
    waiting_bytes: int = 0
    copied_files: int = 0
    copied_bytes: int = 0
    failures: int = 0
    last_failure: str = ""
    lost_files: int = 0
    """Removed for want of free space before they were copied."""
    lost_bytes: int = 0
    vanished_files: int = 0
    """Copied, and later no longer found in the store."""


def read_status(folder: DataFolder) -> Status | None:
    content = read_json(status_path(folder))
    known = {name: value for name, value in content.items() if name in Status.__dataclass_fields__}
    return Status(**known) if "url" in known else None


def write_status(disk: Disk, folder: DataFolder, status: Status) -> None:
    disk.make_folder(status_path(folder).parent)
    disk.write_whole(status_path(folder), (json.dumps(asdict(status)) + "\n").encode())


def note_lost(disk: Disk, folder: DataFolder, files: int, size_bytes: int) -> None:
    """Retention had to remove files that were not copied yet."""
    status = read_status(folder)
    if status:
        status.lost_files += files
        status.lost_bytes += size_bytes
        write_status(disk, folder, status)
