"""
Small files that carry their own checksum: CRC-32 and SHA-256 of all their other bytes.

A binary file ends with a skippable frame of zstd, so that `zstdcat` still reads
what is before it. A JSON object has a key `sum`, computed while that is zeros.
A single flipped bit is corrected on reading: CRC-32 finds it, SHA-256 proves
it. Older files have no seal; they are read as they are.
"""

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodescope.base.errors import ArchiveDamaged
from nodescope.keep.check.bit_repair import repair_bytes

# The frame's magic word and length (RFC 8878, 3.1.2), then the two checksums.
_TRAILER = struct.Struct("<III32s")
_MAGIC = 0x184D2A5E
_LENGTH = _TRAILER.size - 8
_DIGITS = 72
_SUM = re.compile(rb'"sum": "([0-9a-f]{72})"')
_BLANK = b'"sum": "' + b"0" * _DIGITS + b'"'


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The content of a sealed file."""

    data: bytes
    is_sealed: bool
    """False: it is older than checksums are, and was not checked."""
    is_repaired: bool = False
    """The file as it lies there has a flipped bit."""


def seal(body: bytes) -> bytes:
    return body + _TRAILER.pack(_MAGIC, _LENGTH, zlib.crc32(body), hashlib.sha256(body).digest())


def unseal(data: bytes) -> Unsealed:
    """ArchiveDamaged where the bytes are not those that were sealed and cannot be corrected."""
    body = data[: -_TRAILER.size]
    if len(data) < _TRAILER.size:
        return Unsealed(data, is_sealed=False)
    magic, length, crc32, digest = _TRAILER.unpack_from(data, len(body))
    is_there = (magic, length) == (_MAGIC, _LENGTH)
    # A flip in the trailer itself leaves one of the two checksums right.
    if (is_there and zlib.crc32(body) == crc32) or _digest(body) == digest:
        return Unsealed(body, is_sealed=True, is_repaired=seal(body) != data)
    if not is_there:
        return Unsealed(data, is_sealed=False)
    return _correct(body, crc32, digest)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _correct(body: bytes, crc32: int, digest: bytes) -> Unsealed:
    repaired = repair_bytes(body, crc32)
    if repaired is None or _digest(repaired) != digest:
        raise ArchiveDamaged("damaged: it has another checksum than when it was written")
    return Unsealed(repaired, is_sealed=True, is_repaired=True)


# -- JSON ----------------------------------------------------------------------------


def seal_json(content: Mapping[str, Any]) -> bytes:
    text = json.dumps({**content, "sum": "0" * _DIGITS}, indent=0, sort_keys=True).encode() + b"\n"
    return _fill(text)


def _fill(blank: bytes) -> bytes:
    digits = f"{zlib.crc32(blank):08x}{hashlib.sha256(blank).hexdigest()}".encode()
    return blank.replace(_BLANK, b'"sum": "' + digits + b'"', 1)


def unseal_json(data: bytes) -> Unsealed:
    """Its text; the sum in it is as it was found, or zeros."""
    match = _SUM.search(data)
    if match is None:
        return Unsealed(data, is_sealed=False)
    blank = data[: match.start()] + _BLANK + data[match.end() :]
    crc32, digest = int(match[1][:8], 16), bytes.fromhex(match[1][8:].decode())
    if zlib.crc32(blank) == crc32 or _digest(blank) == digest:
        return Unsealed(blank, is_sealed=True, is_repaired=_fill(blank) != data)
    return _correct(blank, crc32, digest)
