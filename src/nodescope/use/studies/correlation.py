"""
Which other series moved together with this one, by how many seconds earlier or later?

Autocorrelated series correlate by chance, and so do two steps or two humps in
one hour. So a match counts by how probable it is among all shifts of the two
(together/matching.py), corrected for the number of series compared: at most one
question in twenty about independent series is answered with a finding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.quantity import render_seconds, render_seconds_range
from nodescope.base.text import capitalise
from nodescope.base.time_range import render_time
from nodescope.use.studies.finding import Finding, Measure, StudyAnswer, found, not_enough
from nodescope.use.studies.maths.robust import block_means, is_flat
from nodescope.use.studies.maths.stretch import Stretch, interpolated, split_stretches
from nodescope.use.studies.series import FloatArray, Series
from nodescope.use.studies.together.matching import ComparedSeries, Match, match, place_lag

NAME = "correlation"

FEWEST_SAMPLES = 30
FALSE_QUESTIONS = 0.05

# A minute to both sides, and never more than a tenth of the samples: beyond
# that, one rarely causes the other.
MOST_LAG_SECONDS = 60.0
MOST_LAG_SHARE = 0.1

# Longer series are averaged to this many samples first: a day's lags are then
# precise to 10 s.
MOST_SAMPLES = 8640

# Findings at most; the surest first.
MOST_FINDINGS = 10

# An interval this wide with zero inside says nothing about who was first.
NO_ORDER_SECONDS = 10.0

# Of generated questions, half of them about related series, so many findings
# with such a chance were false (tools.eval_pairs).
FALSE_FOR_CHANCE = 7.0
MOST_CONFIDENCE = 0.99


@dataclass(frozen=True)
class Pair:
    """Target and other on one grid; a lag is within slack_seconds of what the grid can tell."""

    other: Series
    left: ComparedSeries
    right: ComparedSeries
    most: int
    interval_seconds: float
    slack_seconds: float


@dataclass(frozen=True)
class Told:
    """One that moved with the target, and when; order is None where it cannot be told."""

    pair: Pair
    match: Match

    @property
    def bounds_seconds(self) -> tuple[float, float]:
        step, slack = self.pair.interval_seconds, self.pair.slack_seconds
        return self.match.low * step - slack, self.match.high * step + slack

    @property
    def lag_seconds(self) -> float:
        return self.match.lag * self.pair.interval_seconds

    @property
    def has_order(self) -> bool:
        low, high = self.bounds_seconds
        wide = max(NO_ORDER_SECONDS, 3 * self.pair.interval_seconds)
        return not (low < 0 < high and high - low > wide)


def study(series: Series, others: Sequence[Series] = ()) -> StudyAnswer:
    """Which of the others moved with this series; lag is positive when the other moved first."""
    long = (stretch for stretch in split_stretches(series) if stretch.present >= FEWEST_SAMPLES)
    target = max(long, key=len, default=None)
    if target is None:
        return not_enough(NAME, series, f"a correlation needs at least {FEWEST_SAMPLES} samples in a row.")
    if not others:
        return not_enough(NAME, series, "there is no other series to compare with.")
    lefts: dict[tuple[int, int], ComparedSeries] = {}
    pairs = [pair for other in others if (pair := pair_of(target, other, lefts)) is not None]
    if not pairs:
        return not_enough(NAME, series, "no other series has samples at the same time.")
    findings = [build_finding(series, target, told, len(pairs)) for told in beyond_chance(pairs)]
    nothing = f"None of {len(pairs)} other series moved with {series.name} beyond chance."
    return found(NAME, series, findings, nothing)


def beyond_chance(pairs: Sequence[Pair]) -> list[Told]:
    """Those that are kept when one question in twenty may be answered falsely (Holm 1979), surest first."""
    matches = [(match(pair.left, pair.right, pair.most), pair) for pair in pairs]
    matches.sort(key=lambda one: (one[0].chance, -abs(one[0].correlation)))
    told: list[Told] = []
    for left_over, (one, pair) in zip(range(len(matches), 0, -1), matches):
        if one.chance * left_over > FALSE_QUESTIONS or len(told) == MOST_FINDINGS:
            break
        told.append(Told(pair, place_lag(one, pair.left, pair.right, pair.most)))
    return told


def pair_of(target: Stretch, other: Series, lefts: dict[tuple[int, int], ComparedSeries]) -> Pair | None:
    """None where the two share too few samples or one of them is constant."""
    right = on_grid_of(target, other)
    held = np.isfinite(right)
    if int(held.sum()) < FEWEST_SAMPLES:
        return None
    first, last = int(np.argmax(held)), len(held) - int(np.argmax(held[::-1]))
    size = -(-(last - first) // MOST_SAMPLES)
    left_values = block_means(interpolated(target.values)[first:last], size)
    right_values = block_means(interpolated(right[first:last]), size)
    if len(left_values) < FEWEST_SAMPLES or is_flat(left_values) or is_flat(right_values):
        return None
    left = lefts.setdefault((first, last), ComparedSeries(left_values))
    interval_seconds = target.interval_seconds * size
    most = max(1, min(int(MOST_LAG_SECONDS / interval_seconds), int(MOST_LAG_SHARE * len(left_values))))
    slack_seconds = target.interval_seconds * (size - 1) / 2
    return Pair(other, left, ComparedSeries(right_values), most, interval_seconds, slack_seconds)


def on_grid_of(target: Stretch, other: Series) -> FloatArray:
    """The other's values at the target's times; NaN where it was not measured."""
    right = np.full(len(target), np.nan)
    for piece in split_stretches(other):
        inside = (target.times_at >= piece.times_at[0]) & (target.times_at <= piece.times_at[-1])
        right[inside] = np.interp(target.times_at[inside], piece.times_at, interpolated(piece.values))
    return right


def build_finding(series: Series, target: Stretch, told: Told, compared: int) -> Finding:
    chance = min(1.0, told.match.chance * compared)
    return Finding(
        kind=NAME,
        start_at=float(target.times_at[0]),
        end_at=float(target.times_at[-1]),
        confidence=max(0.0, min(MOST_CONFIDENCE, 1 - FALSE_FOR_CHANCE * chance)),
        magnitude=abs(told.match.correlation),
        unit="",
        sentence=render_sentence(series, target, told),
        measures={
            "other": told.pair.other.metric,
            "other_container": told.pair.other.container,
            "correlation": told.match.correlation,
            **lag_measures(told),
        },
        evidence={
            "samples": target.present,
            "compared_by": told.match.look,
            "chance": told.match.chance,
            "series_compared": compared,
            "false_questions": FALSE_QUESTIONS,
        },
    )


def lag_measures(told: Told) -> dict[str, Measure]:
    """Left out where no order can be told: no lag is not a lag of zero."""
    if not told.has_order:
        return {}
    low, high = told.bounds_seconds
    return {"lag_seconds": told.lag_seconds, "lag_low_seconds": low, "lag_high_seconds": high}


def name_series(one: Series, other: Series) -> str:
    """With whose it is, where the two are of different containers."""
    return (
        f'{one.name} of "{one.container}"' if one.container and one.container != other.container else one.name
    )


def render_sentence(series: Series, target: Stretch, told: Told) -> str:
    way = "with" if told.match.sign > 0 else "against"
    start, end = render_time(float(target.times_at[0])), render_time(float(target.times_at[-1]))
    other = told.pair.other
    return (
        f"{capitalise(name_series(other, series))} moved {way} {name_series(series, other)}, {render_lag(told)} "
        f"(correlation {told.match.correlation:.2f}, {start} to {end})."
    )


def render_lag(told: Told) -> str:
    """As of the other: a positive lag is the other's being earlier."""
    if not told.has_order:
        return "and no order can be told"
    low, high = told.bounds_seconds
    if low < 0 < high:
        return f"at the same time, give or take {render_seconds(max(-low, high))}"
    if low == high == 0:
        return "at the same time"
    near, far = sorted((abs(low), abs(high)))
    is_one = render_seconds(near) == render_seconds(far)
    between = render_seconds(far) if is_one else render_seconds_range(near, far, far)
    return f"{between} {'earlier' if high > 0 else 'later'}"
