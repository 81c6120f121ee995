"""The rating of one node for one pod: the score, and everything it was computed from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p

# extender/v1 names 0 to 10, but kube-scheduler clamps nothing: it adds 10 * weight * score to a
# node. Eleven whole numbers cannot tell a loss of milliseconds from one of seconds.
BEST = 1000
# Points for each doubling of a loss: thirty doublings, from ms to days, fit into the range.
DOUBLING_POINTS = 33


@dataclass(slots=True)
class CostPart:
    """One part of the cost on one node."""

    cost_ms: float = 0.0
    confidence: float = 0.0


@dataclass(slots=True)
class NodeRating:
    """How good a node is for a pod."""

    node: str
    score: int = 0
    cost_ms: float | None = None
    """Expected loss of time there; None where the policy does not compute one."""
    terms: dict[str, float] = field(default_factory=dict)
    """What the cost is made of, in ms, before confidence."""
    facts: dict[str, float] = field(default_factory=dict)
    """What the terms are made of."""
    host: Mapping[str, float] = field(default_factory=dict)
    """What the host costs, by cause, in shares of work_ms."""
    work_ms: float = 0.0
    confidence: float = 1.0
    """1: used as it is; 0: not used, the node counts as the average one."""
    reasons: tuple[str, ...] = ()

    def all_terms(self) -> dict[str, float]:
        return {**self.terms, **{name: share * self.work_ms for name, share in self.host.items()}}


def derive_score(excess_ms: float, unit_ms: float) -> int:
    """
    From BEST down by DOUBLING_POINTS for each doubling of 1 + excess / unit.

    forall a <= b: derive_score(a) >= derive_score(b); and where unit / 20 <= a, 2 * a <= b and
    the score of a is not 0, the score of b is lower.
    """
    (score,) = derive_scores([max(0.0, excess_ms)], unit_ms, 0.0)
    return score


def derive_scores(costs: Sequence[float], unit_ms: float, best_ms: float) -> list[int]:
    """derive_score of each, in one go: thousands of calls would take as long as judging the nodes."""
    points, per_unit = DOUBLING_POINTS / math.log(2), 1 / unit_ms
    top = BEST + 0.5
    return [
        int(score) if (score := top - points * log1p((cost - best_ms) * per_unit)) > 0 else 0
        for cost in costs
    ]
