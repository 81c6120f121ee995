"""
Trains of short pulses: work of a second every minute, with jitter, gaps, strangers, and trains within trains.

A train is a chain of events whose distances are one period, or a few where
events are missing. Candidate periods are the distances that occur more often than
their neighbours; the chain of a candidate is judged by how many of its slots
hold an event, against how many would by chance at the same density of events.
The chain follows each event's own time, so that jitter may add up (a loop with
a sleep) or not (cron).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import e, exp, log, pi, sqrt

import numpy as np

from nodescope.use.studies.maths.pulse_events import EDGES, PULSES, Events, PulseKind, events_of
from nodescope.use.studies.maths.robust import NORMAL_MAD
from nodescope.use.studies.maths.stretch import interpolated
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# Single samples, and means of 4 and 16: pulses of a second to ten minutes.
SCALES = (1, 4, 16)
FEWEST_SAMPLES = 32
SCALE_SAMPLES = 240

# Four events have three equal distances; fewer are a coincidence.
FEWEST_EVENTS = 4
MOST_EVENTS = 12_000

# Of a train's slots, those that must hold an event.
LEAST_SHARE = 0.45

# And how much more than chance would fill: the longest of many chains is a little
# fuller than one of them, which is no matter of significance in a long series.
LEAST_EXCESS = 0.3

# A chain of chance events in one of a thousand series, for each of the kinds and scales.
# For the larger events of a train there is one question, and not many.
MOST_FALSE = 1e-4
MOST_FALSE_NESTED = 5e-3

# Distances to the next sixteen events: that many strangers between two pulses of a train.
ORDERS = 16
SHORTEST_PERIOD = 4

# How far from its slot an event may be, in periods. A candidate is tried with the
# narrowest that its distances allow.
REACHES = (0.02, 0.06, 0.12, 0.25)
CANDIDATES = 4

# Among many events a candidate is followed only when its distance is this many deviations more
# frequent than chance: following costs more than counting.
MANY_EVENTS = 100
FREQUENT = 3.0

# Measured, an event may be 2.2 deviations of the jitter away: 97 of 100 are.
SPREAD_REACH = 2.2
WIDEST_REACH = 0.35
SAME_PERIOD = 0.04

# Deviations from the line of slots are 0.7 of the deviations of distances where each
# event has its own jitter, and more than those where jitter adds up.
ADDS_UP = 1.5

# What the fitted period, spread, share and density of a chain cost, per logarithm of its events.
FITTED = 1.0

# Starts are known to a sample: no distance varies by less than a third of it.
LEAST_SPREAD = 0.3

# Slots in a row that may be empty, and what each costs against an event.
MISSED_SLOTS = 5
MISSED_COST = 0.6

# A chain is followed, measured, and followed again with its own period and jitter.
ROUNDS = 2

# A chain of so many of the events is not compared with others.
NEARLY_ALL = 0.9

MOST_TRAINS = 3

# The larger events of a train are a train of their own when their heights (or
# widths) are apart from the others' by three times what both vary: a normal
# distribution cut in two is 2.7.
SPLIT_DEVIATIONS = 3.0
SPLIT_EVENTS = 8
CLEAR_DEVIATIONS = 4.0

# Means of 16 samples see a pulse every 60 as larger in every fourth cycle: only
# where they are a 24th of the period are larger events another train.
NESTED_PERIODS = 12
COARSE_NESTED = 24
COARSE_PERIODS = 12

# Below three samples a pulse is seen in part, by up to half; and a sample wider.
WHOLE_SAMPLES = 3
CUT_RATIO = 2.2

# Events whose deviations from the line of slots stay below this share of the period keep their phase.
KEPT_PHASE = 0.1

# A pulse and its edges: two samples more to both sides.
EDGE_SAMPLES = 2

# Of edges the period is known less well, where each cycle differs.
SAME_EDGES = 0.12

# A train of edges that has more than half of its events in common with a surer one is that one.
MOST_SHARED = 0.5

# A distance that typically varies by more than this share of the period is "roughly every".
EXACT_JITTER = 0.18


@dataclass(frozen=True)
class PulseTrain:
    """
    A train: starts and widths of its events are in samples, everything else as named.

    phase_seconds   of the first slot of the fitted line of slots, after the first sample
    jitter_seconds  typical deviation of a distance between neighbours from the period
    share           of the slots from the first event to the last, those with an event
    false_alarm     the probability that events at random times have such a train
    drift_seconds   typical deviation of an event from the line of slots: more than the jitter where jitter adds up
    is_exact        the jitter is small
    within_seconds  the period of the train whose larger events these are; None for a train of its own
    height          mean of an event over the baseline (over the sample before, for jumps and falls)
    """

    kind: PulseKind
    period_seconds: float
    width_seconds: float
    height: float
    phase_seconds: float
    jitter_seconds: float
    drift_seconds: float
    share: float
    false_alarm: float
    is_exact: bool
    within_seconds: float | None
    starts: IntArray
    widths: IntArray


@dataclass(frozen=True)
class Chain:
    """Places of a train's events among all events, the slot of each, and the figures of the line through them."""

    places: IntArray
    slots: IntArray
    period: float
    phase: float
    jitter: float
    drift: float
    false_alarm: float

    @property
    def share(self) -> float:
        return len(self.places) / (int(self.slots[-1]) + 1)


