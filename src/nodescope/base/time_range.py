"""Times as people give them (ISO 8601, epoch seconds, or relative such as -15m) and read them, in UTC."""

from dataclasses import dataclass
from datetime import UTC, datetime

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import parse_seconds

# Years 1 to 9999: what a calendar can say.
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_000


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From when to when, in milliseconds since the epoch, both ends included."""

    from_ms: int
    to_ms: int

    @property
    def seconds(self) -> float:
        return (self.to_ms - self.from_ms) / 1000


def parse_moment(text: str, now_ms: int) -> int:
    """Milliseconds since the epoch; what has no zone is UTC."""
    if text == "now":
        return now_ms
    try:
        moment_ms = _parse(text, now_ms)
    except (ValueError, OverflowError):
        moment_ms = None
    if moment_ms is None or not EARLIEST_MS <= moment_ms <= LATEST_MS:
        raise RequestRejected(
            f"{text!r} is not a time; accepted: 2026-01-31T12:00:00Z, 1769860800, -15m, now"
        ) from None
    return moment_ms


def _parse(text: str, now_ms: int) -> int:
    if text.startswith("-"):
        return now_ms - round(parse_seconds(text[1:]) * 1000)
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return round(float(text) * 1000)
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


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
