"""
Where short events begin, stop, or become more or less frequent.

An event is a short run of samples far away from the series' own baseline: a
spike, a job of a few seconds, a dip. One more of them is no news; another pace
is. The pace is compared by counts before and after, as for a Poisson process,
times the regularity of the distances: a job every minute that misses twice
has stopped, two visits that stay away mean nothing.
"""

from dataclasses import dataclass, replace

import numpy as np

from nodescope.use.studies.maths.robust import NORMAL_MAD, ROUNDING_SHARE, mad_deviation
from nodescope.use.studies.series import BoolArray, FloatArray, IntArray

# Blocks of the baseline; a run longer than half a block is no short event.
BASELINE_SAMPLES = 64
FEWEST_SAMPLES = 200
LONGEST_SHARE = 0.5

# In deviations of the samples around: one in 6,000 of normal noise.
LEAST_DEVIATIONS = 3.6

# Events nearer to each other than this are one.
NEAREST_SAMPLES = 5

# More events than one in four samples are the series itself.
MOST_SHARE = 0.25

# A pace needs six events over a twelfth of the series: fewer are one cluster.
# And so many of its distances must fit on the quieter side: four where they are
# regular, eight where events come at random.
FEWEST_EVENTS = 6
LEAST_SPAN_SHARE = 0.08
FEWEST_DISTANCES = 4.0
RANDOM_DISTANCES = 8.0

# Regularity is 1 for events at random, and more for equal distances. It starts
# from 1, with the weight of three distances.
LEAST_REGULARITY = 0.1
MOST_REGULARITY = 12.0
PRIOR_DISTANCES = 3.0
REGULAR = 4.0

# One distance in a train of jobs that missed a run counts as much as any that is
# twice as long. Of random distances (exponential), so capped, the mean is 0.458.
MOST_VARIATION = 1.0
RANDOM_VARIATION = 0.458

# The pace at least doubles or halves (a little less, because counts vary).
LEAST_RATIO = 1.6

# The baseline beside a change is that of so many samples, and has moved if by so much of an event's height.
NEXT_TO = 2 * BASELINE_SAMPLES
LEVEL_SHARE = 0.5

# Nats beyond the choice of the place, for a change to be looked at.
LEAST_EXCESS = 3.0
MOST_CHANGES = 8


@dataclass(frozen=True)
class RateChange:
    """
    Events before and after sample index, between start and end.

    excess is in nats, beyond the choice of the place. height is that of the
    usual event over the baseline, and negative for dips.
    """

    start: int
    index: int
    end: int
    before: int
    after: int
    excess: float
    regularity: float
    height: float = 0.0

    @property
    def paces(self) -> tuple[float, float]:
        """Events a sample, before and after."""
        return self.before / (self.index - self.start), self.after / (self.end - self.index)


def find_rate_changes(values: FloatArray) -> list[RateChange]:
    """In order of time; values must have no gaps."""
    if len(values) < FEWEST_SAMPLES:
        return []
    away, scale = deviations(values)
    baseline = values - away
    found: list[RateChange] = []
    for sign in (1.0, -1.0):
        starts = event_starts(sign * away, scale)
        if FEWEST_EVENTS <= len(starts) <= MOST_SHARE * len(values):
            height = float(np.median(away[starts]))
            changes = split_rates(starts, 0, len(values))
            found += [
                replace(one, height=height) for one in changes if not is_level(one, starts, baseline, height)
            ]
    return sorted(found, key=lambda change: change.index)[:MOST_CHANGES]


def is_level(change: RateChange, starts: IntArray, baseline: FloatArray, height: float) -> bool:
    """Under the first events the baseline itself has moved by half of their height: what came or went is a level."""
    if change.paces[0] > change.paces[1]:
        busy = starts[(starts >= change.start) & (starts < change.index)][-FEWEST_EVENTS:]
        beside = baseline[change.index : min(change.index + NEXT_TO, change.end)]
    else:
        busy = starts[(starts >= change.index) & (starts < change.end)][:FEWEST_EVENTS]
        beside = baseline[max(change.start, change.index - NEXT_TO) : change.index]
    return abs(float(np.median(baseline[busy]) - np.median(beside))) > LEVEL_SHARE * abs(height)