def find_pulse_trains(values: FloatArray, step: float = 1.0) -> tuple[PulseTrain, ...]:
    """Every train in an evenly sampled series (NaN where missing), surest first; step is the seconds between samples."""
    held = np.isfinite(values)
    if int(held.sum()) < FEWEST_SAMPLES:
        return ()
    even = interpolated(values)
    found: list[PulseTrain] = []
    for scale in scales_of(len(even)):
        for kinds in (PULSES, EDGES):
            here = [
                train
                for events in events_of(even, kinds, scale)
                for train in trains_of(events, len(even), step)
            ]
            found += here
            even = np.where(covered_by(here, len(even)), np.nan, even)
            even = interpolated(even) if np.isfinite(even).any() else np.zeros(len(even))
    return distinct(found, len(even))


def scales_of(count: int) -> list[int]:
    return [scale for scale in SCALES if scale == 1 or count >= SCALE_SAMPLES * scale]


def covered_by(trains: Iterable[PulseTrain], count: int) -> BoolArray:
    """The samples of every pulse and dip: without them it is not seen again at its edges or at a coarser scale."""
    covered = np.zeros(count, dtype=bool)
    for train in trains:
        if not is_edge(train):
            mark_taken(covered, train)
    return covered


def mark_taken(taken: BoolArray, train: PulseTrain) -> None:
    edges = np.zeros(len(taken) + 1, dtype=np.int64)
    np.add.at(edges, np.maximum(train.starts - EDGE_SAMPLES, 0), 1)
    np.add.at(edges, np.minimum(train.starts + train.widths + EDGE_SAMPLES, len(taken)), -1)
    taken |= np.cumsum(edges[:-1]) > 0


def distinct(trains: list[PulseTrain], count: int) -> tuple[PulseTrain, ...]:
    """Each period once, as the kind and at the scale at which it is surest; what only repeats another's edges is left out."""
    kept: list[PulseTrain] = []
    taken = np.zeros(count, dtype=bool)
    for train in sorted(trains, key=rank_of):
        if any(is_same_period(train.period_seconds, other.period_seconds) for other in kept):
            continue
        if is_edge(train) and (share_taken(train, taken) > MOST_SHARED or is_multiple(train, kept)):
            continue
        if train.within_seconds is not None and is_multiple(train, nested_in(kept)):
            continue
        if not is_orphan(train, kept):
            kept.append(train)
            mark_taken(taken, train)
    return tuple(kept)


def nested_in(kept: list[PulseTrain]) -> list[PulseTrain]:
    return [train for train in kept if train.within_seconds is not None]


def is_edge(train: PulseTrain) -> bool:
    return train.kind in EDGES


