"""What a sample differs from its prediction by the samples before it: an autoregression of the clean history."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nodescope.use.studies.maths.robust import NORMAL_MAD
from nodescope.use.studies.series import BoolArray, FloatArray

# Ten samples back: enough for a wave and for what a meter smooths.
ORDER = 10
# Samples for each coefficient that is fitted.
SAMPLES_EACH = 10
# The recent level is the median of so many samples; noise goes so many deviations beyond it.
RECENT = 7
FAR = 5.0


def surprises(values: FloatArray, levels: FloatArray, usable: BoolArray, history: int) -> FloatArray:
    """
    Of every sample, by coefficients from the usable samples of the history.

    A far sample counts for the prediction of later ones only as far as noise goes
    beyond its recent level, so that it has no echo.
    """
    kept = usable[:history]
    past, away = values[:history][kept], (values - levels)[:history][kept]
    centre = float(np.median(past))
    weights = fit_weights(clipped(past) - centre, min(ORDER, len(past) // SAMPLES_EACH))
    reach = FAR * float(np.median(np.abs(away)) * NORMAL_MAD or np.mean(np.abs(away)))
    heard = np.clip(values, levels - reach, levels + reach) - centre
    predicted = np.convolve(heard, np.concatenate(([0.0], weights)))[: len(values)]
    return np.asarray(values - centre - predicted)


def recent_levels(values: FloatArray) -> FloatArray:
    """The median of each sample and the six before it."""
    padded = np.concatenate((np.full(RECENT - 1, values[0]), values))
    return np.asarray(np.partition(sliding_window_view(padded, RECENT), RECENT // 2, axis=1)[:, RECENT // 2])


def clipped(values: FloatArray) -> FloatArray:
    """Without the far hundredth on both sides, which would decide the fit."""
    low, high = np.quantile(values, (0.01, 0.99))
    return np.clip(values, low, high)


def fit_weights(centred: FloatArray, order: int) -> FloatArray:
    """Yule and Walker's equations, solved by Levinson and Durbin: always stable."""
    covariance = [float(np.sum(centred[lag:] * centred[: len(centred) - lag])) for lag in range(order + 1)]
    weights = np.zeros(order)
    left = covariance[0] * (1 + 1e-9)
    for place in range(order if left > 0 else 0):
        met = float(np.sum(weights[:place] * np.array(covariance[1 : place + 1])[::-1]))
        turn = (covariance[place + 1] - met) / left
        weights[:place] -= turn * weights[:place][::-1]
        weights[place] = turn
        left *= 1 - turn * turn
        if left <= 0:
            break
    return weights
