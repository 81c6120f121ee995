"""Go's gob, as Go 1.26 wrote it: the values, and that nothing else gets through."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.base.errors import ParseError
from nodescope.fpga.gob import parse_gob, parse_time_ms

# Written by encoding/gob itself: three events of the original collector's UsageRequest.
USAGE = (
    "Df+DAgEC/4QAAf+AAAAyfwMBAQxVc2FnZVJlcXVlc3QB/4AAAQIBBVVzYWdlAQgAAQlUaW1lc3RhbXAB/4IAAAAQ/4EFAQEE"
    "VGltZQH/ggAAAEn/hAADAfiEnziApsSnQAEPAQAAAA7cTVC4AAAAAAAAAAIPAQAAAA7cTVF7AAAAAAAAAAH9cJdAAQ8BAAAA"
    "DtxNUX81pOkAAAAA"
)
EMPTY = (
    "Df+DAgEC/4QAAf+AAAAyfwMBAQxVc2FnZVJlcXVlc3QB/4AAAQIBBVVzYWdlAQgAAQlUaW1lc3RhbXAB/4IAAAAQ/4EFAQEE"
    "VGltZQH/ggAAAAT/hAAA"
)
ZONE = (
    "Df+LAgEC/4wAAf+KAABP/4kDAQEaQml0c3RyZWFtSWRlbnRpZmllclJlcXVlc3QB/4oAAQIBE0JpdHN0cmVhbUlkZW50aWZp"
    "ZXIBDAABCVRpbWVzdGFtcAH/ggAAABD/gQUBAQRUaW1lAf+CAAAAHf+MAAEBBHpvbmUBEAIAAAAO3E1RgABMS0AAPQEA"
)


def decode(text: str) -> object:
    return parse_gob(base64.b64decode(text))


def test_a_slice_of_structs_with_times() -> None:
    """A field that is zero is not sent, and is zero here, too."""
    rows = parse_gob(base64.b64decode(USAGE))
    assert [row["Usage"] for row in rows] == [3042.325197, 0.0, 1500.0]
    at_ms = [parse_time_ms(row["Timestamp"]) for row in rows]
    assert at_ms == [1_689_999_800_000, 1_689_999_995_000, 1_689_999_999_900]


def test_a_time_with_seconds_in_its_zone() -> None:
    rows = parse_gob(base64.b64decode(ZONE))
    assert rows[0]["BitstreamIdentifier"] == "zone"
    assert parse_time_ms(rows[0]["Timestamp"]) == 1_690_000_000_005


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (EMPTY, []),
        ("Dv+NBAEC/44AAQwBBAAACf+OAAEBYf4CVw==", [("a", -300)]),
        ("Dv+PAQEC/5AAAQ4BBAAADP+QAAL+8D9A/gjAAA==", [1 + 2j, -3]),
        (
            "Jf+RAwEC/5IAAQQBAUEBAgABAUIBBgABAUMBCgABAUQB/5QAAAAn/5MDAQETc3RydWN0IHsgRSBzdHJpbmcgfQH/lAABAQEBRQEMAAAAEf+SAQEB/gEsAQF4AQEBeQAA",
            {"A": True, "B": 300, "C": b"x", "D": {"E": "y"}},
        ),
        ("AwQABg==", 3),
    ],
)
def test_other_types_are_read_as_well(text: str, value: object) -> None:
    """Nil slice, map, array of complex numbers, nested struct; the example of Go's own documentation."""
    assert decode(text) == value


@pytest.mark.parametrize(
    ("blob", "word"),
    [
        (b"", "no value"),
        (b"\x03\x04\x01\x06", "starts with 0"),
        (b"\x03\x0c\x00\xf8\x7f\xff\xff\xff\xff\xff\xff\xff", "middle"),
        (b"\x03\xf0\x00", "eight bytes"),
        (b"\x02\xc8\x00", "KeyError|eight"),
        (bytes(300_000), "at most"),
    ],
)
def test_what_is_no_gob_is_said(blob: bytes, word: str) -> None:
    with pytest.raises(ParseError, match=word):
        parse_gob(blob)


def test_a_count_is_not_believed_beyond_the_bytes() -> None:
    """Two events, made to say two billion."""
    blob = base64.b64decode(USAGE).replace(b"\xff\x84\x00\x03", b"\xff\x84\x00\xfc\x7f\xff\xff\xff")
    with pytest.raises(ParseError, match="elements"):
        parse_gob(blob)


@given(st.binary(max_size=300), st.integers(0, 200), st.integers(0, 200))
def test_any_bytes_are_a_value_or_refused(noise: bytes, start: int, end: int) -> None:
    """forall bytes, also in the middle of a good stream: a value, or ParseError."""
    good = base64.b64decode(USAGE)
    for blob in (noise, good[:start] + noise + good[end:], good[:start]):
        try:
            rows = parse_gob(blob)
            if isinstance(rows, list):
                for row in rows:
                    if isinstance(row, dict) and isinstance(row.get("Timestamp"), bytes):
                        parse_time_ms(row["Timestamp"])
        except ParseError:
            pass