def share_taken(train: PulseTrain, taken: BoolArray) -> float:
    """Of the events, those with a taken sample within their own width to both sides."""
    reach = train.widths + EDGE_SAMPLES
    total = np.concatenate(([0], np.cumsum(taken)))
    low = np.clip(train.starts - reach, 0, len(taken))
    high = np.clip(train.starts + train.widths + reach, 0, len(taken))
    return float(np.mean(total[high] > total[low]))


def is_multiple(train: PulseTrain, kept: list[PulseTrain]) -> bool:
    """About a multiple of a period told already: the train of those edges that noise has not hidden."""
    ratios = [train.period_seconds / other.period_seconds for other in kept]
    return any(round(ratio) >= 1 and abs(ratio - round(ratio)) <= SAME_EDGES for ratio in ratios)


def is_orphan(train: PulseTrain, kept: list[PulseTrain]) -> bool:
    """Larger events of a train that is not told itself."""
    within = train.within_seconds
    return within is not None and not any(is_same_period(within, other.period_seconds) for other in kept)


def rank_of(train: PulseTrain) -> tuple[int, float]:
    """Pulses and dips before edges, trains before those within them, the surest first."""
    return 2 * is_edge(train) + (train.within_seconds is not None), train.false_alarm


def is_same_period(period: float, other: float) -> bool:
    return abs(period - other) <= SAME_PERIOD * max(period, other)


def trains_of(events: Events, count: int, step: float) -> list[PulseTrain]:
    """The best train, those of its larger events, and what the remaining events have."""
    found: list[PulseTrain] = []
    left = events
    while FEWEST_EVENTS <= len(left) <= MOST_EVENTS and len(found) < MOST_TRAINS:
        chain = best_chain(left, count)
        if chain is None:
            break
        members = left.only(chain.places)
        found.append(build_train(members, chain, step))
        found += nested_trains(members, chain.period, count, step)
        left = left.only(not_of(left, chain))
    return found


def not_of(events: Events, chain: Chain) -> IntArray:
    """Places of the events that are neither in the chain nor, as it keeps its phase, in one of its slots."""
    turns = (events.starts - chain.phase) / chain.period
    near = max(SPREAD_REACH * chain.jitter, 1.5 * events.scale) / chain.period
    in_slot = (np.abs(turns - np.round(turns)) <= near) & (chain.drift <= KEPT_PHASE * chain.period)
    return np.setdiff1d(np.flatnonzero(~in_slot), chain.places)


def nested_trains(members: Events, period: float, count: int, step: float) -> list[PulseTrain]:
    """Trains of those events of a train that are larger: two jobs that start at the same second."""
    found: list[PulseTrain] = []
    if period < (NESTED_PERIODS if members.scale == 1 else COARSE_NESTED * members.scale):
        return found
    for sizes in (members.heights, members.widths, members.heights * members.widths):
        larger = larger_ones(sizes)
        if len(larger) < FEWEST_EVENTS or is_partly_sampled(members, sizes, larger):
            continue
        within = members.only(larger)
        chain = best_chain(within, count, len(larger) / len(members))
        if chain is not None and is_clear(chain, sizes, larger):
            found.append(build_train(within.only(chain.places), chain, step, period * step))
    return found


def is_clear(chain: Chain, sizes: FloatArray, larger: IntArray) -> bool:
    """Beyond chance; or nearly so, and of events whose sizes are two groups beyond doubt."""
    smaller = np.setdiff1d(np.arange(len(sizes)), larger)
    apart = float(np.median(sizes[larger]) - np.median(sizes[smaller]))
    spread = max(float(np.std(sizes[larger])), float(np.std(sizes[smaller])))
    return chain.false_alarm <= MOST_FALSE or apart >= CLEAR_DEVIATIONS * spread


def is_partly_sampled(members: Events, sizes: FloatArray, larger: IntArray) -> bool:
    """
    Pulses of a sample or two that are larger by less than twice.

    They may be cut by the samples' edges: more in every third cycle of 66.7 samples.
    """
    smaller = np.setdiff1d(np.arange(len(sizes)), larger)
    is_narrow = float(np.median(members.widths)) < WHOLE_SAMPLES * members.scale
    return is_narrow and float(sizes[larger].mean()) < CUT_RATIO * float(sizes[smaller].mean())


