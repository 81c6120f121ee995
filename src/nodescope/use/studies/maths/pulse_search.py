"""
Trains of short pulses: work of a second every minute, with jitter, gaps, strangers, and trains within trains.

A train is a chain of events whose distances are one period, or a few where
events are missing. Candidate periods are the distances that occur more often than
their neighbours; the chain of a candidate is judged by how many of its slots
hold an event, against how many would by chance at the same density of events.
The chain follows each event's own time, so that jitter may add up (a loop with
a sleep) or not (cron).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log

import numpy as np

from nodescope.use.studies.maths.pulse_events import KINDS, Events, PulseKind, events_of
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
LEAST_SHARE = 0.6

# And how much more than chance would fill: the longest of many chains is a little
# fuller than one of them, which is no matter of significance in a long series.
LEAST_EXCESS = 0.3

# A chain of chance events in one of a thousand series, for each of the kinds and scales.
MOST_FALSE = 1e-4

# Distances to the next sixteen events: that many strangers between two pulses of a train.
ORDERS = 16
SHORTEST_PERIOD = 4

# How far from its slot an event may be, in periods. A candidate is tried with the
# narrowest that its distances allow.
REACHES = (0.02, 0.06, 0.12)
CANDIDATES = 4

# Measured, an event may be 2.2 deviations of the jitter away: 97 of 100 are.
SPREAD_REACH = 2.2
SAME_PERIOD = 0.04

# Slots in a row that may be empty, and what each costs against an event.
MISSED_SLOTS = 3
MISSED_COST = 0.6

MOST_TRAINS = 3

# The larger events of a train are a train of their own when their heights (or
# widths) are apart from the others' by three times what both vary: a normal
# distribution cut in two is 2.7.
SPLIT_DEVIATIONS = 3.0
SPLIT_EVENTS = 8

# Means of 16 samples see a pulse every 60 as larger in every fourth cycle: only
# where they are a 24th of the period are larger events another train.
NESTED_PERIODS = 12
COARSE_NESTED = 24
COARSE_PERIODS = 12

# A pulse and its edges: two samples more to both sides.
EDGE_SAMPLES = 2

# A train of edges that has more than half of its events in common with a surer one is that one.
MOST_SHARED = 0.5

# Residuals from a straight line of slots, in periods: beyond it the phase is lost.
KEPT_PHASE = 0.15
EXACT_JITTER = 0.1


@dataclass(frozen=True)
class PulseTrain:
    """
    A train: starts and widths of its events are in samples, everything else as named.

    phase_seconds   of the first slot of the fitted line of slots, after the first sample
    jitter_seconds  typical deviation of a distance between neighbours from the period
    share           of the slots from the first event to the last, those with an event
    false_alarm     the probability that events at random times have such a train
    is_exact        jitter is small and does not add up: the phase is kept over the train
    within_seconds  the period of the train whose larger events these are; None for a train of its own
    height          of the events over the baseline (over the sample before, for jumps and falls)
    """

    kind: PulseKind
    period_seconds: float
    width_seconds: float
    height: float
    phase_seconds: float
    jitter_seconds: float
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
    for scale in SCALES:
        for kind in KINDS if scale == 1 or len(even) >= SCALE_SAMPLES * scale else ():
            here = trains_of(events_of(even, kind, scale), len(even), step)
            found += here
            even = without_pulses(even, here)
    return distinct(found, len(even))


def without_pulses(even: FloatArray, trains: list[PulseTrain]) -> FloatArray:
    """A straight line over every pulse and dip, so that it is seen no second time at its edges or at a coarser scale."""
    covered = np.zeros(len(even), dtype=bool)
    for train in trains:
        if not is_edge(train):
            mark_taken(covered, train)
    return interpolated(np.where(covered, np.nan, even)) if covered.any() and not covered.all() else even


def mark_taken(taken: BoolArray, train: PulseTrain) -> None:
    for start, width in zip(train.starts.tolist(), train.widths.tolist()):
        taken[max(0, start - EDGE_SAMPLES) : start + width + EDGE_SAMPLES] = True


def distinct(trains: list[PulseTrain], count: int) -> tuple[PulseTrain, ...]:
    """Each period once, as the kind and at the scale at which it is surest; what only repeats another's edges is left out."""
    kept: list[PulseTrain] = []
    taken = np.zeros(count, dtype=bool)
    for train in sorted(trains, key=rank_of):
        if any(is_same_period(train.period_seconds, other.period_seconds) for other in kept):
            continue
        if is_edge(train) and (share_taken(train, taken) > MOST_SHARED or is_multiple(train, kept)):
            continue
        if not is_orphan(train, kept):
            kept.append(train)
            mark_taken(taken, train)
    return tuple(kept)


def is_edge(train: PulseTrain) -> bool:
    return train.kind in ("jump", "fall")


def share_taken(train: PulseTrain, taken: BoolArray) -> float:
    """Of the events, those with a taken sample within their own width to both sides."""
    reach = train.widths + EDGE_SAMPLES
    total = np.concatenate(([0], np.cumsum(taken)))
    low = np.clip(train.starts - reach, 0, len(taken))
    high = np.clip(train.starts + train.widths + reach, 0, len(taken))
    return float(np.mean(total[high] > total[low]))


def is_multiple(train: PulseTrain, kept: list[PulseTrain]) -> bool:
    """A period of edges that is a multiple of one told already: the train of those that noise has not hidden."""
    ratios = [train.period_seconds / other.period_seconds for other in kept]
    return any(round(ratio) > 1 and abs(ratio - round(ratio)) <= SAME_PERIOD for ratio in ratios)


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
        left = left.only(np.setdiff1d(np.arange(len(left)), chain.places))
    return found


