"""
The records of a log that is damaged: all but those that are.

Behind a damaged record the next whole one is looked for: where its length says
that it ends, then with each bit of that length turned, then byte by byte. A
record counts only when its checksum fits.

A frame that is damaged is left out. Records that name tables and entities are
needed by all later frames; where one flipped bit explains the damage, they are
corrected. Their JSON must then be JSON, which a wrong correction would not be.
"""

import json

import numpy as np

from nodescope.base.codec import (
    FRAME,
    HELLO,
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

log = Log("log")
NAMES = {HELLO: "hello", FRAME: "frame", TABLE: "table", SET: "set"}
# The least that each kind has: shorter ones are chance.
LEAST_BYTES = {HELLO: 20, FRAME: 28, TABLE: 20, SET: 18}
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
    return (turned[0], turned[1:]) if is_definition(turned) else None


def is_definition(message: bytes) -> bool:
    kind, payload = message[0], message[1:]
    if kind not in (HELLO, TABLE, SET):
        return False
    start = JSON_START.get(kind)
    if start is None:
        start = 16 + 4 * int.from_bytes(payload[12:16], "little")
    try:
        json.loads(payload[start:])
    except ValueError:
        return False
    return True
