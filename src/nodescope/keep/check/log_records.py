"""
The records of a log that is damaged: all but those that are.

Behind a damaged record the next whole one is looked for: where its length says
that it ends, then with each bit of that length turned, then byte by byte. A
record counts only when its checksum fits.

Where one flipped bit explains the damage, a record is corrected, if something
besides its checksum proves the result: the JSON of a definition must be JSON,
and a packed record has a second checksum. A plain frame (of `/live`, and of
logs of version 2) has none; it is left out.
"""

import json
import zlib

import numpy as np

from nodescope.base.codec import (
    DEFINITIONS,
    FIRST_FRAME,
    FRAME,
    HELLO,
    NEXT_FRAME,
    RECORD,
    SET,
    TABLE,
    Payload,
    Records,
    check_record,
    read_record,
)
from nodescope.base.errors import ArchiveTruncated
from nodescope.base.log import Log
from nodescope.keep.check.bit_repair import find_flipped_bit, flip_bit
from nodescope.keep.packed.log_encoder import CHAIN_HEAD

log = Log("log")
NAMES = {
    HELLO: "hello",
    FRAME: "frame",
    TABLE: "table",
    SET: "set",
    DEFINITIONS: "definitions",
    FIRST_FRAME: "frame",
    NEXT_FRAME: "frame",
}
# The least that each kind has: shorter ones are chance.
LEAST_BYTES = {HELLO: 20, FRAME: 28, TABLE: 20, SET: 18, DEFINITIONS: 18, FIRST_FRAME: 18, NEXT_FRAME: 18}
# Checked at most while looking for the next record, as a multiple of the log.
WORK_MOST = 16
# Where the JSON of a definition begins.
JSON_START = {HELLO: 0, TABLE: 4}


def iterate_whole_records(data: Payload, lost: list[str]) -> Records:
    """Names in `lost` what it leaves out; ArchiveTruncated where no whole record follows."""
    offset = 0
    while offset < len(data):
        try:
            kind, payload = read_record(data, offset)
        except ArchiveTruncated as error:
            following = find_next(data, offset)
            if following is None:
                raise
            mended = mend(data, offset, following)
            if mended:
                log.warning(
                    "record of the log corrected", record=name_record(data, offset), reason=str(error)
                )
                yield mended
            else:
                lost.append(f"{name_record(data, offset)} of {following - offset} bytes: {error}")
            offset = following
            continue
        yield kind, payload
        offset += RECORD.size + len(payload)


def name_record(data: Payload, offset: int) -> str:
    return NAMES.get(data[offset + RECORD.size - 1], "record")


def is_record(data: Payload, offset: int) -> bool:
    try:
        kind, payload = read_record(data, offset)
    except ArchiveTruncated:
        return False
    return len(payload) >= LEAST_BYTES.get(kind, len(payload) + 1)


def find_next(data: Payload, offset: int) -> int | None:
    """
    Where the first whole record behind a damaged one begins, or the log ends.

    None where no record follows: what a crash leaves of the last one is shorter than it says.
    """
    if offset + RECORD.size > len(data):
        return None
    length, check, kind = RECORD.unpack_from(data, offset)
    start = offset + RECORD.size
    if start + length == len(data) or is_record(data, start + length):
        return int(start + length)
    for bit in range(32):
        end = start + (length ^ 1 << bit)
        if end <= len(data) and check_record(kind, data[start:end]) == check:
            return int(end)
    return scan(data, offset + 1)


def scan(data: Payload, start: int) -> int | None:
    """Byte by byte; only where a kind and a length are possible is a checksum computed."""
    view = np.frombuffer(data, np.uint8, offset=start)
    places = len(view) - RECORD.size
    if places <= 0:
        return None
    kinds = view[RECORD.size - 1 :][:places]
    length = np.zeros(places, np.int64)
    for place in range(4):
        length |= view[place:][:places].astype(np.int64) << 8 * place
    least = np.array([LEAST_BYTES.get(kind, 2**40) for kind in range(256)])[kinds]
    fits = (length >= least) & (length <= places - np.arange(places))
    work = WORK_MOST * len(data)
    for place in np.flatnonzero(fits).tolist():
        if is_record(data, start + place):
            return int(start + place)
        work -= int(length[place])
        if work < 0:
            return None
    return None


def mend(data: Payload, offset: int, following: int) -> tuple[int, Payload] | None:
    """The record between the two as it was written, where that can be told."""
    _, check, kind = RECORD.unpack_from(data, offset)
    payload = bytes(data[offset + RECORD.size : following])
    difference = check_record(kind, payload) ^ check
    if difference & (difference - 1) == 0:
        # Its length, or a bit of the checksum itself.
        return (kind, payload) if kind in NAMES else None
    message = bytes([kind]) + payload
    found = find_flipped_bit(len(message), difference)
    if found is None:
        return None
    turned = flip_bit(message, *found)
    return (turned[0], turned[1:]) if is_proven(turned) else None


def is_proven(message: bytes) -> bool:
    """By something besides the checksum of all records."""
    kind, payload = message[0], message[1:]
    if kind in (FIRST_FRAME, NEXT_FRAME):
        return bool(zlib.adler32(payload[CHAIN_HEAD.size :]) == CHAIN_HEAD.unpack_from(payload)[0])
    if kind == DEFINITIONS:
        return is_unpacked(payload)
    return kind in (HELLO, TABLE, SET) and has_json(kind, payload)


def is_unpacked(payload: bytes) -> bool:
    """A zlib stream ends with a checksum of its own."""
    try:
        zlib.decompress(payload)
    except zlib.error:
        return False
    return True


def has_json(kind: int, payload: bytes) -> bool:
    start = JSON_START.get(kind)
    if start is None:
        start = 16 + 4 * int.from_bytes(payload[12:16], "little")
    try:
        json.loads(payload[start:])
    except ValueError:
        return False
    return True
