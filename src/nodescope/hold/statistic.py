"""The statistics of a window: plain definitions on plain columns."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]


def mean(values: Column) -> float:
    return float(values.mean())


def spread(values: Column) -> float | None:
    """Sample standard deviation (ddof 1); None of a single sample."""
    return float(values.std(ddof=1)) if len(values) > 1 else None


def percentile(share: float) -> Callable[[Column], float]:
    """Linearly interpolated, as numpy's default, which takes ten times as long over a column of a window."""

    def find(values: Column) -> float:
        ordered = np.sort(values)
        place = share / 100 * (len(values) - 1)
        below = int(place)
        low, high = float(ordered[below]), float(ordered[min(below + 1, len(values) - 1)])
        return low + (high - low) * (place - below)

    return find


STATISTICS: Mapping[str, Callable[[Column], float | None]] = {
    "mean": mean,
    "std": spread,
    "min": lambda values: float(values.min()),
    "max": lambda values: float(values.max()),
    "p50": percentile(50),
    "p95": percentile(95),
    "p99": percentile(99),
}
# `last` and `rate` need more than the column; see window.
NAMES = (*STATISTICS, "last", "rate")
