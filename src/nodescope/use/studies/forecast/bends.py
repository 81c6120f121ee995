"""
Growth that began within the span, placed as closely as the noise allows.

The bends of growth.py are too far apart for a path with little noise: between
two of them it would look like a path that wanders. So the neighbourhood of the
best bend is looked at in finer and finer steps. No place is chosen: each counts
by its evidence and by how much of the span it stands for.
"""

from collections.abc import Callable

import numpy as np

from nodescope.use.studies.forecast.growth import PRIOR, Growth, bent
from nodescope.use.studies.series import FloatArray

# Shares of the span between two places that are looked at, from coarse to fine.
STEPS = (0.0125, 0.003, 0.0008, 0.0002)
REACH = 4
EARLIEST = 0.05

Score = Callable[[list[Growth]], FloatArray]
"""Log evidence of shapes that have equally many columns, without their prior."""


def look_closer(
    score: Score, start: float, rises_before: bool, latest: float
) -> tuple[list[float], FloatArray]:
    """Places around a start, and the log weight of each: evidence, prior, and the share of the span it stands for."""
    found: dict[float, float] = {}
    for step in STEPS:
        near = start + step * np.arange(-REACH, REACH + 1)
        near = near[(near >= EARLIEST) & (near <= max(latest, start))]
        fresh = [float(place) for place in near if float(place) not in found]
        found |= dict(zip(fresh, score([bent(place, rises_before) for place in fresh])))
        start = max(found, key=lambda place: found[place])
    places = sorted(found)
    widths = np.gradient(np.array(places))
    prior = PRIOR["bend"] / 2 * widths / (1.0 - EARLIEST)
    return places, np.array([found[place] for place in places]) + np.log(prior)
