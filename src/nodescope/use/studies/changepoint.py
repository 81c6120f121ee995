"""
When did this series change its level, its slope, its noise or its pattern: from what to what, and how sure is that?

What repeats is no change: a period is taken out first, and moves that were made
before, in the series itself or in its history, lower the confidence.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.base.quantity import render_quantity, render_slope
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.change_pattern import build_pattern
from nodescope.use.studies.changes.slow_bend import bend_in
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.change_search import SeriesChange, changes_in, searched_blocks
from nodescope.use.studies.maths.confidence import bend_confidence, changepoint_confidence
from nodescope.use.studies.maths.event_rate import RateChange, find_rate_changes
from nodescope.use.studies.maths.piecewise_fit import SHORTEST_PIECE
from nodescope.use.studies.maths.robust import robust_deviation, robust_slope
from nodescope.use.studies.maths.stretch import GAP_STEPS, Stretch, interpolated, split_stretches
from nodescope.use.studies.series import FloatArray, Series

NAME = "changepoint"

# Two of the shortest pieces and a little: with fewer samples no change can be seen.
FEWEST_SAMPLES = 2 * SHORTEST_PIECE + 2

# History of four times the series is enough to see what repeats within it.
HISTORY_LENGTHS = 4

# Noise that rises within this share of the series of where short peaks begin is
# those peaks.
SAME_PLACE_SHARE = 0.05

# The level at a change is the median of so many samples next to it: a fitted
# line may end below zero or above every sample, and more of a steep piece
# are not at the change.
AT_EDGE = 5

# Findings are shown from here on.
SURE = 0.5

# A slope is mentioned where it moves the value by more than twice the noise.
LEAST_SLOPE = 2.0


@dataclass(frozen=True)
class Side:
    """
    One side of a change: level and slope of the whole piece, and (edge) its level at the change.

    level and edge are medians of samples; fitted is the end of the piece's line at the change.
    """

    level: float
    edge: float
    fitted: float
    slope_per_second: float
    noise: float
    moves: bool


def study(series: Series, history: Series | None = None) -> StudyAnswer:
    """
    Every change within a stretch; none is looked for across a gap or a restart.

    history is the same series before, if the caller has it: what repeats there
    is no change here.
    """
    stretches = [stretch for stretch in split_stretches(series) if stretch.present >= FEWEST_SAMPLES]
    if not stretches:
        return not_enough(NAME, series, f"a change needs at least {FEWEST_SAMPLES} samples in a row.")
    findings = [
        finding
        for stretch in stretches
        for finding in findings_of(stretch, earlier_samples(stretch, history), series.name)
    ]
    return found(NAME, series, findings, f"{capitalise(series.name)} did not change beyond its own noise.")


def findings_of(stretch: Stretch, earlier: FloatArray | None, name: str) -> list[Finding]:
    values = interpolated(stretch.values)
    paces = find_rate_changes(values)
    changes = [one for one in sure_changes(values, earlier) if not is_peaks(one[0], paces, len(values))]
    return [
        *(build_finding(stretch, change, confidence, name) for change, confidence in changes),
        *(build_pattern(NAME, stretch, pace, name) for pace in paces),
    ]


def sure_changes(values: FloatArray, earlier: FloatArray | None) -> list[tuple[SeriesChange, float]]:
    """
    All changes with their confidence.

    Where none is sure, the whole series may have a bend so slow that it was taken for many doubtful changes.
    """
    searched = searched_blocks(values, earlier)
    if searched is None:
        return []
    changes = [(change, confidence_of(change)) for change in changes_in(searched)]
    bend = None if any(sure >= SURE for _, sure in changes) else bend_in(searched)
    sure = bend_confidence(bend.gain_nats, bend.evidence.recurrences) if bend is not None else 0.0
    return [*changes, (bend, sure)] if bend is not None and sure >= SURE else changes


def is_peaks(change: SeriesChange, paces: list[RateChange], count: int) -> bool:
    near = SAME_PLACE_SHARE * count
    return change.effect.kind == "noise" and any(abs(change.index - pace.index) <= near for pace in paces)


def earlier_samples(stretch: Stretch, history: Series | None) -> FloatArray | None:
    """The history just before the stretch, on the stretch's own grid; None where there is none."""
    if history is None:
        return None
    start_at, step = float(stretch.times_at[0]), stretch.interval_seconds
    before = [one for one in split_stretches(history) if one.times_at[0] < start_at]
    if not before or start_at - before[-1].times_at[-1] > GAP_STEPS * max(step, before[-1].interval_seconds):
        return None
    known = before[-1]
    count = min(int((start_at - known.times_at[0]) / step), HISTORY_LENGTHS * len(stretch))
    times_at = start_at - step * np.arange(count, 0, -1)
    return np.interp(times_at, known.times_at, interpolated(known.values)) if count else None


