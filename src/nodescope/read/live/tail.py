"""
The live tail: samples that are not Parquet yet, from the log beside it or from the agent.

Both are streams of frames in one codec. A frame is taken only when it is
newer than what the archive has of the same run: nothing is seen twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from nodescope.base.frame import Frame
from nodescope.base.metric import Metric
from nodescope.keep.label_columns import Identity, Subject
from nodescope.keep.segment import Day, SegmentTrack, gather_metrics, split_days
from nodescope.read.files.catalog import Catalog
from nodescope.read.query.derive import Chunk


@dataclass(slots=True)
class LiveTail:
    """Frames behind the archive, sorted like a file."""

    days: list[Day] = field(default_factory=list)
    node: str = ""
    metrics: dict[str, Metric] = field(default_factory=dict)
    subjects: dict[Identity, Subject] = field(default_factory=dict)

    @property
    def from_ms(self) -> int | None:
        return min((min(day.clocks) for day in self.days if day.clocks), default=None)

    @property
    def to_ms(self) -> int | None:
        return max((max(day.clocks) for day in self.days if day.clocks), default=None)

    def chunks(self, name: str) -> list[tuple[Subject, Chunk]]:
        """One metric's samples by series."""
        found = []
        for day in self.days:
            identities = sorted(day.subjects)
            ranks = {identity: place for place, identity in enumerate(identities)}
            for part in gather_metrics(day, ranks, (name,)):
                mono = np.array([day.clocks[int(time)] for time in part.time_ms], np.int64)
                starts = np.flatnonzero(np.r_[True, part.rank[1:] != part.rank[:-1]])
                for start, end in zip(starts, [*starts[1:], len(part.rank)]):
                    chunk = Chunk(part.time_ms[start:end], mono[start:end], part.value[start:end])
                    found.append((day.subjects[identities[int(part.rank[start])]], chunk))
        return found


def newest_by_run(catalog: Catalog) -> dict[str, int]:
    """The last monotonic moment that the archive has of each run."""
    newest: dict[str, int] = {}
    # The last files are enough: a run's earlier files end earlier.
    for entry in sorted(catalog.entries, key=lambda one: one.to_ms)[-8:]:
        ticks = entry.ticks()
        if ticks is None:
            continue
        for place, run in enumerate(ticks.runs):
            mine = ticks.mono_ns[ticks.run == place]
            if len(mine):
                newest[run] = max(newest.get(run, 0), int(mine.max()))
    return newest


def build_tail(streams: Iterable[tuple[str, str, Iterable[Frame]]], newest: Mapping[str, int]) -> LiveTail:
    tail = LiveTail()
    for run, node, frames in streams:
        after_ns = newest.get(run, -1)
        fresh = [
            frame
            for frame in frames
            if max((block.mono_ns for block in frame.blocks), default=frame.mono_ns) > after_ns
        ]
        tail.node = node or tail.node
        for day in split_days(fresh, node):
            tail.days.append(day)
            for identity, subject in day.subjects.items():
                tail.subjects.setdefault(identity, subject)
            for track in day.tracks.values():
                tail.metrics.update({metric.name: metric for metric in measured_metrics(track)})
    tail.days.sort(key=lambda day: min(day.clocks, default=0))
    return tail


def measured_metrics(track: SegmentTrack) -> list[Metric]:
    """
    Columns with a sample, as a file would have them.

    A hybrid node's tables have columns for both versions of cgroups; a plain
    name is made of the one that is measured. The first and the newest blocks
    show which: no column is measured only between them.
    """
    seen = np.zeros(len(track.blocks[0].table.metrics), bool)
    for block in (track.blocks[0], *track.blocks[-3:]):
        if block.values.shape[1] == len(seen):
            seen |= ~np.isnan(block.values).all(axis=0)
    return [metric for metric, there in zip(track.blocks[0].table.metrics, seen) if there]
