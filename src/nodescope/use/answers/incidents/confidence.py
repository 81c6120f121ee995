"""
How often the named cause was the true one, by kind and weight, measured on generated nodes.

    confidence = 1 / (1 + exp(-(level + slope x log(weight / (1 - weight)))))

Fitted by `python -m tools.eval_incidents --seeds 100-107 --fit`: nodes of 100
containers, a third each quiet, busy and churning, half of them with a cause.
A kind that those nodes do not have gets a guess.
"""

import math

# Level and slope of the logistic curve.
FITTED = {
    # 102 told, 93.1 % right.
    "taken": (1.17, 0.64),
    # 21 told of each, all right.
    "deploy": (2.44, 0.0),
    "oom_kill": (2.33, 0.05),
    "throttled": (2.44, 0.0),
    # 4 told, none of them the planted cause: somebody else's level had risen.
    "change": (-1.08, 0.01),
}
# No generated node has a crash loop that is new: a guess.
OTHERS = (0.7, 0.5)
# Nothing that was measured on so few is surer.
SUREST = 0.97


def confidence_of(kind: str, weight: float) -> float | None:
    """None where no cause is named."""
    if kind == "unexplained":
        return None
    level, slope = FITTED.get(kind, OTHERS)
    share = min(0.99, max(0.01, weight))
    score = level + slope * math.log(share / (1 - share))
    return min(SUREST, 1 / (1 + math.exp(-score)))
