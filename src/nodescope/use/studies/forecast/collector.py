"""
When the crest of a sawtooth touches the limit.

Memory under a collector rises to a crest and falls: the next crests decide, and
not the mean. Crests are a line with a deviation of their own; teeth are as long
as they were.
"""

import numpy as np

from nodescope.use.studies.series import FloatArray, IntArray

DRAWS = 600
FARTHEST_TEETH = 4000

# Crests that hold their level are more usual than crests that climb.
LEVEL_NATS = 1.0
SEED = 20_16


def crests_of(values: FloatArray, falls: IntArray) -> tuple[FloatArray, FloatArray]:
    """Place and height of the last three samples before each fall."""
    heights = [float(np.median(values[max(0, fall - 3) : fall])) for fall in falls]
    return falls.astype(np.float64) - 1.0, np.array(heights)


class CrestLine:
    """A line through the crests, and how uncertain it is."""

    def __init__(self, places: FloatArray, heights: FloatArray) -> None:
        self.middle = float(places.mean())
        offsets = places - self.middle
        self.spread = float(offsets @ offsets)
        self.level = float(heights.mean())
        self.slope = float(offsets @ heights) / self.spread
        self.freedom = len(places) - 2
        left = heights - self.level - self.slope * offsets
        self.deviation = float(np.sqrt(left @ left / self.freedom))
        self.count = len(places)

    @property
    def slope_error(self) -> float:
        return self.deviation / float(np.sqrt(self.spread))

    @property
    def chance(self) -> float:
        """That the crests have a slope at all: by the Bayesian information criterion, against a level."""
        t_value = self.slope / max(self.slope_error, 1e-300)
        gain = 0.5 * self.count * np.log1p(t_value**2 / self.freedom) - 0.5 * np.log(self.count)
        return float(1 / (1 + np.exp(-min(gain - LEVEL_NATS, 500.0))))

    def draw(self, random: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Levels, slopes and deviations as uncertain as the crests leave them."""
        wide = np.sqrt(self.freedom / random.chisquare(self.freedom, draws))
        level = self.level + wide * self.deviation / np.sqrt(self.count) * random.standard_normal(draws)
        slope = self.slope + wide * self.slope_error * random.standard_normal(draws)
        return level, slope, wide * self.deviation


def passages(
    values: FloatArray, falls: IntArray, limit: float, line: CrestLine, farthest: float
) -> FloatArray:
    """For each drawn future, the samples until a crest touches the limit; infinite where none does."""
    random = np.random.default_rng(SEED)
    now = len(values) - 1
    level, slope, deviation = line.draw(random, DRAWS)
    lengths = np.diff(falls).astype(np.float64)
    teeth = int(min(FARTHEST_TEETH, np.ceil(farthest / lengths.mean()) + 1))
    drawn = random.choice(lengths, (DRAWS, teeth))
    elapsed = now - float(falls[-1])
    longer = lengths[lengths > elapsed]
    drawn[:, 0] = (random.choice(longer, DRAWS) if len(longer) else elapsed + 1) - elapsed
    ends = np.cumsum(drawn, axis=1)
    heights = level[:, None] + slope[:, None] * (now + ends - line.middle)
    heights += deviation[:, None] * random.standard_normal(heights.shape)
    touched = heights >= limit
    first = np.argmax(touched, axis=1)
    rows = np.arange(DRAWS)
    # Within its tooth, the path is at the limit a little before the crest.
    rise = float(np.median(crests_of(values, falls)[1] - values[np.minimum(falls, now)]))
    before = (heights[rows, first] - limit) / max(rise, 1e-300) * drawn[rows, first]
    times = np.maximum(ends[rows, first] - np.minimum(before, drawn[rows, first]), 0.0)
    return np.where(touched.any(axis=1) & (times <= farthest), times, np.inf)
