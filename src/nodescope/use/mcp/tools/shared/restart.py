"""Restarts as findings: when, after what, and how often."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from nodescope.base.quantity import render_seconds
from nodescope.base.text import clean_name
from nodescope.base.time_range import render_moment
from nodescope.use.answers.containers import Container, ContainerExit, Life
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.mcp.protocol.answer import ToolFinding
from nodescope.use.mcp.tools.shared.time_text import render_at

# More than this and it is one finding: a loop.
MOST_NAMED = 3
# As kubelet calls it.
OOM_KILLED = "OOMKilled"


def find_restarts(
    container: Container, lives: Sequence[Life], events: Sequence[ContainerEvent], newest_ms: int
) -> list[ToolFinding]:
    """One finding for each restart within a pod; many become one."""
    killed = {event.id for event in events if event.kind == "oom"}
    found = []
    for mine in container.by_pod(lives):
        pairs = list(pairwise(mine))
        if len(pairs) > MOST_NAMED:
            found.append(render_loop(container, mine, killed, newest_ms))
        else:
            found += [render_restart(container, before, after, killed, newest_ms) for before, after in pairs]
    return sorted(found, key=lambda one: one.at or 0)


def render_restart(
    container: Container, before: Life, after: Life, killed: set[str], newest_ms: int
) -> ToolFinding:
    ended = after.exit_before(before)
    was_killed = before.id in killed or (ended is not None and ended.reason == OOM_KILLED)
    why = "was OOM-killed" if was_killed else f"ended ({render_exit(ended)})"
    gap_seconds = max(0.0, (after.first_ms - before.last_ms) / 1000)
    sentence = (
        f'"{name_life(container, before)}" {why} at {render_moment(before.last_ms)} and started again '
        f"{render_seconds(gap_seconds)} later, at {render_moment(after.first_ms)}."
    )
    event = make_event(
        container, sentence, "oom_kill" if was_killed else "restart", before.last_ms, newest_ms
    )
    evidence = {
        "oom_killed": was_killed,
        "exit_code": ended.code if ended else None,
        "exit_reason": ended.reason if ended else None,
        "down_seconds": gap_seconds,
    }
    return replace(event, start_at=event.at, end_at=after.first_ms / 1000, evidence=evidence)


def render_exit(ended: ContainerExit | None) -> str:
    """Only the Kubernetes API says it."""
    return f"exit code {ended.code}, {clean_name(ended.reason)}" if ended else "exit code not known"


def render_loop(container: Container, lives: Sequence[Life], killed: set[str], newest_ms: int) -> ToolFinding:
    first, last = lives[0], lives[-1]
    kills = sum(life.id in killed for life in lives)
    killed_text = f", {kills} times by an OOM kill" if kills else ""
    exits = [ended for before, after in pairwise(lives) if (ended := after.exit_before(before))]
    if exits and not kills:
        killed_text = f", last with {render_exit(exits[-1])}"
    sentence = (
        f'"{name_life(container, first)}" was restarted {len(lives) - 1} times{killed_text}, between '
        f"{render_moment(first.last_ms)} and {render_moment(last.first_ms)}: a crash loop."
    )
    event = make_event(container, sentence, "crash_loop", first.last_ms, newest_ms)
    evidence = {
        "restarts": len(lives) - 1,
        "oom_kills": kills,
        "exit_code": exits[-1].code if exits else None,
    }
    return replace(event, start_at=event.at, end_at=last.first_ms / 1000, evidence=evidence)


def name_life(container: Container, life: Life) -> str:
    """Of a workload with several pods, the pod's."""
    return life.name if len(container.pods) > 1 else container.name


def make_event(container: Container, sentence: str, kind: str, at_ms: int, newest_ms: int) -> ToolFinding:
    """What happened to a container at a moment, beyond doubt."""
    return ToolFinding(
        sentence,
        kind,
        node=container.node,
        container=container.name,
        confidence=1.0,
        at=at_ms / 1000,
        when=render_at(at_ms, newest_ms),
    )
