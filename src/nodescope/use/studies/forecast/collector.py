"""
When the crest of a sawtooth touches the limit.

Memory under a collector rises to a crest and falls: the next crests decide, and
not the mean. The crests are a path of their own, known at a few places, that is
explained as any other (evidence.py); each crest is off it by a deviation of its
own. Teeth are as long as they were.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nodescope.use.studies.forecast.first_passage import FARTHEST, Futures, between, growth_passages
from nodescope.use.studies.series import FloatArray, IntArray

# More crests than these are averaged in groups of neighbours.
MOST_POINTS = 64

# How many teeth are looked at together, and how often, from the first that may touch the limit.
TEETH = 128
ROUNDS = 8

# Teeth get longer or shorter while memory grows: the newest third of them is drawn from, and at least these.
NEWEST_TEETH = 8

# Falls whose slope over time is within so many of its deviations neither grow nor shrink.
LEVEL_DEVIATIONS = 2.0

# A crest is hardly ever higher than this many deviations over its path.
HIGHEST = 3.0
SEED = 20_16


@dataclass(frozen=True)
class Crests:
    """
    A path that the crests follow, by points (shares of the span), and how far each is from it.

    It goes through the crests themselves; or through the floors, lifted by the mean fall, where they
    are closer to a line and the falls do not grow.
    """

    places: FloatArray
    heights: FloatArray
    group: int
    """Crests in one point."""
    lengths: FloatArray
    """Of teeth, in shares of the span."""
    elapsed: float
    """Since the newest fall."""
    fall: float
    """From the crest to the floor."""
    above: FloatArray
    """What a crest has over the path beside the path's own jitter: one of these."""


def find_crests(values: FloatArray, falls: IntArray) -> Crests:
    samples = len(values)
    bounds = [0, *(int(fall) for fall in falls), samples]
    teeth = [values[start:end] for start, end in pairwise(bounds)]
    heights = np.array([end_of_tooth(tooth) for tooth in teeth[:-1]])
    floors = np.array([-end_of_tooth(-tooth[::-1]) for tooth in teeth[1:]])
    drops = heights - floors
    by_floors = are_level(falls, drops) and left_by_line(falls, floors) < left_by_line(falls, heights)
    path = floors + drops.mean() if by_floors else heights
    group = -(-len(falls) // MOST_POINTS)
    # The newest crests count, a few of the oldest may be left over.
    kept = slice(len(falls) % group, None)
    return Crests(
        places=(falls[kept].reshape(-1, group).mean(axis=1) - 0.5) / samples,
        heights=path[kept].reshape(-1, group).mean(axis=1),
        group=group,
        lengths=np.diff(falls)[-max(NEWEST_TEETH, len(falls) // 3) :] / samples,
        elapsed=(samples - float(falls[-1])) / samples,
        fall=float(np.median(drops)),
        above=drops - drops.mean() if by_floors else np.zeros(1),
    )


def are_level(places: IntArray, heights: FloatArray) -> bool:
    """They neither rise nor fall, as far as they show."""
    time = places - places.mean()
    slope = float(time @ heights) / float(time @ time)
    error = np.sqrt(left_by_line(places, heights) / max(len(places) - 2, 1) / float(time @ time))
    return bool(abs(slope) < LEVEL_DEVIATIONS * max(float(error), 1e-300))


def left_by_line(places: IntArray, heights: FloatArray) -> float:
    """Sum of squares."""
    time, level = places - places.mean(), heights - heights.mean()
    slope = float(time @ level) / float(time @ time)
    return float(np.sum((level - slope * time) ** 2))


def end_of_tooth(values: FloatArray) -> float:
    """The height of its last sample, by a line through its last third."""
    last = values[-max(3, len(values) // 3) :]
    if len(last) < 3:
        return float(last.max())
    time = np.arange(len(last)) - (len(last) - 1) / 2
    slope = float(time @ last) / float(time @ time)
    return float(last.mean()) + slope * float(time[-1])


def passages(futures: Futures, crests: Crests, scale: float, limit: float) -> FloatArray:
    """For each future, the share of the span until a crest touches the limit; infinite where none does."""
    random = np.random.default_rng(SEED)
    above, fall = crests.above / scale, crests.fall / scale
    jitter = futures.jitter * np.sqrt(crests.group)
    starts = growth_passages(futures, limit - HIGHEST * jitter - float(above.max()))
    times = np.full(len(starts), np.inf)
    rows = np.flatnonzero(np.isfinite(starts))
    ends = starts[rows] + first_ends(random, crests, starts[rows])
    for _ in range(ROUNDS):
        if len(rows) == 0:
            break
        lengths = random.choice(crests.lengths, (len(rows), TEETH))
        moments = ends[:, None] + np.cumsum(lengths, axis=1) - lengths[:, :1]
        heights = between(futures, rows, moments)
        heights += jitter[rows, None] * random.standard_normal(heights.shape)
        heights += random.choice(above, heights.shape)
        times[rows] = touching(moments, heights, lengths, fall, limit)
        still = np.isinf(times[rows])
        ends = moments[still, -1] + random.choice(crests.lengths, int(still.sum()))
        rows = rows[still]
    return np.where(times <= FARTHEST, times, np.inf)


def first_ends(random: np.random.Generator, crests: Crests, starts: FloatArray) -> FloatArray:
    """Until the end of the tooth that is under way: now it is known for how long, later it may be anywhere."""
    longer = crests.lengths[crests.lengths > crests.elapsed]
    drawn = random.choice(longer if len(longer) else crests.lengths, len(starts))
    left = np.maximum(drawn - crests.elapsed, 0.0)
    anywhere = random.random(len(starts)) * random.choice(crests.lengths, len(starts))
    return np.where(starts == 0, left, anywhere)


def touching(
    moments: FloatArray, heights: FloatArray, lengths: FloatArray, fall: float, limit: float
) -> FloatArray:
    """Within its tooth, the path is at the limit a little before the crest."""
    touched = heights >= limit
    first, rows = np.argmax(touched, axis=1), np.arange(len(heights))
    before = np.clip((heights[rows, first] - limit) / max(fall, 1e-300), 0.0, 1.0) * lengths[rows, first]
    return np.where(touched.any(axis=1), np.maximum(moments[rows, first] - before, 0.0), np.inf)
