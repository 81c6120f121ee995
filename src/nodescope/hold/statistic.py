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
    """Linearly interpolated, as numpy's default."""
    return lambda values: float(np.percentile(values, share))


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
