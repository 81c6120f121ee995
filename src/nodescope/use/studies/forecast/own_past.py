"""How often such forecasts held on this very series: made from earlier moments, and compared with what came."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.forecast.growth_forecast import (
    GrowthForecast,
    Passage,
    bucket_heights,
    forecast_growth,
)
from nodescope.use.studies.forecast.noise import GRIDS, grid
from nodescope.use.studies.forecast.pages import find_staircase
from nodescope.use.studies.forecast.wave import BLOCKS
from nodescope.use.studies.maths.robust import mad_deviation
from nodescope.use.studies.series import FloatArray

# The moments, as shares of the path, from which the rest of it is forecast.
CUTS = (0.55, 0.65, 0.75, 0.85)

# A trend is told when so much of what explains the series has one at its end.
# In random walks without drift 2 % come so far, and in autoregressive noise 1 %.
LEAST_CHANCE = 0.7

# Growth that gets slower is what is seen from this share on.
ENDS = 0.8

# What is nearer than this share of the path is not told apart.
RESOLUTION = 1 / 128

# Where fewer than half of them held, the interval is widened: as many times as far, in logarithms.
WIDER = 2.0


@dataclass(frozen=True)
class OwnPast:
    held: int
    made: int

    @property
    def is_poor(self) -> bool:
        return self.made >= 2 and 2 * self.held < self.made


def look_back(values: FloatArray, interval_seconds: float, growth: GrowthForecast) -> OwnPast:
    """
    Each earlier forecast is asked for a level that the path reached half way to its end.

    Only moments count at which a rise would have been told.
    """
    reached, noise = highest_so_far(values, growth)
    held = made = 0
    for cut in CUTS:
        place = int(cut * len(values))
        level = float(reached[(place + len(values)) // 2])
        if level <= reached[place - 1] or place < GRIDS[0]:
            continue
        earlier = forecast_growth(values[:place], interval_seconds, level)
        if earlier.passage is None or earlier.rises < LEAST_CHANCE or earlier.ends >= ENDS:
            continue
        true = int(np.argmax(reached >= level)) - place + 1
        # Noise may lift the crest before it, or hide one.
        resolution = RESOLUTION * len(values) + (growth.season or 0.0)
        made += 1
        held += is_inside(true, earlier.passage, resolution + noise / max(earlier.slope, 1e-300))
    return OwnPast(held, made)


def highest_so_far(values: FloatArray, growth: GrowthForecast) -> tuple[FloatArray, float]:
    """The highest level of the path at each sample, and how far the meter may be off it."""
    staircase = find_staircase(values)
    if staircase is not None:
        return staircase.levels(), 0.0
    if growth.crests:
        return np.maximum.accumulate(values), 0.0
    # The crest of a season is narrower than that of growth.
    counts = GRIDS if growth.season is None else BLOCKS
    buckets = max(count for count in counts if count <= len(values))
    heights, noise = smooth(bucket_heights(values, buckets))
    middles = grid(buckets) * len(values) - 0.5
    return np.maximum.accumulate(np.interp(np.arange(len(values)), middles, heights)), noise


def smooth(heights: FloatArray) -> tuple[FloatArray, float]:
    """The median of five buckets; and how far the buckets are from it."""
    padded = np.pad(heights, 2, mode="edge")
    middle = np.median(sliding_window_view(padded, 5), axis=1)
    return middle, mad_deviation(heights - middle)


def is_inside(true: float, passage: Passage, resolution: float) -> bool:
    return passage.early - resolution <= true <= passage.late + resolution


def widened(forecast: GrowthForecast) -> GrowthForecast:
    passage = forecast.passage
    if passage is None or not np.isfinite(passage.likely):
        return forecast
    likely = max(passage.likely, 1.0)
    early = likely * (max(passage.early, 0.0) / likely) ** WIDER
    late = likely * (passage.late / likely) ** WIDER
    return replace(forecast, passage=replace(passage, early=early, late=late))