def build_finding(stretch: Stretch, change: SeriesChange, confidence: float, name: str) -> Finding:
    index = first_measured(stretch, change)
    before = side_of(stretch, change.start, change.index, edge_last=True)
    after = side_of(stretch, change.index, change.end, edge_last=False)
    kind = change.effect.kind
    if kind == "level" and (before.moves or after.moves):
        # The drop of a sawtooth is from peak to trough, not between the medians.
        before, after = replace(before, level=before.edge), replace(after, level=after.edge)
    magnitude = after.noise - before.noise if kind == "noise" else after.level - before.level
    at = float(stretch.times_at[index])
    return Finding(
        kind=NAME,
        start_at=at,
        end_at=at,
        at=at,
        confidence=confidence,
        magnitude=magnitude,
        unit=stretch.unit,
        before=before.level,
        after=after.level,
        sentence=render_sentence(kind, before, after, at, name, stretch.unit),
        evidence={
            "change": kind,
            "samples_before": int(np.isfinite(stretch.values[change.start : change.index]).sum()),
            "samples_after": int(np.isfinite(stretch.values[change.index : change.end]).sum()),
            "gain_nats": change.gain_nats,
            "excess_nats": change.evidence.excess,
            "moved_nats": change.evidence.moved,
            "louder_nats": change.evidence.louder,
            "recurrences": change.evidence.recurrences,
            "level_in_noise": change.effect.level,
            "noise_before": before.noise,
            "noise_after": after.noise,
            "fitted_before": before.fitted,
            "fitted_after": after.fitted,
            "slope_before_per_second": before.slope_per_second,
            "slope_after_per_second": after.slope_per_second,
        },
    )


def confidence_of(change: SeriesChange) -> float:
    shorter = min(change.index - change.start, change.end - change.index)
    return changepoint_confidence(change.evidence.excess, change.evidence.recurrences, shorter)


def first_measured(stretch: Stretch, change: SeriesChange) -> int:
    later = np.flatnonzero(np.isfinite(stretch.values[change.index :]))
    return change.index + int(later[0]) if len(later) else change.index


def side_of(stretch: Stretch, start: int, end: int, *, edge_last: bool) -> Side:
    part: FloatArray = stretch.values[start:end]
    part = part[np.isfinite(part)]
    if len(part) == 0:
        return Side(float("nan"), float("nan"), float("nan"), 0.0, 0.0, moves=False)
    slope = robust_slope(part)
    flat = part - slope * np.arange(len(part))
    noise = robust_deviation(flat)
    few = max(AT_EDGE, len(part) // 100)
    edge = float(np.median(part[-few:] if edge_last else part[:few]))
    fitted = float(np.median(flat)) + (slope * (len(part) - 1) if edge_last else 0.0)
    moves = abs(slope) * len(part) > LEAST_SLOPE * noise
    return Side(float(np.median(part)), edge, fitted, slope / stretch.interval_seconds, noise, moves)


def render_sentence(kind: str, before: Side, after: Side, at: float, name: str, unit: str) -> str:
    who = capitalise(name)
    if kind == "noise":
        verb = "began to vary more" if after.noise > before.noise else "became steadier"
        return f"{who} {verb} at {render_time(at)}: by {render_quantity(after.noise, unit)} instead of {render_quantity(before.noise, unit)}."
    if kind == "slope":
        before, after = with_mover(before, after)
        return f"{who} {moving(after, unit)} from {render_time(at)}; before, it {moving(before, unit)}."
    verb = "rose" if after.level > before.level else "fell"
    return f"{who} {verb} from {render_quantity(before.level, unit)} to {render_quantity(after.level, unit)} at {render_time(at)}."


def with_mover(before: Side, after: Side) -> tuple[Side, Side]:
    """Where neither side rises beyond its noise, the steeper one does."""
    if before.moves or after.moves:
        return before, after
    is_later = abs(after.slope_per_second) >= abs(before.slope_per_second)
    return replace(before, moves=not is_later), replace(after, moves=is_later)


def moving(side: Side, unit: str) -> str:
    if not side.moves:
        return f"held at {render_quantity(side.level, unit)}"
    verb = "rose" if side.slope_per_second > 0 else "fell"
    return f"{verb} by {render_slope(abs(side.slope_per_second), unit)}"
