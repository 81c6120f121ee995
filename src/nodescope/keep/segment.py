"""
A closed segment of the log, sorted for writing: by day, by metric, by series, by time.

The log is mapped, not read: a frame's numbers stay in the file until the
metric they belong to is gathered. So memory follows one slab of columns and
the number of series, not the number of samples.
"""

import fnmatch
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Block
from nodescope.base.codec import Decoder
from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.frame import Frame
from nodescope.base.metric import Metric
from nodescope.keep.layout import render_day
from nodescope.keep.series import Identity, Subject, describe_entity, identify_entity
from nodescope.keep.sidecar import Ticks

# Columns gathered at once: the slab that one pass over the log's pages fills.
SLAB_BYTES = 16 * 2**20
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Segment:
    """A log as far as it is whole."""

    hello: dict[str, Any]
    frames: tuple[Frame, ...]
    damage: str
    """Why reading stopped before the end; empty when it did not."""
    left_bytes: int
    """How much lies behind the damage."""

    @property
    def run(self) -> str:
        return str(self.hello.get("run", ""))

    @property
    def number(self) -> int:
        return int(self.hello.get("segment", 0))


def read_segment(path: Path) -> Segment:
    """Every whole frame of a log. A torn end is what a crash leaves; it is not an error."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            return Segment({}, (), "empty", 0)
    return parse_segment_data(memoryview(data))


def parse_segment_data(data: memoryview | bytes) -> Segment:
    decoder = Decoder()
    frames: list[Frame] = []
    damage = ""
    try:
        frames.extend(decoder.decode(data))
    except ArchiveTruncated as error:
        damage = str(error)
    except (KeyError, ValueError, TypeError) as error:
        raise ArchiveRefused(f"not a log of ours: {error}") from error
    offset = int(damage.rsplit(" ", 1)[-1]) if damage else len(data)
    return Segment(decoder.hello, tuple(frames), damage, len(data) - offset)


@dataclass(slots=True)
class Track:
    """One table within one day: its blocks in order of time."""

    time_ms: list[int] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Day:
    """The part of a segment that lies in one UTC day."""

    day: str
    tracks: dict[str, Track] = field(default_factory=dict)
    clocks: dict[int, int] = field(default_factory=dict)
    """time in ms -> monotonic ns."""
    subjects: dict[Identity, Subject] = field(default_factory=dict)
    entities: dict[Identity, Entity] = field(default_factory=dict)
    """As last seen: what has not changed need not be learned again."""
    frames: list[Frame] = field(default_factory=list)

    def ticks(self, run: str) -> Ticks:
        times = np.array(sorted(self.clocks), np.int64)
        mono = np.array([self.clocks[int(time)] for time in times], np.int64)
        return Ticks(times, mono, np.zeros(len(times), np.int64), (run,))


def split_days(frames: Sequence[Frame], node: str) -> list[Day]:
    """Blocks by day and table, each with the wall time at which it was read."""
    days: dict[str, Day] = {}
    known: dict[tuple[str, str], tuple[Entity, ...]] = {}
    for frame in frames:
        for block in frame.blocks:
            at_ms = (frame.at_ns + block.mono_ns - frame.mono_ns) // 1_000_000
            day = days.setdefault(render_day(at_ms), Day(render_day(at_ms)))
            time_ms = place_tick(day.clocks, at_ms, block.mono_ns)
            track = day.tracks.setdefault(block.table.name, Track())
            track.time_ms.append(time_ms)
            track.blocks.append(block)
            note_subjects(day, block, node, time_ms, known)
        at_day = render_day(frame.at_ns // 1_000_000)
        days.setdefault(at_day, Day(at_day)).frames.append(frame)
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
    """Who was there; looked at closely only when a table's set changed."""
    key = (block.table.name, day.day)
    if known.get(key) is block.entities:
        return
    known[key] = block.entities
    for entity in block.entities:
        identity = identify_entity(entity, node)
        there = day.subjects.get(identity)
        if there is None:
            day.subjects[identity] = describe_entity(entity, node, time_ms)
        elif day.entities.get(identity) != entity:
            there.learn(describe_entity(entity, node, time_ms))
        day.entities[identity] = entity


