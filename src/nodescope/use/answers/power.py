"""
What a No could have seen: the rise or the period that a study would have found in this very series.

"No leak" means little without it: an hour of a noisy series hides what a day shows.
The figure of a rise is found by trial. A straight line is added to the series
until the study finds it, so the figure holds for this noise, these gaps and this span.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from nodescope.base.quantity import render_seconds, render_slope
from nodescope.use.studies import Series, StudyAnswer, periodicity, trend
from nodescope.use.studies.answer_memo import AnswerMemo
from nodescope.use.studies.forecast.growth_forecast import forecast_growth
from nodescope.use.studies.maths.period_search import FEWEST_SAMPLES
from nodescope.use.studies.maths.robust import block_medians
from nodescope.use.studies.maths.spectrum import FEWEST_CYCLES
from nodescope.use.studies.maths.stretch import Stretch, split_stretches
from nodescope.use.studies.maths.trend_line import BUCKETS, fit_line
from nodescope.use.studies.series import FloatArray

SLOPE, LONGEST = "slope_per_second", "longest_period_seconds"
# Halvings between a rise that is found and one that is not: within 2 % of the least one.
STEPS = 6
# Above what was found by trial: another hour's noise leans the other way. With it, nine in ten
# rises of the stated slope are found in other noise of the same kind (tests/use/answers/test_power.py).
MARGIN = 2.0
# How often the trial on all samples may ask for more than the trial on medians gave.
RAISES = 4

Power = Mapping[str, float]


class LatePower(Mapping[str, float]):
    """Found when somebody reads it: its trials take as long as ten studies, and a search that goes on reads none."""

    def __init__(self, measure: Callable[[], Power]) -> None:
        self._measure = measure

    @cached_property
    def _found(self) -> Power:
        return self._measure()

    def __getitem__(self, name: str) -> float:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


POWERS: AnswerMemo[Power] = AnswerMemo()


def add_power(answer: StudyAnswer, series: Series) -> StudyAnswer:
    """A No with what it could have seen; every other answer as it is."""
    measure = MEASURES.get(answer.study)
    if answer.status != "none" or measure is None:
        return answer
    late = LatePower(lambda: POWERS.get(answer.study, series, lambda: measure(series)))
    return replace(answer, power=late)


def measure_rise(series: Series) -> Power:
    """The slope of a steady rise that the study finds in this series."""
    stretches = [one for one in split_stretches(series) if trend.is_long_enough(one)]
    slope = least_slope(stretches[-1]) if stretches else None
    for _ in range(RAISES if slope else 0):
        if slope and trend.study(with_rise(series, stretches[-1], slope)).findings:
            return {SLOPE: slope}
        slope = slope and slope * MARGIN
    return {}


def least_slope(stretch: Stretch) -> float | None:
    """By halving, on the medians that the study itself works with."""
    held = np.isfinite(stretch.values)
    values, times = stretch.values[held], stretch.times_at[held] - stretch.times_at[0]
    size = -(-len(values) // BUCKETS)
    heights, places = block_medians(values, size), block_medians(times, size)
    heights = without_line(heights, places)
    span_seconds = float(times[-1])
    spread = float(np.nanmax(heights) - np.nanmin(heights))
    # A series without any noise shows every rise; a thousandth of its level is named.
    high = max(spread, 1e-3 * abs(float(np.median(values))), 1e-12) / span_seconds
    for _ in range(STEPS):
        if is_found(places, heights, high):
            break
        high *= 2
    else:
        return None
    low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(places, heights, middle) else (middle, high)
    return high * MARGIN


def without_line(heights: FloatArray, places: FloatArray) -> FloatArray:
    """Without the lean that the noise happens to have: it would make a rise easier or harder to see."""
    line = fit_line(places, heights)
    return heights - line.slope * places if line else heights


def is_found(places: FloatArray, heights: FloatArray, slope: float) -> bool:
    step_seconds = float(places[-1] - places[0]) / max(len(places) - 1, 1)
    return trend.is_rise(forecast_growth(heights + slope * places, step_seconds, None))


def with_rise(series: Series, stretch: Stretch, slope: float) -> Series:
    """The series with a steady rise over its newest stretch."""
    rise = slope * np.clip(series.times_at - stretch.times_at[0], 0.0, None)
    return replace(series, values=series.values + rise)


def measure_period(series: Series) -> Power:
    """The longest period that this span has enough cycles of."""
    stretches = periodicity.joined(split_stretches(series), series)
    spans = [one.span_seconds for one in stretches if len(one) >= FEWEST_SAMPLES]
    return {LONGEST: max(spans) / FEWEST_CYCLES} if spans else {}


MEASURES: dict[str, Callable[[Series], Power]] = {
    trend.NAME: measure_rise,
    periodicity.NAME: measure_period,
}


def render_power(power: Power, unit: str) -> str:
    """As the end of a sentence that says No; empty where nothing is known."""
    if SLOPE in power:
        return f"a steady rise of {render_slope(power[SLOPE], unit)} or more would have been found"
    if LONGEST in power:
        return f"no period longer than {render_seconds(power[LONGEST])} could be seen"
    return ""
