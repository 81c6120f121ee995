"""Incidents as findings: the sentence that everybody shows, with what it rests on."""

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.use.answers.incidents.incident import Change, Incident
from nodescope.use.answers.incidents.sentence import render_incident, what
from nodescope.use.mcp.protocol.answer import Fact, ToolFinding
from nodescope.use.mcp.tools.shared.time_text import render_at

# Victims that are told with their figures; the others are counted.
MOST_VICTIMS = 3


def make_finding(one: Incident, newest_ms: int, at_ms: float | None = None) -> ToolFinding:
    """`at_ms` is the moment that was asked about."""
    told = one.cause or one.victims[0]
    return ToolFinding(
        render_incident(one),
        one.kind,
        node=one.node,
        container=told.container,
        metric=told.metric,
        unit=told.unit or None,
        confidence=one.confidence,
        start_at=one.from_ms / 1000,
        end_at=one.to_ms / 1000,
        at=moment_of(one) / 1000,
        when=render_at(moment_of(one), newest_ms),
        evidence={**list_facts(one, told), **away_from(one, at_ms)},
        weight=one.weight or 0.0,
    )


def moment_of(one: Incident) -> int:
    """When it is felt: the kill, or the onset."""
    return one.killed_ms or one.from_ms


def list_facts(one: Incident, told: Change) -> dict[str, Fact]:
    return {
        "cause": one.cause.workload if one.cause else "not seen",
        "before": told.before,
        "after": told.after,
        "share_of_rise": one.share,
        "limit": one.limit,
        "oom_kills": one.kills or None,
        "image_before": one.image_before or None,
        "image_after": one.image_after or None,
        "noted": one.notes[0] if one.notes else None,
        "victims": one.victims_count or None,
        "victims_most": "; ".join(map(render_victim, one.victims[:MOST_VICTIMS])) or None,
    }


def away_from(one: Incident, at_ms: float | None) -> dict[str, Fact]:
    if at_ms is None:
        return {}
    return {"seconds_from_incident": round((moment_of(one) - at_ms) / 1000, 1)}


def render_victim(change: Change) -> str:
    """catalog: CPU pressure 2 % to 41 %, 5 s later, overlap 96 %."""
    if change.metric == "oom_kill":
        return f"{change.workload}: OOM-killed"
    levels = " to ".join(
        render_quantity(value or 0.0, change.unit) for value in (change.before, change.after)
    )
    lag = "" if change.lag_seconds is None else f", {render_lag(change.lag_seconds)}"
    overlap = "" if change.overlap is None else f", overlap {100 * change.overlap:.0f} %"
    return f"{change.workload}: {what(change)} {levels}{lag}{overlap}"


def render_lag(seconds: float) -> str:
    if abs(seconds) < 1:
        return "at the same time"
    return f"{render_seconds(abs(seconds))} {'later' if seconds > 0 else 'earlier'}"
