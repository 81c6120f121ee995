"""
A closed segment of the log, sorted for writing: by day, by metric, by series, by time.

Frames of a large node are unpacked to a file and mapped: their numbers stay
there until the metric they belong to is gathered. So memory follows one slab
of columns and the number of series, not the number of samples.
"""

import fnmatch
import mmap
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Block, Floats, Integers
from nodescope.base.codec import Decoder
from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.frame import Frame
from nodescope.base.metric import Metric
from nodescope.keep.folder import MS_PER_DAY, render_day
from nodescope.keep.label_columns import Identity, Subject, describe_entity, identify_entity, learn_subject
from nodescope.keep.packed.log_unpacker import LogUnpacker
from nodescope.keep.packed.spool import Spool
from nodescope.keep.parquet import SampleRows
from nodescope.keep.sidecar import Ticks

# Columns gathered at once: the slab that one pass over the log's pages fills.
SLAB_BYTES = 16 * 2**20
READ_BYTES = 2**20
# What a disk loses at once.
BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A log as far as it is whole."""

    hello: dict[str, Any]
    frames: tuple[Frame, ...]
    damage: str
    """Why reading stopped before the end; empty when it did not."""
    left_bytes: int
    """How much lies behind the damage."""
    lost: tuple[str, ...] = ()
    """Damaged records in the midst of it, that were left out."""

    @property
    def run(self) -> str:
        return str(self.hello.get("run", ""))

    @property
    def number(self) -> int:
        return int(self.hello.get("segment", 0))


def read_segment(path: Path) -> LogSegment:
    """
    Every whole frame of a log. A torn end is what a crash leaves; it is not an error.

    A damaged record in its midst is left out, and named.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return LogSegment({}, (), "empty", 0)
        return parse_segment_data(map_log(file.fileno()), path.parent)


def map_log(descriptor: int) -> memoryview | bytes:
    """
    All of a log, read once before it is mapped.

    A page that the disk cannot read would end whoever has it mapped, with all
    other logs still to do. Where some cannot be read they are zeros, and the
    records in them are lost; where most cannot, the disk is away.
    """
    try:
        while os.read(descriptor, READ_BYTES):
            pass
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except OSError as error:
        return read_around(descriptor, error)


def read_around(descriptor: int, first: OSError) -> bytes:
    """With zeros for the blocks that the disk cannot read."""
    blocks, bad = [], 0
    for offset in range(0, os.fstat(descriptor).st_size, BLOCK_BYTES):
        try:
            blocks.append(os.pread(descriptor, BLOCK_BYTES, offset))
        except OSError:
            blocks.append(bytes(BLOCK_BYTES))
            bad += 1
    if bad * 2 >= len(blocks):
        raise first
    return b"".join(blocks)


def parse_segment_data(data: memoryview | bytes, place: Path) -> LogSegment:
    """Frames that memory should not hold all at once are held in a file without a name, in the given folder."""
    decoder = Decoder()
    frames: list[Frame] = []
    damage, left_bytes = "", 0
    try:
        with closing(Spool(place)) as spool:
            frames.extend(decoder.decode(data, LogUnpacker(spool.keep).iterate))
    except ArchiveTruncated as error:
        damage, left_bytes = str(error), len(data) - error.offset
    except (KeyError, ValueError, TypeError, struct.error, RecursionError) as error:
        raise ArchiveRefused(f"not a log of ours: {error}") from error
    return LogSegment(decoder.hello, tuple(frames), damage, left_bytes, tuple(decoder.lost))


@dataclass(slots=True)
class SegmentTrack:
    """One table within one day: its blocks in order of time."""

    time_ms: list[int] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Day:
    """The part of a segment that lies in one UTC day."""

    day: str
    tracks: dict[str, SegmentTrack] = field(default_factory=dict)
    clocks: dict[int, int] = field(default_factory=dict)
    """time in ms -> monotonic ns."""
    subjects: dict[Identity, Subject] = field(default_factory=dict)
    entities: dict[int, Identity] = field(default_factory=dict)
    """By id(): a set that changed holds mostly the objects of the set before."""
    frames: list[Frame] = field(default_factory=list)

    def ticks(self, run: str) -> Ticks:
        times = np.array(sorted(self.clocks), np.int64)
        mono = np.array([self.clocks[int(time)] for time in times], np.int64)
        return Ticks(times, mono, np.zeros(len(times), np.int64), (run,))


