"""
A path that is a staircase of equal steps: memory that is taken in whole pages.

What grows below the staircase is known at its corners only. Where the corners
lie on one line, to the sample, nothing else is known and nothing else is needed:
every line that would have made the same staircase is as likely as the next.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nodescope.use.studies.forecast.steps import Jumps, find_blurred_jumps, find_jumps
from nodescope.use.studies.maths.robust import mad_deviation
from nodescope.use.studies.series import FloatArray, IntArray

# So many rises of one size make a staircase. A rise is as high as the levels around it differ:
# within this share of a page, or within so many deviations of the meter's mean over them.
PAGE_RISES = 5
SAME_SIZE = 0.15
LEVEL_DEVIATIONS = 5.0

# More corners than these are averaged in groups of neighbours.
MOST_POINTS = 64

# A limit that is a level of the staircase may be off by the meter's noise:
# deviations of a level, and pages at most.
METER_DEVIATIONS = 4.0
METER = 0.1

# Pages are taken at random where the gaps between them vary by more than this
# share of their mean.
UNEVEN = 0.3

DRAWS = 600
GAPS = 801
SEED = 20_17


@dataclass(frozen=True)
class Staircase:
    """Where each rise was first seen, and how many pages had been taken by then."""

    samples: int
    page: float
    now: float
    """The level of its newest step."""
    noise: float
    """Deviation of a level, in pages."""
    places: IntArray
    pages: IntArray

    def pages_to(self, limit: float) -> int:
        ahead = max(limit - self.now, 0.0) / self.page
        off = METER_DEVIATIONS * self.noise * (1.0 + ahead / float(self.pages[-1]))
        return int(np.ceil(ahead - min(max(off, 1e-6), METER)))

    def whole_pages(self, limit: float) -> float:
        """The limit as the first level of the staircase that is not below it."""
        return self.now + self.page * self.pages_to(limit)

    @property
    def is_even(self) -> bool:
        gaps = np.diff(self.places) / np.diff(self.pages)
        return bool(gaps.std() < UNEVEN * gaps.mean())

    def levels(self) -> FloatArray:
        """The staircase itself, without the meter's noise."""
        taken = np.concatenate(([0], self.pages))
        which = np.searchsorted(self.places, np.arange(self.samples), side="right")
        return np.asarray(self.now + self.page * (taken[which] - taken[-1]), dtype=np.float64)

    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Place (shares of the span) and height of each, or of each group of neighbours."""
        group = -(-len(self.places) // MOST_POINTS)
        kept = slice(len(self.places) % group, None)
        places = (self.places[kept].reshape(-1, group).mean(axis=1) + 0.5) / self.samples
        pages = (self.pages[kept] - self.pages[-1]).reshape(-1, group).mean(axis=1)
        return places, self.now + self.page * pages


def find_staircase(values: FloatArray) -> Staircase | None:
    """Where all rises are of one size; seen through the noise of a meter, if it is less than a page."""
    seen = (staircase_of(values, jumps) for jumps in (find_jumps(values), find_blurred_jumps(values)))
    # Noise hides a rise from the one, and two that are close from the other.
    return max((one for one in seen if one is not None), key=lambda one: len(one.places), default=None)


def staircase_of(values: FloatArray, jumps: Jumps) -> Staircase | None:
    if len(jumps) < PAGE_RISES or (jumps.sizes < 0).any():
        return None
    levels = plateaus(values, jumps)
    rises = np.diff(levels)
    size = float(np.median(rises))
    if size <= 0:
        return None
    # Two pages within one sample are one jump of twice the size.
    wholes = np.maximum(1.0, np.round(rises / size))
    if (np.abs(rises / wholes - size) >= SAME_SIZE * size + meter_errors(values, jumps)).any():
        return None
    page = float((levels[-1] - levels[0]) / wholes.sum())
    noise = mad_deviation(np.diff(values)) / np.sqrt(np.median(np.diff(jumps.places))) / page
    return Staircase(
        samples=len(values),
        page=page,
        now=float(levels[-1]),
        noise=float(noise),
        places=jumps.places,
        pages=np.cumsum(wholes).astype(np.int64),
    )


def plateaus(values: FloatArray, jumps: Jumps) -> FloatArray:
    """The level before the first jump, and after each."""
    bounds = [0, *(int(place) for place in jumps.places), len(values)]
    return np.array([float(np.median(values[start:end])) for start, end in pairwise(bounds)])


def meter_errors(values: FloatArray, jumps: Jumps) -> FloatArray:
    """How far the meter's noise may move each rise: it is known by the samples on both sides."""
    lasts = np.diff([0, *jumps.places, len(values)])
    noise = mad_deviation(np.diff(values)) / np.sqrt(2)
    return np.asarray(LEVEL_DEVIATIONS * noise * np.sqrt(1.0 / lasts[:-1] + 1.0 / lasts[1:]))


@dataclass(frozen=True)
class SteadyPages:
    """Lines below a staircase: samples between two pages, and when the newest page was taken, before the newest sample."""

    gaps: FloatArray
    taken: FloatArray

    def passages(self, pages: int) -> FloatArray:
        """Samples until so many more pages are taken, from half a sample after the newest one."""
        return np.maximum(self.gaps * pages - self.taken - 0.5, 0.0)


def steady_pages(staircase: Staircase) -> SteadyPages | None:
    """
    Lines drawn from all that make this very staircase; None where there is none.

    Page m is taken at start + gap * m, and is seen at the first sample from then on:
    for each gap, the rises leave an interval for the start.
    """
    places, pages = staircase.places.astype(np.float64), staircase.pages.astype(np.float64)
    before = np.concatenate(([0.0], pages[:-1])) + 1.0
    middle = (places[-1] - places[0]) / max(pages[-1] - pages[0], 1.0)
    gaps = middle + np.linspace(-2.0, 2.0, GAPS) / max(pages[-1] - pages[0], 1.0)
    earliest = np.max(places - 1.0 - gaps[:, None] * before, axis=1)
    # The next page was not yet taken at the newest sample.
    earliest = np.maximum(earliest, staircase.samples - 1.0 - gaps * (pages[-1] + 1.0))
    latest = np.min(places - gaps[:, None] * pages, axis=1)
    room = np.maximum(latest - earliest, 0.0)
    if room.sum() <= 0:
        return None
    random = np.random.default_rng(SEED)
    rows = random.choice(GAPS, DRAWS, p=room / room.sum())
    starts = earliest[rows] + room[rows] * random.random(DRAWS)
    return SteadyPages(gaps[rows], staircase.samples - 1.0 - starts - gaps[rows] * pages[-1])