def nested_trains(members: Events, period: float, count: int, step: float) -> list[PulseTrain]:
    """Trains of those events of a train that are larger: two jobs that start at the same second."""
    found: list[PulseTrain] = []
    if period < (NESTED_PERIODS if members.scale == 1 else COARSE_NESTED * members.scale):
        return found
    for sizes in (members.heights, members.widths, members.heights * members.widths):
        larger = larger_ones(sizes)
        if len(larger) < FEWEST_EVENTS:
            continue
        within = members.only(larger)
        chain = best_chain(within, count, len(larger) / len(members))
        if chain is not None:
            found.append(build_train(within.only(chain.places), chain, step, period * step))
    return found


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
    """The chain that chance explains least, among all events and among the larger ones."""
    everything = np.arange(len(events))
    tried = [
        chain
        for places in (everything, larger_ones(events.heights))
        if FEWEST_EVENTS <= len(places) < MOST_EVENTS
        for chain in chains_of(events.only(places), places, count, least_chance)
    ]
    return min(tried, key=lambda chain: chain.false_alarm, default=None)


def chains_of(events: Events, places: IntArray, count: int, least_chance: float) -> Iterator[Chain]:
    for period, reach in candidate_periods(events, count):
        chain = chain_at(events, period, reach, least_chance)
        if chain is not None and chain.false_alarm <= MOST_FALSE and chain.share >= LEAST_SHARE:
            yield Chain(
                places[chain.places],
                chain.slots,
                chain.period,
                chain.phase,
                chain.jitter,
                chain.drift,
                chain.false_alarm,
            )


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
        heights[:, round(centre * 0.9) : round(centre * 1.1) + 1] = 0.0
        heights[reach, lag] = 0.0
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
    chain = None
    for _ in range(2):
        places, slots = longest_chain(events.starts, period, within)
        if len(places) < FEWEST_EVENTS:
            return chain
        chain = measured_chain(events, places, slots, within, least_chance)
        period, within = chain.period, min(0.2 * period, max(SPREAD_REACH * chain.jitter, 1.5 * events.scale))
    return chain


def longest_chain(times: FloatArray, period: float, within: float) -> tuple[IntArray, IntArray]:
    """Places of the events of the chain with the most events, less what its empty slots cost; and their slots."""
    steps = [nearest_before(times, slots * period, within) for slots in range(1, MISSED_SLOTS + 2)]
    worth = [1.0] * len(times)
    before = [-1] * len(times)
    for place, reached in enumerate(zip(*(step.tolist() for step in steps))):
        for missed, earlier in enumerate(reached):
            if earlier >= 0 and worth[earlier] + 1 - MISSED_COST * missed > worth[place]:
                worth[place], before[place] = worth[earlier] + 1 - MISSED_COST * missed, earlier
    chain = [int(np.argmax(worth))]
    while before[chain[-1]] >= 0:
        chain.append(before[chain[-1]])
    places = np.array(chain[::-1])
    gaps = np.maximum(1, np.round(np.diff(times[places]) / period)).astype(np.int64)
    return places, np.concatenate(([0], np.cumsum(gaps)))


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
    period, phase = line_through(slots, times)
    gaps = np.diff(times) - period * np.diff(slots)
    jitter = float(np.median(np.abs(gaps))) * NORMAL_MAD
    drift = float(np.median(np.abs(times - phase - period * slots))) * NORMAL_MAD
    false_alarm = chance_of(events, times, slots, within, least_chance)
    return Chain(places, slots, period, phase, jitter, drift, false_alarm)


def line_through(slots: IntArray, times: FloatArray) -> tuple[float, float]:
    """Slope and start of the least-squares line of times over slots."""
    centred = slots - slots.mean()
    period = float(np.sum(centred * times) / np.sum(centred * centred))
    return period, float(times.mean() - period * slots.mean())


def chance_of(
    events: Events, times: FloatArray, slots: IntArray, within: float, least_chance: float
) -> float:
    """
    The probability that random events as dense as these fill so many slots.

    Each slot reaches so far to both sides of where the event before it puts it.
    The bound is Chernoff's; it is multiplied by the number of chains, which may
    start at any event and have any distance from it. Larger events of a train can
    have no other distances than its multiples.
    """
    span = float(times[-1] - times[0]) + 1.0
    inside = int(((events.starts >= times[0]) & (events.starts <= times[-1])).sum())
    chance = max(least_chance, 1 - exp(-inside / span * 2 * within))
    steps = int(slots[-1])
    tried = log(steps if least_chance else 4.0 * len(events) * min(len(events), ORDERS))
    share = (len(times) - 1) / steps
    return exp(min(0.0, tried - steps * divergence(share, chance))) if share >= chance + LEAST_EXCESS else 1.0


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
        period_seconds=chain.period * step,
        width_seconds=float(np.median(members.widths)) * step,
        height=float(np.median(members.heights)),
        phase_seconds=chain.phase * step,
        jitter_seconds=chain.jitter * step,
        share=chain.share,
        false_alarm=chain.false_alarm,
        is_exact=chain.drift <= KEPT_PHASE * chain.period and chain.jitter <= EXACT_JITTER * chain.period,
        within_seconds=within_seconds,
        starts=np.round(members.starts).astype(np.int64),
        widths=np.round(members.widths).astype(np.int64),
    )
