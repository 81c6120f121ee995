"""
Every file of an archive read whole, and compared with its checksum.

Of a data folder: samples with their sidecars, rollups, the log, and what was
set aside before. Of a copy, in a folder or an object store: every object that
a manifest has. Nothing is changed. A file without a checksum is opened, and
reported as not checked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nodescope.base.codec import iterate_records
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.text import clean_text
from nodescope.keep.check.quarantine import read_damage
from nodescope.keep.check.seal import unseal
from nodescope.keep.check.sums import DamagedPiece, FileSum, describe_damage, find_file_damage, locate_flip
from nodescope.keep.copy.manifest import MANIFEST, Listing, parse_manifest
from nodescope.keep.copy.object_store import Digest, ObjectStore
from nodescope.keep.folder import ArchiveFile, DataFolder, size_of
from nodescope.keep.parquet import first_line, open_parquet
from nodescope.keep.rollup import read_rollup_sum
from nodescope.keep.segment import LogSegment, read_segment
from nodescope.keep.sidecar import Head, parse_sidecar

State = Literal["whole", "unchecked", "repairable", "lost"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One file."""

    file: str
    state: State
    """repairable: one bit flipped, and the consolidator turns it back; lost: some of it cannot be had."""
    reason: str = ""
    rows_lost: int = 0
    from_ms: int = 0
    to_ms: int = 0
    """Between these two samples are lost."""


@dataclass(frozen=True, slots=True)
class Work:
    """One file that is to be read, and how many bytes that is."""

    size: int
    judge: Callable[[], Verdict]


# -- a data folder -------------------------------------------------------------------


def list_folder_work(folder: DataFolder) -> list[Work]:
    work = [
        Work(size_of(file.path) + size_of(file.sidecar), lambda file=file: judge_file(folder, file))  # type: ignore[misc]
        for file in [*folder.files(), *folder.rollup.files()]
    ]
    work += [
        Work(size_of(path), lambda path=path: judge_log(folder, path))  # type: ignore[misc]
        for path in folder.segments()
    ]
    return work


def list_set_aside(folder: DataFolder) -> list[Verdict]:
    """What was lost before."""
    return [
        Verdict(note.file, "lost", f"set aside: {note.reason}", note.rows_lost, note.from_ms, note.to_ms)
        for note in read_damage(folder).notes
        if not note.is_repaired
    ]


def judge_file(folder: DataFolder, file: ArchiveFile) -> Verdict:
    name = str(file.path.relative_to(folder.path))
    span = (file.from_ms, file.to_ms or file.from_ms)
    try:
        return judge_rollup(file, name) if file.kind == "minute" else judge_samples(file, name)
    except (ArchiveRefused, OSError) as error:
        return Verdict(name, "lost", clean_text(first_line(error)), 0, *span)


def judge_rollup(file: ArchiveFile, name: str) -> Verdict:
    expected = read_rollup_sum(file.path)
    if expected is None:
        open_parquet(file.path)
        return Verdict(name, "unchecked")
    damage = find_file_damage(file.path, expected)
    return judge_damage(file, name, expected, damage, None) if damage else Verdict(name, "whole")


def judge_samples(file: ArchiveFile, name: str) -> Verdict:
    if not file.sidecar.exists():
        open_parquet(file.path)
        return Verdict(name, "unchecked", "it has no sidecar")
    data = file.sidecar.read_bytes()
    head = parse_sidecar(data).head
    sidecar = unseal(data)
    if head.sum is None:
        open_parquet(file.path)
        return Verdict(name, "unchecked", "it is older than checksums are")
    damage = find_file_damage(file.path, head.sum)
    if damage:
        return judge_damage(file, name, head.sum, damage, head)
    if sidecar.is_repaired:
        return Verdict(name, "repairable", "one bit of its sidecar has flipped")
    return Verdict(name, "whole")


