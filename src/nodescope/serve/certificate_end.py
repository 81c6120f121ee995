"""
When a certificate ends, read from its file.

The standard library tells it of a peer's certificate only. A certificate is
nested values (DER), each a tag, a length and that many bytes; the end is the second
time of the fifth or sixth value of its first part (RFC 5280, 4.1).
"""

import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# The tag of a version, which the oldest certificates do not have, and of a time with two digits of the year.
VERSION, SHORT_TIME = 0xA0, 0x17


def read_end(pem: bytes) -> float | None:
    """Seconds since 1970 at which the first certificate of a file ends; None where that cannot be read."""
    found = PEM.search(pem)
    if found is None:
        return None
    try:
        whole = ssl.PEM_cert_to_DER_cert(found[0].decode("ascii"))
        ((_, certificate),) = split(whole)
        (_, signed), *_ = split(certificate)
        parts = [part for part in split(signed) if part[0] != VERSION]
        # Serial number, algorithm, issuer, validity.
        _, (tag, end) = split(parts[3][1])
        return parse_time(tag, end)
    except (ValueError, IndexError):
        return None


def split(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each value."""
    place = 0
    while place < len(content):
        tag, length = content[place], content[place + 1]
        place += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(content[place : place + size])
            place += size
        yield tag, content[place : place + length]
        place += length


def parse_time(tag: int, text: bytes) -> float:
    """YYMMDDHHMMSSZ, of 1950 to 2049, or YYYYMMDDHHMMSSZ."""
    written = text.decode("ascii")
    if tag == SHORT_TIME:
        written = f"{'19' if int(written[:2]) >= 50 else '20'}{written}"
    return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
