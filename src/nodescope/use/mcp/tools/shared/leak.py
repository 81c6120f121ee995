"""
What led to an OOM kill: memory that rose steadily until the kernel ended the container.

A step study sees no step in a leak, and a kill alone does not say whether
memory crept up for an hour or jumped in a second: the growth of the life
that was killed is looked at from its own beginning.
"""

from collections.abc import Sequence
from typing import Any

from nodescope.base.quantity import render_quantity, render_slope
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.mcp.nodes.backend import ArchivedLife, Backend, NodeEvent
from nodescope.use.mcp.protocol.answer import ToolFinding
from nodescope.use.mcp.tools.shared.container import Resident
from nodescope.use.mcp.tools.shared.time_text import render_at

# A leak of days is a leak in its last hours, too; these are 21,600 samples.
LOOK_BACK_MS = 6 * 3_600_000
# Kills whose growth is looked at, the newest ones: a loop of kills has one story.
MOST_STUDIED = 3
# Of its limit: the line through a growth that ended there need not meet it.
NEARLY_FULL = 0.95
GROWING = ("leak", "rising")


def find_leaks(
    backend: Backend,
    resident: Resident,
    lives: Sequence[ArchivedLife],
    events: Sequence[NodeEvent],
    newest_ms: int,
) -> list[ToolFinding]:
    """One finding for each life that grew until it was killed."""
    killed = {event.container_id for event in events if event.kind == "oom"}
    ended = [life for life in lives if life.container_id in killed][-MOST_STUDIED:]
    told = []
    for life in ended:
        span = TimeRange(max(life.first_ms, life.last_ms - LOOK_BACK_MS), life.last_ms)
        for answer in backend.study("trend", "memory", [life.container_id], span):
            told += [
                tell_leak(finding, answer, resident, life, newest_ms)
                for finding in answer.get("findings") or ()
                if finding.get("verdict") in GROWING
            ]
    return told


def tell_leak(
    finding: dict[str, Any], answer: dict[str, Any], resident: Resident, life: ArchivedLife, newest_ms: int
) -> ToolFinding:
    start_ms = round(float(finding["from"]) * 1000)
    return ToolFinding(
        f'"{resident.name}": {tell_growth(finding, "memory")}; it was OOM-killed at {render_moment(life.last_ms)}.',
        "leak",
        node=resident.node,
        container=resident.name,
        metric="memory",
        unit=str(finding.get("unit") or ""),
        confidence=float(finding["confidence"]),
        samples=int(answer.get("samples") or 0),
        missing_share=float(answer.get("missing_share") or 0),
        start_at=finding["from"],
        end_at=life.last_ms / 1000,
        at=finding["from"],
        when=render_at(start_ms, newest_ms),
        evidence={
            "before": finding.get("before"),
            "after": finding.get("after"),
            "slope_per_second": finding.get("slope_per_second"),
            "limit": finding.get("limit"),
            "killed_at": round(life.last_ms / 1000, 3),
        },
    )


def tell_growth(finding: dict[str, Any], what: str) -> str:
    """In the past tense, because what grew has ended; a forecast would be of a time that is over."""
    unit, limit = str(finding.get("unit") or ""), finding.get("limit")
    before, after = float(finding["before"]), float(finding["after"])
    start = render_moment(round(float(finding["from"]) * 1000))
    end = render_quantity(after, unit)
    if limit:
        full = render_quantity(float(limit), unit)
        end = f"its limit of {full}" if after >= NEARLY_FULL * limit else f"{end} (limit {full})"
    like = ", as a leak does" if finding.get("verdict") == "leak" else ""
    pace = render_slope(abs(float(finding.get("slope_per_second") or 0)), unit)
    return f"{what} rose steadily by {pace}{like}, from {render_quantity(before, unit)} at {start} to {end}"