def judge_damage(
    file: ArchiveFile, name: str, expected: FileSum, damage: list[DamagedPiece], head: Head | None
) -> Verdict:
    span = (head.from_ms, head.to_ms) if head else (file.from_ms, file.to_ms or file.from_ms)
    reason = describe_damage(damage, expected)
    if locate_flip(damage):
        return Verdict(name, "repairable", reason, 0, *span)
    return Verdict(name, "lost", reason, count_lost(file, expected, damage, head), *span)


def count_lost(file: ArchiveFile, expected: FileSum, damage: list[DamagedPiece], head: Head | None) -> int:
    """Rows of the damaged row groups; all rows where the footer is damaged, too."""
    groups = [piece.number for piece in damage]
    if max(groups) >= len(expected.pieces) - 1:
        return head.rows if head else 0
    metadata = open_parquet(file.path).metadata
    return sum(metadata.row_group(number).num_rows for number in groups)


def judge_log(folder: DataFolder, path: Path) -> Verdict:
    name = str(path.relative_to(folder.path))
    try:
        segment = read_segment(path)
    except FileNotFoundError:
        return Verdict(name, "whole", "it became Parquet meanwhile")
    except (ArchiveRefused, OSError) as error:
        return Verdict(name, "lost", clean_text(first_line(error)))
    if segment.lost:
        return Verdict(name, "lost", f"{len(segment.lost)} records: {segment.lost[0]}", 0, *span_of(segment))
    if segment.damage:
        return Verdict(name, "whole", f"its last record is not whole: {segment.damage}")
    flipped = find_flip(path)
    return Verdict(name, "repairable" if flipped else "whole", flipped)


def find_flip(path: Path) -> str:
    """Damage that reading the log corrects by itself."""
    try:
        for _ in iterate_records(path.read_bytes()):
            pass
    except ArchiveTruncated as error:
        return f"{error}; it is corrected on reading"
    return ""


def span_of(segment: LogSegment) -> tuple[int, int]:
    frames = segment.frames
    return (frames[0].at_ns // 1_000_000, frames[-1].at_ns // 1_000_000) if frames else (0, 0)


# -- a copy --------------------------------------------------------------------------


def list_store_work(store: ObjectStore) -> list[Work]:
    """Manifests are read at once; a damaged one is a verdict of its own."""
    keys = [one.key for one in store.list()]
    if not keys:
        store.check_bucket()
    work: list[Work] = []
    for key in sorted(key for key in keys if key.rpartition("/")[2] == MANIFEST):
        work += list_partition_work(store, key)
    return work


def list_partition_work(store: ObjectStore, key: str) -> Iterator[Work]:
    partition = key.rpartition("/")[0]
    try:
        listed = parse_manifest(store.read(key) or b"").files.values()
    except (ArchiveRefused, OSError) as error:
        verdict = Verdict(key, "lost", clean_text(first_line(error)))
        yield Work(0, lambda: verdict)
        return
    for one in listed:
        yield Work(
            one.size + one.sidecar_size,
            lambda one=one: judge_object(store, partition, one),  # type: ignore[misc]
        )


def judge_object(store: ObjectStore, partition: str, listing: Listing) -> Verdict:
    name = f"{partition}/{listing.name}"
    wanted = {
        listing.name: Digest(listing.size, listing.sha256),
        listing.sidecar: Digest(listing.sidecar_size, listing.sidecar_sha256),
    }
    for key, digest in wanted.items():
        try:
            reason = "" if store.digest(f"{partition}/{key}") == digest else "has another checksum"
        except OSError as error:
            reason = first_line(error)
        if reason:
            span = (listing.from_ms, listing.to_ms)
            return Verdict(name, "lost", clean_text(f"{key}: {reason}"), listing.rows, *span)
    return Verdict(name, "whole")


def is_copy(path: Path) -> bool:
    """A folder that copies were made to has manifests; a data folder has none."""
    return any(path.glob(f"dt=*/identifier=*/{MANIFEST}"))
