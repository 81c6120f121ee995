"""Does this series repeat itself: how often, how strongly, and from when to when?"""

import numpy as np

from nodescope.base.quantity import render_quantity, render_seconds
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.local_period import Spell, holding, spells_of
from nodescope.use.studies.maths.period_search import FEWEST_SAMPLES, periods_of, steadied
from nodescope.use.studies.maths.phase_profile import profile
from nodescope.use.studies.maths.segment import Stretch, segments_of
from nodescope.use.studies.series import Series

NAME = "periodicity"

# A gap of at most this share of both sides' span is drawn over: the phase of
# a cron job survives it. A longer one, and every restart, splits the question.
JOINABLE_SHARE = 0.25


def study(series: Series) -> StudyAnswer:
    """Every period from two samples to a third of the span, each with the stretch in which it holds."""
    segments = [segment for segment in joined(segments_of(series), series) if len(segment) >= FEWEST_SAMPLES]
    if not segments:
        return not_enough(NAME, series, f"a period needs at least {FEWEST_SAMPLES} samples in a row.")
    findings = [finding for segment in segments for finding in findings_in(segment, series.name)]
    return found(NAME, series, findings, f"{capitalise(series.name)} does not repeat itself.")


def joined(segments: list[Stretch], series: Series) -> list[Stretch]:
    """Segments that only a short gap keeps apart, as one with the gap missing."""
    result: list[Stretch] = []
    for segment in segments:
        if result and is_joinable(result[-1], segment, series):
            result[-1] = bridged(result[-1], segment)
        else:
            result.append(segment)
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
    return Stretch(
        np.concatenate((left.times_at, between, right.times_at)),
        np.concatenate((left.values, np.full(absent, np.nan), right.values)),
        left.interval_seconds,
        left.unit,
    )


def findings_in(segment: Stretch, name: str) -> list[Finding]:
    periods = periods_of(segment.values)
    spells = [holding(period, len(segment)) for period in periods] + spells_of(segment.values, periods)
    return [described(segment, spell, name) for spell in spells]


def described(segment: Stretch, spell: Spell, name: str) -> Finding:
    fold = spell.period.fold
    period_seconds = fold.period * segment.interval_seconds
    start_at = float(segment.times_at[spell.start])
    end_at = float(segment.times_at[min(spell.end, len(segment)) - 1])
    swing = swing_of(segment, spell)
    matches = fold.matches[np.isfinite(fold.matches)]
    return Finding(
        kind=NAME,
        start_at=start_at,
        end_at=end_at,
        confidence=confidence_of(spell),
        magnitude=swing,
        unit=segment.unit,
        sentence=(
            f"{capitalise(name)} repeats every {render_seconds(period_seconds)}, "
            f"swinging by {render_quantity(swing, segment.unit)}, from {render_time(start_at)} to {render_time(end_at)}."
        ),
        measures={
            "period_seconds": period_seconds,
            "strength": min(max(fold.strength, 0.0), 1.0),
            "stability": float(np.clip(np.median(matches), 0.0, 1.0)),
        },
        evidence={
            "samples": int(np.isfinite(segment.values[spell.start : spell.end]).sum()),
            "cycles": (end_at - start_at) / period_seconds,
            "peak_over_noise": spell.period.ratio,
            "agreement_t": fold.agreement,
        },
    )


def swing_of(segment: Stretch, spell: Spell) -> float:
    """Highest less lowest point of the mean cycle, in the metric's unit."""
    part = segment.values[spell.start : spell.end]
    calm = steadied(part)
    if calm is None:
        return 0.0
    measured = np.isfinite(part)
    cycle = profile(np.where(measured, part, np.nanmedian(part)), measured, spell.period.length)
    return float(cycle.max() - cycle.min())


def confidence_of(spell: Spell) -> float:
    """
    From the fold's t value: 3 gives 0.85, 6 gives 0.95.

    On the generated set fewer than 1 in 200 reports were on series without a
    period, so this is a lower bound, kept modest for periods of few cycles.
    """
    return float(
        min(
            0.999,
            1
            - 0.5 * np.exp(-0.4 * max(spell.period.fold.agreement, 0.0))
            - 0.25 / max(spell.period.fold.cycles, 1.0),
        )
    )
