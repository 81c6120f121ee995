"""
The confidence of a change: the share of findings with the same evidence that are real.

The evidence in nats is right only for the noise that the model assumes. Real
noise is autocorrelated, and a random walk has much evidence and no change. So
the share is fitted: a logistic curve over the logarithm of the gain and the
noise's autocorrelation, on 1,500 generated series (bench/studies_sets.py, seed
11: ten backgrounds, half of the series without any change). Of the findings at
0.9 nine in ten are real on that set; another seed is tested at every run.
"""

from math import exp, log

# Fitted as above; renewed by tools/eval_studies.py --fit.
OFFSET = -2.84
PER_LOG_GAIN = 1.19
PER_AUTOCORRELATION = -3.20


def changepoint_confidence(gain_nats: float, autocorrelation: float) -> float:
    """0 to 1: the share of findings with this gain, in noise of this autocorrelation, that are real."""
    score = OFFSET + PER_LOG_GAIN * log(max(gain_nats, 1e-3)) + PER_AUTOCORRELATION * autocorrelation
    return 1 / (1 + exp(-score))
