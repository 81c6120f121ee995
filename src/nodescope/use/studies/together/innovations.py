"""
What is new in each sample: the series less what its own past predicts.

Two slow series correlate by chance; their innovations do not. Both are compared
after an autoregression of each was taken away (prewhitening, Box and Jenkins 1970).
"""

from math import log

import numpy as np

from nodescope.use.studies.maths.robust import robust_deviation, without_line
from nodescope.use.studies.series import FloatArray

# A minute's memory of second samples is described by its first twenty; a walk
# under noise needs the most of them.
MOST_ORDER = 20

# Innovations beyond three deviations count as three: events are compared by
# their times instead (onsets.py).
CLIP_DEVIATIONS = 3.0


def fit_filter(values: FloatArray) -> FloatArray:
    """The prediction error filter (1, -a1, -a2, ...) by Burg's method (1967), its order by Akaike's criterion with a correction."""
    forward, backward = values - values.mean(), values - values.mean()
    taps = np.ones(1)
    error = max(float(np.mean(forward * forward)), np.finfo(np.float64).tiny)
    best, best_score = taps, len(values) * log(error)
    for order in range(1, min(MOST_ORDER, len(values) // 8) + 1):
        forward, backward = forward[1:], backward[:-1]
        power = float(np.sum(forward * forward) + np.sum(backward * backward))
        reflection = -2 * float(np.sum(forward * backward)) / power if power > 0 else 0.0
        forward, backward = forward + reflection * backward, backward + reflection * forward
        padded = np.append(taps, 0.0)
        taps = padded + reflection * padded[::-1]
        error *= max(1 - reflection * reflection, 1e-12)
        score = len(values) * log(max(error, np.finfo(np.float64).tiny)) + 2.0 * log(len(values)) * order
        if score < best_score:
            best, best_score = taps, score
    return best


def filtered(values: FloatArray, taps: FloatArray) -> FloatArray:
    """Predicted from what came before; the first samples, which have no past, are left out by their mean."""
    error = np.convolve(values, taps)[: len(values)]
    error[: len(taps) - 1] = float(np.mean(error[len(taps) - 1 :]))
    return standardised(error)


def standardised(values: FloatArray) -> FloatArray:
    level = values - np.median(values)
    scale = robust_deviation(level)
    if scale <= 0:
        return np.zeros(len(values))
    return np.asarray(np.clip(level / scale, -CLIP_DEVIATIONS, CLIP_DEVIATIONS))


def levelled(values: FloatArray) -> FloatArray:
    """Less its line, in units of its own spread."""
    level = without_line(values)
    return np.asarray(level / max(float(level.std()), np.finfo(np.float64).tiny))


def shifted_scores(left: FloatArray, right: FloatArray) -> FloatArray:
    """
    For every circular shift: the sum of products over its own spread, which is a standard normal by chance.

    The spread is that of the products at this very shift, so that two series
    which are both restless at the same time do not correlate by that alone.
    """
    count = len(left)
    products = circular(left, right)
    spread = circular(left * left, right * right)
    floor = float(np.mean(left * left) * np.mean(right * right)) * count * 0.2
    return np.asarray(
        (products - count * left.mean() * right.mean()) / np.sqrt(np.maximum(spread, max(floor, 1e-12)))
    )


def circular(left: FloatArray, right: FloatArray) -> FloatArray:
    """Sum of left[t + shift] * right[t] for shifts 0 .. n-1."""
    return np.fft.irfft(np.fft.rfft(left) * np.conj(np.fft.rfft(right)), len(left))
