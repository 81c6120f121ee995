"""
Three looks at two series on one grid: how probable is it by chance that they match so well, so near in time?

1. The bulk: innovations of both, by their correlation at each lag.
2. Onsets: how many steps of the one fall on steps of the other, moved by one lag.
3. The broad shape, where one of the two has no onset: which shift is the best of all.

By chance the best match may be at any shift of the whole series. So a match at lag
k counts (2k + 1) times its probability at one shift: one step each in an hour, in
the same second, is 1 in 3600; 30 s apart it is 1 in 60. And where other shifts match
as well (as with two periodic series), the share of those shifts is the probability.
"""

from dataclasses import dataclass
from functools import cached_property
from math import erfc, exp, sqrt

import numpy as np

from nodescope.use.studies.series import FloatArray, IntArray
from nodescope.use.studies.together.broad_shape import (
    BroadShape,
    broad_shape,
    drawn_shifts,
    products,
    tied,
    without_cubic,
)
from nodescope.use.studies.together.innovations import filtered, fit_filter, levelled, shifted_scores
from nodescope.use.studies.together.onsets import REACH, Onsets, find_onsets

# Innovations that match are usually far beyond chance, so they get a tenth of
# the error that is allowed, and the places of events the rest.
BULK_SHARE, PLACE_SHARE = 0.1, 0.9

# Events are rarely at the edges of what was asked for, so that there are fewer
# places than samples. A guess: events in the middle three quarters.
PLACES_SHARE = 0.75
# A swing of minutes that is seen whole keeps its own width from both edges besides.
SHAPE_PLACES_SHARE = 0.6
# Shapes whose best correlation, noise taken away, is below this are not alike.
LEAST_LIKENESS = 0.5

# 95 % of the likelihood of a lag: twice the logarithm of 20.
LIKELIHOOD_DROP = 6.0

# Onsets may be matched up to so many samples off: that is how well they are placed.
OFF_SAMPLES = 1

# A shift that matches four fifths as well matches as well, but for noise.
AS_GOOD = 0.8

# The noise under a shape is itself estimated, from a few frequencies.
WIDENED = 1.3

# The interval holds 95 % of the tries or of the likelihood.
INTERVAL = 0.95


@dataclass(frozen=True)
class Match:
    """Lags are in samples, positive where the right one moved first; chance is that of one pair, over all lags."""

    look: str
    lag: int
    low: float
    high: float
    sign: float
    chance: float
    correlation: float


@dataclass(frozen=True)
class BestLag:
    lag: int
    sign: float
    chance: float


NOTHING = BestLag(0, 1.0, 1.0)


class ComparedSeries:
    """One series with what its comparisons need, each made once and only when asked for."""

    def __init__(self, values: FloatArray) -> None:
        self.values = levelled(values)

    @cached_property
    def taps(self) -> FloatArray:
        return fit_filter(self.values)

    @cached_property
    def innovations(self) -> FloatArray:
        return filtered(self.values, self.taps)

    @cached_property
    def onsets(self) -> Onsets:
        return find_onsets(self.values)

    @cached_property
    def shape(self) -> BroadShape:
        return broad_shape(self.values, without_cubic)

    @cached_property
    def tied_shape(self) -> BroadShape:
        return broad_shape(self.values, tied)


def match(left: ComparedSeries, right: ComparedSeries, most: int) -> Match:
    """The most probable of the three looks; its interval is worked out by place_lag, for those that are told."""
    bulk = match_bulk(left, right, most)
    has_onsets = left.onsets.has_strong and right.onsets.has_strong
    place = (
        match_onsets(left.onsets, right.onsets, len(left.values), most)
        if has_onsets
        else match_shapes(left, right, most)
    )
    looks = {
        "innovations": (bulk, bulk.chance / BULK_SHARE),
        "onsets" if has_onsets else "shape": (place, place.chance / PLACE_SHARE),
    }
    look = min(looks, key=lambda name: looks[name][1])
    one, chance = looks[look]
    return Match(
        look, one.lag, one.lag, one.lag, one.sign, min(1.0, chance), correlation_at(left, right, one.lag)
    )


