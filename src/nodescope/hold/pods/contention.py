"""
Waiting for a CPU that others have, told from being held back by one's own quota.

The kernel counts a task that its quota holds back as one that waits for a CPU:
a throttled pod on an idle node has a pressure of 60 %. With T the share of
time held back and P the share of time in which some task waited for either
reason, and the two independent of each other, 1 - P = (1 - T) (1 - W).
"""

import numpy as np

from nodescope.base.block import Floats

# kubelet's own length of a period (cpuCFSQuotaPeriod).
PERIOD_SECONDS = 0.1
# Held back for longer than this, there is hardly a moment left in which anything else could be seen.
MOST_THROTTLED = 0.95


def derive_throttled(seconds: Floats, periods: Floats, elapsed_seconds: Floats) -> Floats:
    """
    The share of time in which a quota held its tasks back.

    The kernel adds the time of all CPUs up: on sixteen of them it is up to
    sixteen times what passed, and the periods that were cut short bound it.
    """
    return np.clip(np.minimum(seconds, periods * PERIOD_SECONDS) / elapsed_seconds, 0.0, 1.0)


def derive_contention(pressure: Floats, throttled: Floats) -> Floats:
    """W of above; NaN where throttling hides it."""
    rest = np.where(throttled < MOST_THROTTLED, 1.0 - throttled, np.nan)
    return np.clip(1.0 - (1.0 - pressure) / rest, 0.0, 1.0)
