"""Does this series repeat itself: how often, for how long each time, by how much, and since when?"""

from dataclasses import replace

import numpy as np

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, Measure, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.cycles import Cycle, find_cycles
from nodescope.use.studies.maths.period_search import FEWEST_SAMPLES
from nodescope.use.studies.maths.spectrum import FEWEST_CYCLES
from nodescope.use.studies.maths.stretch import Stretch, split_stretches
from nodescope.use.studies.series import Series

NAME = "periodicity"

# A gap of at most this share of both sides' span is bridged: a cron job keeps
# its phase across it. A longer gap, and every restart, separates two series.
JOINABLE_SHARE = 0.25

# The shortest period that samples can show.
SHORTEST_SAMPLES = 2


def study(series: Series) -> StudyAnswer:
    """Every period from two samples to a third of the span, each with the part in which it holds."""
    stretches = [
        stretch for stretch in joined(split_stretches(series), series) if len(stretch) >= FEWEST_SAMPLES
    ]
    if not stretches:
        return not_enough(NAME, series, f"a period needs at least {FEWEST_SAMPLES} samples in a row.")
    findings = [finding for stretch in stretches for finding in findings_in(stretch, series.name)]
    return found(NAME, series, findings, nothing_found(stretches, series.name))


def nothing_found(stretches: list[Stretch], name: str) -> str:
    shortest, longest = seen_periods(stretches)
    return (
        f"{capitalise(name)} does not repeat itself: it has no period "
        f"between {render_seconds(shortest)} and {render_seconds(longest)}."
    )


def seen_periods(stretches: list[Stretch]) -> tuple[float, float]:
    """The shortest and the longest period, in seconds, that these stretches could show."""
    shortest = SHORTEST_SAMPLES * min(stretch.interval_seconds for stretch in stretches)
    return shortest, max(shortest, max(stretch.span_seconds for stretch in stretches) / FEWEST_CYCLES)


def joined(stretches: list[Stretch], series: Series) -> list[Stretch]:
    """Stretches with only a short gap between them as one, the gap's samples missing."""
    result: list[Stretch] = []
    for stretch in stretches:
        if result and is_joinable(result[-1], stretch, series):
            result[-1] = bridged(result[-1], stretch)
        else:
            result.append(stretch)
    return result


def is_joinable(left: Stretch, right: Stretch, series: Series) -> bool:
    if series.kind == "counter" and right.times_at[0] - left.times_at[-1] <= 2 * left.interval_seconds:
        return True
    if any(left.times_at[-1] < restart <= right.times_at[0] for restart in series.restarts_at):
        return False
    gap_seconds = float(right.times_at[0] - left.times_at[-1])
    return gap_seconds <= JOINABLE_SHARE * (left.span_seconds + right.span_seconds)


def bridged(left: Stretch, right: Stretch) -> Stretch:
    absent = max(0, round(float(right.times_at[0] - left.times_at[-1]) / left.interval_seconds) - 1)
    between = np.linspace(left.times_at[-1], right.times_at[0], absent + 2)[1:-1]
    times_at = np.concatenate((left.times_at, between, right.times_at))
    values = np.concatenate((left.values, np.full(absent, np.nan), right.values))
    return replace(left, times_at=times_at, values=values)


def findings_in(stretch: Stretch, name: str) -> list[Finding]:
    return [build_finding(stretch, cycle, name) for cycle in find_cycles(stretch.values)]


def build_finding(stretch: Stretch, cycle: Cycle, name: str) -> Finding:
    start_at = float(stretch.times_at[cycle.start])
    end_at = float(stretch.times_at[min(cycle.end, len(stretch)) - 1])
    return Finding(
        kind=NAME,
        start_at=start_at,
        end_at=end_at,
        confidence=cycle.confidence,
        magnitude=cycle.swing,
        unit=stretch.unit,
        sentence=(
            f"{capitalise(name)} repeats {how_often(stretch, cycle)}, {by_how_much(cycle, stretch.unit)}, "
            f"{since_when(stretch, cycle, start_at, end_at)}."
        ),
        measures=measures_of(stretch, cycle),
        evidence={
            "samples": int(np.isfinite(stretch.values[cycle.start : cycle.end]).sum()),
            "cycles": (cycle.end - cycle.start) / cycle.period,
            **cycle.evidence,
        },
    )


def measures_of(stretch: Stretch, cycle: Cycle) -> dict[str, Measure]:
    """Figures in seconds: how often, how long, how regularly and in which part of the span."""
    measures: dict[str, Measure] = {
        "period_seconds": cycle.period * stretch.interval_seconds,
        "regularity": "rough" if cycle.is_rough else "exact",
        "extent": extent_of(stretch, cycle),
        "strength": cycle.strength,
        "stability": cycle.stability,
    }
    if cycle.width is not None:
        measures["pulse_seconds"] = cycle.width * stretch.interval_seconds
    if cycle.jitter is not None:
        measures["jitter_seconds"] = cycle.jitter * stretch.interval_seconds
    return measures


def how_often(stretch: Stretch, cycle: Cycle) -> str:
    """Every 5 min for 20 s; roughly every 40 s."""
    often = f"every {render_seconds(cycle.period * stretch.interval_seconds)}"
    lasting = "" if cycle.width is None else f" for {render_seconds(cycle.width * stretch.interval_seconds)}"
    return f"{'roughly ' if cycle.is_rough else ''}{often}{lasting}"


def by_how_much(cycle: Cycle, unit: str) -> str:
    return f"{WORDS[cycle.kind]} by {render_quantity(cycle.swing, unit)}"


WORDS = {
    "pulse": "rising",
    "dip": "falling",
    "jump": "each time rising",
    "fall": "each time falling",
    "wave": "swinging",
}


def extent_of(stretch: Stretch, cycle: Cycle) -> str:
    """whole, since (it began within the span), until (it ended), or part (both)."""
    return ("whole", "since", "until", "part")[(cycle.start > 0) + 2 * (cycle.end < len(stretch))]


def since_when(stretch: Stretch, cycle: Cycle, start_at: float, end_at: float) -> str:
    if extent_of(stretch, cycle) == "since":
        return f"since {render_time(start_at)}, when it began"
    return f"from {render_time(start_at)} to {render_time(end_at)}"
