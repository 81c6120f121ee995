"""
A single flipped bit, found from the difference of two CRC-32 values.

CRC-32 is linear: what a flip changes in the checksum depends only on its
distance from the end, and is different for every bit of a message below 512
MiB. So the difference between the stored checksum and that of the bytes as
they are names the bit. Damage of more than one bit may name a wrong one:
whoever repairs must prove the result with another checksum.
"""

import zlib

BYTE_BITS = 8
# What each byte value, as the last of a message, adds to the checksum.
_TABLE = [zlib.crc32(bytes([value])) ^ zlib.crc32(b"\0") for value in range(256)]
_BY_TOP = {entry >> 24: value for value, entry in enumerate(_TABLE)}
_BIT_OF = {_TABLE[1 << bit]: bit for bit in range(BYTE_BITS)}


def find_flipped_bit(size: int, difference: int) -> tuple[int, int] | None:
    """(byte, bit) of a message of so many bytes; None where no single flip explains the difference."""
    for place in range(size - 1, -1, -1):
        bit = _BIT_OF.get(difference)
        if bit is not None:
            return place, bit
        # The same flip, seen from one byte nearer to the end.
        value = _BY_TOP[difference >> 24]
        difference = ((difference ^ _TABLE[value]) << 8 | value) & 0xFFFFFFFF
    return None


def flip_bit(data: bytes, place: int, bit: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def repair_bytes(data: bytes, crc32: int) -> bytes | None:
    """The bytes whose checksum this is, one bit away from these; None where there are none."""
    difference = zlib.crc32(data) ^ crc32
    found = find_flipped_bit(len(data), difference) if difference else None
    return flip_bit(data, *found) if found else None
