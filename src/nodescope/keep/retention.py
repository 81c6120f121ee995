"""
What leaves when there is too much: the oldest files first, rollups last of all.

Three limits: age, total bytes, and free space on the file system. The newest
file always stays. The log is never touched: it is not archived yet.

Where files are copied to an object store, what is not there yet stays beyond
age and bytes. Only a disk that runs full takes it, after all the rest, and
that is said.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nodescope.base.log import Log
from nodescope.base.settings import Settings
from nodescope.keep.copy.copied_files import note_lost, read_copied_files
from nodescope.keep.disk import Disk
from nodescope.keep.folder import MS_PER_DAY, ArchiveFile, DataFolder, remove_files, size_of

log = Log("retention")


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """From the settings."""

    age_seconds: float
    archive_bytes: int
    free_bytes: int
    rollup_age_seconds: float


@dataclass(slots=True)
class Freed:
    """What a pass removed, and what is left."""

    files: int = 0
    bytes: int = 0
    left_bytes: int = 0
    uncopied_files: int = 0
    """Of these, the object store has none."""
    uncopied_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Weighed:
    """A file with its size, sidecar included, and its age."""

    file: ArchiveFile
    size_bytes: int
    end_ms: int


def build_limits(settings: Settings) -> RetentionLimits:
    return RetentionLimits(
        settings.retention_days * 86400,
        settings.retention_bytes,
        settings.retention_free_bytes,
        settings.rollup_days * 86400,
    )


def weigh(file: ArchiveFile) -> Weighed:
    size = size_of(file.path) + size_of(file.sidecar)
    # A fresh file's name has no end; it is at most a rotation away.
    return Weighed(file, size, file.to_ms or file.from_ms)


def read_free_bytes(path: Path) -> int:
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def apply_retention(disk: Disk, folder: DataFolder, limits: RetentionLimits, now_ms: int) -> Freed:
    raw = sorted((weigh(file) for file in folder.files()), key=lambda one: one.end_ms)
    rollups = sorted((weigh(file) for file in folder.rollup.files()), key=lambda one: one.end_ms)
    freed = Freed(left_bytes=sum(one.size_bytes for one in (*raw, *rollups)))
    oldest_ms = now_ms - round(limits.age_seconds * 1000)
    oldest_rollup_ms = now_ms - round(limits.rollup_age_seconds * 1000)
    free_bytes = read_free_bytes(folder.path)
    copied = read_copied_files(folder)
    uncopied: list[Weighed] = []
    for place, one in enumerate([*raw, *rollups]):
        is_raw = place < len(raw)
        is_newest = is_raw and place == len(raw) - 1
        is_old = one.end_ms < (oldest_ms if is_raw else oldest_rollup_ms)
        is_over = freed.left_bytes > limits.archive_bytes
        is_tight = free_bytes + freed.bytes < limits.free_bytes
        if (is_old or is_over or is_tight) and not is_newest:
            if is_raw and copied and not copied.has(folder, one.file):
                uncopied.append(one)
                continue
            reason = "age" if is_old else "bytes" if is_over else "free space"
            log.info("file removed", file=one.file.path.name, reason=reason)
            remove(disk, one, freed)
    for one in uncopied:
        if free_bytes + freed.bytes < limits.free_bytes:
            remove_uncopied(disk, one, freed)
    if freed.uncopied_files:
        note_lost(disk, folder, freed.uncopied_files, freed.uncopied_bytes)
    remove_empty_folders(folder, now_ms - 2 * MS_PER_DAY)
    return freed


def remove_uncopied(disk: Disk, one: Weighed, freed: Freed) -> None:
    log.warning(
        "file removed before it was copied: the disk is almost full",
        file=one.file.path.name,
        bytes=one.size_bytes,
    )
    remove(disk, one, freed)
    freed.uncopied_files += 1
    freed.uncopied_bytes += one.size_bytes


def remove(disk: Disk, one: Weighed, freed: Freed) -> None:
    remove_files(disk, [one.file.path])
    freed.files += 1
    freed.bytes += one.size_bytes
    freed.left_bytes -= one.size_bytes


def remove_empty_folders(folder: DataFolder, before_ms: int) -> None:
    """Partitions of past days with nothing left in them."""
    for partition in [*folder.partitions(), *folder.rollup.partitions()]:
        # It may not be empty, or be made anew meanwhile.
        with suppress(OSError):
            if partition.stat().st_mtime * 1000 < before_ms:
                partition.rmdir()
                partition.parent.rmdir()
