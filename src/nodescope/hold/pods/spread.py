"""Mean, p95 and highest of columns in one go; NaN is what was not measured."""

from typing import NamedTuple

import numpy as np

from nodescope.base.block import Floats

STATISTICS = ("mean", "p95", "max")


class WindowSpread(NamedTuple):
    """What a window's values are like; a tuple, since there are many of them in each answer."""

    mean: float
    p95: float
    max: float

    def render(self) -> list[float]:
        """In the order of STATISTICS, five digits each."""
        return [float(f"{value:.5g}") for value in self]


def spread_columns(values: Floats, weights: Floats | None = None) -> list[WindowSpread | None]:
    """By column; None for one without a value. Weights are of the rows: the lengths of intervals, for rates."""
    if not len(values):
        return [None] * values.shape[1]
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    weighed = known * (1.0 if weights is None else weights[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (np.where(known, values, 0.0) * weighed).sum(axis=0) / weighed.sum(axis=0)
    p95, highest = find_p95(np.sort(values, axis=0), counts), np.fmax.reduce(values, axis=0)
    columns = zip(means.tolist(), p95.tolist(), highest.tolist(), counts.tolist())
    return [WindowSpread(mean, high, most) if count else None for mean, high, most, count in columns]


def find_p95(ordered: Floats, counts: np.ndarray) -> Floats:
    """Interpolated as numpy's percentile does; what is missing was sorted to the end."""
    place = 0.95 * np.maximum(counts - 1, 0)
    below = place.astype(np.int64)
    above = np.minimum(below + 1, np.maximum(counts - 1, 0))
    columns = np.arange(ordered.shape[1])
    low, high = ordered[below, columns], ordered[above, columns]
    found: Floats = low + (high - low) * (place - below)
    return found
