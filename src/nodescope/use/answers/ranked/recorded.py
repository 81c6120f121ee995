"""
When a node was recorded: what a mean over a span is divided by.

A node whose agent is younger than the span, or was down for a part of it, was
not idle then: that time is missing, and counts for nobody. What ran for a part
of the recorded time counts by that part.

    use over the span = sum of (value x time) / recorded time
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.time_range import TimeRange
from nodescope.read.files.catalog import Catalog
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.read.files.listing import FileEntry
from nodescope.read.live.tail import LiveTail

# A sample stands for the second that it begins.
SAMPLE_MS = 1000
# A shorter pause between two ticks is a restart of the agent or a busy machine; containers go on meanwhile.
PAUSE_MS = 10_000
# Of an agent that samples rarely: so many of its own intervals.
PAUSE_INTERVALS = 3
# From this share on a span was recorded whole, but for rounding.
WHOLE_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Recorded:
    """The stretches of a span that were recorded, oldest first; they do not overlap."""

    span: TimeRange
    stretches: tuple[TimeRange, ...]

    @property
    def total_ms(self) -> int:
        return sum(one.to_ms - one.from_ms + SAMPLE_MS for one in self.stretches)

    @property
    def seconds(self) -> float:
        return self.total_ms / 1000

    @property
    def is_whole(self) -> bool:
        return self.total_ms >= WHOLE_SHARE * (self.span.to_ms - self.span.from_ms + SAMPLE_MS)

    def share(self, times: Iterable[TimeRange]) -> float:
        """The part of the recorded time that at least one of these covers, from first to last sample."""
        ordered = sorted((one.from_ms, one.to_ms + SAMPLE_MS) for one in times)
        covered_ms = 0
        for stretch in self.stretches:
            end_ms, last_ms = stretch.from_ms, stretch.to_ms + SAMPLE_MS
            for from_ms, to_ms in ordered:
                covered_ms += max(0, min(to_ms, last_ms) - max(from_ms, end_ms))
                end_ms = max(end_ms, min(to_ms, last_ms))
        return min(1.0, covered_ms / self.total_ms)


def record_whole(span: TimeRange) -> Recorded:
    """Where it is not known when a node was recorded."""
    return Recorded(span, (span,))


def make_recorded(span: TimeRange, stretches: Sequence[TimeRange]) -> Recorded:
    """Of no stretch at all: nobody knows, and there is nothing to divide."""
    return Recorded(span, tuple(stretches)) if stretches else record_whole(span)


def find_stretches(catalog: Catalog, tail: LiveTail, span: TimeRange) -> list[TimeRange]:
    """By the ticks of files and tail; a file without a sidecar counts from its first to its last row."""
    found = [one for entry in catalog.select(span.from_ms, span.to_ms) for one in list_stretches(entry)]
    for day in tail.days:
        found += split_ticks(np.fromiter(sorted(day.clocks), np.int64, len(day.clocks)))
    clipped = (
        TimeRange(max(one.from_ms, span.from_ms), min(one.to_ms, span.to_ms))
        for one in found
        if one.from_ms <= span.to_ms and one.to_ms >= span.from_ms
    )
    return list(join_stretches(clipped))


@dataclass(frozen=True, slots=True)
class FileStretches:
    """Of one version of a file."""

    stretches: tuple[TimeRange, ...]

    @property
    def size_bytes(self) -> int:
        return 300 + 120 * len(self.stretches)


# Every answer about a span asks, and a day has 86,400 ticks: 4 ms each time. A month of hours takes 0.3 MiB.
KNOWN: DerivedCache[FileStretches] = DerivedCache(2**19)


def list_stretches(entry: FileEntry, known: DerivedCache[FileStretches] = KNOWN) -> Sequence[TimeRange]:
    """Derived once for each version of a file."""
    key = (entry.path, entry.size_bytes, entry.mtime_ns)
    found = known.get(key) if entry.is_local else None
    if found is None:
        ticks = entry.ticks()
        if ticks is None:
            return [TimeRange(entry.from_ms, entry.to_ms)]
        found = FileStretches(tuple(split_ticks(ticks.time_ms)))
        if entry.is_local:
            known.put(key, found)
    return found.stretches


def split_ticks(time_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[TimeRange]:
    """Where the agent paused a stretch ends; a wall clock that was set back is in order again."""
    if not len(time_ms):
        return []
    ordered = np.sort(time_ms)
    steps = np.diff(ordered)
    longest_ms = max(PAUSE_MS, PAUSE_INTERVALS * float(np.median(steps))) if len(steps) else PAUSE_MS
    breaks = np.flatnonzero(steps > longest_ms)
    firsts, lasts = ordered[np.r_[0, breaks + 1]], ordered[np.r_[breaks, len(ordered) - 1]]
    return [TimeRange(int(first), int(last)) for first, last in zip(firsts, lasts, strict=True)]


def join_stretches(stretches: Iterable[TimeRange]) -> Iterator[TimeRange]:
    """Files and tail may overlap, and follow one another without a pause."""
    current: TimeRange | None = None
    for one in sorted(stretches, key=lambda stretch: stretch.from_ms):
        if current is None or one.from_ms > current.to_ms + PAUSE_MS:
            if current is not None:
                yield current
            current = one
        elif one.to_ms > current.to_ms:
            current = TimeRange(current.from_ms, one.to_ms)
    if current is not None:
        yield current