def larger_ones(sizes: FloatArray) -> IntArray:
    """Places of the upper of two groups, cut where the variance within both is least; none where they are not apart."""
    if len(sizes) < SPLIT_EVENTS:
        return np.empty(0, dtype=np.int64)
    ranked = np.sort(sizes)
    below = np.arange(1, len(ranked))
    sums, squares = np.cumsum(ranked), np.cumsum(ranked * ranked)
    low = squares[:-1] - sums[:-1] ** 2 / below
    above = len(ranked) - below
    high = squares[-1] - squares[:-1] - (sums[-1] - sums[:-1]) ** 2 / above
    cut = int(np.argmin(low + high))
    apart = ranked[cut + 1 :].mean() - ranked[: cut + 1].mean()
    within = np.sqrt(max(float(low[cut] + high[cut]), 0.0) / len(ranked))
    if apart <= SPLIT_DEVIATIONS * within:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(sizes > ranked[cut])


def best_chain(events: Events, count: int, least_chance: float = 0.0) -> Chain | None:
    """The chain that chance explains least, among all events and among the larger ones; the first that has nearly all."""
    tried: list[Chain] = []
    for places in (np.arange(len(events)), larger_ones(events.heights)):
        if FEWEST_EVENTS <= len(places) < MOST_EVENTS:
            for chain in chains_of(events.only(places), count, least_chance):
                tried.append(replace(chain, places=places[chain.places]))
                if len(chain.places) >= NEARLY_ALL * len(events):
                    return tried[-1]
    return min(tried, key=lambda chain: chain.false_alarm, default=None)


def chains_of(events: Events, count: int, least_chance: float) -> Iterator[Chain]:
    most_false = MOST_FALSE_NESTED if least_chance else MOST_FALSE
    for period, reach in candidate_periods(events, count):
        chain = chain_at(events, period, reach, least_chance)
        if chain is not None and chain.false_alarm <= most_false and chain.share >= LEAST_SHARE:
            yield chain


