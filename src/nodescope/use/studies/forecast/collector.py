"""
When the crest of a sawtooth touches the limit.

Memory under a collector rises to a crest and falls: the next crests decide, and
not the mean. The crests are a path of their own, known at a few places, that is
explained as any other (evidence.py); each crest is off it by a deviation of its
own. Teeth are as long as they were.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.forecast.first_passage import FARTHEST, Futures, between, growth_passages
from nodescope.use.studies.series import FloatArray, IntArray

# More crests than these are averaged in groups of neighbours.
MOST_POINTS = 64

# How many teeth are looked at together, and how often, from the first that may touch the limit.
TEETH = 32
ROUNDS = 32

# Teeth get longer or shorter while memory grows: the newest third of them is drawn from, and at least these.
NEWEST_TEETH = 8

# Teeth to come are so many times as long as the newest ones, at least and at most.
STRETCH = (0.3, 4.0)

# Floors that are averaged, to see how far each crest is above them.
NEIGHBOURS = 5

# A crest is hardly ever higher than this many deviations over its path.
HIGHEST = 3.0

# By how much a crest that is drawn again is blurred, in deviations
# times the fifth root of their number (Silverman).
BLUR = 1.06
SEED = 20_16


@dataclass(frozen=True)
class Crests:
    """
    A path that the crests follow, by points (shares of the span), and how far each is from it.

    It goes through the crests themselves; or through the floors, lifted by the falls, where these are closer
    to a line.
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
    lift: "Lift | None"
    """From the path to the crests, where it goes through the floors."""
    growing: "Lift"
    """How the lengths change."""

    def stretch(self, slopes: FloatArray, ahead: FloatArray) -> FloatArray:
        """By how much longer teeth are at moments to come than the newest ones."""
        change = slopes * (ahead + 0.5 * self.newest) / float(self.lengths.mean())
        return np.clip(1.0 + change, *STRETCH)

    @property
    def newest(self) -> float:
        """How much of the span the newest teeth take."""
        return float(self.lengths.sum())


class Lift:
    """The falls as a level or as a line over time, whichever they show."""

    def __init__(self, places: FloatArray, falls: FloatArray) -> None:
        self.middle = float(places.mean())
        self.level = float(falls.mean())
        time = places - self.middle
        self.slope = float(time @ falls) / float(time @ time)
        self.rest = falls - self.level - self.slope * time
        free = max(len(falls) - 2, 1)
        self.error = float(np.sqrt(self.rest @ self.rest / free / (time @ time)))
        # By the Bayesian information criterion, both as likely before.
        gain = 0.5 * len(falls) * np.log1p((self.slope / max(self.error, 1e-300)) ** 2 / free)
        self.chance = float(1 / (1 + np.exp(min(0.5 * np.log(len(falls)) - gain, 500.0))))

    @property
    def level_error(self) -> float:
        return float(self.rest.std()) / float(np.sqrt(len(self.rest)))

    def draw_slopes(self, random: np.random.Generator, count: int) -> FloatArray:
        slopes = self.slope + self.error * random.standard_normal(count)
        return np.where(random.random(count) < self.chance, slopes, 0.0)


def teeth_of(values: FloatArray, falls: IntArray) -> list[FloatArray]:
    bounds = [0, *(int(fall) for fall in falls), len(values)]
    return [values[start:end] for start, end in pairwise(bounds)]


def crest_heights(values: FloatArray, falls: IntArray) -> FloatArray:
    """Of each tooth that has ended."""
    return np.array([end_of_tooth(tooth) for tooth in teeth_of(values, falls)[:-1]])


