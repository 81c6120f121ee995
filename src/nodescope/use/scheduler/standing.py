"""
What the nodes of a large cluster cost FPGA pods, kept from call to call.

Judging 5,000 nodes takes 60 ms of CPU for every pod, nearly all of it for nodes
of which nothing changed since the pod before. So the parts of the cost that no
pod changes are renewed every few seconds, by a thread: a pod that comes once a
minute does not wait for it either. What a bitstream costs on all nodes is judged for
the first pod that asks for it; for the pods after it only those nodes are judged anew
whose pods on their way have changed since. The result is that of `judge_cost`
with annotations and sums of a few seconds ago.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from statistics import median
from threading import Event

from nodescope.base.clock import Clock
from nodescope.serve.step_thread import StepThread
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
# Until there is a large cluster with devices.
LOOK_SECONDS = 0.5
# A call takes turns with the thread at every read and write of its sockets, and Python lets a busy
# thread go on for 5 ms each time: so it rests after every few nodes, for 0.4 ms of work.
SLICE_NODES = 50
REST_SECONDS = 0.001
# Costs that are older are renewed by the call itself: the thread is late, or there is none.
OLDEST_SECONDS = 10.0
# Bitstreams whose loads are kept until costs are renewed.
LOADS_KEPT = 64
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
    busy: float = 0.0
    """Share of its window that the device was in use."""


@dataclass(frozen=True, slots=True)
class CalledNodes:
    """The nodes of a call."""

    names: tuple[str, ...]
    rows: list[StandingNode]
    hosts: list[float]
    devices: list[float]
    unsure: list[int]
    """Places of the nodes whose device is not known for sure."""
    places: Mapping[str, int]


@dataclass(slots=True)
class StandingLoads:
    """What one bitstream costs on all nodes, kept up to date from pod to pod for as long as costs stand."""

    touches: int
    """Changes of pods on their way that are in it; nodes that changed since are judged anew."""
    cold_ms: float
    """What a node costs that does not have it."""
    measured: Mapping[str, float]
    """Node that reports it or got pods with it -> ms of its device, with the load that it measured itself."""
    usual: Mapping[str, tuple[float, float]]
    """The same with the usual load: node -> ms of its device, and the share of that load that comes on top."""
    parts: dict[str, tuple[CostPart, float]] = field(default_factory=dict)
    """Node that was judged by itself -> its device with the load, and what is on its way there."""
    middle_ms: float = 0.0
    """What a device costs of which nothing is known."""
    settled: list[float] = field(default_factory=list)
    """Of everybody, in the order of places: the cost without pods on their way."""
    costs: list[float] = field(default_factory=list)
    """With them."""


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """The nodes of the cluster at one moment; replaced as a whole, so readers need no lock."""

    at_ms: int
    cluster: FpgaCluster
    rows: Mapping[str, StandingNode]
    everybody: CalledNodes
    """A call about all nodes, which most calls are."""
    holders: Mapping[str, Sequence[str]]
    """Bitstream -> nodes that report it."""
    unseen: StandingNode
    """A node that the watch had not shown."""
    typical: Mapping[str, float]
    """What a cause costs where it was not measured."""
    loads: dict[str, StandingLoads] = field(default_factory=dict)
    """By bitstream, of those that were asked for; judged by who asks."""


@dataclass(slots=True)
class RatedNodes:
    """All nodes for one pod, in an order of their own: kube-scheduler's is another one for each pod."""

    names: tuple[str, ...]
    costs: list[float]
    scores: list[int]
    explained: list[NodeRating]
    """The best ones, whole."""

    @property
    def best(self) -> str:
        return self.explained[0].node


