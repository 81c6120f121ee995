"""
The two answers: who may take a pod, and how good each would be.

A pod that asks for nothing of ours is answered at once: everybody may, and
all are equal. kube-scheduler calls every extender for every pod, one pod at a
time, so what we take here all pods of the cluster wait for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodescope.base.clock import Clock
from nodescope.use.scheduler.cost import judge_cost
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.node import ScoredNode
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.pod_request import PLAIN, PodRequest
from nodescope.use.scheduler.rank import judge_rank
from nodescope.use.scheduler.verdict import Verdict
from nodescope.use.scheduler.wire import ExtenderCall, render_filtered, render_scores

POLICIES = ("cost", "rank")
UNSEEN = "not seen by our watch of nodes yet"


@dataclass(frozen=True, slots=True)
class Extender:
    """Answers from what the watches know."""

    nodes: Nodes
    ledger: PlacedPods
    decisions: Decisions
    clock: Clock
    policy: str = "cost"

    def filter(self, call: ExtenderCall) -> bytes:
        wish = call.wish
        if wish.kind == PLAIN:
            return render_filtered(call, {})
        refused = self._refuse(call) if wish.vendor else {}
        self.decisions.filtered(wish, self.policy, self._now_ms(), refused)
        left = [name for name in call.names if name not in refused]
        if len(left) == 1:
            # kube-scheduler asks for no scores then: this is the place.
            self.ledger.note(wish, left[0])
        return render_filtered(call, refused)

    def prioritize(self, call: ExtenderCall) -> bytes:
        wish = call.wish
        if wish.kind == PLAIN or not call.names:
            return render_scores(call.names, [0] * len(call.names))
        # Asked again, after the pod could not be bound: it is not in its own way.
        self.ledger.forget(wish.uid)
        nodes = [self._find(name, call.nodes) for name in call.names]
        verdicts = self._judge(wish, nodes)
        self.decisions.scored(wish, self.policy, self._now_ms(), verdicts)
        best = min(verdicts, key=lambda one: (-one.score, one.cost_ms or 0.0))
        self.ledger.note(wish, best.node)
        return render_scores(call.names, [verdict.score for verdict in verdicts])

    def _judge(self, wish: PodRequest, nodes: list[ScoredNode]) -> list[Verdict]:
        if self.policy == "rank" and wish.kind == "fpga":
            return judge_rank(wish, nodes, self._now_ms())
        return judge_cost(wish, nodes, self.ledger, self.nodes.times, self._now_ms())

    def _refuse(self, call: ExtenderCall) -> dict[str, str]:
        """Nodes of another vendor; one that does not say may have any."""
        # The same words for all of them: kube-scheduler counts nodes by text.
        reason = f"fpga vendor is not {call.wish.vendor[:63]}"
        found = {}
        for name in call.names:
            vendor = self._find(name, call.nodes).vendor
            if vendor and vendor != call.wish.vendor:
                found[name] = reason
        return found

    def _find(self, name: str, given: Mapping[str, Mapping[str, Any]] | None) -> ScoredNode:
        if given is not None:
            return self.nodes.parse(given[name])
        return self.nodes.find(name) or ScoredNode(name, fpga_reason=UNSEEN, load_reason=UNSEEN)

    def _now_ms(self) -> int:
        return self.clock.wall_ns() // 1_000_000
