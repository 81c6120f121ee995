"""
Turns the evidence for a change into the share of such findings that are real.

Nats of evidence are right only for the noise the model assumes; real noise
remembers its past, and a random walk is all evidence and no change. So the
chance is learnt: a logistic curve over the logarithm of the gain and the noise's
memory, fitted on 1,500 generated series (bench/studies_sets.py, seed 11: ten
backgrounds, half of the series without any change). Of the findings at 0.9 nine
in ten are real on that set; another seed is tested at every run.
"""

from math import exp, log

# Fitted as above; renewed by tools/eval_studies.py --fit.
OFFSET = -2.84
PER_LOG_GAIN = 1.19
PER_MEMORY = -3.20


def changepoint_confidence(gain_nats: float, memory: float) -> float:
    """0 to 1: of findings with this gain in noise with this memory, how many are real."""
    score = OFFSET + PER_LOG_GAIN * log(max(gain_nats, 1e-3)) + PER_MEMORY * memory
    return 1 / (1 + exp(-score))
