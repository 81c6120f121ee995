"""
What leaves when there is too much: the oldest files first, rollups last of all.

Three limits: age, total bytes, and free space on the file system. The newest
file always stays. The log is never touched: it is not archived yet.

An age is counted against the archive's own time (archive_clock.py), which a
step of the wall clock does not move. A file or folder that cannot be removed
is named, and does not keep the others.

Where files are copied to an object store, what is not there yet stays beyond
age and bytes. Only a disk that runs full takes it, after all the rest, and
that is said.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.base.log import Log
from nodescope.base.settings import Settings
from nodescope.keep.archive_clock import ArchiveTime, end_of_step, true_end_ms
from nodescope.keep.copy.copied_files import CopiedFiles, note_lost, read_copied_files
from nodescope.keep.disk import Disk
from nodescope.keep.folder import (
    DAMAGED,
    MS_PER_DAY,
    ArchiveFile,
    DataFolder,
    is_file,
    size_of,
    written_ns,
)

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
    aged: int = 0
    """Of these, removed for their age."""
    uncopied_files: int = 0
    """Of these, the object store has none."""
    uncopied_bytes: int = 0

    def count(self, size_bytes: int) -> None:
        self.files += 1
        self.bytes += size_bytes
        self.left_bytes -= size_bytes


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


def apply_retention(
    disk: Disk,
    folder: DataFolder,
    limits: RetentionLimits,
    time: ArchiveTime | int,
    copied: CopiedFiles | None = None,
) -> Freed:
    """
    With a bare number of milliseconds, that is the time, and nothing is known of clocks.

    Who copies files hands in which; others look at the note that it leaves.
    """
    time = ArchiveTime(time) if isinstance(time, int) else time
    oldest_ms = time.now_ms - round(limits.age_seconds * 1000)
    oldest_rollup_ms = time.now_ms - round(limits.rollup_age_seconds * 1000)
    raw = weigh_all(folder, folder.files(), oldest_ms, time)
    rollups = weigh_all(folder, folder.rollup.files(), oldest_rollup_ms, time)
    aside = list_set_aside(folder)
    freed = Freed(left_bytes=sum(one.size_bytes for one in (*raw, *rollups)) + sum(map(size_of, aside)))
    free_bytes = read_free_bytes(folder.path)
    remove_set_aside(disk, aside, limits, oldest_ms, free_bytes, freed)
    copied = copied or read_copied_files(folder)
    uncopied: list[Weighed] = []
    most_for_age = max(1, round(time.share * (len(raw) + len(rollups))))
    for place, one in enumerate([*raw, *rollups]):
        is_raw = place < len(raw)
        is_newest = is_raw and place == len(raw) - 1
        is_old = one.end_ms < (oldest_ms if is_raw else oldest_rollup_ms) and freed.aged < most_for_age
        is_over = freed.left_bytes > limits.archive_bytes
        is_tight = free_bytes + freed.bytes < limits.free_bytes
        if (is_old or is_over or is_tight) and not is_newest:
            if is_raw and copied and not copied.has(folder, one.file):
                uncopied.append(one)
                continue
            reason = "age" if is_old else "bytes" if is_over else "free space"
            log.info("file removed", file=one.file.path.name, reason=reason)
            remove(disk, one, freed)
            freed.aged += is_old
    for one in uncopied:
        if free_bytes + freed.bytes < limits.free_bytes:
            remove_uncopied(disk, one, freed)
    if freed.uncopied_files:
        note_lost(disk, folder, freed.uncopied_files, freed.uncopied_bytes)
    if freed.aged < most_for_age:
        end_of_step(disk, folder)
    remove_empty_folders(folder, time.now_ms - 2 * MS_PER_DAY)
    return freed


def weigh_all(
    folder: DataFolder, files: Iterable[ArchiveFile], oldest_ms: int, time: ArchiveTime
) -> list[Weighed]:
    """Oldest first. One that is too old by its name is asked for its true age."""
    weighed = []
    for one in map(weigh, files):
        is_old = one.end_ms < oldest_ms
        end_ms = true_end_ms(folder, one.file, one.end_ms, time) if is_old else one.end_ms
        weighed.append(replace(one, end_ms=end_ms))
    return sorted(weighed, key=lambda one: one.end_ms)


def list_set_aside(folder: DataFolder) -> list[Path]:
    """Damaged files and logs, oldest first: kept for a person to look at, as long as samples are."""
    found = [
        path
        for path in (*folder.damaged.rglob("*"), *folder.wal.glob(f"*{DAMAGED}"))
        if is_file(path) and path != folder.damaged / "list.json"
    ]
    return sorted(found, key=written_ns)


def remove_set_aside(
    disk: Disk, aside: Iterable[Path], limits: RetentionLimits, oldest_ms: int, free_bytes: int, freed: Freed
) -> None:
    """They are the first to go."""
    for path in aside:
        size = size_of(path)
        is_old = written_ns(path) // 1_000_000 < oldest_ms
        is_tight = free_bytes + freed.bytes < limits.free_bytes
        if is_old or is_tight or freed.left_bytes > limits.archive_bytes:
            log.info("damaged file removed", file=path.name)
            if remove_paths(disk, [path]):
                freed.count(size)


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
    if remove_paths(disk, [one.file.path, one.file.sidecar]):
        freed.count(one.size_bytes)


def remove_paths(disk: Disk, paths: Sequence[Path]) -> bool:
    """Whether they have gone; Parquet first: a sidecar alone is nothing to any reader."""
    try:
        for path in paths:
            disk.remove(path)
    except OSError as error:
        log.warning("file not removed", file=paths[0].name, reason=str(error.strerror))
        return False
    return True


def remove_empty_folders(folder: DataFolder, before_ms: int) -> None:
    """Partitions of past days with nothing left in them."""
    for partition in [*folder.partitions(), *folder.rollup.partitions()]:
        # It may not be empty, or be made anew meanwhile.
        with suppress(OSError):
            if partition.stat().st_mtime * 1000 < before_ms:
                partition.rmdir()
                partition.parent.rmdir()
