"""
Growth of counters: one pure module, used by hold, keep and read alike.

Elapsed time is the monotonic clock's, so neither a late tick nor a stepped
wall clock looks like a burst.
"""

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.metric import Metric


def derive_increase(values: Floats, metric: Metric) -> Floats:
    """
    How much a counter grew between neighbouring samples, along axis 0.

    A smaller value than the one before is a reset, not a negative growth:
    the cell is NaN and a new segment starts. Two exceptions are said in the
    metric's row: `may_dip` (the kernel lowers it a little: growth is 0) and
    `wraps_at` (a modulus). A missing neighbour makes the cell NaN.
    """
    return judge_increase(np.diff(values, axis=0), metric)


def judge_increase(grown: Floats, metric: Metric) -> Floats:
    """Differences of neighbouring samples as growth, as said above."""
    backwards = grown < 0
    if not backwards.any():
        return grown
    if metric.wraps_at is not None:
        return np.where(backwards, grown + metric.wraps_at, grown)
    if metric.may_dip:
        return np.where(backwards, 0.0, grown)
    return np.where(backwards, np.nan, grown)


def derive_elapsed_seconds(mono_ns: Integers) -> Floats:
    """Seconds between neighbouring samples; NaN where the clock did not advance."""
    elapsed = np.diff(mono_ns).astype(np.float64) / 1e9
    return np.where(elapsed > 0, elapsed, np.nan)


def derive_growth(values: Floats, mono_ns: Integers, metric: Metric) -> tuple[Floats, Floats]:
    """
    (increase, elapsed seconds) between neighbouring samples; their quotient is the rate.

    A rate is never negative, and sum(rate * elapsed) == last - first within a
    segment. Both are given because a mean rate is sum(increase) / sum(elapsed).
    """
    return derive_increase(values, metric), derive_elapsed_seconds(mono_ns)