def candidate_periods(events: Events, count: int) -> list[tuple[float, float]]:
    """Distances that occur more often than their neighbours, with the reach at which they do so most."""
    ticks = np.round(events.starts / events.scale).astype(np.int64)
    often = distances_of(ticks, count // events.scale // (FEWEST_EVENTS - 1))
    heights = np.array([excess_at(often, len(events), reach) for reach in REACHES])
    heights[:, : SHORTEST_PERIOD if events.scale == 1 else COARSE_PERIODS] = 0.0
    found: list[tuple[float, float]] = []
    while len(found) < CANDIDATES and float(heights.max(initial=0.0)) > 0:
        reach, lag = divmod(int(np.argmax(heights)), len(often))
        near = max(1, round(REACHES[reach] * lag))
        places = np.arange(max(0, lag - near), min(len(often), lag + near + 1))
        centre = float(np.average(places, weights=often[places]))
        found.append((centre * events.scale, REACHES[reach]))
        low, high = min(centre * 0.9, lag - 1), max(centre * 1.1, lag + 1)
        heights[:, round(low) : round(high) + 1] = 0.0
    return found


def distances_of(ticks: IntArray, longest: int) -> IntArray:
    """How often each distance occurs between an event and the next sixteen."""
    orders = range(1, min(ORDERS, len(ticks) - 1) + 1)
    distances = np.concatenate([ticks[order:] - ticks[:-order] for order in orders])
    return np.bincount(distances[distances <= longest], minlength=1)


def excess_at(often: IntArray, events: int, reach: float) -> FloatArray:
    """For each distance: occurrences within reach over those expected from half to one and a half times it, in deviations."""
    total = np.concatenate(([0], np.cumsum(often)))
    lags = np.arange(len(often))
    near = np.maximum(1, np.round(reach * lags)).astype(np.int64)

    def between(low: IntArray, high: IntArray) -> IntArray:
        return np.asarray(total[np.clip(high + 1, 0, len(often))] - total[np.clip(low, 0, len(often))])

    hits = between(lags - near, lags + near)
    around = between(lags // 2, lags + lags // 2) - hits
    expected = around * (2 * near + 1) / np.maximum(lags // 2 * 2 - 2 * near, 1)
    excess = (hits - expected) / np.sqrt(expected + 1.0 + 0.02 * events)
    return np.asarray(np.where(hits >= FEWEST_EVENTS - 1, excess, 0.0))


def chain_at(events: Events, period: float, reach: float, least_chance: float) -> Chain | None:
    """The longest chain near a period; measured, then followed again at the measured period."""
    within = max(reach * period, 1.0 * events.scale)
    if len(events) > MANY_EVENTS and not is_frequent(events.starts, period, within):
        return None
    chain = None
    for _ in range(ROUNDS):
        places, slots = longest_chain(events.starts, period, within)
        if len(places) < FEWEST_EVENTS:
            return chain
        chain = measured_chain(events, places, slots, within, least_chance)
        period, within = (
            chain.period,
            min(WIDEST_REACH * period, max(SPREAD_REACH * chain.jitter, 1.5 * events.scale)),
        )
    return chain


def is_frequent(times: FloatArray, period: float, within: float) -> bool:
    """More events have one a period before them than would at random times, by three deviations."""
    hits = int((nearest_before(times, period, within) >= 0).sum())
    expected = len(times) * (1 - exp(-2 * within * len(times) / float(times[-1] - times[0])))
    return hits - expected >= FREQUENT * sqrt(expected + 0.5)


def longest_chain(times: FloatArray, period: float, within: float) -> tuple[IntArray, IntArray]:
    """Places of the events of the chain with the most events, less what its empty slots cost; and their slots."""
    steps = [nearest_before(times, slots * period, within).tolist() for slots in range(1, MISSED_SLOTS + 2)]
    worth, before = chain_worths(steps)
    chain = [int(np.argmax(worth))]
    while before[chain[-1]] >= 0:
        chain.append(before[chain[-1]])
    places = np.array(chain[::-1])
    gaps = np.maximum(1, np.round(np.diff(times[places]) / period)).astype(np.int64)
    return places, np.concatenate(([0], np.cumsum(gaps)))


def chain_worths(steps: list[list[int]]) -> tuple[list[float], list[int]]:
    """For each event what the best chain up to it is worth, and the event before it in that chain; -1 at its start."""
    count = len(steps[0])
    worth, before = [1.0] * count, [-1] * count
    most = 1.0
    for place in range(count):
        best = 1.0
        for missed, step in enumerate(steps):
            earlier = step[place]
            if earlier >= 0 and worth[earlier] + 1 - MISSED_COST * missed > best:
                best, before[place] = worth[earlier] + 1 - MISSED_COST * missed, earlier
            if best >= most:
                break
        worth[place] = best
        most = max(most, best)
    return worth, before


def nearest_before(times: FloatArray, distance: float, within: float) -> IntArray:
    """For each event the place of the one nearest to that distance before it; -1 where none is within reach."""
    wanted = times - distance
    right = np.clip(np.searchsorted(times, wanted), 1, len(times) - 1)
    nearest = np.where(wanted - times[right - 1] <= times[right] - wanted, right - 1, right)
    missed = (np.abs(times[nearest] - wanted) > within) | (nearest >= np.arange(len(times)))
    return np.where(missed, -1, nearest)


def measured_chain(
    events: Events, places: IntArray, slots: IntArray, within: float, least_chance: float
) -> Chain:
    times = events.starts[places]
    period, phase = timing_of(slots, times)
    gaps = np.diff(times) - period * np.diff(slots)
    jitter = float(np.median(np.abs(gaps))) * NORMAL_MAD
    drift = float(np.median(np.abs(times - phase - period * slots))) * NORMAL_MAD
    false_alarm = chance_of(events, times, slots, within, least_chance)
    return Chain(places, slots, period, phase, jitter, drift, false_alarm)


def timing_of(slots: IntArray, times: FloatArray) -> tuple[float, float]:
    """
    Period and start of the line of slots.

    Where jitter adds up, the mean distance is the best estimate, and least squares
    where it does not: whichever leaves the smaller deviations says which it is.
    """
    period, phase = line_through(slots, times)
    away = times - phase - period * slots
    if float(np.std(away)) > ADDS_UP * float(np.std(np.diff(away))):
        return float(times[-1] - times[0]) / int(slots[-1]), phase
    return period, phase


def line_through(slots: IntArray, times: FloatArray) -> tuple[float, float]:
    """Slope and start of the least-squares line of times over slots."""
    centred = slots - slots.mean()
    period = float(np.sum(centred * times) / np.sum(centred * centred))
    return period, float(times.mean() - period * slots.mean())


def chance_of(
    events: Events, times: FloatArray, slots: IntArray, within: float, least_chance: float
) -> float:
    """
    The probability that random events as dense as these have such a chain.

    Where a random event falls into a slot too often (each slot reaches so far to
    both sides of where the event before it puts it), nothing is proven by any
    number of them. Larger events of a train fall into slots only.
    """
    inside = int(((events.starts >= times[0]) & (events.starts <= times[-1])).sum())
    chance = max(least_chance, 1 - exp(-inside / float(times[-1] - times[0]) * 2 * within))
    steps = int(slots[-1])
    share = (len(times) - 1) / steps
    if share < chance + LEAST_EXCESS:
        return 1.0
    if least_chance:
        multiples = max(1.0, steps / least_chance / (FEWEST_EVENTS - 1))
        return exp(min(0.0, log(multiples) - steps * divergence(share, chance)))
    others = 1 + len(events) - len(times) + steps - (len(times) - 1)
    tried = log(CANDIDATES * others * min(others, ORDERS)) + FITTED * log(len(times))
    return exp(min(0.0, tried - evidence_of(times, slots, inside, events.scale)))


def evidence_of(times: FloatArray, slots: IntArray, inside: int, scale: int) -> float:
    """
    Log-likelihood ratio, in nats, of a train among strangers over events at random times.

    A train's distances are normal around the period and its slots are filled
    with its share; strangers, and all events if there is no train, are Poisson.
    """
    span, hits, steps = float(times[-1] - times[0]), len(times) - 1, int(slots[-1])
    strangers = max(0, inside - len(times))
    period = timing_of(slots, times)[0]
    away = np.diff(times) - period * np.diff(slots)
    spread = max(float(np.sqrt(np.mean(away * away))), LEAST_SPREAD * scale)
    timing = -hits * log(spread * sqrt(2 * pi * e))
    filling = hits * log(hits / steps) + (steps - hits) * log(max(1 - hits / steps, 1e-9))
    density = strangers * log(max(strangers, 1) / span) - (hits + strangers) * log((hits + strangers) / span)
    return hits + timing + filling + density


def divergence(share: float, chance: float) -> float:
    """Kullback-Leibler divergence of two shares, 0 where the first is not the larger."""
    if share <= chance:
        return 0.0
    rest = (1 - share) * log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return share * log(share / chance) + rest


def build_train(
    members: Events, chain: Chain, step: float, within_seconds: float | None = None
) -> PulseTrain:
    return PulseTrain(
        kind=members.kind,
        period_seconds=settle_period(chain.period, members.starts) * step,
        width_seconds=float(np.median(members.widths)) * step,
        height=float(np.median(members.means)),
        phase_seconds=chain.phase * step,
        jitter_seconds=chain.jitter * step,
        share=chain.share,
        false_alarm=chain.false_alarm,
        drift_seconds=chain.drift * step,
        is_exact=chain.jitter <= EXACT_JITTER * chain.period,
        within_seconds=within_seconds,
        starts=np.round(members.starts).astype(np.int64),
        widths=np.round(members.widths).astype(np.int64),
    )


def settle_period(period: float, starts: FloatArray) -> float:
    """Whole samples where over the whole train the difference is one sample, which no start can tell."""
    whole = round(period)
    cycles = (starts.max() - starts.min()) / period
    return float(whole) if whole and abs(period - whole) * cycles <= 1.0 else period
