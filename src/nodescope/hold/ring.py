"""
The ring: the last minutes of every table, within a number of bytes.

Kept per table, as the blocks themselves: they are immutable, so readers copy
a list of references under a lock and look at their leisure. Old blocks leave
by age; when the bytes run out, the oldest of the largest table leave first,
so that a thousand containers never shorten the node's own window.
"""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodescope.base.block import Block, Integers, Table
from nodescope.base.entity import Entity
from nodescope.base.frame import Frame
from nodescope.hold.ended import Ended, hash_keys
from nodescope.hold.header import Header, pack_header

# What a generation of entities costs beside its numbers: labels, tuples and
# their strings, measured on containers with Kubernetes names.
ENTITY_BYTES = 1200
BLOCK_BYTES = 200
# Scopes whose entities end by an event.
ENDING_SCOPES = frozenset({"container", "service"})
# A table that lost most of its rows is kept for so long at its former size:
# longer than the windows that schedulers ask for.
SHRUNK_SECONDS = 30
# It is looked for every so many ticks.
SHRUNK_TICKS = 5
# Less than this is not worth a shorter window.
SHRUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Moment:
    """One block in time."""

    sequence: int
    at_ns: int
    mono_ns: int
    block: Block


@dataclass(slots=True)
class RingTrack:
    """One table's moments, oldest first."""

    table: Table
    moments: deque[Moment] = field(default_factory=deque)
    used_bytes: int = 0
    newest_entities: tuple[Entity, ...] = ()
    hashes: Integers | None = None
    """Of the keys of these; made while somebody has ended of late."""
    cut_mono_ns: int | None = None
    """When bytes, not age, last made a moment leave."""
    cut_span_ns: int = 0
    """How far back the table reached then: what was there is not kept for longer, once there is room again."""


def pick_rows(moment: Moment, rows: Sequence[int]) -> Moment:
    """The same moment with only these rows of its block."""
    block = moment.block
    entities = tuple(block.entities[row] for row in rows)
    return replace(moment, block=Block(block.table, entities, block.values[rows], block.mono_ns))


