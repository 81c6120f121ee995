"""
From a closed segment of the log to a Parquet file and its sidecar, exactly once.

    1  the Parquet file is written as .tmp and synced
    2  the sidecar is renamed into place
    3  the Parquet file is renamed into place, the folder synced
    4  the log is removed

A crash before 3 leaves the log and nothing a reader would take; the work is
done again. A crash between 3 and 4 leaves both: the segment's number is in
the file's footer, so the next run only compares the file with its checksum,
and removes the log. A segment that crosses midnight becomes one file a day, each by the same steps.

Run as a short-lived process (`python -m nodescope.keep.convert DATA`), so that
the agent never loads Arrow; its last line of output is JSON for the agent.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nodescope.base.errors import ArchiveRefused, NodescopeError
from nodescope.base.frame import Event, Frame
from nodescope.base.log import Log, set_up_logging
from nodescope.keep.check.quarantine import DamageNote, note_damage
from nodescope.keep.check.quarantine import set_aside as set_aside_file
from nodescope.keep.check.sums import describe_damage, find_file_damage
from nodescope.keep.disk import TEMPORARY, Disk, read_json
from nodescope.keep.file_writer import begin_head, write_file
from nodescope.keep.folder import (
    CLOSED,
    DAMAGED,
    PARQUET,
    SIDECAR,
    SUM,
    DataFolder,
    clean_identifier,
    free_path,
    parse_segment,
    render_stamp,
)
from nodescope.keep.lock import FolderLock
from nodescope.keep.parquet import open_parquet, read_footer
from nodescope.keep.segment import Day, LogSegment, gather_metrics, read_segment, split_days
from nodescope.keep.sidecar import Sidecar, has_segment, read_sidecar

log = Log("convert")


@dataclass(slots=True)
class Result:
    """What one pass did; the agent adds it to its counters."""

    segments: int = 0
    rows: int = 0
    bytes: int = 0
    removed_bytes: int = 0
    archive_bytes: int = 0
    failures: list[str] = field(default_factory=list)


def convert_all(disk: Disk, folder: DataFolder, result: Result | None = None) -> Result:
    """
    Every closed segment; one that fails is named and does not hold up the others.

    Segments that are closed meanwhile are taken, too: the agent that closed
    them started no converter while this one held the lock.
    """
    result = result or Result()
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
    hello = segment.hello or guess_hello(folder, path)
    segment = replace(segment, hello=hello)
    if segment.frames:
        node = str(hello.get("node", ""))
        identifier = clean_identifier(str(hello.get("identifier") or node))
        for day in split_days(segment.frames, node):
            partition = folder.partition(day.day, identifier)
            if day.tracks and not is_written(disk, folder, partition, segment, day):
                write_day(disk, partition, segment, day, result)
    if segment.lost:
        note_lost_records(disk, folder, path, segment)
        set_aside(disk, path, segment.lost[0])
        return
    if segment.left_bytes and is_damage(path, segment):
        set_aside(disk, path, segment.damage)
        return
    disk.remove(path)


def guess_hello(folder: DataFolder, path: Path) -> dict[str, Any]:
    """Of a log whose first record is lost: from its name, and from the agent that writes here."""
    run, number = parse_segment(path) or ("", 0)
    session = read_json(folder.session)
    node = str(session.get("node_name", ""))
    return {"run": run, "segment": number, "node": node, "identifier": session.get("identifier", node)}


def note_lost_records(disk: Disk, folder: DataFolder, path: Path, segment: LogSegment) -> None:
    from_ms = segment.frames[0].at_ns // 1_000_000 if segment.frames else 0
    to_ms = segment.frames[-1].at_ns // 1_000_000 if segment.frames else 0
    reason = f"{len(segment.lost)} records lost: {segment.lost[0]}"
    note_damage(disk, folder, DamageNote(str(path.relative_to(folder.path)), reason, 0, from_ms, to_ms))


def is_damage(path: Path, segment: LogSegment) -> bool:
    """Whether more than the last record was lost: a flipped bit, not a torn write."""
    whole_bytes = path.stat().st_size
    frames = max(1, len(segment.frames))
    return segment.left_bytes > 4 * (whole_bytes - segment.left_bytes) / frames + 65536


def set_aside(disk: Disk, path: Path, reason: str) -> None:
    """What cannot be read is kept, under a name that is not a log's."""
    log.warning("log set aside", log=path.name, reason=reason)
    disk.rename(path, path.with_suffix(DAMAGED))


