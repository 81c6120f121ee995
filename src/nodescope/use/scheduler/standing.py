"""
What the nodes of a large cluster cost FPGA pods, kept from call to call.

Judging 5,000 nodes takes 60 ms of CPU for every pod, nearly all of it for nodes
of which nothing changed since the pod before. So the parts of the cost that no
pod changes are renewed every few seconds, and for a pod only those nodes are
judged anew that have its bitstream or pods on their way. The result is that of
`judge_cost` with annotations and sums of up to RENEW_SECONDS ago.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from statistics import median

from nodescope.use.scheduler.cost import (
    UNKNOWN_RATIO,
    FpgaPart,
    HostPart,
    derive_device_unit,
    list_believed,
)
from nodescope.use.scheduler.fpga_cluster import FpgaCluster, derive_cluster
from nodescope.use.scheduler.host_cost import derive_typical
from nodescope.use.scheduler.node import AnnotatedNode
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import Arriving, PlacedPods
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.rating import CostPart, NodeRating, derive_scores

# Up to here every call judges all nodes: 2 ms.
LEAST_NODES = 200
RENEW_SECONDS = 5.0
# Nodes of a decision that are explained: the best ones.
EXPLAINED = 20
UNSEEN = "not seen by our watch of nodes yet"
NOBODY = PodRequest("", "", "", "fpga")


@dataclass(frozen=True, slots=True)
class StandingNode:
    """What a node costs a pod that asks for no bitstream, without the pods on their way."""

    host_ms: float = 0.0
    device_ms: float = 0.0
    confidence: float = 0.0
    """In the device's part."""


@dataclass(frozen=True, slots=True)
class CalledNodes:
    """The nodes of a call, in its order; kube-scheduler asks about the same ones again and again."""

    names: tuple[str, ...]
    rows: list[StandingNode]
    hosts: list[float]
    devices: list[float]
    unsure: list[int]
    """Places of the nodes whose device is not known for sure."""
    places: Mapping[str, int]


@dataclass(slots=True)
class RatedNodes:
    """All nodes for one pod, in the order of the call."""

    names: Sequence[str]
    costs: list[float]
    scores: list[int]
    explained: list[NodeRating]
    """The best ones, whole."""

    @property
    def best(self) -> str:
        return self.explained[0].node


