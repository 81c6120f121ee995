"""
Whose clock is off, and whose data is only older.

A node 47 minutes ahead must not make the right ones look old. A viewer's clock
is read from the Date of its answers. Of data folders these are known: the dates
of files, for none can be written before its newest sample; this machine's
clock; and the other nodes: one that is later than all others, which agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import render_moment
from nodescope.use.answers.snapshots import ServedNode

# Less is the way of a request, and Date is in whole seconds.
SKEW_SECONDS = 10.0
# Data this much older than the newest is worth a word; so is a file dated this long before its samples.
OLD_SECONDS = 120.0
# So many nodes and more have a majority.
FEWEST = 3
# The newest files tell how the clock is now: some half an hour of them.
NEWEST_FILES = 20
# A file dated longer before its samples has a date that somebody set, as archivers do (1980, 1970).
LONGEST_SECONDS = 30 * 86_400.0
THIS_MACHINE, ITS_FILES = "this machine's", "the one that dated its files"
API_SERVER = "the API server's"


@dataclass(frozen=True, slots=True)
class NodeClock:
    """A node's newest data, and how far its clock is ahead of another where that was measured."""

    newest_ms: int
    ahead_seconds: float | None = None
    ahead_of: str = THIS_MACHINE

    def correct(self, now_ms: int) -> int:
        """The newest data by the right clock; what is from the future is of now."""
        if self.ahead_seconds is not None and abs(self.ahead_seconds) >= SKEW_SECONDS:
            return self.newest_ms - round(self.ahead_seconds * 1000)
        late = self.newest_ms - now_ms > OLD_SECONDS * 1000
        return now_ms if late else self.newest_ms


def find_ahead(node: ServedNode) -> float | None:
    """How far a node's clock is ahead of the one that dated its newest files; None where they do not tell."""
    files = [one for one in node.catalog.entries if one.mtime_ns and one.remote is None]
    newest = sorted(files, key=lambda one: one.to_ms)[-NEWEST_FILES:]
    dates = {one.mtime_ns for one in newest}
    if not newest or (len(newest) > 1 and len(dates) == 1):
        # All of one date: they were unpacked or copied, and their dates say when.
        return None
    ahead = max(one.to_ms / 1000 - one.mtime_ns / 1e9 for one in newest)
    return ahead if OLD_SECONDS <= ahead <= LONGEST_SECONDS else None


def list_clocks(clocks: Mapping[str, NodeClock], now_ms: int) -> list[str]:
    """A line for each clock that is off, and for each node whose data is older than that of the others."""
    lines = list_skews(clocks, now_ms)
    corrected = {node: clock.correct(now_ms) for node, clock in clocks.items()}
    odd = find_odd(corrected)
    reference_ms = max(time for node, time in corrected.items() if node != odd)
    for node, newest_ms in corrected.items():
        behind_seconds = (reference_ms - newest_ms) / 1000
        if behind_seconds >= OLD_SECONDS:
            lines.append(
                f"{node} is ranked by older data: its newest is of {render_moment(newest_ms)}, "
                f"{render_seconds(behind_seconds)} before the others'"
            )
    return lines


def list_skews(clocks: Mapping[str, NodeClock], now_ms: int) -> list[str]:
    """A line for each clock that is off: as measured, or because its data is later than that of all others."""
    lines = [line for node, clock in clocks.items() if (line := describe_skew(node, clock, now_ms))]
    corrected = {node: clock.correct(now_ms) for node, clock in clocks.items()}
    odd = find_odd(corrected)
    return [*lines, describe_odd(odd, corrected)] if odd else lines


def describe_skew(node: str, clock: NodeClock, now_ms: int) -> str:
    ahead = clock.ahead_seconds
    if ahead is not None:
        if abs(ahead) < SKEW_SECONDS:
            return ""
        word = "ahead of" if ahead > 0 else "behind"
        return f"the clock of {node} is {render_seconds(abs(ahead))} {word} {clock.ahead_of}: its times are its own"
    late_seconds = (clock.newest_ms - now_ms) / 1000
    if late_seconds <= OLD_SECONDS:
        return ""
    return f"the newest data of {node} is {render_seconds(late_seconds)} ahead of this machine's clock: one of both is off"


def find_odd(corrected: Mapping[str, int]) -> str:
    """The one node that is later than all others, where those agree; empty where there is none."""
    if len(corrected) < FEWEST:
        return ""
    *others, last = sorted(corrected, key=lambda node: corrected[node])
    spread = corrected[others[-1]] - corrected[others[0]]
    is_late = corrected[last] - corrected[others[-1]] >= OLD_SECONDS * 1000
    return last if is_late and spread < OLD_SECONDS * 1000 else ""


def describe_odd(node: str, corrected: Mapping[str, int]) -> str:
    others = [time for name, time in corrected.items() if name != node]
    later = render_seconds((corrected[node] - max(others)) / 1000)
    return (
        f"the newest data of {node} is {later} later than that of the other {len(others)} nodes, which agree: "
        "its clock may be ahead"
    )


def measured_against(clock: NodeClock, server_ahead_seconds: float | None) -> NodeClock:
    """The same clock against the API server's, where that one was measured by this machine, too."""
    if server_ahead_seconds is None or clock.ahead_seconds is None or clock.ahead_of != THIS_MACHINE:
        return clock
    return NodeClock(clock.newest_ms, clock.ahead_seconds - server_ahead_seconds, API_SERVER)
