"""What a path repeats within the span: taken out before growth is looked at, and put back for its crest."""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.period_search import FEWEST_SAMPLES, find_periods
from nodescope.use.studies.maths.robust import block_medians, without_line
from nodescope.use.studies.series import BoolArray, FloatArray

# Of this many samples at most: a period that matters for a forecast is longer than a few of them.
MOST_SAMPLES = 512

# A season is worth taking out where it holds for three cycles or more, and swings by more than the rest.
FEWEST_CYCLES = 3.0
LEAST_SWING = 0.05

# Points of a cycle, with straight lines between them.
PHASES = 32

# A week is looked at from so many days on. It has a line of its own for each zone that the weekend may
# begin in, in hours.
FEWEST_DAYS = 6
WORKING_DAYS = 5.0
DAY_SECONDS = 86400.0
MONDAY_SECONDS = 3 * DAY_SECONDS
ZONES = (-8, -4, 0, 4, 8, 12)

# How far around the length that was found a better one is looked for, in spectral bins.
REFINING = (0.3, 0.1, 0.033)


@dataclass(frozen=True)
class Season:
    """One cycle around zero; length and start in samples."""

    length: float
    cycle: FloatArray
    start: float

    def at(self, places: FloatArray) -> FloatArray:
        phases = ((places - self.start) / self.length) % 1.0
        known = np.arange(len(self.cycle) + 1) * (1.0 / len(self.cycle))
        return np.asarray(np.interp(phases, known, np.append(self.cycle, self.cycle[0])))


@dataclass(frozen=True)
class WorkWeek(Season):
    """A day's cycle for working days, and one of its own for weekends."""

    weekend: FloatArray
    first_day: float
    """Days from a Monday's midnight to the first sample."""

    def at(self, places: FloatArray) -> FloatArray:
        days = self.first_day + places / self.length
        known = np.arange(len(self.cycle) + 1) * (1.0 / len(self.cycle))
        working, weekend = (
            np.interp(days % 1.0, known, np.append(cycle, cycle[0])) for cycle in (self.cycle, self.weekend)
        )
        return np.asarray(np.where(is_weekend(days), weekend, working))


def is_weekend(days: FloatArray) -> BoolArray:
    return np.asarray(days % 7.0 >= WORKING_DAYS)


def find_work_week(values: FloatArray, interval_seconds: float, started_at: float) -> WorkWeek | None:
    """Of a series with a daily cycle: one for working days and one for weekends."""
    length = DAY_SECONDS / interval_seconds
    if len(values) < FEWEST_DAYS * length:
        return None
    size = -(-len(values) // MOST_SAMPLES)
    coarse = block_medians(values, size)
    coarse = np.where(np.isfinite(coarse), coarse, np.nanmedian(coarse))
    begun = (started_at + MONDAY_SECONDS) / DAY_SECONDS % 7.0
    middles = (np.arange(len(coarse), dtype=np.float64) * size + (size - 1) / 2) / length
    found = []
    for hours in ZONES:
        first_day = (begun + hours / 24) % 7.0
        days = np.asarray(first_day + middles, dtype=np.float64)
        resting = is_weekend(days)
        if resting.sum() * size / length > 1 and (~resting).sum() * size / length > 3:
            cycles, left = fit_two_cycles(coarse, days, resting, length / size)
            found.append((left, first_day, cycles))
    if not found:
        return None
    _, first_day, (working, weekend) = min(found, key=lambda one: one[0])
    return WorkWeek(length, working, 0.0, weekend, first_day)


def fit_two_cycles(
    values: FloatArray, days: FloatArray, resting: BoolArray, length: float
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Fitted together with a line, so that none takes a part of the other."""
    phases = int(np.clip(length // 2, 2, PHASES))
    places = days % 1.0 * phases
    whole, rows = places.astype(np.int64), np.arange(len(values))
    columns = np.zeros((len(values), 2 * phases + 1))
    columns[rows, whole % phases + phases * resting] = 1 - (places - whole)
    columns[rows, (whole + 1) % phases + phases * resting] += places - whole
    columns[:, -1] = np.linspace(-1.0, 1.0, len(values))
    centred = values - values.mean()
    normal = columns.T @ columns + 1e-6 * np.eye(2 * phases + 1)
    found = np.linalg.solve(normal, columns.T @ centred)
    rest = centred - columns @ found
    middle = found[:phases].mean()
    return (found[:phases] - middle, found[phases:-1] - middle), float(rest @ rest)


def find_season(values: FloatArray) -> Season | None:
    size = -(-len(values) // MOST_SAMPLES)
    coarse = block_medians(values, size)
    if len(coarse) < FEWEST_SAMPLES:
        return None
    coarse = np.where(np.isfinite(coarse), coarse, np.nanmedian(coarse))
    level = without_line(coarse)
    periods = [one for one in find_periods(level) if len(coarse) / one.length >= FEWEST_CYCLES]
    if not periods:
        return None
    length = max(periods, key=lambda one: one.fit.strength).length
    length = refine(coarse, length)
    cycle = fit_cycle(coarse, length)[0]
    if np.ptp(cycle) <= LEAST_SWING * np.ptp(values):
        return None
    # A block's height is that of its middle.
    return Season(length * size, cycle, (size - 1) / 2)


def refine(values: FloatArray, length: float) -> float:
    """The length that leaves least of the series: an error of one in a hundred blurs ten cycles."""
    step = length * length / len(values)
    for reach in REFINING:
        lengths = length + reach * step * np.linspace(-1.0, 1.0, 7)
        length = float(min(lengths, key=lambda one: fit_cycle(values, one)[1]))
    return length


def fit_cycle(values: FloatArray, length: float) -> tuple[FloatArray, float]:
    """The cycle, and what is left. Cycle and line are fitted together, so that neither takes a part of the other."""
    phases = int(np.clip(length // 2, 2, PHASES))
    places = np.arange(len(values)) / length % 1.0 * phases
    whole = places.astype(np.int64)
    columns = np.zeros((len(values), phases + 1))
    rows = np.arange(len(values))
    columns[rows, whole % phases] = 1 - (places - whole)
    columns[rows, (whole + 1) % phases] += places - whole
    columns[:, -1] = np.linspace(-1.0, 1.0, len(values))
    centred = values - values.mean()
    normal = columns.T @ columns + 1e-9 * np.eye(phases + 1)
    found = np.linalg.solve(normal, columns.T @ centred)
    left = centred - columns @ found
    return found[:-1] - found[:-1].mean(), float(left @ left)
