"""
The confidence of a change or a period: the share of findings with the same evidence that are real.

Three things decide: how many nats a change has left against everything that is
no change (change_evidence.py), how long the shorter of its two pieces is, and
how often the same move was made elsewhere. The figures were fitted on the first
family of generated series (bench/change_sets.py) and checked on the second,
whose classes are others: `python -m tools.eval_changes` prints both, with
`--fit` the figures as well.
"""

from math import exp, log

# A logistic curve over the nats left and the logarithm of the shorter piece, in
# samples, for moves that were made at most twice: a spell begins and ends.
OFFSET = -4.2
PER_NAT = 0.46
PER_LOG_SAMPLE = 0.50

# Evidence beyond these says no more, nor do shorter and longer pieces.
NATS = (-4.0, 8.0)
SAMPLES = (5.0, 300.0)

# Of moves made more often, a share is real that falls with their number.
HALF_RECURRENCES = 1.5
RECURRENCE_POWER = 1.6
MOST_RECURRENCES = 8

# For a slow bend of the whole series (changes/slow_bend.py): its nats alone. It is shown from half a
# nat below the others on, which noise without a bend has in one series of a hundred, a part of a
# day's course in two of nine.
BEND_OFFSET = 0.4
BEND_PER_NAT = 0.85
BEND_NATS = (-4.0, 5.0)

# For a change of pace (event_rate.py): its nats alone.
PATTERN_OFFSET = -2.2
PATTERN_PER_NAT = 0.36
PATTERN_NATS = (0.0, 14.0)


def changepoint_confidence(excess_nats: float, recurrences: int, shorter_samples: int) -> float:
    """0 to 1: the share of findings with this evidence, of moves that recur so often, that are real."""
    score = OFFSET + PER_NAT * clipped(excess_nats, NATS)
    share = logistic(score + PER_LOG_SAMPLE * log(clipped(shorter_samples, SAMPLES)))
    return share * once_share(recurrences)


def once_share(recurrences: int) -> float:
    """What is left of a confidence when the same move was made so often elsewhere."""
    again = max(min(recurrences, MOST_RECURRENCES) - 1, 0) / HALF_RECURRENCES
    return float(1 / (1 + again**RECURRENCE_POWER))


def bend_confidence(nats: float, recurrences: int) -> float:
    """0 to 1: the share of slow bends with this evidence that are real."""
    return logistic(BEND_OFFSET + BEND_PER_NAT * clipped(nats, BEND_NATS)) * once_share(recurrences)


def pattern_confidence(excess_nats: float) -> float:
    """0 to 1: the share of changes of pace with this evidence that are real."""
    return logistic(PATTERN_OFFSET + PATTERN_PER_NAT * clipped(excess_nats, PATTERN_NATS))


def logistic(score: float) -> float:
    return 1 / (1 + exp(-score))


def clipped(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


# Of trains of pulses over the logarithm of the nats against chance, and of waves over that of the
# t value of their cycles: fitted on 480 findings of bench/period_sets.py, five of them wrong, and
# measured on bench/studies_sets.py (renewed by python -m bench.period_sets --fit).
TRAIN_OFFSET = -1.24
TRAIN_PER_LOG = 1.46
WAVE_OFFSET = -3.89
WAVE_PER_LOG = 2.48

# The classes of a generator are not those of a cluster.
MOST_CONFIDENCE = 0.99


def train_confidence(false_alarm: float) -> float:
    """The share of trains with so small a probability of chance that were planted."""
    return share_over_log(-log(max(false_alarm, 1e-300)), TRAIN_OFFSET, TRAIN_PER_LOG)


def wave_confidence(t_value: float) -> float:
    """The share of waves whose cycles agree so well that were planted."""
    return share_over_log(t_value, WAVE_OFFSET, WAVE_PER_LOG)


def share_over_log(evidence: float, offset: float, per_log: float) -> float:
    return min(MOST_CONFIDENCE, 1 / (1 + exp(-offset - per_log * log(max(evidence, 1e-3)))))
