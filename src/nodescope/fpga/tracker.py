"""
What is known of this node's FPGAs: events folded into buckets as they arrive.

Senders report a usage session at its end, or a reconfiguration, with their own
wall clock. Whatever the rate, an event costs one addition and no memory:

    buckets[k] = [usage_ms, reconfiguration_ms, sessions]   for k = at_ms // bucket_ms

and only the newest SLOTS keys are kept, k in (now_k - SLOTS, now_k]. A window
is the sum of its buckets, recomputed at every reading, so that nothing drifts:
an event younger than the window by a bucket is in it, one older is not.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from nodescope.base.clock import Clock

# (at_ms, usage_ms, reconfiguration_ms, sessions): what happened around an instant.
Bucket = tuple[int, float, float, float]

# One-second buckets for the five minutes that the scheduler looks back: the
# edge of the window is blurred by a third of a percent.
SLOTS = 300
# More bitstreams than any node flashes within a window; beyond it the least
# recently used leave, and are counted.
BITSTREAMS = 1024


@dataclass(frozen=True, slots=True)
class FpgaEvent:
    """One report of a sender, checked; None where it did not say."""

    at_ms: int
    usage_ms: float | None = None
    reconfiguration_ms: float | None = None
    bitstream: str = ""
    override: tuple[str, ...] | None = None
    """Replaces the published set of bitstreams from now on; empty lifts that."""


@dataclass(slots=True)
class FpgaTotals:
    """What only ever grows, since the agent started."""

    usage_ms: float = 0.0
    reconfiguration_ms: float = 0.0
    sessions: int = 0
    reconfigurations: int = 0
    events: int = 0
    late: int = 0
    """Older than the window: in the totals only."""
    future: int = 0
    """From the future: taken as of now."""


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A bitstream that was loaded lately."""

    name: str
    seen_at_ms: int
    reconfiguration_ms: float
    """Mean time to load it; NaN when nobody reported one."""


@dataclass(slots=True)
class _Seen:
    at_ms: int
    total_ms: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class FpgaReading:
    """The windows at one moment."""

    at_ms: int
    window_ms: int
    usage_ms: float
    reconfiguration_ms: float
    usage_buckets: tuple[float, ...]
    """Oldest first, SLOTS of them, the last one is being filled."""
    reconfiguration_buckets: tuple[float, ...]
    bitstreams: tuple[Bitstream, ...]
    """Most recently seen first."""
    bitstreams_left: int
    """Seen in the window, but more than we keep."""
    sessions: float = 0.0
    """How many made up the usage; a restored part of them need not be whole."""
    totals: FpgaTotals = field(default_factory=FpgaTotals)
    heard: bool = False
    """Whether any event came, or an earlier state was restored."""


