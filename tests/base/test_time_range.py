"""Times as people write them, for commands, the viewer's API and MCP alike."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import AHEAD_MS, parse_moment, render_moment

# 2026-03-01 12:00:00 UTC.
NOW_MS = 1_772_366_400_000
MINUTE_MS = 60_000
NOON = "2026-03-01 12:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", NOON),
        ("-15m", "2026-03-01 11:45:00 UTC"),
        ("-1h30m", "2026-03-01 10:30:00 UTC"),
        ("- 1h 30min", "2026-03-01 10:30:00 UTC"),
        ("now-20m", "2026-03-01 11:40:00 UTC"),
        ("now - 90s", "2026-03-01 11:58:30 UTC"),
        ("20m ago", "2026-03-01 11:40:00 UTC"),
        ("-2d", "2026-02-27 12:00:00 UTC"),
        ("-90", "2026-03-01 11:58:30 UTC"),
        ("11:05", "2026-03-01 11:05:00 UTC"),
        ("9:05", "2026-03-01 09:05:00 UTC"),
        ("12:01", "2026-03-01 12:01:00 UTC"),
        ("11:05:30", "2026-03-01 11:05:30 UTC"),
        ("11:05Z", "2026-03-01 11:05:00 UTC"),
        ("11:05 UTC", "2026-03-01 11:05:00 UTC"),
        ("today 11:05", "2026-03-01 11:05:00 UTC"),
        ("yesterday 11:05", "2026-02-28 11:05:00 UTC"),
        ("2026-03-01T12:00:00Z", NOON),
        ("2026-03-01T13:00:00+01:00", NOON),
        ("2026-03-01 12:00", NOON),
        (NOON, NOON),
        ("2026-03-01", "2026-03-01 00:00:00 UTC"),
        ("1772366400", NOON),
        ("1772366400.0", NOON),
        ("1772366400000", NOON),
        ("  now ", NOON),
    ],
)
def test_a_time_is_read_as_it_is_meant(text: str, meant: str) -> None:
    assert render_moment(parse_moment(text, NOW_MS)) == meant


def test_a_time_of_day_that_is_still_to_come_is_yesterdays() -> None:
    assert render_moment(parse_moment("14:05", NOW_MS)) == "2026-02-28 14:05:00 UTC"
    assert render_moment(parse_moment("today 14:05", NOW_MS)) == "2026-03-01 14:05:00 UTC"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "25:00",
        "14:61",
        "-",
        "now-",
        "--15m",
        "-15x",
        "20m",
        "ago",
        "1h30",
        "-1h30m20",
        "nan",
        "1e9",
        "99999999999999999",
    ],
)
def test_what_is_no_time_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(RequestRejected, match=r"is not a time; accepted: 14:05, -15m, now-1h30m, 2026"):
        parse_moment(text, NOW_MS)


@given(st.integers(100_000_000_000, 4_000_000_000_000), st.integers(0, 86_399))
def test_a_moment_is_read_back_as_it_was_written(moment_ms: int, second: int) -> None:
    """forall t: what answers write (UTC), ISO and both epochs lead back to t; a time of day to the last such moment."""
    seconds = moment_ms // 1000
    iso = datetime.fromtimestamp(seconds, UTC).isoformat()
    for text in (render_moment(seconds * 1000), iso, str(seconds), str(seconds * 1000)):
        assert parse_moment(text, NOW_MS) == seconds * 1000
    clock = f"{second // 3600}:{second // 60 % 60:02}:{second % 60:02}"
    found = parse_moment(clock, moment_ms)
    assert moment_ms - 86_400_000 < found - AHEAD_MS <= moment_ms
    assert found // 1000 % 86_400 == second


def test_a_time_of_day_just_after_midnight_is_near_while_the_data_is_just_before_it() -> None:
    """23:57 on the node, and somebody asks about 0:01: four minutes ahead, not a day ago."""
    newest_ms = round(datetime(2026, 3, 1, 23, 57, tzinfo=UTC).timestamp() * 1000)
    assert parse_moment("0:01", newest_ms) == newest_ms + 240_000
    assert parse_moment("Yesterday 0:01", newest_ms) == newest_ms + 240_000 - 2 * 86_400_000
