"""
What led to an OOM kill: memory that rose steadily until the kernel ended the container.

A step study sees no step in a leak, and a kill alone does not say whether
memory crept up for an hour or jumped in a second: the growth of the life
that was killed is looked at from its own beginning.
"""

from collections.abc import Sequence
from dataclasses import replace

from nodescope.base.quantity import render_quantity, render_slope
from nodescope.base.time_range import TimeRange, render_moment
from nodescope.use.answers.containers import Container, Life
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.mcp.nodes.backend import Backend, run_study
from nodescope.use.mcp.protocol.answer import ToolFinding
from nodescope.use.mcp.tools.shared.merge_lives import measure, merge_answers, render_finding
from nodescope.use.mcp.tools.shared.time_text import render_at
from nodescope.use.studies import Finding, StudyAnswer

# A leak of days is a leak in its last hours, too; these are 21,600 samples.
LOOK_BACK_MS = 6 * 3_600_000
# Kills whose growth is looked at, the newest ones: a loop of kills has one story.
MOST_STUDIED = 3
# Of its limit: the line through a growth that ended there need not meet it.
NEARLY_FULL = 0.95
GROWING = ("leak", "rising")


def find_leaks(
    backend: Backend,
    container: Container,
    lives: Sequence[Life],
    events: Sequence[ContainerEvent],
    newest_ms: int,
) -> list[ToolFinding]:
    """One finding for each life that grew until it was killed."""
    killed = {event.id for event in events if event.kind == "oom"}
    ended = [life for life in lives if life.id in killed][-MOST_STUDIED:]
    leaks = []
    for life in ended:
        span = TimeRange(max(life.first_ms, life.last_ms - LOOK_BACK_MS), life.last_ms)
        for answer in run_study(backend, "trend", "memory", [life.id], span):
            leaks += [
                render_leak(finding, answer, container, life, newest_ms)
                for finding in answer.findings
                if is_growth(finding)
            ]
    return leaks


def is_growth(finding: Finding) -> bool:
    return finding.measures.get("verdict") in GROWING


def render_leak(
    finding: Finding, answer: StudyAnswer, container: Container, life: Life, newest_ms: int
) -> ToolFinding:
    found = render_finding(finding, merge_answers([answer]), "memory", container, newest_ms)
    measures = {name: finding.measures.get(name) for name in ("slope_per_second", "limit")}
    levels = {"before": finding.before, "after": finding.after}
    return replace(
        found,
        sentence=f'"{container.name}": {render_growth(finding, "memory")}; it was OOM-killed at {render_moment(life.last_ms)}.',
        kind="leak",
        end_at=life.last_ms / 1000,
        at=finding.start_at,
        when=render_at(round(finding.start_at * 1000), newest_ms),
        evidence={**levels, **measures, "killed_at": round(life.last_ms / 1000, 3)},
    )


def render_growth(finding: Finding, what: str) -> str:
    """In the past tense, because what grew has ended; a forecast would be of a time that is over."""
    unit, limit = finding.unit, measure(finding, "limit")
    before, after = finding.before or 0.0, finding.after or 0.0
    start = render_moment(round(finding.start_at * 1000))
    end = render_quantity(after, unit)
    if limit:
        full = render_quantity(limit, unit)
        end = f"its limit of {full}" if after >= NEARLY_FULL * limit else f"{end} (limit {full})"
    like = ", as a leak does" if finding.measures.get("verdict") == "leak" else ""
    pace = render_slope(abs(measure(finding, "slope_per_second")), unit)
    return f"{what} rose steadily by {pace}{like}, from {render_quantity(before, unit)} at {start} to {end}"
