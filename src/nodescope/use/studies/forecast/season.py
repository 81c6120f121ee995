"""What a path repeats within the span: taken out before growth is looked at, and put back for its crest."""

from dataclasses import dataclass

import numpy as np

from nodescope.use.studies.maths.period_search import FEWEST_SAMPLES, find_periods
from nodescope.use.studies.maths.robust import block_medians, without_line
from nodescope.use.studies.series import FloatArray

# Of this many samples at most: a period that matters for a forecast is longer than a few of them.
MOST_SAMPLES = 512

# A season is worth taking out where it holds for three cycles or more, and swings by more than the rest.
FEWEST_CYCLES = 3.0
LEAST_SWING = 0.05

# Points of a cycle, with straight lines between them.
PHASES = 32

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