def split_days(frames: Sequence[Frame], node: str) -> list[Day]:
    """Blocks by day and table, each with the wall time at which it was read."""
    days: dict[int, Day] = {}
    known: dict[tuple[str, str], tuple[Entity, ...]] = {}

    def day_of(at_ms: int) -> Day:
        number = at_ms // MS_PER_DAY
        found = days.get(number)
        if found is None:
            found = days[number] = Day(render_day(at_ms))
        return found

    for frame in frames:
        for block in frame.blocks:
            at_ms = (frame.at_ns + block.mono_ns - frame.mono_ns) // 1_000_000
            day = day_of(at_ms)
            time_ms = place_tick(day.clocks, at_ms, block.mono_ns)
            track = day.tracks.setdefault(block.table.name, SegmentTrack())
            track.time_ms.append(time_ms)
            track.blocks.append(block)
            note_subjects(day, block, node, time_ms, known)
        day_of(frame.at_ns // 1_000_000).frames.append(frame)
    return [day for _, day in sorted(days.items())]


def place_tick(clocks: dict[int, int], time_ms: int, mono_ns: int) -> int:
    """
    The next free millisecond: one `time`, one moment of the monotonic clock.

    Only a clock that was stepped back onto a time of the same segment moves a
    sample, and then by as many milliseconds as samples meet there.
    """
    while clocks.get(time_ms, mono_ns) != mono_ns:
        time_ms += 1
    clocks[time_ms] = mono_ns
    return time_ms


def note_subjects(
    day: Day, block: Block, node: str, time_ms: int, known: dict[tuple[str, str], tuple[Entity, ...]]
) -> None:
    """Notes the block's entities; only when a table's set changed, and then only the new ones."""
    key = (block.table.name, day.day)
    if known.get(key) is block.entities:
        return
    known[key] = block.entities
    for entity in block.entities:
        if id(entity) in day.entities:
            continue
        identity = identify_entity(entity, node)
        learn_subject(day.subjects, identity, describe_entity(entity, node, time_ms))
        day.entities[id(entity)] = identity


def is_kept(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    wanted = not include or any(fnmatch.fnmatchcase(name, pattern) for pattern in include)
    return wanted and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)


def gather_metrics(
    day: Day, ranks: dict[Identity, int], include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Iterator[SampleRows]:
    """Metric by metric, in order of name; a metric without a sample is left out."""
    columns: dict[str, list[tuple[str, int, Metric]]] = {}
    for table, track in day.tracks.items():
        # A table's columns may differ between blocks of two runs of a source.
        for place, metric in enumerate(track.blocks[0].table.metrics):
            if is_kept(metric.name, include, exclude):
                columns.setdefault(metric.name, []).append((table, place, metric))
    places_of = {entity: ranks[identity] for entity, identity in day.entities.items()}
    tables = {table for places in columns.values() for table, _, _ in places}
    slabs = {table: Slab(day.tracks[table], places_of) for table in tables}
    for _, places in sorted(columns.items()):
        parts = [slabs[table].column(place) for table, place, _ in places]
        rank, time_ms, value = join_parts(parts)
        if len(value):
            yield SampleRows(places[0][2], rank, time_ms, value)


Part = tuple[Integers, Integers, Floats]


def join_parts(parts: Sequence[Part]) -> Part:
    """A metric that two tables have: sorted together."""
    if len(parts) == 1:
        return parts[0]
    rank, time_ms, value = map(np.concatenate, zip(*parts))
    order = np.lexsort((time_ms, rank))
    return rank[order], time_ms[order], value[order]


class Slab:
    """
    A table's columns, a few at a time, so that each page of the log is touched seldom.

    Which row of which block comes where is the same for all columns: it is
    worked out once.
    """

    def __init__(self, track: SegmentTrack, places: Mapping[int, int]) -> None:
        self._blocks = [block for block in track.blocks if len(block.entities)]
        times = [time for time, block in zip(track.time_ms, track.blocks) if len(block.entities)]
        counts = [len(block.entities) for block in self._blocks]
        rank = np.concatenate([*rank_blocks(self._blocks, places), np.empty(0, np.int64)])
        time_ms = np.repeat(np.array(times, np.int64), counts)
        self._order = np.lexsort((time_ms, rank))
        self._rank, self._time_ms = rank[self._order], time_ms[self._order]
        width = max((block.values.shape[1] for block in self._blocks), default=1)
        self._width = max(1, min(width, SLAB_BYTES // max(1, len(rank) * 8)))
        self._start = -1
        self._array: Floats = np.empty((0, 0))
        self._missing: NDArray[np.bool_] = np.empty((0, 0), bool)
        self._whole: NDArray[np.bool_] = np.empty(0, bool)

    def column(self, place: int) -> Part:
        start = place - place % self._width
        if start != self._start:
            self._start = start
            self._array = self._read(start)
            self._missing = np.isnan(self._array)
            self._whole = ~np.asarray(self._missing.any(axis=1))
        value = self._array[place - start]
        if self._whole[place - start]:
            return self._rank, self._time_ms, value
        measured = ~self._missing[place - start]
        return self._rank[measured], self._time_ms[measured], value[measured]

    def _read(self, start: int) -> Floats:
        """(columns, rows in order). A block with fewer columns has not measured the rest."""
        stop = start + self._width
        parts = [block.values[:, start:stop] for block in self._blocks]
        widest = max((part.shape[1] for part in parts), default=1)
        if any(part.shape[1] < widest for part in parts):
            parts = [
                np.pad(part, ((0, 0), (0, widest - part.shape[1])), constant_values=np.nan) for part in parts
            ]
        stacked: Floats = np.concatenate(parts) if parts else np.empty((0, widest))
        return np.ascontiguousarray(stacked[self._order].T)


def rank_blocks(blocks: Sequence[Block], places: Mapping[int, int]) -> Iterator[Integers]:
    """The places of each block's rows; a set that is the same object is looked up once."""
    entities: tuple[Entity, ...] | None = None
    mine: Integers = np.empty(0, np.int64)
    for block in blocks:
        if block.entities is not entities:
            entities = block.entities
            mine = np.array([places[id(entity)] for entity in entities], np.int64)
        yield mine
