"""
Numbers as what has changed since they were read before.

Of the cells of a tick few change, and most that do are whole numbers that grow
a little. So a bit for each cell says whether it changed, a bit for each of
these whether both of its values are whole, and then come the differences:

    u32 changed cells   u8 which bytes of a difference are not zero everywhere
    a bit for each cell, a bit for each changed cell
    the differences, first all lowest bytes, then all second ones, ...

The difference of whole numbers is their distance (0, -1, 1, -2, ... as 0, 1,
2, 3, ...), that of others the exclusive or of their bits. All bits come back
as they were, those of NaN and of minus zero as well. A cell without a value
before counts as NaN, and NaN as zero where a difference is taken.
"""

import struct

import numpy as np
from numpy.typing import NDArray

from nodescope.base.block import Floats

_HEAD = struct.Struct("<IB")
_BITS = np.dtype("<u8")
_WHOLE = np.dtype("<i8")
_FLOAT = np.dtype("<f8")
# Whole numbers below it are exact, and so are their differences.
EXACT = 2.0**52
BYTES = 8

Bits = NDArray[np.uint64]
Wholes = NDArray[np.int64]
Mask = NDArray[np.bool_]


def pack_cells(values: Floats, before: Floats) -> bytes:
    """Both flat and of one length."""
    changed = values.view(_BITS) != before.view(_BITS)
    now, then = values[changed], fill(before[changed])
    wholes, were = to_wholes(now), to_wholes(then)
    is_whole = wholes[1] & were[1]
    code = np.where(is_whole, fold(wholes[0] - were[0]), now.view(_BITS) ^ then.view(_BITS))
    planes = code.view(np.uint8).reshape(-1, BYTES)
    largest = int(np.bitwise_or.reduce(code)) if len(code) else 0
    used = [place for place in range(BYTES) if largest >> 8 * place & 255]
    return b"".join(
        [
            _HEAD.pack(len(now), sum(1 << place for place in used)),
            np.packbits(changed).tobytes(),
            np.packbits(is_whole).tobytes(),
            *(planes[:, place].tobytes() for place in used),
        ]
    )


def unpack_cells(data: bytes, offset: int, before: Floats) -> tuple[Floats, int]:
    """(values, where the next byte is)."""
    count, used = _HEAD.unpack_from(data, offset)
    offset += _HEAD.size
    changed, offset = read_bits(data, offset, len(before))
    is_whole, offset = read_bits(data, offset, count)
    places = [place for place in range(BYTES) if used >> place & 1]
    planes = np.zeros((count, BYTES), np.uint8)
    for place in places:
        planes[:, place] = np.frombuffer(data, np.uint8, count, offset)
        offset += count
    code = planes.view(_BITS).reshape(-1)
    values = before.copy()
    then = fill(before[changed])
    grown = (unfold(code) + to_wholes(then)[0]).astype(_FLOAT)
    values[changed] = np.where(is_whole, grown.view(_BITS), code ^ then.view(_BITS)).view(_FLOAT)
    return values, offset


def read_bits(data: bytes, offset: int, count: int) -> tuple[Mask, int]:
    size = (count + 7) // 8
    packed = np.frombuffer(data, np.uint8, size, offset)
    return np.unpackbits(packed, count=count).view(bool), offset + size


def fill(values: Floats) -> Floats:
    """Zero for what was not measured."""
    return np.where(np.isnan(values), 0.0, values)


def to_wholes(values: Floats) -> tuple[Wholes, Mask]:
    """(whole numbers, which of them are the very value); zero for the others."""
    whole = np.where(np.abs(values) < EXACT, values, 0.0).astype(_WHOLE)
    return whole, whole.astype(_FLOAT).view(_BITS) == values.view(_BITS)


def fold(steps: Wholes) -> Bits:
    """Small steps in either direction become small numbers."""
    return ((steps << 1) ^ (steps >> 63)).view(_BITS)


def unfold(code: Bits) -> Wholes:
    return (code >> np.uint64(1)).view(_WHOLE) ^ -(code & np.uint64(1)).view(_WHOLE)
