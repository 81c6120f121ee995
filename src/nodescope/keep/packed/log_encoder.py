"""
Frames to the records of a log.

A log is a stream of base/codec.py of version 3, which differs from what `/live`
sends (version 2) in three records:

    kind 6  definitions  zlib: records of kinds 4 and 5, as they are in version 2
    kind 7  first frame  u32 Adler-32 of what follows, u16 place, then the frame, packed
    kind 8  next frame   the same

All frames from a first one to the next first one are one deflate stream,
flushed behind each frame; the place of a frame is its distance from the first.
Unpacked, a frame is

    u64 sequence, i64 wall ns, i64 monotonic ns, u32 number of blocks,
    of each block: u32 set, u32 set of the values before, i64 monotonic ns since the frame's, u32 rows, u32 columns
    the cells of all blocks (cells.py), u8 whether the story is the one before, the story otherwise

The values before are those of the same table in an earlier frame, by entity
where its set changed; NO_SET where there are none. A frame is lost with its
record and takes those up to the next first frame with it; definitions are
not part of the chain.
"""

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodescope.base.block import Block, Floats
from nodescope.base.codec import DEFINITIONS, FIRST_FRAME, NEXT_FRAME, Encoder, pack_record
from nodescope.base.frame import Frame
from nodescope.keep.packed.cells import pack_cells

LOG_VERSION = 3
FRAME_HEAD = struct.Struct("<QqqI")
CHAIN_HEAD = struct.Struct("<IH")
BLOCK_HEAD = struct.Struct("<IIqII")
NO_SET = 0xFFFFFFFF
SAME_STORY, NEW_STORY = b"\1", b"\0"
# What one damaged record may cost, and how often all numbers are written: half a minute of ticks.
CHAPTER_FRAMES = 30
# The stream is packed once a second by a process that must cost nothing; names once a segment.
FRAME_LEVEL = 1
NAMES_LEVEL = 6


@dataclass(slots=True)
class LogEncoder:
    """Of one segment."""

    _names: Encoder = field(default_factory=lambda: Encoder(LOG_VERSION))
    _place: int = 0
    _before: dict[str, tuple[int, list[int], Floats]] = field(default_factory=dict)
    """By table: its newest set, the entities of it, and its values."""
    _story: bytes | None = None
    _stream: Any = None

    def hello(self, **facts: Any) -> bytes:
        return self._names.hello(**facts)

    def encode(self, frame: Frame) -> bytes:
        """The frame's record, behind the definitions it needs."""
        kind = NEXT_FRAME if self._place % CHAPTER_FRAMES else FIRST_FRAME
        if kind == FIRST_FRAME:
            self._begin()
        definitions, content = self._lay_out(frame)
        packed = self._stream.compress(content) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        head = CHAIN_HEAD.pack(zlib.adler32(packed), self._place)
        self._place += 1
        record = pack_record(kind, head + packed)
        return (
            pack_record(DEFINITIONS, zlib.compress(definitions, NAMES_LEVEL)) + record
            if definitions
            else record
        )

    def _begin(self) -> None:
        self._place, self._story = 0, None
        self._before.clear()
        self._stream = zlib.compressobj(FRAME_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)

    def _lay_out(self, frame: Frame) -> tuple[bytes, bytes]:
        """(definitions, content)."""
        definitions, heads, values, before = [], [], [np.empty(0)], [np.empty(0)]
        for block in frame.blocks:
            number, definition = self._names.define(block)
            definitions.append(definition)
            cells = np.ascontiguousarray(block.values, np.float64)
            base, were = self._find_before(block, number, cells)
            heads.append(BLOCK_HEAD.pack(number, base, block.mono_ns - frame.mono_ns, *cells.shape))
            values.append(cells.ravel())
            before.append(were.ravel())
        content = [
            FRAME_HEAD.pack(frame.sequence, frame.at_ns, frame.mono_ns, len(frame.blocks)),
            *heads,
            pack_cells(np.concatenate(values), np.concatenate(before)),
            self._tell(frame),
        ]
        return b"".join(definitions), b"".join(content)

    def _find_before(self, block: Block, number: int, cells: Floats) -> tuple[int, Floats]:
        """The set of this table's values before, and these in the order of the block; they are its own from now on."""
        known = self._before.get(block.table.name)
        entities = self._names.places(block.table.name)
        self._before[block.table.name] = (number, entities, cells)
        if known is None or known[2].shape[1] != cells.shape[1]:
            return NO_SET, np.full(cells.shape, np.nan)
        if known[0] == number:
            return number, known[2]
        return known[0], pick_rows(known[2], known[1], entities)

    def _tell(self, frame: Frame) -> bytes:
        story, before = self._names.tell(frame), self._story
        self._story = story
        return SAME_STORY if story == before else NEW_STORY + story


def pick_rows(values: Floats, entities: list[int], wanted_entities: list[int]) -> Floats:
    """The rows of the wanted ones; NaN for those that are not among the entities of the values."""
    have, want = np.array(entities, np.int64), np.array(wanted_entities, np.int64)
    if not len(have):
        return np.full((len(want), values.shape[1]), np.nan)
    # Sorted and searched: a table by number would be as large as a damaged log says a number is.
    order = np.argsort(have, kind="stable")
    found = np.searchsorted(have[order], want, side="right") - 1
    rows = order[found]
    picked = values[rows]
    picked[have[rows] != want] = np.nan
    return picked
