"""Restarts as findings: when, after what, and how often."""

from collections.abc import Sequence
from itertools import pairwise

from nodescope.base.quantity import render_seconds
from nodescope.base.time_range import render_moment
from nodescope.use.mcp.nodes.backend import ArchivedLife, NodeEvent
from nodescope.use.mcp.protocol.answer import ToolFinding
from nodescope.use.mcp.tools.shared.container import Resident
from nodescope.use.mcp.tools.shared.time_text import render_at

# More than this and it is one finding: a loop.
MOST_TOLD = 3


def tell_restarts(
    resident: Resident, lives: Sequence[ArchivedLife], events: Sequence[NodeEvent], newest_ms: int
) -> list[ToolFinding]:
    """One finding for each restart between the lives; many become one."""
    killed = {event.container_id for event in events if event.kind == "oom"}
    pairs = list(pairwise(lives))
    if len(pairs) > MOST_TOLD:
        return [tell_loop(resident, lives, killed, newest_ms)]
    return [tell_one(resident, before, after, killed, newest_ms) for before, after in pairs]


def tell_one(
    resident: Resident, before: ArchivedLife, after: ArchivedLife, killed: set[str], newest_ms: int
) -> ToolFinding:
    was_killed = before.container_id in killed
    why = "was OOM-killed" if was_killed else "ended"
    gap_seconds = max(0.0, (after.first_ms - before.last_ms) / 1000)
    return ToolFinding(
        f'"{resident.name}" {why} at {render_moment(before.last_ms)} and started again '
        f"{render_seconds(gap_seconds)} later, at {render_moment(after.first_ms)}.",
        "oom_kill" if was_killed else "restart",
        node=resident.node,
        container=resident.name,
        confidence=1.0,
        start_at=before.last_ms / 1000,
        end_at=after.first_ms / 1000,
        at=before.last_ms / 1000,
        when=render_at(before.last_ms, newest_ms),
        evidence={"oom_killed": was_killed, "down_seconds": gap_seconds},
    )


def tell_loop(
    resident: Resident, lives: Sequence[ArchivedLife], killed: set[str], newest_ms: int
) -> ToolFinding:
    first, last = lives[0], lives[-1]
    kills = sum(life.container_id in killed for life in lives)
    told = f", {kills} times by an OOM kill" if kills else ""
    return ToolFinding(
        f'"{resident.name}" was restarted {len(lives) - 1} times{told}, between '
        f"{render_moment(first.last_ms)} and {render_moment(last.first_ms)}: a crash loop.",
        "crash_loop",
        node=resident.node,
        container=resident.name,
        confidence=1.0,
        start_at=first.last_ms / 1000,
        end_at=last.first_ms / 1000,
        at=first.last_ms / 1000,
        when=render_at(first.last_ms, newest_ms),
        evidence={"restarts": len(lives) - 1, "oom_kills": kills},
    )
