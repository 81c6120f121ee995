"""
The records of a log, as the stream of version 2 that `/live` sends.

Logs of version 2, which have no packed records, pass through. Where a record
was lost, the frames that need it are lost, too: up to the next first frame.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.codec import (
    BLOCK,
    DEFINITIONS,
    FIRST_FRAME,
    FRAME,
    HELLO,
    NEXT_FRAME,
    RECORD_BYTES,
    SET,
    VERSION,
    Payload,
    Records,
    iterate_records,
    parse_set,
)
from nodescope.base.errors import ArchiveRefused
from nodescope.keep.check.log_records import iterate_whole_records
from nodescope.keep.packed.cells import unpack_cells
from nodescope.keep.packed.log_encoder import (
    BLOCK_HEAD,
    CHAIN_HEAD,
    FRAME_HEAD,
    LOG_VERSION,
    NO_SET,
    SAME_STORY,
    pick_rows,
)


class ChainBroken(Exception):
    """A frame that needs one that is lost."""


def keep_in_memory(payload: bytes) -> Payload:
    return payload


@dataclass(slots=True)
class LogUnpacker:
    """Of one segment, whose bytes may come in pieces."""

    keep: Callable[[bytes], Payload] = keep_in_memory
    """Where a frame is held as long as somebody looks at it."""
    _sets: dict[int, list[int]] = field(default_factory=dict)
    """By number: its entities."""
    _place: int = -1
    """Of the next frame in its chain; -1 while only a first one can be read."""
    _values: dict[int, Floats] = field(default_factory=dict)
    """By set: the newest of this chain."""
    _story: bytes = b""
    _stream: Any = None

    def iterate(self, data: Payload, lost: list[str]) -> Records:
        """For Decoder.decode."""
        for kind, payload in iterate_whole_records(data, lost):
            if kind in (FIRST_FRAME, NEXT_FRAME):
                try:
                    yield FRAME, self.keep(self._unpack(kind, payload))
                except ChainBroken as error:
                    self._place = -1
                    lost.append(f"frame of {len(payload)} bytes: {error}")
            elif kind == DEFINITIONS:
                yield from self._define(payload)
            else:
                yield kind, greet(payload) if kind == HELLO else payload

    def _define(self, payload: Payload) -> Records:
        for kind, definition in iterate_records(inflate(zlib.decompressobj(), payload)):
            if kind == SET:
                number, _, _, places = parse_set(definition)
                self._sets[number] = places
            yield kind, definition

    def _unpack(self, kind: int, payload: Payload) -> bytes:
        _, place = CHAIN_HEAD.unpack_from(payload)
        if kind == FIRST_FRAME:
            self._place, self._story = 0, b""
            self._values.clear()
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        if place != self._place:
            raise ChainBroken("one that it follows is lost")
        self._place += 1
        return self._restore(inflate(self._stream, payload[CHAIN_HEAD.size :]))

    def _restore(self, content: bytes) -> bytes:
        """A frame of version 2."""
        sequence, at_ns, mono_ns, blocks = FRAME_HEAD.unpack_from(content)
        start = FRAME_HEAD.size + blocks * BLOCK_HEAD.size
        heads = list(BLOCK_HEAD.iter_unpack(content[FRAME_HEAD.size : start]))
        if sum(rows * columns for *_, rows, columns in heads) * 8 > RECORD_BYTES:
            raise ValueError("a frame that unpacks to more than a record may have")
        before = [self._find_before(number, base, shape) for number, base, _, *shape in heads]
        whole = np.concatenate([np.empty(0), *(one.ravel() for one in before)])
        values, end = unpack_cells(content, start, whole)
        parts: list[Payload] = [FRAME_HEAD.pack(sequence, at_ns, mono_ns, blocks)]
        for (number, base, since_ns, rows, columns), cells in zip(heads, cut_cells(values, before)):
            if base != number:
                self._values.pop(base, None)
            self._values[number] = cells.reshape(rows, columns)
            parts += [BLOCK.pack(number, mono_ns + since_ns, rows, columns), cells.data]
        if content[end : end + 1] != SAME_STORY:
            self._story = content[end + 1 :]
        return b"".join([*parts, self._story])

    def _find_before(self, number: int, base: int, shape: Sequence[int]) -> Floats:
        if base == NO_SET:
            return np.full(shape, np.nan)
        known = self._values.get(base)
        if known is None or (base != number and not {base, number} <= self._sets.keys()):
            raise ChainBroken("the names it needs are lost")
        if base == number:
            return known
        return pick_rows(known, self._sets[base], self._sets[number])


def cut_cells(values: Floats, like: list[Floats]) -> Iterator[Floats]:
    ends = np.cumsum([0, *(one.size for one in like)]).tolist()
    return (values[start:end] for start, end in pairwise(ends))


def greet(payload: Payload) -> bytes:
    """A hello of version 2; other versions are refused."""
    hello = json.loads(bytes(payload))
    if isinstance(hello, dict) and hello.get("version") == LOG_VERSION:
        hello["version"] = VERSION
    elif isinstance(hello, dict) and hello.get("version") != VERSION:
        raise ArchiveRefused(
            f"a log of version {hello.get('version')}; this build reads {VERSION} and {LOG_VERSION}"
        )
    return json.dumps(hello).encode()


def inflate(stream: Any, payload: Payload) -> bytes:
    """All that this record adds, within what a record may be."""
    try:
        content: bytes = stream.decompress(payload, RECORD_BYTES)
    except zlib.error as error:
        raise ValueError(f"a record that cannot be unpacked: {error}") from error
    if stream.unconsumed_tail:
        raise ValueError("a record that unpacks to more than a record may have")
    return content
