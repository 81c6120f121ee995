"""When did this series change its level, its slope or its noise: from what to what, and how sure is that?"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.base.quantity import render_quantity, render_slope
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.change_search import SeriesChange, find_changes
from nodescope.use.studies.maths.confidence import changepoint_confidence
from nodescope.use.studies.maths.piecewise_fit import SHORTEST_PIECE
from nodescope.use.studies.maths.robust import robust_deviation, robust_slope
from nodescope.use.studies.maths.stretch import Stretch, interpolated, split_stretches
from nodescope.use.studies.series import FloatArray, Series

NAME = "changepoint"

# Two of the shortest pieces and a little: with fewer samples no change can be seen.
FEWEST_SAMPLES = 2 * SHORTEST_PIECE + 2

# A slope is mentioned where it moves the value by more than twice the noise.
LEAST_SLOPE = 2.0

# The level at a change is the median of so many samples next to it, or of a hundredth of the piece:
# a fitted line may end below zero or above every sample.
FEWEST_AT_EDGE = 3


@dataclass(frozen=True)
class Side:
    """One side of a change: level and slope of the whole piece, and (edge) its level at the change."""

    level: float
    edge: float
    slope_per_second: float
    noise: float
    moves: bool


def study(series: Series) -> StudyAnswer:
    """Every change within a stretch; none is looked for across a gap or a restart."""
    stretches = [stretch for stretch in split_stretches(series) if stretch.present >= FEWEST_SAMPLES]
    if not stretches:
        return not_enough(NAME, series, f"a change needs at least {FEWEST_SAMPLES} samples in a row.")
    findings = [
        build_finding(stretch, change, series.name)
        for stretch in stretches
        for change in find_changes(interpolated(stretch.values))
    ]
    return found(NAME, series, findings, f"{capitalise(series.name)} did not change beyond its own noise.")


def build_finding(stretch: Stretch, change: SeriesChange, name: str) -> Finding:
    index = first_measured(stretch, change)
    before = side_of(stretch, change.start, change.index, edge_last=True)
    after = side_of(stretch, change.index, change.end, edge_last=False)
    kind = kind_of(change)
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
        confidence=changepoint_confidence(change.gain_nats, change.autocorrelation),
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
            "noise_memory": change.autocorrelation,
            "level_in_noise": change.effect.level,
            "noise_before": before.noise,
            "noise_after": after.noise,
            "slope_before_per_second": before.slope_per_second,
            "slope_after_per_second": after.slope_per_second,
        },
    )


def first_measured(stretch: Stretch, change: SeriesChange) -> int:
    later = np.flatnonzero(np.isfinite(stretch.values[change.index :]))
    return change.index + int(later[0]) if len(later) else change.index


def side_of(stretch: Stretch, start: int, end: int, *, edge_last: bool) -> Side:
    part: FloatArray = stretch.values[start:end]
    part = part[np.isfinite(part)]
    if len(part) == 0:
        return Side(float("nan"), float("nan"), 0.0, 0.0, moves=False)
    slope = robust_slope(part)
    flat = part - slope * np.arange(len(part))
    noise = robust_deviation(flat)
    few = max(FEWEST_AT_EDGE, len(part) // 100)
    edge = float(np.median(part[-few:] if edge_last else part[:few]))
    moves = abs(slope) * len(part) > LEAST_SLOPE * noise
    return Side(float(np.median(part)), edge, slope / stretch.interval_seconds, noise, moves)


def kind_of(change: SeriesChange) -> str:
    """Noise if only that differs, slope if the two lines meet, level otherwise."""
    effect = change.effect
    if max(effect.level, effect.jump, effect.bend) < 1 <= effect.spread / np.log(1.5):
        return "noise"
    return "slope" if effect.bend > 2 * max(effect.jump, 1.0) else "level"


def render_sentence(kind: str, before: Side, after: Side, at: float, name: str, unit: str) -> str:
    who = capitalise(name)
    if kind == "noise":
        verb = "began to vary more" if after.noise > before.noise else "became steadier"
        return f"{who} {verb} at {render_time(at)}: by {render_quantity(after.noise, unit)} instead of {render_quantity(before.noise, unit)}."
    if kind == "slope":
        return f"{who} {moving(after, unit)} from {render_time(at)}; before, it {moving(before, unit)}."
    verb = "rose" if after.level > before.level else "fell"
    return f"{who} {verb} from {render_quantity(before.level, unit)} to {render_quantity(after.level, unit)} at {render_time(at)}."


def moving(side: Side, unit: str) -> str:
    if not side.moves:
        return f"held at {render_quantity(side.level, unit)}"
    verb = "rose" if side.slope_per_second > 0 else "fell"
    return f"{verb} by {render_slope(abs(side.slope_per_second), unit)}"