@dataclass(slots=True)
class StandingCosts:
    """Asked by one thread at a time, and renewed by another."""

    nodes: Nodes
    placed: PlacedPods
    clock: Clock
    renewals: Counter[str] = field(default_factory=Counter)
    """By the thread, and by calls that had to wait for it."""
    _standing: ClusterStanding | None = None

    def make_thread(self) -> StepThread:
        return StepThread("standing costs", self.step, None, self.clock)

    def step(self) -> float:
        """Costs are renewed before anybody asks, where the cluster is large and somebody may."""
        if len(self.nodes) <= LEAST_NODES or (self._standing is None and not has_devices(self.nodes.all())):
            return LOOK_SECONDS
        self._renew(self.clock.wall_ns() // 1_000_000, "thread", self._rest)
        return RENEW_SECONDS

    def _rest(self) -> None:
        self.clock.wait_until(self.clock.mono_ns() + round(REST_SECONDS * 1e9), Event())

    def _renew(self, now_ms: int, who: str, rest: Callable[[], None]) -> ClusterStanding:
        self._standing = made = derive_standing(self.nodes, self.placed, now_ms, rest)
        self.renewals[who] += 1
        return made

    def judge(self, pod: PodRequest, names: Sequence[str], now_ms: int) -> RatedNodes:
        standing = self._find_standing(now_ms)
        loads = self._find_loads(standing, pod, now_ms)
        called, session_ms = list_called(standing, names), standing.cluster.session_ms
        if called is standing.everybody:
            costs = loads.costs.copy()
        else:
            device = list_devices(called, loads)
            costs = settle(called, device, find_middle_device(called, device), session_ms)
            add_arriving(costs, called, loads)
        scores = derive_scores(costs, derive_device_unit(session_ms), min(costs))
        best = heapq.nsmallest(EXPLAINED, range(len(costs)), key=costs.__getitem__)
        part = self._make_part(standing, pod, now_ms, {called.names[place] for place in best})
        host = HostPart(session_ms, now_ms, standing.typical)
        explained = [
            self._explain(part, host, called.names[place], costs[place], scores[place]) for place in best
        ]
        return RatedNodes(called.names, costs, scores, explained)

    def _make_part(
        self, standing: ClusterStanding, pod: PodRequest, now_ms: int, nodes: Container[str] | None
    ) -> FpgaPart:
        """To judge all nodes, or these."""
        arriving = self.placed.arriving("fpga", nodes=nodes)
        return FpgaPart(pod, standing.cluster, self.placed, self.nodes.times, now_ms, arriving)

    def _find_standing(self, now_ms: int) -> ClusterStanding:
        found = self._standing
        if found is None or not 0 <= now_ms - found.at_ms < OLDEST_SECONDS * 1000:
            return self._renew(now_ms, "call", lambda: None)
        return found

    def _find_loads(self, standing: ClusterStanding, pod: PodRequest, now_ms: int) -> StandingLoads:
        """A fifth of 5,000 nodes may report a bitstream, and hundreds of pods be on their way: few of them change from pod to pod."""
        # Read first: what changes meanwhile is judged twice, not never.
        touches = self.placed.touches
        found = standing.loads.get(pod.bitstream)
        if found is None:
            if len(standing.loads) >= LOADS_KEPT:
                standing.loads.clear()
            part = self._make_part(standing, pod, now_ms, None)
            found = standing.loads[pod.bitstream] = self._judge_loads(standing, part, touches)
            self._judge_everybody(standing, found, part)
        elif touches != found.touches:
            changed = set(self.placed.touched_since(found.touches))
            self._judge_changed(standing, found, self._make_part(standing, pod, now_ms, changed), changed)
            found.touches = touches
        return found

    def _judge_loads(self, standing: ClusterStanding, part: FpgaPart, touches: int) -> StandingLoads:
        measured: dict[str, float] = {}
        usual: dict[str, tuple[float, float]] = {}
        for name in {
            *standing.holders.get(part.bitstream, ()),
            *self.placed.sent_to(part.bitstream),
        }:
            row, fpga = standing.rows.get(name, standing.unseen), self._find(name).fpga
            if not row.confidence or fpga is None:
                continue
            warm, load_ms = part.find_load(name, fpga, None)
            if part.is_load_measured(fpga):
                measured[name] = row.device_ms + (1 - warm) * load_ms
            else:
                usual[name] = (row.device_ms, 1 - warm)
        return StandingLoads(touches, part.cold_ms, measured, usual)

    def _judge_everybody(self, standing: ClusterStanding, loads: StandingLoads, part: FpgaPart) -> None:
        for name, coming in part.arriving.items():
            loads.parts[name] = self._judge_one(part, name, standing.rows.get(name, standing.unseen), coming)
        everybody = standing.everybody
        device = list_devices(everybody, loads)
        loads.middle_ms = find_middle_device(everybody, device)
        loads.settled = settle(everybody, device, loads.middle_ms, standing.cluster.session_ms)
        loads.costs = loads.settled.copy()
        add_arriving(loads.costs, everybody, loads)

    def _judge_changed(
        self, standing: ClusterStanding, loads: StandingLoads, part: FpgaPart, names: Iterable[str]
    ) -> None:
        everybody = standing.everybody
        for name in names:
            row = standing.rows.get(name, standing.unseen)
            device, more_ms = loads.parts[name] = self._judge_one(part, name, row, part.arriving.get(name))
            if (place := everybody.places.get(name)) is None:
                continue
            if row.confidence:
                known = CostPart(device.cost_ms, row.confidence)
                loads.settled[place] = row.host_ms + blend(known, loads.middle_ms)
            loads.costs[place] = loads.settled[place] + more_ms

    def _judge_one(
        self, part: FpgaPart, name: str, row: StandingNode, coming: Arriving | None
    ) -> tuple[CostPart, float]:
        """A node whose cost this pod changes, and what is on its way there."""
        node = self._find(name)
        if not row.confidence or node.fpga is None:
            rating = NodeRating(name)
            return part.judge(node, rating), rating.terms.get("arriving", 0.0)
        # Nothing but the load, and who is on the way, differs from what stands.
        load_ms = part.judge_load(name, node.fpga, coming, {})
        more_ms = part.price(coming.pods, row.busy) if coming else 0.0
        return CostPart(row.device_ms + load_ms, row.confidence), more_ms

    def _find(self, name: str) -> AnnotatedNode:
        return self.nodes.find(name) or AnnotatedNode(name, fpga_reason=UNSEEN, load_reason=UNSEEN)

    def _explain(self, part: FpgaPart, host: HostPart, name: str, cost_ms: float, score: int) -> NodeRating:
        node, rating = self._find(name), NodeRating(name)
        host.judge(node, rating)
        rating.confidence = part.judge(node, rating).confidence
        rating.cost_ms, rating.score = cost_ms, score
        return rating


def has_devices(nodes: Iterable[AnnotatedNode]) -> bool:
    return any(node.fpga is not None or node.vendor for node in nodes)


def yield_slices(nodes: Sequence[AnnotatedNode], rest: Callable[[], None]) -> Iterator[AnnotatedNode]:
    for start in range(0, len(nodes), SLICE_NODES):
        yield from nodes[start : start + SLICE_NODES]
        rest()


def list_called(standing: ClusterStanding, names: Sequence[str]) -> CalledNodes:
    if len(names) == len(standing.rows) and standing.rows.keys() == set(names):
        return standing.everybody
    return line_up(tuple(names), [standing.rows.get(name, standing.unseen) for name in names])


def line_up(names: tuple[str, ...], rows: list[StandingNode]) -> CalledNodes:
    return CalledNodes(
        names,
        rows,
        [row.host_ms for row in rows],
        [row.device_ms for row in rows],
        [place for place, row in enumerate(rows) if row.confidence < 1],
        {name: place for place, name in enumerate(names)},
    )


def derive_standing(
    seen: Nodes, placed: PlacedPods, now_ms: int, rest: Callable[[], None]
) -> ClusterStanding:
    nodes = seen.all()
    cluster = derive_cluster(nodes, placed, now_ms)
    part = FpgaPart(NOBODY, cluster, placed, seen.times, now_ms, {})
    typical = derive_typical(list_believed(nodes, now_ms))
    host_part = HostPart(cluster.session_ms, now_ms, typical)
    hosts = [host_part.judge(node, NodeRating(node.name)) for node in yield_slices(nodes, rest)]
    known_ms = [host.cost_ms for host in hosts if host.confidence]
    middle_ms = median(known_ms) if known_ms else 0.0
    rows: dict[str, StandingNode] = {}
    holders: dict[str, list[str]] = {}
    for node, host in zip(yield_slices(nodes, rest), hosts):
        rating = NodeRating(node.name)
        device, busy = part.judge(node, rating), rating.facts.get("busy_ratio", 0.0)
        rows[node.name] = StandingNode(blend(host, middle_ms), device.cost_ms, device.confidence, busy)
        for name in node.fpga.bitstreams if node.fpga else ():
            holders.setdefault(name, []).append(node.name)
    everybody = line_up(tuple(rows), list(rows.values()))
    return ClusterStanding(now_ms, cluster, rows, everybody, holders, StandingNode(middle_ms), typical)


def list_devices(called: CalledNodes, loads: StandingLoads) -> list[float]:
    """What the devices cost by themselves and with loading the bitstream, where they are known."""
    places, cold_ms = called.places, loads.cold_ms
    device = [ms + cold_ms for ms in called.devices]
    for name, ms in loads.measured.items():
        if (place := places.get(name)) is not None:
            device[place] = ms
    for name, (ms, share) in loads.usual.items():
        if (place := places.get(name)) is not None:
            device[place] = ms + share * cold_ms
    for name, (one, _) in loads.parts.items():
        if (place := places.get(name)) is not None:
            device[place] = one.cost_ms
    return device


def find_middle_device(called: CalledNodes, device: Sequence[float]) -> float:
    """What counts where a device is not known, or not for sure."""
    known_ms = [ms for ms, row in zip(device, called.rows) if row.confidence] if called.unsure else []
    return median(known_ms) if known_ms else 0.0


def settle(called: CalledNodes, device: list[float], middle_ms: float, session_ms: float) -> list[float]:
    """As settle_costs does, without pods on their way; nearly all nodes are known for sure."""
    rows = called.rows
    for place in called.unsure:
        device[place] = blend(CostPart(device[place], rows[place].confidence), middle_ms)
    costs = list(map(add, called.hosts, device))
    unknown = [place for place in called.unsure if not rows[place].confidence]
    if unknown and len(unknown) < len(costs):
        best_ms = min(cost for cost, row in zip(costs, rows) if row.confidence)
        for place in unknown:
            costs[place] = max(costs[place], best_ms + session_ms * UNKNOWN_RATIO)
    return costs


def add_arriving(costs: list[float], called: CalledNodes, loads: StandingLoads) -> None:
    for name, (_, more_ms) in loads.parts.items():
        if (place := called.places.get(name)) is not None:
            costs[place] += more_ms


def blend(part: CostPart, middle_ms: float) -> float:
    """A part by its confidence; what is missing is the median of the others."""
    own = part.confidence
    return part.cost_ms if own == 1 else own * part.cost_ms + (1 - own) * middle_ms
