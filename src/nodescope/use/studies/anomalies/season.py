"""
What is usual at this hour, and at this hour of a working day or of a weekend.

A finer calendar is used where the history has two turns of it and where it explains more.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nodescope.use.studies.maths.phase_profile import interpolate_cycle
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

HOUR_SECONDS, DAY_SECONDS, WEEK_SECONDS = 3600.0, 86400.0, 604800.0
# 1970 began on a Thursday: so many days earlier a week began.
MONDAY_DAYS = 3
DAYS_WITH_WORK = 5

# A calendar is used where it reduces the standard deviation by a tenth; the
# robust deviation does not see one hour in twenty-four.
GAIN = 0.9
NO_SEASON = "what was usual before"
TURNS = 2


@dataclass(frozen=True)
class CalendarUsual:
    """The usual value at each time, and with what a sentence says it was compared."""

    usual: FloatArray
    compared_with: str


def fit_season(times_at: FloatArray, values: FloatArray, clean: BoolArray, history: int) -> CalendarUsual:
    """From the clean samples of the history."""
    known = clean[:history]
    past_at, past = times_at[:history][known], values[:history][known]
    middle = float(np.median(past))
    season = CalendarUsual(np.full(len(times_at), middle), NO_SEASON)
    spread = float(np.std(past))
    for name, turn_seconds, groups in (
        ("the same hour of earlier days", DAY_SECONDS, np.zeros(7, dtype=np.int64)),
        ("the same hour of earlier weekends or working days", WEEK_SECONDS, np.arange(7) // DAYS_WITH_WORK),
        ("the same hour of the same weekday", 1.5 * WEEK_SECONDS, np.arange(7)),
    ):
        if past_at[-1] - past_at[0] < TURNS * turn_seconds or np.median(np.diff(past_at)) > HOUR_SECONDS:
            break
        usual = hourly_usual(times_at, past_at, past, groups, middle)
        left = float(np.std(past - usual[:history][known]))
        if left < GAIN * spread:
            season, spread = CalendarUsual(usual, name), left
    return season


def hourly_usual(
    times_at: FloatArray, past_at: FloatArray, past: FloatArray, groups: IntArray, otherwise: float
) -> FloatArray:
    """
    Medians of the hours of each group of weekdays.

    A job at the full hour is a step, the load of a day a curve: the one with the
    smaller tail of residuals is used.
    """
    stepped, drawn = np.empty(len(times_at)), np.empty(len(times_at))
    day, past_day = groups[weekdays(times_at)], groups[weekdays(past_at)]
    places, past_hours = hours_of_day(times_at), hours_of_day(past_at).astype(np.int64)
    for group in np.unique(groups):
        mine, own = day == group, past_day == group
        medians = hour_medians(past[own], past_hours[own], otherwise)
        stepped[mine] = medians[places[mine].astype(np.int64)]
        drawn[mine] = interpolate_cycle(places[mine], medians)
    known = np.searchsorted(times_at, past_at)
    return min(stepped, drawn, key=lambda usual: float(np.quantile(np.abs(past - usual[known]), 0.99)))


def weekdays(times_at: FloatArray) -> IntArray:
    """0 for Monday, in UTC."""
    return ((times_at // DAY_SECONDS).astype(np.int64) + MONDAY_DAYS) % 7


def hours_of_day(times_at: FloatArray) -> FloatArray:
    return times_at % DAY_SECONDS / HOUR_SECONDS


def hour_medians(past: FloatArray, hours: IntArray, otherwise: float) -> FloatArray:
    order = np.argsort(hours, kind="stable")
    cuts = np.searchsorted(hours[order], np.arange(25))
    parts = [past[order[start:end]] for start, end in pairwise(cuts)]
    return np.array([float(np.median(part)) if len(part) else otherwise for part in parts])