@dataclass(slots=True)
class StandingCosts:
    """Asked by one thread at a time."""

    nodes: Nodes
    placed: PlacedPods
    _at_ms: int | None = None
    _cluster: FpgaCluster = field(default_factory=FpgaCluster)
    _rows: dict[str, StandingNode] = field(default_factory=dict)
    _holders: dict[str, list[str]] = field(default_factory=dict)
    """Bitstream -> nodes that report it."""
    _unseen: StandingNode = field(default_factory=StandingNode)
    _typical: Mapping[str, float] = field(default_factory=dict)
    """What a cause costs where it was not measured."""
    _called: CalledNodes | None = None
    """Of the last call, until the costs are renewed."""

    def judge(self, pod: PodRequest, names: Sequence[str], now_ms: int) -> RatedNodes:
        self._renew(now_ms)
        arriving = self.placed.arriving("fpga")
        part = FpgaPart(pod, self._cluster, self.placed, self.nodes.times, now_ms, arriving)
        called = self._list_called(names)
        parts = self._judge_special(part, called, arriving)
        cold_ms = part.cold_ms
        device = [ms + cold_ms for ms in called.devices]
        for place, (one, _) in parts.items():
            device[place] = one.cost_ms
        costs = self._settle(called, device)
        for place, (_, more_ms) in parts.items():
            costs[place] += more_ms
        scores = derive_scores(costs, derive_device_unit(self._cluster.session_ms), min(costs))
        best = heapq.nsmallest(EXPLAINED, range(len(names)), key=costs.__getitem__)
        explained = [self._explain(part, names[place], costs[place], scores[place]) for place in best]
        return RatedNodes(names, costs, scores, explained)

    def _list_called(self, names: Sequence[str]) -> CalledNodes:
        # Names of the last call are the same objects, which makes the comparison a blink.
        wanted = tuple(names)
        if self._called is None or self._called.names != wanted:
            rows = [self._rows.get(name, self._unseen) for name in wanted]
            self._called = CalledNodes(
                wanted,
                rows,
                [row.host_ms for row in rows],
                [row.device_ms for row in rows],
                [place for place, row in enumerate(rows) if row.confidence < 1],
                {name: place for place, name in enumerate(wanted)},
            )
        return self._called

    def _renew(self, now_ms: int) -> None:
        if self._at_ms is not None and 0 <= now_ms - self._at_ms < RENEW_SECONDS * 1000:
            return
        nodes = self.nodes.all()
        cluster = derive_cluster(nodes, self.placed, now_ms)
        part = FpgaPart(NOBODY, cluster, self.placed, self.nodes.times, now_ms, {})
        self._typical = derive_typical(list_believed(nodes, now_ms))
        host_part = HostPart(cluster.session_ms, now_ms, self._typical)
        hosts = [host_part.judge(node, NodeRating(node.name)) for node in nodes]
        known_ms = [host.cost_ms for host in hosts if host.confidence]
        middle_ms = median(known_ms) if known_ms else 0.0
        rows: dict[str, StandingNode] = {}
        holders: dict[str, list[str]] = {}
        for node, host in zip(nodes, hosts):
            device = part.judge(node, NodeRating(node.name))
            host_ms = blend(host, middle_ms)
            rows[node.name] = StandingNode(host_ms, device.cost_ms, device.confidence)
            for name in node.fpga.bitstreams if node.fpga else ():
                holders.setdefault(name, []).append(node.name)
        self._at_ms, self._cluster, self._rows, self._holders = now_ms, cluster, rows, holders
        self._unseen, self._called = StandingNode(middle_ms), None

    def _judge_special(
        self, part: FpgaPart, called: CalledNodes, arriving: Mapping[str, Arriving]
    ) -> dict[int, tuple[CostPart, float]]:
        """By place: nodes whose cost this pod changes, with what is on its way there."""
        special = {*arriving, *self._holders.get(part.bitstream, ()), *self.placed.sent_to(part.bitstream)}
        return {
            place: self._judge_one(part, name, name in arriving)
            for name in special
            if (place := called.places.get(name)) is not None
        }

    def _judge_one(self, part: FpgaPart, name: str, is_arriving: bool) -> tuple[CostPart, float]:
        node, row = self._find(name), self._rows.get(name, self._unseen)
        if not is_arriving and row.confidence and node.fpga is not None:
            # Nothing but the load differs from what stands.
            warm, load_ms = part.find_load(name, node.fpga, None)
            return CostPart(row.device_ms + (1 - warm) * load_ms, row.confidence), 0.0
        rating = NodeRating(name)
        return part.judge(node, rating), rating.terms.get("arriving", 0.0)

    def _settle(self, called: CalledNodes, device: list[float]) -> list[float]:
        """As settle_costs does; nearly all nodes are known for sure."""
        rows = called.rows
        if called.unsure:
            known_ms = [ms for ms, row in zip(device, rows) if row.confidence]
            middle_ms = median(known_ms) if known_ms else 0.0
            for place in called.unsure:
                device[place] = blend(CostPart(device[place], rows[place].confidence), middle_ms)
        costs = list(map(add, called.hosts, device))
        unknown = [place for place in called.unsure if not rows[place].confidence]
        if unknown and len(unknown) < len(costs):
            best_ms = min(cost for cost, row in zip(costs, rows) if row.confidence)
            for place in unknown:
                costs[place] = max(costs[place], best_ms + self._cluster.session_ms * UNKNOWN_RATIO)
        return costs

    def _find(self, name: str) -> AnnotatedNode:
        return self.nodes.find(name) or AnnotatedNode(name, fpga_reason=UNSEEN, load_reason=UNSEEN)

    def _explain(self, part: FpgaPart, name: str, cost_ms: float, score: int) -> NodeRating:
        node, rating = self._find(name), NodeRating(name)
        HostPart(self._cluster.session_ms, part.now_ms, self._typical).judge(node, rating)
        rating.confidence = part.judge(node, rating).confidence
        rating.cost_ms, rating.score = cost_ms, score
        return rating


def blend(part: CostPart, middle_ms: float) -> float:
    """A part by its confidence; what is missing is the median of the others."""
    own = part.confidence
    return part.cost_ms if own == 1 else own * part.cost_ms + (1 - own) * middle_ms
