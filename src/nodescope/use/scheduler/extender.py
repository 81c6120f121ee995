"""
The two answers: who may take a pod, and how good each would be.

A pod that requests nothing we rate is answered at once: every node may take
it, and all are equal. kube-scheduler calls every extender for every pod, one
pod at a time, so every pod of the cluster waits for the time we take.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodescope.base.clock import Clock
from nodescope.use.scheduler.cost import judge_cost
from nodescope.use.scheduler.devices.packing import DeviceRoom
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.node import AnnotatedNode
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.pod_request import PLAIN, PodRequest
from nodescope.use.scheduler.rank import judge_rank
from nodescope.use.scheduler.rating import NodeRating
from nodescope.use.scheduler.standing import LEAST_NODES, UNSEEN, StandingCosts
from nodescope.use.scheduler.wire import ExtenderCall, render_filtered, render_level, render_scores

POLICIES = ("cost", "rank")


@dataclass(frozen=True, slots=True)
class Extender:
    """Answers from what the watches have seen."""

    nodes: Nodes
    placed: PlacedPods
    decisions: Decisions
    clock: Clock
    policy: str = "cost"
    is_watched: bool = True
    """Whether watches show nodes and pods; without them nodes are what callers send."""
    devices: DeviceRoom | None = None
    """Without it, GPU pods are rated by load."""
    placement: str = "pack"
    """Of whole devices, for pods that do not say it themselves."""
    standing: StandingCosts = field(init=False)

    def __post_init__(self) -> None:
        # Frozen: nothing but this is set after the start.
        object.__setattr__(self, "standing", StandingCosts(self.nodes, self.placed, self.clock))

    def filter(self, call: ExtenderCall) -> bytes:
        pod = call.pod
        if pod.kind == PLAIN:
            return render_filtered(call, {})
        refused = self._refuse(call) if pod.vendor else {}
        self.decisions.filtered(pod, self.policy, self._now_ms(), refused)
        if len(call.names) - len(refused) == 1:
            # kube-scheduler asks for no scores then: the pod goes there.
            (left,) = set(call.names) - set(refused)
            self.placed.note(pod, left)
        return render_filtered(call, refused)

    def prioritize(self, call: ExtenderCall) -> bytes:
        pod = call.pod
        if pod.kind == PLAIN or not call.names:
            return render_level(call)
        # Asked again after a failed binding: the pod must not count against itself.
        self.placed.forget(pod.uid)
        if self._is_large(call):
            rated = self.standing.judge(pod, call.names, self._now_ms())
            self.decisions.scored(pod, self.policy, self._now_ms(), rated.explained, len(call.names))
            self.placed.note(pod, rated.best)
            return render_scores(rated.names, rated.scores)
        nodes = [self._find(name, call.nodes) for name in call.names]
        ratings = self._judge(pod, nodes)
        self.decisions.scored(pod, self.policy, self._now_ms(), ratings)
        best = min(ratings, key=lambda one: (-one.score, one.cost_ms or 0.0))
        self.placed.note(pod, best.node)
        return render_scores(call.names, [rating.score for rating in ratings])

    def _is_large(self, call: ExtenderCall) -> bool:
        """Whether there are so many nodes that not all are judged anew for every pod."""
        is_usual = self.policy == "cost" and call.pod.kind == "fpga" and call.nodes is None
        return is_usual and len(call.names) > LEAST_NODES

    def _judge(self, pod: PodRequest, nodes: list[AnnotatedNode]) -> list[NodeRating]:
        if self.policy == "rank" and pod.kind == "fpga":
            return judge_rank(pod, nodes, self._now_ms())
        times, profiles, packing = self.nodes.times, self.nodes.profiles, None
        if pod.kind in ("gpu", "claim") and self.devices is not None:
            wanted = self.devices.find_wanted(pod)
            if wanted and (pod.placement or self.placement) == "pack":
                packing = self.devices.build_packing(pod, wanted)
            elif any("gpu" in name for name, _ in wanted):
                # A claim of GPUs is rated by their load, as a request for them is.
                pod = replace(pod, kind="gpu")
        return judge_cost(pod, nodes, self.placed, times, self._now_ms(), profiles, packing)

    def _refuse(self, call: ExtenderCall) -> dict[str, str]:
        """Nodes of another vendor; one without the label may have any."""
        # The same words for all of them: kube-scheduler counts nodes by text.
        reason = f"fpga vendor is not {call.pod.vendor[:63]}"
        passing = ("", call.pod.vendor)
        return {name: reason for name in call.names if self._find(name, call.nodes).vendor not in passing}

    def _find(self, name: str, given: Mapping[str, Mapping[str, Any]] | None) -> AnnotatedNode:
        if given is not None:
            return self.nodes.parse(given[name]) if self.is_watched else self.nodes.learn(given[name])
        return self.nodes.find(name) or AnnotatedNode(name, fpga_reason=UNSEEN, load_reason=UNSEEN)

    def _now_ms(self) -> int:
        return self.clock.wall_ns() // 1_000_000