class FpgaTracker:
    """Filled by the intake, read by the source and the annotation; any thread."""

    def __init__(self, clock: Clock, window_seconds: float = 300.0, bitstream_seconds: float = 60.0) -> None:
        self._clock = clock
        self._bucket_ms = max(1, round(window_seconds * 1000 / SLOTS))
        self._bitstream_ms = round(bitstream_seconds * 1000)
        self._lock = threading.Lock()
        self._buckets: dict[int, list[float]] = {}
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._left: OrderedDict[int, int] = OrderedDict()
        """How many bitstreams left for want of room, by the bucket they were seen in."""
        self._override: tuple[str, ...] = ()
        self._totals = FpgaTotals()
        self._heard = False
        self._trimmed = 0

    @property
    def window_ms(self) -> int:
        return self._bucket_ms * SLOTS

    @property
    def heard(self) -> bool:
        """Whether any event came yet; costs nothing to ask."""
        return self._heard

    def now_ms(self) -> int:
        return self._clock.wall_ns() // 1_000_000

    def accept(self, event: FpgaEvent) -> None:
        """Fold one event in; never refuses, never blocks for long."""
        with self._lock:
            now_ms = self.now_ms()
            self._heard = True
            self._count(event, now_ms)
            at_ms = min(event.at_ms, now_ms)
            sessions = 0.0 if event.usage_ms is None else 1.0
            self._add(at_ms, now_ms, event.usage_ms or 0.0, event.reconfiguration_ms or 0.0, sessions)
            if event.override is not None:
                self._override = event.override
            if event.bitstream:
                self._see(event.bitstream, at_ms, now_ms, event.reconfiguration_ms)
            # Once a bucket, so that an event's cost does not grow with what is kept.
            if now_ms // self._bucket_ms != self._trimmed:
                self._trim(now_ms)

    def restore(self, buckets: Iterable[Bucket], bitstreams: Iterable[Bitstream]) -> None:
        """What an earlier run knew, in buckets and bitstreams; not in the totals."""
        with self._lock:
            now_ms = self.now_ms()
            for at_ms, usage_ms, reconfiguration_ms, sessions in buckets:
                self._heard = True
                self._add(min(at_ms, now_ms), now_ms, usage_ms, reconfiguration_ms, sessions)
            for one in bitstreams:
                self._heard = True
                known = None if math.isnan(one.reconfiguration_ms) else one.reconfiguration_ms
                self._see(one.name, min(one.seen_at_ms, now_ms), now_ms, known)

    def read(self) -> FpgaReading:
        with self._lock:
            now_ms = self.now_ms()
            self._trim(now_ms)
            newest = now_ms // self._bucket_ms
            empty = [0.0, 0.0, 0.0]
            rows = [self._buckets.get(key, empty) for key in range(newest - SLOTS + 1, newest + 1)]
            usage, reconfiguration, sessions = zip(*rows)
            return FpgaReading(
                at_ms=now_ms,
                window_ms=self.window_ms,
                usage_ms=math.fsum(usage),
                reconfiguration_ms=math.fsum(reconfiguration),
                usage_buckets=usage,
                reconfiguration_buckets=reconfiguration,
                bitstreams=self._bitstreams(now_ms),
                bitstreams_left=0 if self._override else sum(self._left.values()),
                sessions=math.fsum(sessions),
                totals=replace(self._totals),
                heard=self._heard,
            )

    def _bitstreams(self, now_ms: int) -> tuple[Bitstream, ...]:
        if self._override:
            return tuple(Bitstream(name, now_ms, self._mean(name)) for name in self._override)
        recent = sorted(self._seen.items(), key=lambda item: -item[1].at_ms)
        return tuple(Bitstream(name, seen.at_ms, self._mean(name)) for name, seen in recent)

    def _mean(self, name: str) -> float:
        seen = self._seen.get(name)
        return seen.total_ms / seen.count if seen and seen.count else math.nan

    def _count(self, event: FpgaEvent, now_ms: int) -> None:
        totals = self._totals
        totals.events += 1
        totals.future += event.at_ms > now_ms
        totals.late += event.at_ms // self._bucket_ms <= now_ms // self._bucket_ms - SLOTS
        if event.usage_ms is not None:
            totals.usage_ms += event.usage_ms
            totals.sessions += 1
        if event.reconfiguration_ms is not None:
            totals.reconfiguration_ms += event.reconfiguration_ms
            totals.reconfigurations += 1

    def _add(
        self, at_ms: int, now_ms: int, usage_ms: float, reconfiguration_ms: float, sessions: float
    ) -> None:
        key = at_ms // self._bucket_ms
        if key <= now_ms // self._bucket_ms - SLOTS:
            return
        bucket = self._buckets.setdefault(key, [0.0, 0.0, 0.0])
        bucket[0] += usage_ms
        bucket[1] += reconfiguration_ms
        bucket[2] += sessions

    def _see(self, name: str, at_ms: int, now_ms: int, reconfiguration_ms: float | None) -> None:
        if at_ms < now_ms - self._bitstream_ms:
            return
        seen = self._seen.setdefault(name, _Seen(at_ms))
        # An old report that arrives late must not make a bitstream look older.
        seen.at_ms = max(seen.at_ms, at_ms)
        if reconfiguration_ms is not None:
            seen.total_ms += reconfiguration_ms
            seen.count += 1
        self._seen.move_to_end(name)
        if len(self._seen) > BITSTREAMS:
            _, gone = self._seen.popitem(last=False)
            key = gone.at_ms // self._bucket_ms
            self._left[key] = self._left.get(key, 0) + 1

    def _trim(self, now_ms: int) -> None:
        """Let go of what left its window; what a stepped clock put into the future is of now."""
        newest = self._trimmed = now_ms // self._bucket_ms
        for key in [key for key in self._buckets if not newest - SLOTS < key <= newest]:
            ahead = self._buckets.pop(key)
            if key > newest:
                self._add(now_ms, now_ms, *ahead)
        for seen in self._seen.values():
            seen.at_ms = min(seen.at_ms, now_ms)
        oldest_ms = now_ms - self._bitstream_ms
        for name in [name for name, seen in self._seen.items() if seen.at_ms < oldest_ms]:
            del self._seen[name]
        for key in [key for key in self._left if key < oldest_ms // self._bucket_ms]:
            del self._left[key]
