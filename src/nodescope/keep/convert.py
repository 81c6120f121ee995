"""
From a closed segment of the log to a Parquet file and its sidecar, exactly once.

    1  the Parquet file is written as .tmp and synced
    2  the sidecar is renamed into place
    3  the Parquet file is renamed into place, the folder synced
    4  the log is removed

A crash before 3 leaves the log and nothing a reader would take; the work is
done again. A crash between 3 and 4 leaves both: the segment's number is in
the file's footer, so the next run only removes the log. A segment that
crosses midnight becomes one file a day, each by the same steps.

Run as a short-lived process (`python -m nodescope.keep.convert DATA`), so that
the agent never loads Arrow; its last line of output is JSON for the agent.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.base.errors import ArchiveRefused, NodescopeError
from nodescope.base.frame import Event, Frame
from nodescope.base.log import Log, set_up_logging
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.folder import (
    CLOSED,
    PARQUET,
    SIDECAR,
    DataFolder,
    clean_identifier,
    free_path,
    parse_segment,
    render_stamp,
)
from nodescope.keep.label_columns import Subject
from nodescope.keep.lock import FolderLock
from nodescope.keep.parquet import ArchiveWriter, SampleRows, open_parquet, read_footer
from nodescope.keep.segment import Day, LogSegment, gather_metrics, read_segment, split_days
from nodescope.keep.sidecar import Head, Sidecar, has_segment, read_sidecar, render_sidecar

Integers = NDArray[np.int64]
log = Log("convert")
DAMAGED = ".damaged"


@dataclass(slots=True)
class Result:
    """What one pass did; the agent adds it to its counters."""

    segments: int = 0
    rows: int = 0
    bytes: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    archive_bytes: int = 0
    failures: list[str] = field(default_factory=list)


def convert_all(disk: Disk, folder: DataFolder) -> Result:
    """
    Every closed segment; one that fails is named and does not hold up the others.

    Segments that are closed meanwhile are taken, too: whoever closed them may
    have found the converter's lock taken, and gone.
    """
    result = Result()
    tried: set[Path] = set()
    while True:
        paths = [path for path in folder.closed_segments() if path not in tried]
        if not paths:
            return result
        tried.update(paths)
        convert_listed(disk, folder, paths, result)


def convert_listed(disk: Disk, folder: DataFolder, paths: Sequence[Path], result: Result) -> None:
    for path in paths:
        try:
            convert_segment(disk, folder, path, result)
            result.segments += 1
        except (NodescopeError, OSError, MemoryError) as error:
            log.warning("segment not converted", segment=path.name, error=str(error))
            result.failures.append(f"{path.name}: {error}")


def convert_segment(disk: Disk, folder: DataFolder, path: Path, result: Result) -> None:
    try:
        segment = read_segment(path)
    except ArchiveRefused as error:
        set_aside(disk, path, str(error))
        return
    hello = segment.hello
    if segment.frames:
        node = str(hello.get("node", ""))
        identifier = clean_identifier(str(hello.get("identifier") or node))
        for day in split_days(segment.frames, node):
            partition = folder.partition(day.day, identifier)
            if day.tracks and not is_written(partition, segment, day):
                write_day(disk, partition, segment, day, result)
    if segment.left_bytes and is_damage(path, segment):
        set_aside(disk, path, segment.damage)
        return
    disk.remove(path)


def is_damage(path: Path, segment: LogSegment) -> bool:
    """Whether more than the last record was lost: a flipped bit, not a torn write."""
    whole_bytes = path.stat().st_size
    frames = max(1, len(segment.frames))
    return segment.left_bytes > 4 * (whole_bytes - segment.left_bytes) / frames + 65536


def set_aside(disk: Disk, path: Path, reason: str) -> None:
    """What cannot be read is kept under a name that nobody takes for a log."""
    log.warning("log set aside", log=path.name, reason=reason)
    disk.rename(path, path.with_suffix(DAMAGED))


def is_written(partition: Path, segment: LogSegment, day: Day) -> bool:
    """
    Whether a file of this partition has the segment already.

    Only the name that it would have is looked for: the same log has the same
    first sample, and a file is not merged away while its log is there.
    """
    stamp = render_stamp(min(day.clocks))
    for path in partition.glob(f"metrics-{stamp}*{PARQUET}"):
        try:
            segments = read_segments_of(path)
        except (ArchiveRefused, OSError):
            continue
        if has_segment(segments, segment.run, segment.number):
            return True
    return False


def read_segments_of(path: Path) -> dict[str, Any]:
    """From the sidecar, or from the footer where the sidecar is lost."""
    try:
        return dict(read_sidecar(path.with_suffix(SIDECAR)).head.segments)
    except (ArchiveRefused, OSError):
        footer = read_footer(open_parquet(path), path.name)
        return dict(footer["segments"]) if footer else {}


def write_day(disk: Disk, partition: Path, segment: LogSegment, day: Day, result: Result) -> None:
    hello = segment.hello
    node = str(hello.get("node", ""))
    subjects = dict(sorted(day.subjects.items()))
    ranks = {identity: place for place, identity in enumerate(subjects)}
    segments = {segment.run: [[segment.number, segment.number]]}
    ticks = day.ticks(segment.run)
    from_ms, to_ms = int(ticks.time_ms[0]), int(ticks.time_ms[-1])
    disk.make_folder(partition)
    path = free_path(partition, f"metrics-{render_stamp(from_ms)}", PARQUET)
    temporary = path.with_name(path.name + TEMPORARY)
    metrics = []
    scopes: dict[str, tuple[str, ...]] = {}
    scope_of = [subject.label("l_scope") or "" for subject in subjects.values()]
    seen = SeriesSpans(len(subjects))
    with disk.create(temporary) as output:
        footer = {"segments": segments, "replaces": []}
        with ArchiveWriter(output, list(subjects.values()), footer) as writer:
            for part in gather_metrics(
                day, ranks, tuple(hello.get("include", ())), tuple(hello.get("exclude", ()))
            ):
                metrics.append(part.metric)
                writer.add(
                    SampleRows(part.metric.name, part.metric.kind, part.rank, part.time_ms, part.value)
                )
                places = seen.note(part.rank, part.time_ms)
                scopes[part.metric.name] = tuple(sorted({scope_of[place] for place in places}))
        output.sync()
        size = output.tell()
    kept = seen.mark(list(subjects.values()))
    head = Head(writer.rows, from_ms, to_ms, node, partition.name.removeprefix("identifier="), segments)
    sidecar = Sidecar(
        head,
        tuple(metrics),
        tuple(kept),
        ticks,
        scopes,
        tell_events(day.frames),
        tell_outcomes(day.frames),
    )
    publish(disk, temporary, path, render_sidecar(sidecar))
    result.rows += writer.rows
    result.bytes += size


def publish(disk: Disk, temporary: Path, path: Path, sidecar: bytes) -> None:
    """Sidecar first: a Parquet file that has its name has its sidecar, too."""
    disk.write_whole(path.with_suffix(SIDECAR), sidecar)
    disk.rename(temporary, path)
    disk.sync_folder(path.parent)


class SeriesSpans:
    """First and last sample of each series of a file."""

    def __init__(self, size: int) -> None:
        self._first = np.full(size, 2**62, np.int64)
        self._last = np.zeros(size, np.int64)
        self._before: tuple[Integers, Integers, list[int]] | None = None

    def note(self, rank: Integers, time_ms: Integers) -> list[int]:
        """Rows of one metric, sorted by series and time; the series that they are of."""
        # Metrics of one table that miss nothing share their arrays.
        if self._before and self._before[0] is rank and self._before[1] is time_ms:
            return self._before[2]
        starts = np.flatnonzero(np.r_[True, rank[1:] != rank[:-1]])
        ends = np.r_[starts[1:], len(rank)] - 1
        places = rank[starts]
        self._first[places] = np.minimum(self._first[places], time_ms[starts])
        self._last[places] = np.maximum(self._last[places], time_ms[ends])
        found: list[int] = places.tolist()
        self._before = (rank, time_ms, found)
        return found

    def mark(self, subjects: Sequence[Subject]) -> list[Subject]:
        """Those that have a sample, told when."""
        kept = []
        for subject, first, last in zip(subjects, self._first.tolist(), self._last.tolist()):
            if last:
                subject.first_ms, subject.last_ms = first, last
                kept.append(subject)
        return kept


def tell_events(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    return [event_to_json(event) for frame in frames for event in frame.events]


def event_to_json(event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "at_ms": event.at_ns // 1_000_000,
        "scope": event.scope,
        "ids": list(event.ids),
        "labels": dict(event.labels),
        "facts": dict(event.facts),
    }


def tell_outcomes(frames: Sequence[Frame]) -> list[tuple[int, dict[str, list[str]]]]:
    """Every source at the first tick; then only ticks at which one changed its state."""
    told: list[tuple[int, dict[str, list[str]]]] = []
    before: dict[str, str] = {}
    same: object = None
    for frame in frames:
        # The decoder gives the same object while nothing changes.
        if frame.outcomes is same:
            continue
        same = frame.outcomes
        states = {name: outcome.state for name, outcome in frame.outcomes.items()}
        changed = {
            name: [outcome.state, outcome.reason]
            for name, outcome in frame.outcomes.items()
            if before.get(name) != outcome.state
        }
        if changed:
            told.append((frame.at_ns // 1_000_000, changed))
        before = {**before, **states}
    return told


def sweep(disk: Disk, folder: DataFolder) -> None:
    """What a crash left half done: temporary files, and sidecars whose file never came."""
    for partition in [*folder.partitions(), *folder.rollup.glob("dt=*/identifier=*")]:
        for temporary in partition.glob(f"*{TEMPORARY}"):
            disk.remove(temporary)
        for sidecar in partition.glob(f"*{SIDECAR}"):
            if not sidecar.with_suffix(PARQUET).exists():
                disk.remove(sidecar)


def is_converted(folder: DataFolder, path: Path) -> bool:
    """Whether none of a file's segments still has a log: only then may it be merged away."""
    segments = read_segments_of(path)
    for left in folder.wal.glob(f"*{CLOSED}"):
        parsed = parse_segment(left)
        if parsed and has_segment(segments, *parsed):
            return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Convert DATA [RETENTION as JSON]: all closed segments, then retention."""
    # Imported here: retention is the agent's business as well, conversion is not.
    from nodescope.keep.retention import RetentionLimits, apply_retention  # noqa: PLC0415

    set_up_logging("warning")
    folder = DataFolder(Path(arguments[0]))
    given = json.loads(arguments[1]) if len(arguments) > 1 else None
    # The tick is more important than the file it will end up in.
    os.nice(5)
    with FolderLock(folder.converter_lock) as lock:
        if not lock.take({"pid": os.getpid()}):
            sys.stdout.write(json.dumps(asdict(Result())) + "\n")
            return 0
        disk = Disk()
        sweep(disk, folder)
        result = convert_all(disk, folder)
        if given:
            freed = apply_retention(disk, folder, RetentionLimits(**given["limits"]), given["now_ms"])
            result.removed_files, result.removed_bytes = freed.files, freed.bytes
            result.archive_bytes = freed.left_bytes
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
