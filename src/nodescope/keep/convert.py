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

from nodescope.base.errors import ArchiveRefused, NodescopeError
from nodescope.base.frame import Event, Frame
from nodescope.base.log import Log, set_up_logging
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.layout import (
    CLOSED,
    PARQUET,
    SIDECAR,
    DataFolder,
    clean_identifier,
    free_path,
    list_partition,
    parse_segment,
    render_stamp,
)
from nodescope.keep.lock import FolderLock
from nodescope.keep.parquet import ArchiveWriter, Rows, open_parquet, read_footer
from nodescope.keep.segment import Day, Segment, gather_metrics, read_segment, split_days
from nodescope.keep.sidecar import Head, Sidecar, has_segment, read_sidecar, render_sidecar

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
    """Every closed segment; one that fails is named and does not hold up the others."""
    result = Result()
    for path in folder.closed_segments():
        try:
            convert_segment(disk, folder, path, result)
            result.segments += 1
        except (NodescopeError, OSError, MemoryError) as error:
            log.warning("segment not converted", segment=path.name, error=str(error))
            result.failures.append(f"{path.name}: {error}")
    return result


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
            if day.tracks and not is_written(folder.partition(day.day, identifier), segment):
                write_day(disk, folder.partition(day.day, identifier), segment, day, result)
    if segment.left_bytes and is_damage(path, segment):
        set_aside(disk, path, segment.damage)
        return
    disk.remove(path)


def is_damage(path: Path, segment: Segment) -> bool:
    """Whether more than the last record was lost: a flipped bit, not a torn write."""
    whole_bytes = path.stat().st_size
    frames = max(1, len(segment.frames))
    return segment.left_bytes > 4 * (whole_bytes - segment.left_bytes) / frames + 65536


def set_aside(disk: Disk, path: Path, reason: str) -> None:
    """What cannot be read is kept under a name that nobody takes for a log."""
    log.warning("log set aside", log=path.name, reason=reason)
    disk.rename(path, path.with_suffix(DAMAGED))


def is_written(partition: Path, segment: Segment) -> bool:
    """Whether a file of this partition has the segment already."""
    for file in list_partition(partition):
        try:
            segments = read_segments_of(file.path)
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


def write_day(disk: Disk, partition: Path, segment: Segment, day: Day, result: Result) -> None:
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
    seen: dict[int, tuple[int, int]] = {}
    with disk.create(temporary) as output:
        footer = {"segments": segments, "replaces": []}
        with ArchiveWriter(output, list(subjects.values()), footer) as writer:
            for part in gather_metrics(
                day, ranks, node, tuple(hello.get("include", ())), tuple(hello.get("exclude", ()))
            ):
                metrics.append(part.metric)
                writer.add(Rows(part.metric.name, part.metric.kind, part.rank, part.time_ms, part.value))
                places = note_seen(seen, part.rank, part.time_ms)
                scopes[part.metric.name] = tuple(sorted({scope_of[place] for place in places}))
        output.sync()
        size = output.tell()
    kept = [subject for place, subject in enumerate(subjects.values()) if place in seen]
    for place, subject in enumerate(subjects.values()):
        subject.first_ms, subject.last_ms = seen.get(place, (from_ms, to_ms))
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


def note_seen(seen: dict[int, tuple[int, int]], rank: Any, time_ms: Any) -> list[int]:
    """First and last time of each series; rows are sorted by series and time."""
    places = []
    starts = [0, *((rank[1:] != rank[:-1]).nonzero()[0] + 1).tolist()]
    ends = [*starts[1:], len(rank)]
    for start, end in zip(starts, ends):
        place = int(rank[start])
        places.append(place)
        first, last = seen.get(place, (2**62, 0))
        seen[place] = min(first, int(time_ms[start])), max(last, int(time_ms[end - 1]))
    return places


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
    for frame in frames:
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
    from nodescope.keep.retention import Limits, apply_retention  # noqa: PLC0415

    set_up_logging("warning")
    folder = DataFolder(Path(arguments[0]))
    limits = Limits(**json.loads(arguments[1])) if len(arguments) > 1 else None
    # The tick is more important than the file it will end up in.
    os.nice(5)
    with FolderLock(folder.converter_lock) as lock:
        if not lock.take({"pid": os.getpid()}):
            sys.stdout.write(json.dumps(asdict(Result())) + "\n")
            return 0
        disk = Disk()
        sweep(disk, folder)
        result = convert_all(disk, folder)
        if limits:
            freed = apply_retention(disk, folder, limits)
            result.removed_files, result.removed_bytes = freed.files, freed.bytes
            result.archive_bytes = freed.left_bytes
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