def correlation_at(left: ComparedSeries, right: ComparedSeries, lag: int) -> float:
    first, second = left.values, right.values
    first, second = (first[lag:], second[: len(second) - lag]) if lag >= 0 else (first[:lag], second[-lag:])
    scale = sqrt(float(np.sum(first * first) * np.sum(second * second)))
    return float(np.sum(first * second)) / scale if scale > 0 else 0.0


# -- the bulk --------------------------------------------------------------------------


def match_bulk(left: ComparedSeries, right: ComparedSeries, most: int) -> BestLag:
    scores = shifted_scores(left.innovations, right.innovations)
    lags = np.arange(-most, most + 1)
    outside = np.abs(scores[most + 1 : len(scores) - most])
    scale = max(1.0, sqrt(float(np.mean(outside**2))) if len(outside) else 1.0)
    inside = np.abs(scores[lags])
    place = int(np.argmax(inside))
    alike = float(np.mean(outside >= AS_GOOD * inside[place])) if len(outside) else 1.0
    chance = (2 * most + 1) * max(erfc(float(inside[place]) / scale / sqrt(2)), alike)
    return BestLag(int(lags[place]), float(np.sign(scores[lags[place]])), min(1.0, chance))


def bulk_interval(left: ComparedSeries, right: ComparedSeries, most: int) -> tuple[int, float, float]:
    """
    Both through the same filter, so that neither is delayed against the other.

    Whichever filter shows the match best is taken; lags whose likelihood is within
    LIKELIHOOD_DROP of the best one's are in the interval.
    """
    lags = np.arange(-most, most + 1)
    choices = [
        shifted_scores(filtered(left.values, taps), filtered(right.values, taps))[lags] ** 2
        for taps in (left.taps, right.taps)
    ]
    squares = max(choices, key=lambda one: float(np.max(one)))
    likely = lags[squares >= float(np.max(squares)) - LIKELIHOOD_DROP]
    return int(lags[int(np.argmax(squares))]), float(likely[0]), float(likely[-1])


# -- onsets ----------------------------------------------------------------------------


def match_onsets(left: Onsets, right: Onsets, count: int, most: int) -> BestLag:
    both = [match_signed(left, right, count, most, sign) for sign in (1.0, -1.0)]
    best = min(both, key=lambda one: one.chance)
    # Two signs and two distances were tried, which mostly say the same; of one
    # pair of onsets there is only one to try.
    tried = 3 if len(left.places) > 1 or len(right.places) > 1 else 1
    return BestLag(best.lag, best.sign, min(1.0, tried * best.chance))


def match_signed(left: Onsets, right: Onsets, count: int, most: int, sign: float) -> BestLag:
    alike = left.signs[:, None] * right.signs[None, :] == sign
    shifts = ((left.places[:, None] - right.places[None, :]) % count)[alike]
    if len(shifts) == 0:
        return NOTHING
    exact = np.bincount(shifts, minlength=count)
    near = sum(np.roll(exact, off) for off in range(-OFF_SAMPLES, OFF_SAMPLES + 1))
    near = np.minimum(near, min(len(left.places), len(right.places)))
    options = [rarest(matched, len(shifts), count, most) for matched in (exact, near)]
    return min((BestLag(lag, sign, chance) for lag, chance in options), key=lambda one: one.chance)


def rarest(matched: IntArray, pairs: int, count: int, most: int) -> tuple[int, float]:
    """The lag at which so many matches are least probable, with that probability."""
    lags = np.arange(-most, most + 1)
    shifts_each = float(np.sum(matched)) / pairs
    expected = pairs * shifts_each / (PLACES_SHARE * count)
    inside = matched[lags]
    outside = matched[most + 1 : len(matched) - most]
    best, chance = 0, 1.0
    for wanted in np.unique(inside[inside > 0]):
        lag = int(min(lags[inside >= wanted], key=abs))
        alike = float(np.mean(outside >= AS_GOOD * wanted)) / PLACES_SHARE if len(outside) else 1.0
        one = (2 * abs(lag) + 1) * max(poisson_tail(int(wanted), expected), alike)
        if one < chance:
            best, chance = lag, one
    return best, chance


def poisson_tail(least: int, expected: float) -> float:
    """The probability of at least so many."""
    term, total = exp(-expected), 0.0
    for number in range(1, least + 60):
        term *= expected / number
        total += term if number >= least else 0.0
    return min(1.0, total)


