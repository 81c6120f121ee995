"""
Why a pod was scored as it was: the newest decisions, kept for /explain.

kube-scheduler logs an extender's scores, and its errors, only at a level that
nobody uses. A decision has a row per node: beyond a number of rows the older
decisions keep their best nodes only.
"""

import heapq
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.rating import NodeRating

# A row is some hundred bytes to half a KiB.
ROWS = 40_000
DECISIONS = 1000
# What an older decision keeps, of ratings and of refusals: 1,000 of them are at most ROWS.
THINNED = 19


@dataclass(slots=True)
class Decision:
    """What was answered about one pod."""

    pod: PodRequest
    policy: str
    at_ms: int
    refused: Mapping[str, str] = field(default_factory=dict)
    ratings: Sequence[NodeRating] = ()
    rated: int = 0
    """How many nodes were rated; the ratings are of all, or of the best."""

    @property
    def rows(self) -> int:
        return 1 + len(self.refused) + len(self.ratings)

    def thin(self) -> None:
        """Keeps the best nodes, and as many refusals."""
        self.ratings = heapq.nsmallest(THINNED, self.ratings, key=order_rating)
        self.refused = dict(islice(self.refused.items(), THINNED))


def order_rating(rating: NodeRating) -> tuple[float, float, str]:
    """The best first."""
    return -rating.score, rating.cost_ms or 0.0, rating.node


class Decisions:
    """The newest decisions by pod; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Decision] = OrderedDict()
        self._whole: OrderedDict[str, Decision] = OrderedDict()
        """Those that have not been thinned, the oldest first."""
        self._rows = 0

    def filtered(self, pod: PodRequest, policy: str, at_ms: int, refused: Mapping[str, str]) -> None:
        self._keep(Decision(pod, policy, at_ms, dict(refused)))

    def scored(
        self, pod: PodRequest, policy: str, at_ms: int, ratings: Sequence[NodeRating], rated: int = 0
    ) -> None:
        """`rated` where the ratings are not of all nodes."""
        before = self._kept.get(pod.key)
        refused = before.refused if before is not None and before.pod.uid == pod.uid else {}
        self._keep(Decision(pod, policy, at_ms, refused, ratings, rated or len(ratings)))

    def find(self, key: str) -> Decision | None:
        with self._lock:
            return self._kept.get(key)

    def keys(self) -> list[str]:
        """The newest first."""
        with self._lock:
            return list(reversed(self._kept))

    def _keep(self, decision: Decision) -> None:
        with self._lock:
            before = self._kept.pop(decision.pod.key, None)
            self._rows += decision.rows - (before.rows if before else 0)
            self._kept[decision.pod.key] = decision
            self._whole.pop(decision.pod.key, None)
            self._whole[decision.pod.key] = decision
            if len(self._kept) > DECISIONS:
                key, oldest = self._kept.popitem(last=False)
                self._whole.pop(key, None)
                self._rows -= oldest.rows
            while self._rows > ROWS and len(self._whole) > 1:
                _, oldest = self._whole.popitem(last=False)
                self._rows -= oldest.rows
                oldest.thin()
                self._rows += oldest.rows


def describe_decision(decision: Decision) -> dict[str, Any]:
    """For /explain: every node with every term, the best first."""
    pod = decision.pod
    ordered = sorted(decision.ratings, key=order_rating)
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "kind": pod.kind,
        "bitstream": pod.bitstream or None,
        "vendor": pod.vendor or None,
        "policy": decision.policy,
        "at": decision.at_ms / 1000,
        "refused": dict(decision.refused),
        "rated": decision.rated,
        "nodes": [describe_rating(one) for one in ordered],
        "hint": "" if ordered else "one node was left, or none: kube-scheduler then asks for no scores",
    }


def describe_rating(rating: NodeRating) -> dict[str, Any]:
    return {
        "node": rating.node,
        "score": rating.score,
        "cost_ms": None if rating.cost_ms is None else round(rating.cost_ms, 3),
        "confidence": round(rating.confidence, 3),
        "terms_ms": {name: round(value, 3) for name, value in rating.all_terms().items()},
        "facts": {name: round(value, 4) for name, value in rating.facts.items()},
        "why": describe_why(rating),
    }


def describe_why(rating: NodeRating) -> str:
    """One sentence: what weighed most, and what was not known."""
    parts = list(rating.reasons)
    terms = rating.all_terms()
    if terms:
        largest = max(terms, key=lambda name: terms[name])
        if terms[largest] > 0:
            parts.insert(0, f"{largest.replace('_', ' ')} costs {terms[largest]:.0f} ms")
        elif not parts:
            parts = ["nothing is in the way"]
    if rating.cost_ms is not None and not rating.confidence:
        parts.append("taken as the average node, never as the best")
    return "; ".join(part for part in parts if part) or "ranked by what it reports"
