"""
Pages that are taken at uneven times: a staircase whose gaps are drawn anew each time.

Where the gaps do not change over time and one says nothing of the next, more of
the same are to come. Their mean is as uncertain as the gaps that were seen
leave it, and so is how much they vary: both are drawn (a gamma distribution, by
its likelihood).
"""

from math import lgamma

import numpy as np

from nodescope.use.studies.forecast.pages import DRAWS, SEED, Staircase
from nodescope.use.studies.series import FloatArray

# Fewer gaps do not show whether they change.
FEWEST_GAPS = 5

# Gaps that are more alike, or that change by more deviations than this, are not drawn anew each time.
LIKELY_DEVIATIONS = 2.5

# How alike gaps may be: 1 is a Poisson process, 400 varies by a twentieth.
ALIKE = np.exp(np.linspace(np.log(0.3), np.log(400.0), 60))

# A page that is seen with another was taken within the same sample.
SAME_SAMPLE = 0.3


def gaps_of(staircase: Staircase) -> FloatArray:
    """Samples between one page and the next."""
    pages = np.diff(staircase.pages, prepend=0)[1:]
    gaps = np.diff(staircase.places).astype(np.float64)
    together = np.full(int(pages.sum()) - len(pages), SAME_SAMPLE)
    first = np.cumsum(pages) - pages
    made = np.insert(together, first - np.arange(len(first)), gaps)
    return np.asarray(np.maximum(made, SAME_SAMPLE))


def are_drawn_anew(gaps: FloatArray) -> bool:
    """They neither grow nor shrink, and neighbours are not alike."""
    if len(gaps) < FEWEST_GAPS:
        return False
    # By their ranks: one long gap is no change.
    ranks = np.argsort(np.argsort(gaps)) - (len(gaps) - 1) / 2
    size = float(ranks @ ranks)
    time = np.arange(len(gaps)) - (len(gaps) - 1) / 2
    shares = (
        float(time @ ranks) / np.sqrt(size * float(time @ time)),
        float(ranks[1:] @ ranks[:-1]) / size + 1.0 / len(gaps),
        float(ranks[2:] @ ranks[:-2]) / size + 1.0 / len(gaps),
    )
    return bool(max(map(abs, shares)) * np.sqrt(len(gaps)) < LIKELY_DEVIATIONS)


def uneven_passages(staircase: Staircase, pages: int) -> FloatArray | None:
    """Samples until so many more pages are taken, from half a sample after the newest one; None where gaps change."""
    gaps = gaps_of(staircase)
    if pages < 1 or not are_drawn_anew(gaps):
        return None
    random = np.random.default_rng(SEED)
    alike = random.choice(ALIKE, DRAWS, p=likelihood(gaps))
    total, count = float(gaps.sum()), len(gaps)
    # The mean of a gap given those that were seen.
    means = total * alike / random.gamma(alike * count)
    elapsed = staircase.samples - float(staircase.places[-1])
    first = longer_than(random, alike, means, elapsed) - elapsed
    rest = means / alike * random.gamma(np.maximum(alike * (pages - 1), 1e-9))
    return np.asarray(np.maximum(first + rest, 0.0))


def likelihood(gaps: FloatArray) -> FloatArray:
    """Of how alike they are, whatever their mean."""
    count, total, logs = len(gaps), float(gaps.sum()), float(np.log(gaps).sum())
    made = np.array(
        [
            lgamma(count * one) - count * lgamma(one) + one * logs - count * one * np.log(total)
            for one in ALIKE
        ]
    )
    made = np.exp(made - made.max())
    return np.asarray(made / made.sum())


def longer_than(
    random: np.random.Generator, alike: FloatArray, means: FloatArray, elapsed: float
) -> FloatArray:
    """A gap that has lasted for some samples: the first of many draws that is longer, or a little longer."""
    drawn = (means / alike)[:, None] * random.gamma(alike[:, None], size=(len(alike), 64))
    longer = drawn > elapsed
    chosen = drawn[np.arange(len(drawn)), np.argmax(longer, axis=1)]
    return np.where(longer.any(axis=1), chosen, elapsed + means / alike * random.exponential(size=len(means)))