@dataclass(frozen=True, slots=True)
class Gathered:
    """One metric of one day: series places, times and values, sorted by series and time."""

    metric: Metric
    rank: Integers
    time_ms: Integers
    value: Floats


def is_kept(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    wanted = not include or any(fnmatch.fnmatchcase(name, pattern) for pattern in include)
    return wanted and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclude)


def gather_metrics(
    day: Day, ranks: dict[Identity, int], node: str, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Iterator[Gathered]:
    """Metric by metric, in order of name; a metric without a sample is left out."""
    columns: dict[str, list[tuple[str, int, Metric]]] = {}
    for table, track in day.tracks.items():
        # A table's columns may differ between blocks of two runs of a source.
        for place, metric in enumerate(track.blocks[0].table.metrics):
            if is_kept(metric.name, include, exclude):
                columns.setdefault(metric.name, []).append((table, place, metric))
    slabs = {table: Slab(track, ranks, node) for table, track in day.tracks.items()}
    for _, places in sorted(columns.items()):
        parts = [slabs[table].column(place) for table, place, _ in places]
        gathered = join_parts(parts)
        if gathered is not None:
            yield Gathered(places[0][2], *gathered)


Part = tuple[Integers, Integers, Floats]


def join_parts(parts: Sequence[Part]) -> Part | None:
    if not parts:
        return None
    rank, time_ms, value = parts[0]
    if len(parts) > 1:
        rank = np.concatenate([part[0] for part in parts])
        time_ms = np.concatenate([part[1] for part in parts])
        value = np.concatenate([part[2] for part in parts])
    if not len(value):
        return None
    if len(parts) > 1 or (np.diff(rank) < 0).any():
        # Stable: the parts are in order of time already.
        order = np.lexsort((time_ms, rank))
        rank, time_ms, value = rank[order], time_ms[order], value[order]
    return rank, time_ms, value


@dataclass(slots=True)
class Generation:
    """Neighbouring blocks with the same set of entities, rows in the file's order of series."""

    order: Integers
    ranks: Integers
    time_ms: Integers
    blocks: list[Block]


class Slab:
    """Reads a table's columns, a few at a time, so that each page of the log is touched seldom."""

    def __init__(self, track: Track, ranks: dict[Identity, int], node: str) -> None:
        self._generations = list(split_generations(track, ranks, node))
        rows = sum(len(generation.blocks) * len(generation.order) for generation in self._generations)
        width = len(track.blocks[0].table.metrics)
        self._width = max(1, min(width, SLAB_BYTES // max(1, rows * 8)))
        self._start = -1
        self._arrays: list[Floats] = []

    def column(self, place: int) -> Part:
        start = place - place % self._width
        if start != self._start:
            self._start = start
            self._arrays = [self._read(generation, start) for generation in self._generations]
        parts = []
        for generation, array in zip(self._generations, self._arrays):
            if place - start >= array.shape[2]:
                continue
            # (series, time) flattened: sorted by series, then time.
            value = array[:, :, place - start].reshape(-1)
            rank = np.repeat(generation.ranks, array.shape[1])
            time_ms = np.tile(generation.time_ms, array.shape[0])
            measured = ~np.isnan(value)
            if not measured.all():
                rank, time_ms, value = rank[measured], time_ms[measured], value[measured]
            parts.append((rank, time_ms, value))
        nothing = np.empty(0, np.int64)
        return join_parts(parts) or (nothing, nothing, np.empty(0))

    def _read(self, generation: Generation, start: int) -> Floats:
        stop = start + self._width
        stacked = np.stack([block.values[:, start:stop] for block in generation.blocks], axis=1)
        result: Floats = stacked[generation.order]
        return result


def split_generations(track: Track, ranks: dict[Identity, int], node: str) -> Iterator[Generation]:
    start = 0
    blocks = track.blocks
    for place in range(1, len(blocks) + 1):
        if place < len(blocks) and blocks[place].entities is blocks[start].entities:
            continue
        entities = blocks[start].entities
        mine = np.array([ranks[identify_entity(entity, node)] for entity in entities], np.int64)
        order = np.argsort(mine, kind="stable")
        times = np.array(track.time_ms[start:place], np.int64)
        if len(entities):
            yield Generation(order, mine[order], times, blocks[start:place])
        start = place