def deviations(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Each sample less its baseline, and the deviation of the samples around it."""
    count = len(values) // BASELINE_SAMPLES
    size = len(values) // count
    blocks = values[: count * size].reshape(count, size)
    medians = np.median(blocks, axis=1)
    spreads = np.median(np.abs(blocks - medians[:, None]), axis=1) * NORMAL_MAD
    baseline, spread = (np.repeat(padded_tail(one), size) for one in (medians, around(spreads)))
    baseline, spread = (fitted(one, len(values)) for one in (baseline, spread))
    away = values - baseline
    spread = np.maximum(spread, mad_deviation(away))
    least = ROUNDING_SHARE * float(np.abs(values).max())
    # Where most samples are equal, a tenth of the usual event is an event.
    quiet = 0.1 * float(np.quantile(np.abs(away), 0.999)) / LEAST_DEVIATIONS
    return away, np.where(spread > least, spread, max(quiet, least))


def around(spreads: FloatArray) -> FloatArray:
    """The median of five blocks, which follows noise that rises for good."""
    padded = np.pad(spreads, 2, mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1))


def padded_tail(blocks: FloatArray) -> FloatArray:
    return np.append(blocks, blocks[-1])


def fitted(values: FloatArray, count: int) -> FloatArray:
    return values[:count] if len(values) >= count else np.pad(values, (0, count - len(values)), mode="edge")


def event_starts(away: FloatArray, scale: FloatArray) -> IntArray:
    marked = bridged(away > LEAST_DEVIATIONS * scale)
    edges = np.diff(np.concatenate(([0], marked.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    starts = starts[ends - starts <= LONGEST_SHARE * BASELINE_SAMPLES]
    return np.asarray(starts[np.diff(starts, prepend=-NEAREST_SAMPLES) >= NEAREST_SAMPLES])


def bridged(marked: BoolArray) -> BoolArray:
    """With holes of one sample closed."""
    closed = marked.copy()
    closed[1:-1] |= marked[:-2] & marked[2:]
    return closed


def split_rates(starts: IntArray, start: int, end: int) -> list[RateChange]:
    """The best split of [start, end), and those of its two parts."""
    change = best_split(starts[(starts >= start) & (starts < end)], start, end)
    if change is None:
        return []
    return [
        *split_rates(starts, start, change.index),
        change,
        *split_rates(starts, change.index, end),
    ]


def best_split(starts: IntArray, start: int, end: int) -> RateChange | None:
    count = len(starts)
    if count < FEWEST_EVENTS:
        return None
    # Just before each event, and just after it.
    cuts = np.concatenate((starts, starts + 1))
    before = np.concatenate((np.arange(count), np.arange(1, count + 1))).astype(np.float64)
    after, spans = count - before, (cuts - start, end - cuts)
    allowed = is_allowed(before, after, *spans)
    if not allowed.any():
        return None
    gains = np.where(allowed, poisson_gain(before, after, *spans), 0.0)
    place = int(np.argmax(gains))
    regularity = regularity_of(starts, int(before[place]))
    if regularity < REGULAR and not is_allowed(before, after, *spans, RANDOM_DISTANCES)[place]:
        return None
    excess = regularity * float(gains[place]) - float(np.log(count))
    if excess < LEAST_EXCESS:
        return None
    return RateChange(start, int(cuts[place]), end, int(before[place]), int(after[place]), excess, regularity)


def is_allowed(
    before: FloatArray,
    after: FloatArray,
    early: IntArray,
    late: IntArray,
    distances: float = FEWEST_DISTANCES,
) -> BoolArray:
    paces = before / np.maximum(early, 1), after / np.maximum(late, 1)
    high, low = np.maximum(*paces), np.minimum(*paces)
    busy = np.where(paces[0] > paces[1], before, after)
    long = np.minimum(early, late) >= LEAST_SPAN_SHARE * (early + late)
    room = np.where(paces[0] > paces[1], late, early) * high >= distances
    return np.asarray((busy >= FEWEST_EVENTS) & long & room & (high >= LEAST_RATIO * low))


def poisson_gain(before: FloatArray, after: FloatArray, early: IntArray, late: IntArray) -> FloatArray:
    """Nats by which two paces explain the events better than one."""
    one = (before + after) / (early + late)
    return count_term(before, early, one) + count_term(after, late, one)


def count_term(events: FloatArray, span: IntArray, pace: FloatArray) -> FloatArray:
    own = np.maximum(events, 1e-9) / np.maximum(span, 1)
    return np.where(events > 0, events * np.log(own / pace), 0.0)


def regularity_of(starts: IntArray, before: int) -> float:
    """One over the squared variation of the distances within each part; 1 for events at random."""
    counted, varied = PRIOR_DISTANCES, PRIOR_DISTANCES
    for part in (starts[:before], starts[before:]):
        distances = np.diff(part).astype(np.float64)
        if len(distances) >= 3:
            counted += len(distances) - 1
            varied += variation(distances / distances.mean())
    return float(np.clip(counted / varied, LEAST_REGULARITY, MOST_REGULARITY))


def variation(relative: FloatArray) -> float:
    return float(np.sum(np.minimum((relative - 1) ** 2, MOST_VARIATION))) / RANDOM_VARIATION
