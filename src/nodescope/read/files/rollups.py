"""
Which rollups stand for which files, so that a month is read without its samples.

A rollup says which segments of the log are in it. A file whose segments are
all in rollups need not be read for a question with buckets of whole minutes; a
rollup that shares segments with a file that is read must not be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.folder import DataFolder
from nodescope.keep.parquet import first_line, open_parquet, read_footer
from nodescope.keep.rollup import MINUTE_MS, check_rollup, covers
from nodescope.read.files.listing import FileEntry

Segments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rollup:
    """One file of one-minute summaries."""

    path: Path
    from_ms: int
    to_ms: int
    segments: Segments
    node: str
    mtime_ns: int = 0


def find_rollups(
    paths: Sequence[Path], from_ms: int, to_ms: int, refused: list[str] | None = None
) -> list[Rollup]:
    """Those that can be read; the others are named in `refused`."""
    found = []
    for path in paths:
        for file in DataFolder(path).rollup.files():
            end_ms = file.to_ms or file.from_ms
            if file.from_ms > to_ms or end_ms + MINUTE_MS < from_ms:
                continue
            try:
                mtime_ns = file.path.stat().st_mtime_ns
                segments, node = read_rollup_footer(file.path, mtime_ns)
            except FileNotFoundError:
                continue
            except (ArchiveRefused, OSError) as error:
                # Its samples, if they are still there, are read instead.
                if refused is not None:
                    refused.append(first_line(error))
                continue
            found.append(Rollup(file.path, file.from_ms, end_ms, segments, node, mtime_ns))
    return found


# A year of day-sized files; one entry is a hundred bytes.
@lru_cache(maxsize=4096)
def read_rollup_footer(path: Path, mtime_ns: int) -> tuple[Segments, str]:
    del mtime_ns
    check_rollup(path)
    footer = read_footer(open_parquet(path), path.name) or {}
    return dict(footer.get("segments", {})), str(footer.get("node", ""))


def shares(one: Segments, other: Segments) -> bool:
    return any(
        first <= end and start <= last
        for run, ranges in one.items()
        for first, last in ranges
        for start, end in other.get(run, ())
    )


def reach(entries: Sequence[FileEntry], from_ms: int, to_ms: int) -> tuple[int, int]:
    """
    From the first to the last moment of files that have some of the range.

    Rollups stand for a file only where they have all of it: those of its other hours must be known, too.
    """
    starts, ends = [entry.from_ms for entry in entries], [entry.to_ms for entry in entries]
    return min([from_ms, *starts]), max([to_ms, *ends])


def choose(
    entries: Sequence[FileEntry], rollups: Sequence[Rollup], from_ms: int, to_ms: int
) -> tuple[list[FileEntry], list[Rollup]]:
    """(files to read, rollups to read): every segment of the range once."""
    read = [entry.sidecar.head.segments for entry in uncovered(entries, rollups) if entry.sidecar]
    used = [rollup for rollup in rollups if not any(shares(rollup.segments, one) for one in read)]
    near = [rollup for rollup in used if rollup.from_ms <= to_ms and rollup.to_ms + MINUTE_MS >= from_ms]
    # What only the rejected ones had covered must be read after all.
    return uncovered(entries, used), near


def uncovered(entries: Sequence[FileEntry], rollups: Sequence[Rollup]) -> list[FileEntry]:
    """Files with a segment that is in none of the rollups."""
    segments = [rollup.segments for rollup in rollups]
    return [
        entry
        for entry in entries
        if entry.sidecar is None or not covers(segments, entry.sidecar.head.segments)
    ]