class Ring:
    """A sink; everything that answers reads from it."""

    def __init__(self, ring_seconds: float, ring_bytes: int, interval_seconds: float) -> None:
        self.ring_seconds = ring_seconds
        self.ring_bytes = ring_bytes
        self.interval_seconds = interval_seconds
        self._tracks: dict[str, RingTrack] = {}
        self._headers: deque[Header] = deque()
        self._newest: Frame | None = None
        self._latest: dict[str, Moment] = {}
        self._ended = Ended()
        self._lock = threading.Lock()

    # -- writing ----------------------------------------------------------

    def accept(self, frame: Frame) -> None:
        with self._lock:
            self._note_ends(frame)
            for block in frame.blocks:
                self._append(Moment(frame.sequence, frame.at_ns, frame.mono_ns, block))
            self._newest = replace(frame, blocks=())
            self._headers.append(pack_header(frame, self._headers[-1] if self._headers else None))
            self._expire(frame.mono_ns)
            self._shrink(frame.mono_ns)
            if frame.sequence % SHRUNK_TICKS == 0:
                for track in self._tracks.values():
                    self._expire_shrunk(track, frame.mono_ns)

    def _append(self, moment: Moment) -> None:
        table = moment.block.table
        track = self._tracks.get(table.name)
        if track is None or track.table is not table:
            track = self._tracks[table.name] = RingTrack(table)
        track.moments.append(moment)
        track.used_bytes += self._cost(moment, track.newest_entities)
        if track.newest_entities is not moment.block.entities:
            track.newest_entities, track.hashes = moment.block.entities, None
        self._latest[table.name] = self._living(moment)

    def _note_ends(self, frame: Frame) -> None:
        """Who ended is not shown as living by a table that is read less often."""
        if self._ended.note(frame.events, frame.mono_ns):
            self._latest = {name: self._living(moment) for name, moment in self._latest.items()}
        self._ended.expire(frame.mono_ns)

    def _living(self, moment: Moment) -> Moment:
        block = moment.block
        if not self._ended or not ENDING_SCOPES.intersection(block.table.scopes):
            return moment
        alive = self._ended.find_living(self._hash(block))
        return moment if alive is None else pick_rows(moment, alive.tolist())

    def _hash(self, block: Block) -> Integers:
        """Once for a set of entities, however many ticks it stays."""
        track = self._tracks[block.table.name]
        if track.newest_entities is not block.entities:
            return hash_keys(block.entities)
        if track.hashes is None:
            track.hashes = hash_keys(block.entities)
        return track.hashes

    @staticmethod
    def _cost(moment: Moment, neighbours: tuple[Entity, ...]) -> int:
        """A set of entities is paid once, however many moments share it."""
        entities = moment.block.entities
        names = 0 if entities is neighbours else len(entities) * ENTITY_BYTES
        return int(moment.block.values.nbytes) + BLOCK_BYTES + names

    def _drop_oldest(self, track: RingTrack) -> None:
        oldest = track.moments.popleft()
        following = track.moments[0].block.entities if track.moments else ()
        track.used_bytes -= self._cost(oldest, following)
        if not track.moments:
            track.used_bytes = 0

    def _expire(self, now_mono_ns: int) -> None:
        # One interval more than promised: a counter's window starts with the
        # frame just before it.
        oldest_ns = now_mono_ns - round((self.ring_seconds + 1.5 * self.interval_seconds) * 1e9)
        while self._headers and self._headers[0].frame.mono_ns < oldest_ns:
            self._headers.popleft()
        for track in self._tracks.values():
            while len(track.moments) > 1 and track.moments[0].mono_ns < oldest_ns:
                self._drop_oldest(track)
            self._expire_cut(track, now_mono_ns)

    def _expire_shrunk(self, track: RingTrack, now_mono_ns: int) -> None:
        """Of thousands of containers that are gone, memory is free within a minute, not after all of the ring."""
        newest = track.moments[-1].block
        if track.used_bytes < SHRUNK_BYTES + 2 * len(track.moments) * newest.values.nbytes:
            return
        oldest_ns = now_mono_ns - SHRUNK_SECONDS * 10**9
        old = [len(moment.block.entities) for moment in track.moments if moment.mono_ns < oldest_ns]
        while old and max(old) > 2 * len(newest.entities):
            self._drop_oldest(track)
            del old[0]
            # What follows is small, and stays for its time.
            track.cut_mono_ns, track.cut_span_ns = now_mono_ns, round(self.ring_seconds * 1e9)

    def _expire_cut(self, track: RingTrack, now_mono_ns: int) -> None:
        """5,000 containers that are gone are given back as soon as they would have left had they stayed."""
        if track.cut_mono_ns is None or now_mono_ns <= track.cut_mono_ns:
            return
        oldest_ns = min(now_mono_ns - track.cut_span_ns, track.cut_mono_ns + 1)
        while len(track.moments) > 1 and track.moments[0].mono_ns < oldest_ns:
            self._drop_oldest(track)

    def _shrink(self, now_mono_ns: int) -> None:
        total = sum(track.used_bytes for track in self._tracks.values())
        while total > self.ring_bytes:
            able = [track for track in self._tracks.values() if len(track.moments) > 1]
            if not able:
                break
            largest = max(able, key=lambda track: track.used_bytes)
            before = largest.used_bytes
            self._drop_oldest(largest)
            largest.cut_mono_ns = now_mono_ns
            largest.cut_span_ns = now_mono_ns - largest.moments[0].mono_ns
            total -= before - largest.used_bytes

    def allow(self, ring_bytes: int) -> None:
        """So many bytes from the next frame on."""
        self.ring_bytes = ring_bytes

    # -- reading ----------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        with self._lock:
            return sum(track.used_bytes for track in self._tracks.values())

    @property
    def frame_count(self) -> int:
        return len(self._headers)

    def newest(self) -> Frame | None:
        """The last tick's header: times, outcomes, events."""
        with self._lock:
            return self._newest

    def latest(self) -> Mapping[str, Moment]:
        """The newest moment of every table, slow tables included."""
        with self._lock:
            return dict(self._latest)

    def headers(self, after_mono_ns: int, until_mono_ns: int) -> list[Frame]:
        """Frames with time in (after, until]."""
        with self._lock:
            held = [one for one in self._headers if after_mono_ns < one.frame.mono_ns <= until_mono_ns]
        return [header.unpack() for header in held]

    def count_frames(self, after_mono_ns: int, until_mono_ns: int) -> int:
        with self._lock:
            return sum(after_mono_ns < one.frame.mono_ns <= until_mono_ns for one in self._headers)

    def moments(
        self, table: str, after_mono_ns: int, until_mono_ns: int
    ) -> tuple[Moment | None, list[Moment]]:
        """A table's moments in (after, until], and the one just before if it is still there."""
        with self._lock:
            track = self._tracks.get(table)
            held = list(track.moments) if track else []
        inside = [moment for moment in held if after_mono_ns < moment.mono_ns <= until_mono_ns]
        earlier = [moment for moment in held if moment.mono_ns <= after_mono_ns]
        return (earlier[-1] if earlier else None), inside

    def tables(self, scope: str) -> list[Table]:
        with self._lock:
            return [track.table for track in self._tracks.values() if scope in track.table.scopes]

    def accepted_seconds(self, scope: str) -> float:
        """
        The longest window that can be asked for: capacity, not fill.

        Only bytes shorten it: then it is what the shortest table of the scope
        can hold at its present size.
        """
        with self._lock:
            longest = self.ring_seconds
            for track in self._tracks.values():
                if scope in track.table.scopes and track.cut_mono_ns is not None and track.moments:
                    # A single moment left is one interval, not nothing.
                    interval_ns = self.interval_seconds * 1e9
                    held_ns = max(interval_ns, track.moments[-1].mono_ns - track.moments[0].mono_ns)
                    was_cut = track.moments[-1].mono_ns - track.cut_mono_ns < self.ring_seconds * 1e9
                    if was_cut:
                        longest = min(longest, held_ns / 1e9)
            return longest

    def since(self, sequence: int) -> tuple[bool, list[Frame]]:
        """Whole frames newer than a sequence number; False when some have left already."""
        with self._lock:
            complete = not self._headers or self._headers[0].frame.sequence <= sequence + 1
            wanted = [one for one in self._headers if one.frame.sequence > sequence]
            blocks: dict[int, list[Block]] = {}
            for track in self._tracks.values():
                for moment in reversed(track.moments):
                    if moment.sequence <= sequence:
                        break
                    blocks.setdefault(moment.sequence, []).append(moment.block)
        frames = []
        for header in wanted:
            mine = blocks.get(header.frame.sequence, [])
            complete = complete and len(mine) == header.block_count
            frames.append(replace(header.unpack(), blocks=tuple(mine)))
        return complete, frames
