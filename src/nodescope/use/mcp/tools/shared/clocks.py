"""
Whose clock is off, and whose data is only older.

A node 47 minutes ahead must not make the right ones look old. A viewer's clock
is read from the Date of its answers. Of data folders only this machine's clock
and the other nodes are known: data from the future, or one node later than all
others, which agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import render_moment
from nodescope.use.mcp.tools.shared.time_text import OLD_SECONDS

# Less is the way of a request, and Date is in whole seconds.
SKEW_SECONDS = 10.0
# So many nodes and more have a majority.
FEWEST = 3


@dataclass(frozen=True, slots=True)
class NodeClock:
    """A node's newest data, and how far its clock is ahead of this machine's where that was measured."""

    newest_ms: int
    ahead_seconds: float | None = None

    def correct(self, now_ms: int) -> int:
        """The newest data by this machine's clock; what is from the future is of now."""
        if self.ahead_seconds is not None and abs(self.ahead_seconds) >= SKEW_SECONDS:
            return self.newest_ms - round(self.ahead_seconds * 1000)
        late = self.newest_ms - now_ms > OLD_SECONDS * 1000
        return now_ms if late else self.newest_ms


def list_clocks(clocks: Mapping[str, NodeClock], now_ms: int) -> list[str]:
    """A line for each clock that is off, and for each node whose data is older than that of the others."""
    lines = [line for node, clock in clocks.items() if (line := describe_skew(node, clock, now_ms))]
    corrected = {node: clock.correct(now_ms) for node, clock in clocks.items()}
    odd = find_odd(corrected)
    if odd:
        lines.append(describe_odd(odd, corrected))
    reference_ms = max(time for node, time in corrected.items() if node != odd)
    for node, newest_ms in corrected.items():
        behind_seconds = (reference_ms - newest_ms) / 1000
        if behind_seconds >= OLD_SECONDS:
            lines.append(
                f"{node} is ranked by older data: its newest is of {render_moment(newest_ms)}, "
                f"{render_seconds(behind_seconds)} before the others'"
            )
    return lines


def describe_skew(node: str, clock: NodeClock, now_ms: int) -> str:
    ahead = clock.ahead_seconds
    if ahead is not None:
        if abs(ahead) < SKEW_SECONDS:
            return ""
        word = "ahead of" if ahead > 0 else "behind"
        return f"the clock of {node} is {render_seconds(abs(ahead))} {word} this machine's: its times are its own"
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