def is_written(disk: Disk, folder: DataFolder, partition: Path, segment: LogSegment, day: Day) -> bool:
    """
    Whether a file of this partition has the segment already, whole.

    Only the name that it would have is looked for: the same log has the same
    first sample, and a file is not merged away while its log is there. A file
    that is damaged is set aside while the log can still give all of it.
    """
    stamp = render_stamp(min(day.clocks))
    for path in partition.glob(f"metrics-{stamp}*{PARQUET}"):
        try:
            segments = read_segments_of(path)
        except ArchiveRefused as error:
            if isinstance(error.__cause__, OSError):
                # Its disk fails: not known is not absent, and written twice would be there twice.
                raise error.__cause__ from error
            continue
        if not has_segment(segments, segment.run, segment.number):
            continue
        flaw = find_flaw(path)
        if not flaw or segment.lost:
            return True
        note_rewriting(disk, folder, path, day, flaw)
        set_aside_file(disk, folder, path)
    return False


def find_flaw(path: Path) -> str:
    """Why a file's bytes are not those that were written; empty where they are, or nobody can tell."""
    try:
        expected = read_sidecar(path.with_suffix(SIDECAR)).head.sum
    except ArchiveRefused as error:
        return str(error)
    except FileNotFoundError:
        return "its sidecar is lost"
    damage = find_file_damage(path, expected) if expected else []
    return describe_damage(damage, expected) if expected and damage else ""


def note_rewriting(disk: Disk, folder: DataFolder, path: Path, day: Day, flaw: str) -> None:
    reason = f"{flaw}; it is written again from its log"
    name = str(path.relative_to(folder.path))
    note_damage(disk, folder, DamageNote(name, reason, 0, min(day.clocks), max(day.clocks)))


def read_segments_of(path: Path) -> dict[str, Any]:
    """From the sidecar, or from the footer where the sidecar is lost."""
    try:
        return dict(read_sidecar(path.with_suffix(SIDECAR)).head.segments)
    except (ArchiveRefused, OSError):
        footer = read_footer(open_parquet(path), path.name)
        return dict(footer["segments"]) if footer else {}


def write_day(disk: Disk, partition: Path, segment: LogSegment, day: Day, result: Result) -> None:
    hello = segment.hello
    subjects = dict(sorted(day.subjects.items()))
    ranks = {identity: place for place, identity in enumerate(subjects)}
    ticks = day.ticks(segment.run)
    disk.make_folder(partition)
    path = free_path(partition, f"metrics-{render_stamp(int(ticks.time_ms[0]))}", PARQUET)
    parts = gather_metrics(day, ranks, tuple(hello.get("include", ())), tuple(hello.get("exclude", ())))
    segments = {segment.run: [[segment.number, segment.number]]}
    head = begin_head(ticks, str(hello.get("node", "")), partition, segments)
    events, outcomes = list_events(day.frames), list_outcomes(day.frames)
    sidecar = Sidecar(head, (), tuple(subjects.values()), ticks, {}, events, outcomes)
    rows, size = write_file(disk, path, sidecar, parts)
    result.rows += rows
    result.bytes += size


def list_events(frames: Sequence[Frame]) -> list[dict[str, Any]]:
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


def list_outcomes(frames: Sequence[Frame]) -> list[tuple[int, dict[str, list[str]]]]:
    """Every source at the first tick; then only ticks at which one changed its state."""
    found: list[tuple[int, dict[str, list[str]]]] = []
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
            found.append((frame.at_ns // 1_000_000, changed))
        before = {**before, **states}
    return found


def sweep(disk: Disk, folder: DataFolder) -> None:
    """What a crash left half done: temporary files, and sidecars whose file never came."""
    for partition in [*folder.partitions(), *folder.rollup.partitions()]:
        try:
            left = list_left(partition)
        except OSError as error:
            log.warning("folder left alone", folder=partition.name, reason=str(error.strerror))
            continue
        for path in left:
            try:
                disk.remove(path)
            except OSError as error:
                # A folder of that name, or one of another user: not ours to clear.
                log.warning("file left alone", file=path.name, reason=str(error.strerror))


def list_left(partition: Path) -> list[Path]:
    beside = [*partition.glob(f"*{SIDECAR}"), *partition.glob(f"*{SUM}")]
    alone = [path for path in beside if not path.with_suffix(PARQUET).exists()]
    return [*partition.glob(f"*{TEMPORARY}"), *alone]


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
    from nodescope.keep.archive_clock import ClockReading, take_time  # noqa: PLC0415
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
        disk, result = Disk(), Result()
        with failing_alone(result):
            sweep(disk, folder)
        with failing_alone(result):
            convert_all(disk, folder, result)
        with failing_alone(result):
            if given:
                time = take_time(disk, folder, ClockReading(**given["clock"]))
                freed = apply_retention(disk, folder, RetentionLimits(**given["limits"]), time)
                result.removed_bytes = freed.bytes
                result.archive_bytes = freed.left_bytes
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


@contextmanager
def failing_alone(result: Result) -> Iterator[None]:
    """A part that fails is named, and does not hold up the next: a full disk needs its retention most."""
    try:
        yield
    except OSError as error:
        log.warning("a part of the pass failed", error=str(error))
        result.failures.append(str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