def find_crests(values: FloatArray, falls: IntArray) -> Crests:
    samples = len(values)
    teeth = teeth_of(values, falls)
    heights = crest_heights(values, falls)
    floors = np.array([-end_of_tooth(-tooth[::-1]) for tooth in teeth[1:]])
    places = (falls - 0.5) / samples
    lift = (
        Lift(places, heights - smooth(floors))
        if left_by_line(places, floors) < left_by_line(places, heights)
        else None
    )
    path = heights if lift is None else floors + lift.level
    group = -(-len(falls) // MOST_POINTS)
    # The newest crests count, a few of the oldest may be left over.
    kept = slice(len(falls) % group, None)
    return Crests(
        places=places[kept].reshape(-1, group).mean(axis=1),
        heights=path[kept].reshape(-1, group).mean(axis=1),
        group=group,
        lengths=np.diff(falls)[-max(NEWEST_TEETH, len(falls) // 3) :] / samples,
        elapsed=(samples - float(falls[-1])) / samples,
        fall=float(np.median(heights - floors)),
        lift=lift,
        growing=Lift(places[1:], np.diff(falls) / samples),
    )


def smooth(floors: FloatArray) -> FloatArray:
    """Means of neighbours."""
    half = min(NEIGHBOURS, len(floors) - 1) // 2
    windows = sliding_window_view(np.pad(floors, half, mode="reflect", reflect_type="odd"), 2 * half + 1)
    return np.asarray(windows.mean(axis=1))


def left_by_line(places: FloatArray, heights: FloatArray) -> float:
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
    futures, wider = lifted(random, futures, crests, scale)
    above = Above.of(random, crests, scale, len(futures.heights))
    # What a floor is off its path is a part of how far crests are off the lifted one.
    jitter = np.zeros(len(futures.jitter)) if crests.lift else futures.jitter * np.sqrt(crests.group)
    longer = crests.growing.draw_slopes(random, len(jitter))
    starts = growth_passages(futures, limit - HIGHEST * (jitter + above.sizes))
    times = np.full(len(starts), np.inf)
    rows = np.flatnonzero(np.isfinite(starts))
    ends = starts[rows] + first_ends(random, crests, starts[rows])
    for _ in range(ROUNDS):
        if len(rows) == 0:
            break
        lengths = (
            random.choice(crests.lengths, (len(rows), TEETH)) * crests.stretch(longer[rows], ends)[:, None]
        )
        moments = ends[:, None] + np.cumsum(lengths, axis=1) - lengths[:, :1]
        heights = between(futures, rows, moments)
        off = jitter[rows, None] * random.standard_normal(heights.shape)
        off += above.draw(random, rows, heights.shape[1])
        # What grows varies by more.
        grown = np.clip(1.0 + wider[rows, None] * (0.5 + moments), *STRETCH)
        times[rows] = touching(moments, heights + off * grown, lengths, crests.fall / scale * grown, limit)
        still = np.isinf(times[rows])
        ends = moments[still, -1] + random.choice(crests.lengths, int(still.sum()))
        rows = rows[still]
    return np.where(times <= FARTHEST, times, np.inf)


def lifted(
    random: np.random.Generator, futures: Futures, crests: Crests, scale: float
) -> tuple[Futures, FloatArray]:
    """The futures of the crests' path, and by how much what a crest has over it grows."""
    if crests.lift is None:
        return futures, np.zeros(len(futures.heights))
    slopes = crests.lift.draw_slopes(random, len(futures.heights))
    levels = crests.lift.level_error * random.standard_normal((len(slopes), 1))
    heights = futures.heights + levels / scale
    heights += slopes[:, None] / scale * (1.0 + futures.ahead - crests.lift.middle)
    return replace(futures, heights=heights), slopes / crests.lift.level


@dataclass(frozen=True)
class Above:
    """
    How far a crest may be over a path that goes through the floors: as the former crests were.

    A dozen of them have no tails, so each is blurred; and how far they are from the path is known no better
    than so few can tell, so each future has a size of its own.
    """

    shares: FloatArray
    """Of the former crests, in deviations."""
    sizes: FloatArray
    """By future: a deviation."""

    @classmethod
    def of(cls, random: np.random.Generator, crests: Crests, scale: float, count: int) -> "Above":
        if crests.lift is None:
            return cls(np.zeros(1), np.zeros(count))
        rest = crests.lift.rest
        free = max(len(rest) - 2, 1)
        size = max(float(np.sqrt(rest @ rest / free)), 1e-300)
        return cls(rest / size, size / scale * np.sqrt(free / random.chisquare(free, count)))

    def draw(self, random: np.random.Generator, rows: IntArray, count: int) -> FloatArray:
        shape = (len(rows), count)
        blur = BLUR * len(self.shares) ** -0.2
        drawn = random.choice(self.shares, shape) + blur * random.standard_normal(shape)
        return np.asarray(self.sizes[rows, None] * drawn / np.sqrt(1.0 + blur * blur))


def first_ends(random: np.random.Generator, crests: Crests, starts: FloatArray) -> FloatArray:
    """Until the end of the tooth that is under way: now it is known for how long, later it may be anywhere."""
    longer = crests.lengths[crests.lengths > crests.elapsed]
    drawn = random.choice(longer if len(longer) else crests.lengths, len(starts))
    left = np.maximum(drawn - crests.elapsed, 0.0)
    anywhere = random.random(len(starts)) * random.choice(crests.lengths, len(starts))
    return np.where(starts == 0, left, anywhere)


def touching(
    moments: FloatArray, heights: FloatArray, lengths: FloatArray, falls: FloatArray, limit: float
) -> FloatArray:
    """Within its tooth, the path is at the limit a little before the crest."""
    touched = heights >= limit
    first, rows = np.argmax(touched, axis=1), np.arange(len(heights))
    over = (heights[rows, first] - limit) / np.maximum(falls[rows, first], 1e-300)
    before = np.clip(over, 0.0, 1.0) * lengths[rows, first]
    return np.where(touched.any(axis=1), np.maximum(moments[rows, first] - before, 0.0), np.inf)
