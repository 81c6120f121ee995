"""
When the crest of a sawtooth touches the limit.

Memory under a collector rises to a crest and falls: the next crests decide, and
not the mean. The crests are a path of their own, known at a few places, that is
explained as any other (evidence.py); each crest is off it by a deviation of its
own. Teeth are as long as they were.
"""

from dataclasses import dataclass

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

# A crest is hardly ever higher than this many deviations over its path.
HIGHEST = 3.0
SEED = 20_16


@dataclass(frozen=True)
class Crests:
    """Place (shares of the span) and height of each crest, or of each group of neighbours."""

    places: FloatArray
    heights: FloatArray
    group: int
    """Crests in one point."""
    lengths: FloatArray
    """Of teeth, in shares of the span."""
    elapsed: float
    """Since the newest fall."""
    rise: float
    """From the floor to the crest."""


def find_crests(values: FloatArray, falls: IntArray) -> Crests:
    samples = len(values)
    starts = np.concatenate(([0], falls[:-1]))
    heights = np.array([end_of_tooth(values[start:fall]) for start, fall in zip(starts, falls)])
    floors = values[np.minimum(falls, samples - 1)]
    group = -(-len(falls) // MOST_POINTS)
    # The newest crests count, a few of the oldest may be left over.
    kept = slice(len(falls) % group, None)
    return Crests(
        places=(falls[kept].reshape(-1, group).mean(axis=1)) / samples,
        heights=heights[kept].reshape(-1, group).mean(axis=1),
        group=group,
        lengths=np.diff(falls)[-max(NEWEST_TEETH, len(falls) // 3) :] / samples,
        elapsed=(samples - float(falls[-1])) / samples,
        rise=float(np.median(heights - floors)),
    )


def end_of_tooth(values: FloatArray) -> float:
    """The height of its last sample, by a line through its last third."""
    last = values[-max(3, len(values) // 3) :]
    if len(last) < 3:
        return float(last.max())
    time = np.arange(len(last)) - (len(last) - 1) / 2
    slope = float(time @ last) / float(time @ time)
    return float(last.mean()) + slope * float(time[-1])


def passages(futures: Futures, crests: Crests, rise: float, limit: float) -> FloatArray:
    """For each future, the share of the span until a crest touches the limit; infinite where none does."""
    random = np.random.default_rng(SEED)
    jitter = futures.jitter * np.sqrt(crests.group)
    starts = growth_passages(futures, limit - HIGHEST * jitter)
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
        times[rows] = touching(moments, heights, lengths, rise, limit)
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
    moments: FloatArray, heights: FloatArray, lengths: FloatArray, rise: float, limit: float
) -> FloatArray:
    """Within its tooth, the path is at the limit a little before the crest."""
    touched = heights >= limit
    first, rows = np.argmax(touched, axis=1), np.arange(len(heights))
    before = np.clip((heights[rows, first] - limit) / max(rise, 1e-300), 0.0, 1.0) * lengths[rows, first]
    return np.where(touched.any(axis=1), np.maximum(moments[rows, first] - before, 0.0), np.inf)
