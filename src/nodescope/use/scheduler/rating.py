"""The rating of one node for one pod: the score, and everything it was computed from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# extender/v1's own range; nothing clamps it, and nothing else is expected.
BEST = 10


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
