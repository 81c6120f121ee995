"""
The layout of a data folder, and the names of its files.

    DATA/session.json                 the current run
    DATA/sessions/<run>.json          earlier runs
    DATA/agent.lock                   held by the agent that writes here
    DATA/wal/<run>-<n>.open           the log of the open segment
    DATA/wal/<run>-<n>.log            a closed segment that is not Parquet yet
    DATA/wal/<run>-<n>.damaged        a segment of which something could not be read
    DATA/clock.json                   the time that retention counts by
    DATA/findings.json                what the watcher found, learned and was told
    DATA/wal/converter.lock           held by the process that turns segments into Parquet
    DATA/dt=YYYY-MM-DD/identifier=<id>/metrics-<UTC>.parquet      + .containers
    DATA/dt=.../identifier=.../consolidated-<UTC>-<UTC>.parquet   + .containers
    DATA/rollup/dt=.../identifier=.../minute-<UTC>-<UTC>.parquet  + .sum
    DATA/damaged/...                  files that could not be read, under the same path; list.json names them

<UTC> is YYYYMMDDTHHMMSSZ of the first (and last) sample. `-<n>` before the
suffix is added where a stepped clock made the name taken.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nodescope.keep.disk import Disk

PARQUET = ".parquet"
SIDECAR = ".containers"
# A rollup has no sidecar; this is its checksum.
SUM = ".sum"
OPEN = ".open"
CLOSED = ".log"
# A log of which something could not be read.
DAMAGED = ".damaged"
# Where a store keeps what is on its way in.
STAGING = "_staging"
# Folders of ours without samples, or with samples that are elsewhere too.
NOT_DATA = ("rollup", "wal", "sessions", "copy", "damaged", STAGING)
MS_PER_DAY = 86_400_000
MS_PER_HOUR = 3_600_000

_STAMP = "%Y%m%dT%H%M%SZ"
_FILE = re.compile(r"(metrics|consolidated|minute)-(\d{8}T\d{6}Z)(?:-(\d{8}T\d{6}Z))?(?:-(\d+))?\.parquet")
_SEGMENT = re.compile(r"(.+)-(\d+)\.(?:open|log)")


def render_stamp(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime(_STAMP)


def parse_stamp(text: str) -> int:
    # strptime takes a hundred times as long; a catalog has thousands of names.
    cuts = (text[0:4], text[4:6], text[6:8], text[9:11], text[11:13], text[13:15])
    year, month, day, hour, minute, second = map(int, cuts)
    return round(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() * 1000)


def render_day(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%d")


def clean_identifier(text: str) -> str:
    """A name that is safe as a folder: what is not a letter, digit, dot or dash becomes a dash."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).lstrip(".") or "node"


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One Parquet file by its name; nothing of it was opened."""

    path: Path
    kind: str
    """metrics, consolidated or minute."""
    day: str
    identifier: str
    from_ms: int
    to_ms: int | None
    """None for a fresh file: only a merged file's name has its end."""

    @property
    def sidecar(self) -> Path:
        return companion_of(self.path)


def companion_of(path: Path) -> Path:
    """What lies beside a Parquet file: its sidecar, or the checksum of a rollup."""
    return path.with_suffix(SUM if path.name.startswith("minute-") else SIDECAR)


def parse_file(path: Path) -> ArchiveFile | None:
    """What a path says; None for a file that is not called as ours are."""
    match = _FILE.fullmatch(path.name)
    if not match:
        return None
    kind, first, last, _ = match.groups()
    day = path.parent.parent.name.removeprefix("dt=")
    identifier = path.parent.name.removeprefix("identifier=")
    try:
        return ArchiveFile(
            path, kind, day, identifier, parse_stamp(first), parse_stamp(last) if last else None
        )
    except ValueError:
        return None


class DataFolder:
    """Paths within one data folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session = path / "session.json"
        self.sessions = path / "sessions"
        self.lock = path / "agent.lock"
        self.wal = path / "wal"
        self.converter_lock = self.wal / "converter.lock"
        self.damaged = path / "damaged"

    @property
    def rollup(self) -> "DataFolder":
        """Rollups lie in partitions of the same layout."""
        return DataFolder(self.path / "rollup")

    def partition(self, day: str, identifier: str) -> Path:
        return self.path / f"dt={day}" / f"identifier={identifier}"

    def closed_segments(self) -> list[Path]:
        """Oldest first within a run."""
        return sorted(filter(is_file, self.wal.glob(f"*{CLOSED}")), key=written_ns)

    def segments(self) -> list[Path]:
        """Closed and open, by name; none where the log may not be looked at."""
        try:
            found = [*self.wal.glob(f"*{CLOSED}"), *self.wal.glob(f"*{OPEN}")]
            return sorted(filter(is_file, found))
        except OSError:
            return []

    def partitions(self) -> list[Path]:
        return sorted(self.path.glob("dt=*/identifier=*"))

    def files(self) -> Iterator[ArchiveFile]:
        """Metrics and consolidated files (in `rollup` the minutes), by name only."""
        for partition in self.partitions():
            yield from list_partition(partition)


def list_partition(partition: Path) -> list[ArchiveFile]:
    """Files only: a folder or a link to nothing that is called like one of ours is none of them."""
    found = map(parse_file, filter(is_file, sorted(partition.glob(f"*{PARQUET}"))))
    return [file for file in found if file is not None]


def is_file(path: Path) -> bool:
    """False as well for one that may not be looked at, or whose disk fails: all others go on."""
    try:
        return path.is_file()
    except OSError:
        return False


def written_ns(path: Path) -> int:
    """0 where it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def size_of(path: Path) -> int:
    """0 where it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def remove_files(disk: Disk, paths: Iterable[Path]) -> None:
    """With their sidecars. Parquet first: a sidecar alone is nothing to any reader."""
    for path in paths:
        disk.remove(path)
        disk.remove(companion_of(path))


def segment_name(run: str, number: int) -> str:
    return f"{run}-{number:06d}"


def parse_segment(path: Path) -> tuple[str, int] | None:
    match = _SEGMENT.fullmatch(path.name)
    return (match[1], int(match[2])) if match else None


def free_path(folder: Path, stem: str, suffix: str) -> Path:
    """A name that is not taken: stem, then stem-2, stem-3 ..."""
    path = folder / f"{stem}{suffix}"
    number = 2
    while path.exists():
        path = folder / f"{stem}-{number}{suffix}"
        number += 1
    return path
