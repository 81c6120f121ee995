"""
Times in questions and answers: absolute with zone, and relative to the newest data.

Relative times count back from the newest sample of the node, not
from now: an archive of last week answers "-15m" as it would have then.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.base.errors import RequestRejected
from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import TimeRange, parse_moment, render_moment
from nodescope.use.answers.clocks import OLD_SECONDS
from nodescope.use.answers.overview import About
from nodescope.use.mcp.protocol.errors import ToolMisused
from nodescope.use.nodes.viewer_client import NodeAway

# What is looked at when nobody says: an hour, as the viewer shows.
USUAL_MS = 3_600_000
# A span that reaches so far beyond the data is named in the answer; less is rounding.
CLIPPED_MS = 2000


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A span of a node's data, and where the data is shorter than the span that was given."""

    span: TimeRange
    newest_ms: int
    clipped: tuple[str, ...]

    def render(self) -> str:
        span, length = self.span, render_seconds(self.span.seconds)
        if span.to_ms >= self.newest_ms - 1000:
            return f"the last {length} of data, {render_moment(span.from_ms)} to {render_moment(span.to_ms)}"
        return f"{render_moment(span.from_ms)} to {render_moment(span.to_ms)} ({length})"


def read_span(
    about: About, start: str | None, end: str | None, name: str = "the span", usual_ms: int = USUAL_MS
) -> NodeSpan:
    """The given span on a node's own clock; the last hour of its data (or as long as said) where none is given."""
    there = extent_of(about)
    oldest_ms, newest_ms = there.from_ms, there.to_ms
    to_ms = read_moment("to", end, newest_ms) if end else newest_ms
    from_ms = read_moment("from", start, newest_ms) if start else to_ms - usual_ms
    if from_ms >= to_ms:
        raise ToolMisused(
            f"the span ends before it begins: from {render_moment(from_ms)} to {render_moment(to_ms)}; "
            'swap them, or give "from" alone (for example "-15m")'
        )
    if to_ms < oldest_ms or from_ms > newest_ms:
        raise ToolMisused(
            f"node {about.node} has no data from {render_moment(from_ms)} to {render_moment(to_ms)}; "
            f"it has {render_moment(oldest_ms)} to {render_moment(newest_ms)}: choose times in between"
        )
    # The usual hour may begin before the data does; nobody asked for it.
    clipped = list_clipped(about.node, name, TimeRange(from_ms if start else oldest_ms, to_ms), there)
    return NodeSpan(TimeRange(max(from_ms, oldest_ms), min(to_ms, newest_ms)), newest_ms, clipped)


def list_clipped(node: str, name: str, given: TimeRange, there: TimeRange) -> tuple[str, ...]:
    """Where the data begins later or ends earlier than the span that was given."""
    sides = (
        (given.from_ms < there.from_ms - CLIPPED_MS, "from", given.from_ms, "begins", there.from_ms),
        (given.to_ms > there.to_ms + CLIPPED_MS, "until", given.to_ms, "ends", there.to_ms),
    )
    return tuple(
        f"{name} was asked {word} {render_moment(asked_ms)}, but the data of {node} {verb} at {render_moment(data_ms)}"
        for is_clipped, word, asked_ms, verb, data_ms in sides
        if is_clipped
    )


def extent_of(about: About) -> TimeRange:
    """From a node's oldest to its newest data."""
    if about.to_ms is None:
        raise NodeAway("it has no data yet")
    return TimeRange(about.to_ms if about.from_ms is None else about.from_ms, about.to_ms)


def read_moment(name: str, text: str, newest_ms: int) -> int:
    try:
        return parse_moment(text.strip(), newest_ms)
    except RequestRejected as error:
        raise ToolMisused(f'"{name}": {error}; relative times count back from the newest data') from None


def render_at(time_ms: float, newest_ms: float) -> str:
    """2026-03-01 11:36:00 UTC (24 min before the newest data)."""
    return f"{render_moment(round(time_ms))} ({render_before(time_ms, newest_ms)})"


def render_iso(time_ms: float) -> str:
    """A moment as the next call takes it, to the second: 2026-03-01T11:36:00Z."""
    return f"{render_moment(round(time_ms)).removesuffix(' UTC').replace(' ', 'T')}Z"


def join_clipped(spans: Iterable[NodeSpan]) -> tuple[str, ...]:
    """What every node says in much the same words, once."""
    lines = [line for one in spans for line in one.clipped]
    more = f" ({len(lines) - 1} more nodes alike)" if len(lines) > 1 else ""
    return (f"{lines[0]}{more}",) if lines else ()


def render_before(time_ms: float, newest_ms: float) -> str:
    seconds = round((newest_ms - time_ms) / 1000)
    if seconds <= 0:
        return "the newest data"
    return f"{render_seconds(float(seconds))} before the newest data"


def render_age(newest_ms: int, now_ms: int) -> str:
    """How old the newest sample is, where that is worth a word."""
    seconds = (now_ms - newest_ms) / 1000
    if seconds < -OLD_SECONDS:
        return f"{render_seconds(-seconds)} ahead of this machine's clock"
    if seconds < OLD_SECONDS:
        return "live"
    return f"{render_seconds(seconds)} old"
