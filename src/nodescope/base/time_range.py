"""Times as people give them (14:05, -1h30m, now-20m, ISO 8601, since the epoch) and read them, in UTC."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import parse_seconds

# Years 1 to 9999: what a calendar can say.
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_000
DAY_MS = 86_400_000
# As seconds the year 5138, as milliseconds the year 1973: nobody means the former.
MILLISECONDS_FROM = 100_000_000_000
# A time of day may be so much after the newest data: a person's clock is a little ahead of it.
AHEAD_MS = 300_000
ACCEPTED = "14:05, -15m, now-1h30m, 2026-01-31T12:00:00Z, or seconds or milliseconds since the epoch"
RELATIVE = re.compile(r"(?:now)?(?:\s*-\s*(?P<back>[^-]+))?|(?P<ago>.+?)\s+ago", re.IGNORECASE)
TIME_OF_DAY = re.compile(
    r"(?:(?P<day>today|yesterday)\s+)?(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)(?:\s*(?:utc|z))?",
    re.IGNORECASE,
)
ZONE_WORD = re.compile(r"\s*(?:utc|gmt)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From when to when, in milliseconds since the epoch, both ends included."""

    from_ms: int
    to_ms: int

    @property
    def seconds(self) -> float:
        return (self.to_ms - self.from_ms) / 1000


def parse_moment(text: str, now_ms: int) -> int:
    """
    Milliseconds since the epoch; what has no zone is UTC.

    A time of day is the newest such moment that is not (much) after now_ms,
    which is the newest data where an archive is asked.
    """
    text = text.strip()
    try:
        moment_ms = next((found for parse in PARSERS if (found := parse(text, now_ms)) is not None), None)
    except (ValueError, OverflowError):
        moment_ms = None
    if moment_ms is None or not EARLIEST_MS <= moment_ms <= LATEST_MS:
        raise RequestRejected(f"{text!r} is not a time; accepted: {ACCEPTED}") from None
    return moment_ms


def parse_relative(text: str, now_ms: int) -> int | None:
    """now, -15m, now-1h30m, 20m ago."""
    match = RELATIVE.fullmatch(text)
    if match is None or not text:
        return None
    back = match["back"] or match["ago"]
    return now_ms - (round(parse_seconds(back) * 1000) if back else 0)


def parse_epoch(text: str, _: int) -> int | None:
    """Seconds; milliseconds where seconds would be later than the year 5000."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    number = float(text)
    return round(number if number >= MILLISECONDS_FROM else number * 1000)


def parse_time_of_day(text: str, now_ms: int) -> int | None:
    """14:05 or 14:05:30, today unless that is still to come; yesterday 14:05."""
    match = TIME_OF_DAY.fullmatch(text)
    if match is None:
        return None
    hour, _, rest = match["clock"].partition(":")
    clock = time.fromisoformat(f"{hour.zfill(2)}:{rest}")
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    moment_ms = round(datetime.combine(today, clock, UTC).timestamp() * 1000)
    if match["day"]:
        return moment_ms - DAY_MS if match["day"].lower() == "yesterday" else moment_ms
    # The last such moment, which may be of the day that begins in a few minutes.
    newest_ms = now_ms + AHEAD_MS
    return moment_ms + (newest_ms - moment_ms) // DAY_MS * DAY_MS


def parse_iso(text: str, _: int) -> int | None:
    """With a zone, without one, or as our own answers write it: 2026-01-31 12:00:00 UTC."""
    moment = datetime.fromisoformat(ZONE_WORD.sub("", text))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


PARSERS = (parse_relative, parse_epoch, parse_time_of_day, parse_iso)


def render_moment(time_ms: float) -> str:
    return render_time(time_ms / 1000)


def render_time(at_seconds: float) -> str:
    """2026-01-31 12:00:00 UTC; what no calendar has, in seconds."""
    try:
        return datetime.fromtimestamp(at_seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at_seconds:g} s"


def render_time_of_day(at_seconds: float) -> str:
    return datetime.fromtimestamp(at_seconds, UTC).strftime("%H:%M")
