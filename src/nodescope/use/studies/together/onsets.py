"""
The moments at which a series steps up or down, and how exactly each is known.

A step is looked for as the difference of the means before and after it, over 1 to
32 samples, against how much such differences usually are in this series. So a
slow series, in which large differences are usual, has none. The flank of a hump is no
step either: where a slow rise explains the samples better, its moment cannot be told
to the second, and the two series are compared by their shape instead.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nodescope.use.studies.maths.robust import robust_deviation
from nodescope.use.studies.series import FloatArray, IntArray

WIDTHS = (2, 4, 8, 16, 32)

# Of 8640 differences of normal noise one in a thousand series has one beyond six
# deviations: such a one is an event. Weaker ones are listed as well, since where
# there are many (heavy tails, repeats) a match of strong ones proves little.
LEAST_DEVIATIONS = 4.5
STRONG_DEVIATIONS = 6.0

# The strongest only: more of them would be noise, and each pair costs.
MOST_ONSETS = 100

# How far from its likeliest place an onset may be, in samples.
REACH = 12

# A step takes up to four samples, a flank eight or more; it is a flank where that is better by so many nats.
STEP_SAMPLES = (1, 4)
FLANK_SAMPLES = (8, 16, 32, 64, 128)
FLANK_NATS = 2.0


@dataclass(frozen=True)
class Onsets:
    """Places of the first samples after each step, their signs, and the log-likelihood of nearby places."""

    places: IntArray
    signs: FloatArray
    likelihoods: FloatArray
    has_strong: bool


def find_onsets(values: FloatArray) -> Onsets:
    scores = np.stack(
        [step_scores(values, width) for width in WIDTHS if 4 * width <= len(values)]
        or [np.zeros(len(values))]
    )
    best = np.argmax(np.abs(scores), axis=0)
    strength = scores[best, np.arange(len(values))]
    places = np.array(
        [place for place in peaks(strength) if not is_flank(values, place, WIDTHS[int(best[place])])],
        dtype=np.int64,
    )
    likelihoods = [place_likelihood(values, place, WIDTHS[int(best[place])]) for place in places]
    centred = [place + int(np.argmax(one)) - REACH for place, one in zip(places, likelihoods)]
    moved = [place_likelihood(values, place, WIDTHS[int(best[old])]) for place, old in zip(centred, places)]
    table = np.array(moved) if moved else np.empty((0, 2 * REACH + 1))
    return Onsets(
        np.array(centred, dtype=np.int64),
        np.sign(strength[places]),
        table,
        bool(np.any(np.abs(strength[places]) > STRONG_DEVIATIONS)),
    )


def step_scores(values: FloatArray, width: int) -> FloatArray:
    """At each sample: mean of width samples from it on, less that of those before, in usual deviations."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    inside = np.arange(width, len(values) - width + 1)
    differences = (sums[inside + width] - 2 * sums[inside] + sums[inside - width]) / width
    scores = np.zeros(len(values))
    scores[inside[inside < len(values)]] = differences[: int(np.sum(inside < len(values)))]
    scale = robust_deviation(differences)
    return scores / scale if scale > 0 else scores * 0.0


def peaks(strength: FloatArray) -> IntArray:
    """The strongest first; none within 32 samples of a stronger one of the same sign, or 4 of the other."""
    left = np.abs(strength)
    order = np.argsort(-left, kind="stable")
    order = order[left[order] > LEAST_DEVIATIONS]
    kept: list[int] = []
    open_up, open_down = np.ones(len(strength), dtype=bool), np.ones(len(strength), dtype=bool)
    for place in order:
        same, other = (open_up, open_down) if strength[place] > 0 else (open_down, open_up)
        if not same[place]:
            continue
        kept.append(int(place))
        same[max(0, place - WIDTHS[-1]) : place + WIDTHS[-1] + 1] = False
        other[max(0, place - 3) : place + 4] = False
        if len(kept) == MOST_ONSETS:
            break
    return np.sort(np.array(kept, dtype=np.int64))


def is_flank(values: FloatArray, place: int, width: int) -> bool:
    """Whether a rise of many samples explains what is around the place better than a step."""
    around = max(width, 8) + REACH
    part = values[max(0, place - around) : place + around]
    if len(part) < 2 * around:
        return False
    level = part - part.mean()
    energy = float(np.sum(level * level))
    step, flank = (
        energy - float(np.max(np.einsum("ij,j->i", rises(around, lengths), level) ** 2))
        for lengths in (STEP_SAMPLES, FLANK_SAMPLES)
    )
    least = 1e-9 * max(energy, np.finfo(np.float64).tiny)
    return bool(0.5 * len(part) * np.log(max(step, least) / max(flank, least)) > FLANK_NATS)


@lru_cache(maxsize=32)
def rises(around: int, lengths: tuple[int, ...]) -> FloatArray:
    """Rows of unit length and mean 0: rises that take so many samples, around each place within reach."""
    index = np.arange(2 * around, dtype=np.float64) + 0.5
    middles = around + np.arange(-REACH, REACH + 1)
    rows = np.concatenate(
        [np.clip((index - middles[:, None]) / length, -0.5, 0.5) for length in lengths], axis=0
    )
    rows -= rows.mean(axis=1, keepdims=True)
    return np.asarray(rows / np.sqrt(np.sum(rows * rows, axis=1, keepdims=True)))


def place_likelihood(values: FloatArray, place: int, width: int) -> FloatArray:
    """
    Log-likelihood of a step at place - REACH .. place + REACH, both levels unknown.

    Where what the step leaves over is autocorrelated, as on a ramp, it counts
    for fewer samples and the place is less certain.
    """
    around = max(width, 8) + REACH
    start, end = max(0, place - around), min(len(values), place + around)
    part = values[start:end]
    cuts = np.arange(place - REACH, place + REACH + 1) - start
    allowed = (cuts >= 2) & (cuts <= len(part) - 2)
    inside = np.clip(cuts, 1, len(part) - 1)
    sums, squares = np.cumsum(part), float(np.sum(part * part))
    low, high = sums[inside - 1] / inside, (sums[-1] - sums[inside - 1]) / (len(part) - inside)
    rest = squares - inside * low**2 - (len(part) - inside) * high**2
    rest = np.maximum(rest, 1e-9 * max(squares, np.finfo(np.float64).tiny))
    rest = np.where(allowed, rest, np.inf)
    cut = int(np.argmin(rest))
    left_over = part - np.where(np.arange(len(part)) < inside[cut], low[cut], high[cut])
    memory = float(np.sum(left_over[1:] * left_over[:-1])) / max(
        float(np.sum(left_over**2)), np.finfo(np.float64).tiny
    )
    memory = min(max(memory, 0.0), 0.95)
    independent = len(part) * (1 - memory) / (1 + memory)
    likelihood = np.where(allowed, -0.5 * independent * np.log(np.where(allowed, rest, 1.0)), -np.inf)
    return np.asarray(likelihood - np.max(likelihood))
