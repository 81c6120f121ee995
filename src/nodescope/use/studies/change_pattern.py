"""A change of pattern as a finding: short peaks or dips begin, stop, or come at another pace."""

import numpy as np

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding
from nodescope.use.studies.maths.confidence import pattern_confidence
from nodescope.use.studies.maths.event_rate import RateChange
from nodescope.use.studies.maths.stretch import Stretch

# Fewer events than these on one side are chance: there was no pace to speak of.
PACE_EVENTS = 3


def build_pattern(kind: str, stretch: Stretch, change: RateChange, name: str) -> Finding:
    """The levels are medians of samples, which a few peaks do not move; the magnitude is the height of the peaks."""
    at = float(stretch.times_at[change.index])
    parts = (stretch.values[change.start : change.index], stretch.values[change.index : change.end])
    before, after = (float(np.nanmedian(part)) for part in parts)
    samples_before, samples_after = (int(np.isfinite(part).sum()) for part in parts)
    apart_before, apart_after = seconds_apart(change, stretch.interval_seconds)
    return Finding(
        kind=kind,
        start_at=at,
        end_at=at,
        at=at,
        confidence=pattern_confidence(change.excess),
        magnitude=change.height,
        unit=stretch.unit,
        before=before,
        after=after,
        sentence=render_pattern(change, (apart_before, apart_after), at, name, stretch.unit),
        evidence={
            "change": "pattern",
            "samples_before": samples_before,
            "samples_after": samples_after,
            "excess_nats": change.excess,
            "events_before": change.before,
            "events_after": change.after,
            "seconds_apart_before": apart_before,
            "seconds_apart_after": apart_after,
            "regularity": change.regularity,
        },
    )


def seconds_apart(change: RateChange, interval_seconds: float) -> tuple[float | None, float | None]:
    before, after = change.paces
    return (
        interval_seconds / before if change.before >= PACE_EVENTS else None,
        interval_seconds / after if change.after >= PACE_EVENTS else None,
    )


def render_pattern(
    change: RateChange, apart: tuple[float | None, float | None], at: float, name: str, unit: str
) -> str:
    what = "peaks" if change.height > 0 else "dips"
    whose = f"{capitalise(name)}: short {what} of about {render_quantity(abs(change.height), unit)}"
    before, after = (render_pace(one) for one in apart)
    if after is None:
        return f"{whose} stopped at {render_time(at)}; before, they came {before}."
    if before is None:
        return f"{whose} began at {render_time(at)} and come {after}."
    more = "more" if (apart[1] or 0.0) < (apart[0] or 0.0) else "less"
    return f"{whose} became {more} frequent at {render_time(at)}: {after} instead of {before}."


def render_pace(seconds: float | None) -> str | None:
    return None if seconds is None else f"about every {render_seconds(seconds)}"