def onset_interval(left: Onsets, right: Onsets, about: int, sign: float) -> tuple[int, float, float]:
    """The likelihoods of the places of all matched pairs, one against the other."""
    apart = left.places[:, None] - right.places[None, :] - about
    alike = (left.signs[:, None] * right.signs[None, :] == sign) & (np.abs(apart) <= OFF_SAMPLES)
    reach = 2 * REACH + OFF_SAMPLES
    lags = np.arange(about - reach, about + reach + 1)
    total = np.zeros(len(lags))
    for one, other in zip(*np.nonzero(alike)):
        spread = np.convolve(np.exp(left.likelihoods[one]), np.exp(right.likelihoods[other])[::-1])
        start = int(apart[one, other]) + OFF_SAMPLES
        placed = np.full(len(lags), 1e-12)
        placed[start : start + len(spread)] += spread
        total += np.log(placed)
    share = np.exp(total - np.max(total))
    order = np.argsort(-share)
    needed = int(np.searchsorted(np.cumsum(share[order]) / np.sum(share), INTERVAL)) + 1
    likely = lags[order[:needed]]
    return int(lags[order[0]]), float(np.min(likely)), float(np.max(likely))


# -- the broad shape -------------------------------------------------------------------


def match_shapes(left: ComparedSeries, right: ComparedSeries, most: int) -> BestLag:
    """Both ways of taking the trend away must agree: each has a kind of series with a shift of its own."""
    ended = match_shape(left.tied_shape, right.tied_shape, most)
    if ended is NOTHING:
        return NOTHING
    bent = match_shape(left.shape, right.shape, most)
    return BestLag(bent.lag, bent.sign, max(ended.chance, bent.chance))


def match_shape(left: BroadShape, right: BroadShape, most: int) -> BestLag:
    match_by_shift = products(left, right)
    shift = int(np.argmax(np.abs(match_by_shift)))
    lag = shift if shift <= len(match_by_shift) // 2 else shift - len(match_by_shift)
    if abs(lag) > most or abs(match_by_shift[shift]) < LEAST_LIKENESS * likeness_scale(left, right):
        return NOTHING
    chance = (
        (2 * abs(lag) + 1)
        * as_good_peaks(np.abs(match_by_shift))
        / (SHAPE_PLACES_SHARE * len(match_by_shift))
    )
    return BestLag(lag, float(np.sign(match_by_shift[shift])), min(1.0, chance))


def likeness_scale(left: BroadShape, right: BroadShape) -> float:
    """What two series of this strength reach when they are alike."""
    power = [float(np.sum(np.abs(shape.drawn()) ** 2)) * 2 / shape.count for shape in (left, right)]
    return max(sqrt(power[0] * power[1]), np.finfo(np.float64).tiny)


def as_good_peaks(heights: FloatArray) -> int:
    """Local maxima, around the circle, that match as well as the best; three times where it repeats, as some are missed."""
    is_peak = (heights >= np.roll(heights, 1)) & (heights > np.roll(heights, -1))
    peaks = int(np.sum(is_peak & (heights >= AS_GOOD * float(np.max(heights)))))
    return 3 * peaks if peaks > 1 else 1


def shape_interval(
    left: ComparedSeries, right: ComparedSeries, told: Match, most: int
) -> tuple[int, float, float]:
    """From tries with fresh noise, and as far as the other way of taking the trend away puts it."""
    tries = drawn_shifts(left.shape, right.shape, most, told.sign)
    low, high = np.quantile(tries, ((1 - INTERVAL) / 2, (1 + INTERVAL) / 2))
    other = match_shape(left.tied_shape, right.tied_shape, most).lag
    low, high = (told.lag + WIDENED * (float(bound) - told.lag) for bound in (low, high))
    return told.lag, min(low, told.lag, other), max(high, told.lag, other)


def place_lag(told: Match, left: ComparedSeries, right: ComparedSeries, most: int) -> Match:
    """With its likeliest lag and the interval around it."""
    if told.look == "innovations":
        lag, low, high = bulk_interval(left, right, most)
    elif told.look == "onsets":
        lag, low, high = onset_interval(left.onsets, right.onsets, told.lag, told.sign)
    else:
        lag, low, high = shape_interval(left, right, told, most)
    return Match(told.look, lag, low, high, told.sign, told.chance, correlation_at(left, right, lag))
