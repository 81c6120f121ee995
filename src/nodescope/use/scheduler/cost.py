"""
The policy `cost`: the time a pod is expected to lose on each node, in ms.

For an FPGA pod, with S the typical length of a session in the cluster (the
median of the nodes' means):

    reconfiguration   P(its bitstream is not there) * time to load it
    wait              S * rho / (1 - rho), rho = share of the window that the
                      device was busy + the pods that are on their way there;
                      for pods of one session each: S * the pods that are there
    host              S * slowdown: pressure, CPU and memory bandwidth of the
                      last 20 s, and health

A GPU pod waits for the GPUs in place of the FPGA, unless it has whole devices and
is packed (devices/packing); a `balance` pod has the host part alone, with what it
adds to the node itself (profile/placement). S is one second for all of them.

A missing value is replaced by the median of the other nodes, by confidence:
term = c * own + (1 - c) * median. So a node without an annotation,
or with a stale or broken one, is neither preferred nor excluded. A node that
carries the vendor's label and has reported nothing has a device that nobody
used yet: it counts as idle.

    score = 1000 - 33 * log2(1 + (cost - best) / unit)

The unit is a hundredth of a session, and 10 ms at most, for FPGA pods: a load of
10 ms that a node saves counts more than what kube-scheduler's other plugins
think of two idle nodes. For the others it is 200 ms: what a node's last 20 s say
of its host is noisy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from nodescope.base.workload.pod_use import HOURS
from nodescope.use.scheduler.devices.packing import Packing
from nodescope.use.scheduler.fpga_cluster import SESSION_MS, FpgaCluster, derive_cluster
from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.host_cost import FILLING, derive_queue, derive_typical
from nodescope.use.scheduler.load_times import LEAST_LOAD_MS, LoadTimes
from nodescope.use.scheduler.node import NO_STATE, AnnotatedNode, NodeFpga, is_measured
from nodescope.use.scheduler.placed_pods import Arriving, PlacedPods
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.profile.placement import (
    BUS,
    ClusterUse,
    Placement,
    derive_cluster_use,
    derive_demand,
    size_pod,
)
from nodescope.use.scheduler.profile.workload_profiles import WorkloadProfiles
from nodescope.use.scheduler.rating import CostPart, NodeRating, derive_scores

# A guess, used until the first report.
RECONFIGURATION_MS = 1000.0
# The losses from which on scores fall quickly; see above.
UNITS_IN_A_SESSION = 100
DEVICE_UNIT_MS = 10.0
HOST_UNIT_MS = 200.0
# How far a node of which nothing is known is behind the best, in sessions.
UNKNOWN_RATIO = 1 / 9
# Chance that a bitstream is still loaded after another one came, which may be
# in another region of the device; a guess that bench/scheduler_replay supports.
KEPT_RATIO = 0.7
GPU_MEMORY = 0.5


def judge_cost(
    pod: PodRequest,
    nodes: Sequence[AnnotatedNode],
    placed: PlacedPods,
    times: LoadTimes,
    now_ms: int,
    profiles: WorkloadProfiles | None = None,
    packing: Packing | None = None,
) -> list[NodeRating]:
    """A rating for every node, in the order given."""
    ratings = [NodeRating(node.name) for node in nodes]
    profiles = profiles or WorkloadProfiles()
    usual = derive_cluster_use(nodes, now_ms) if pod.kind == "balance" else ClusterUse()
    hour = now_ms // 3_600_000 % HOURS
    arriving = placed.arriving(pod.kind, partial(size_pod, profiles, usual.per_core, hour))
    if pod.kind == "fpga":
        cluster = derive_cluster(nodes, placed, now_ms)
        devices = FpgaPart(pod, cluster, placed, times, now_ms, arriving)
        scale_ms, judge_device = cluster.session_ms, devices.judge
        unit_ms = derive_device_unit(scale_ms)
    else:
        scale_ms, unit_ms = SESSION_MS, HOST_UNIT_MS
        judge_device = packing.judge if packing else partial(judge_gpu, now_ms, arriving)
    host = HostPart(scale_ms, now_ms, derive_typical(list_believed(nodes, now_ms)))
    if pod.kind == "balance":
        demand = derive_demand(pod, profiles, usual.per_core, hour)
        host.placement = Placement(scale_ms, hour, demand, arriving, usual)
    parts = [[host.judge(node, rating)] for node, rating in zip(nodes, ratings)]
    if pod.kind in ("fpga", "gpu") or packing:
        for node, rating, row in zip(nodes, ratings, parts):
            row.append(judge_device(node, rating))
    settle_costs(ratings, parts, scale_ms)
    settle_scores(ratings, unit_ms)
    return ratings


def derive_device_unit(session_ms: float) -> float:
    return min(DEVICE_UNIT_MS, session_ms / UNITS_IN_A_SESSION)


def settle_costs(ratings: Sequence[NodeRating], parts: Sequence[Sequence[CostPart]], scale_ms: float) -> None:
    """
    A missing part is the median of the others; the last part decides on confidence.

    A node of which nothing is known is a ninth of a session behind the best of
    the others. Pods on their way are added last: when the known nodes fill up,
    the unknown ones are chosen.
    """
    if not parts:
        return
    # Column by column: nearly all parts have confidence 1, and those are plain sums.
    costs = [0.0] * len(parts)
    for column in zip(*parts):
        known_ms = [part.cost_ms for part in column if part.confidence]
        middle_ms = median(known_ms) if known_ms else 0.0
        for place, part in enumerate(column):
            own = part.confidence
            costs[place] += part.cost_ms if own == 1 else own * part.cost_ms + (1 - own) * middle_ms
    best_ms = min((cost for cost, row in zip(costs, parts) if row[-1].confidence), default=None)
    for rating, row, cost_ms in zip(ratings, parts, costs):
        rating.confidence = row[-1].confidence
        if best_ms is not None and not rating.confidence:
            cost_ms = max(cost_ms, best_ms + scale_ms * UNKNOWN_RATIO)  # noqa: PLW2901
        rating.cost_ms = cost_ms + rating.terms.get("arriving", 0.0)


def settle_scores(ratings: Sequence[NodeRating], unit_ms: float) -> None:
    best_ms = min((rating.cost_ms or 0.0 for rating in ratings), default=0.0)
    costs = [rating.cost_ms or 0.0 for rating in ratings]
    for rating, score in zip(ratings, derive_scores(costs, unit_ms, best_ms)):
        rating.score = score


class FpgaPart:
    """The device's part of the cost, for FPGA pods."""

    def __init__(
        self,
        pod: PodRequest,
        cluster: FpgaCluster,
        placed: PlacedPods,
        times: LoadTimes,
        now_ms: int,
        arriving: Mapping[str, Arriving],
    ) -> None:
        self.bitstream = pod.bitstream
        self.now_ms = now_ms
        self._placed = placed
        self.arriving = arriving
        self._load_ms = times.find(pod.bitstream) or times.typical() or RECONFIGURATION_MS
        self._cluster = cluster
        self.session_ms = cluster.session_ms
        self.cold_ms = self._load_ms if pod.bitstream else 0.0
        """What a node costs that does not have the pod's bitstream."""

    def judge(self, node: AnnotatedNode, rating: NodeRating) -> CostPart:
        coming = self.arriving.get(node.name)
        pods = coming.pods if coming else 0.0
        rating.facts["in_flight"] = round(pods, 3)
        if node.fpga is None and node.vendor and node.fpga_reason == NO_STATE:
            return self._unused(rating, pods)
        confidence, reason = 0.0, node.fpga_reason
        if node.fpga is not None:
            confidence, reason = judge_age((self.now_ms - node.fpga.at_ms) / 1000)
        if reason:
            rating.reasons += (reason,)
        if node.fpga is None or not confidence:
            rating.terms["arriving"] = self.price(pods)
            return CostPart()
        recent = node.fpga.recent(self.now_ms)
        # Without past loads: they came of where pods were sent, and a node that has just loaded this
        # pod's bitstream would look busier by what it saves.
        busy = recent.usage_ms / node.fpga.window_ms
        quiet_ms = (1 - self._cluster.single) * self.session_ms * derive_queue(busy)
        load_ms = self.judge_load(node.name, node.fpga, coming, rating.facts)
        rating.facts["busy_ratio"] = busy
        rating.terms["reconfiguration"] = load_ms
        rating.terms["wait"] = quiet_ms
        if pods:
            # Pods on their way are known for sure, however old the annotation is.
            rating.terms["arriving"] = self.price(pods, busy)
        return CostPart(quiet_ms + load_ms, confidence)

    def price(self, pods: float, busy: float = 0.0) -> float:
        """
        The cost of pods on their way, in ms.

        A pod of one session is waited for once; a pod of many sessions keeps
        a share of the device, and makes all later ones wait longer.
        """
        single, share = self._cluster.single, self._cluster.share
        more = derive_queue(busy + pods * share) - derive_queue(busy)
        return self.session_ms * (single * pods + (1 - single) * more)

    def _unused(self, rating: NodeRating, pods: float) -> CostPart:
        rating.reasons += ("no FPGA event yet, and its vendor's label says that it has a device: idle",)
        rating.terms["reconfiguration"] = self.cold_ms
        rating.terms["arriving"] = self.price(pods)
        return CostPart(self.cold_ms, 1.0)

    def judge_load(
        self, node: str, fpga: NodeFpga, coming: Arriving | None, facts: dict[str, float]
    ) -> float:
        """P(cold) * time; nothing for a pod that does not say which bitstream it needs."""
        if not self.bitstream:
            return 0.0
        warm, load_ms = self.find_load(node, fpga, coming)
        facts["warm_ratio"], facts["load_ms"] = warm, load_ms
        return (1 - warm) * load_ms

    def find_load(self, node: str, fpga: NodeFpga, coming: Arriving | None) -> tuple[float, float]:
        """The chance that the pod's bitstream is loaded there, and how long loading it takes."""
        name = self.bitstream
        warm = derive_warm(name, fpga, self._placed.sent(node))
        if coming and name in coming.bitstreams:
            warm = max(warm, KEPT_RATIO ** (len(coming.bitstreams) - 1))
        if not self.is_load_measured(fpga):
            return warm, self._load_ms
        return warm, max(LEAST_LOAD_MS, fpga.bitstreams[name].reconfiguration_ms)

    def is_load_measured(self, fpga: NodeFpga) -> bool:
        """Whether the node itself measured how long the pod's bitstream takes to load."""
        there = fpga.bitstreams.get(self.bitstream)
        return there is not None and is_measured(there.reconfiguration_ms)


def derive_warm(name: str, fpga: NodeFpga, sent: Mapping[str, int]) -> float:
    """
    The chance that a bitstream is still loaded, by how many others came after it.

    From what the node reported and from the pods that were bound there since.
    """
    there = fpga.bitstreams.get(name)
    if not sent:
        return float(KEPT_RATIO ** list(fpga.bitstreams).index(name)) if there else 0.0
    at_ms = max(there.seen_at_ms if there else 0, sent.get(name, 0))
    if not at_ms:
        return 0.0
    later = {other for other, sent_ms in sent.items() if sent_ms > at_ms}
    later |= {other for other, one in fpga.bitstreams.items() if one.seen_at_ms > at_ms}
    later.discard(name)
    return float(KEPT_RATIO ** len(later))


def judge_gpu(
    now_ms: int, arriving: Mapping[str, Arriving], node: AnnotatedNode, rating: NodeRating
) -> CostPart:
    """The device's part of the cost, for GPU pods: how full the GPUs are."""
    coming = arriving.get(node.name)
    pods = coming.pods if coming else 0.0
    ahead = coming.gpus if coming else 0.0
    rating.facts["in_flight"] = round(pods, 3)
    busy = node.load.metrics.get("mean_gpu_util") if node.load else None
    if node.load is None or busy is None:
        rating.reasons += (node.load_reason or "its window has no GPU load",)
        rating.terms["arriving"] = SESSION_MS * derive_queue(ahead)
        return CostPart()
    confidence, reason = judge_age(now_ms / 1000 - node.load.at_seconds)
    if reason:
        rating.reasons += (reason,)
    busy = min(1.0, max(0.0, busy))
    filled = min(1.0, max(0.0, node.load.metrics.get("mean_gpu_mem_util", 0.0)))
    quiet_ms = SESSION_MS * derive_queue(busy)
    rating.facts["gpu_util"] = busy
    rating.terms["wait"] = quiet_ms
    rating.terms["gpu_memory"] = SESSION_MS * GPU_MEMORY * filled
    rating.terms["arriving"] = SESSION_MS * derive_queue(busy + ahead) - quiet_ms
    return CostPart(quiet_ms + rating.terms["gpu_memory"], confidence)


def list_believed(nodes: Sequence[AnnotatedNode], now_ms: int) -> list[Mapping[str, float]]:
    """What the hosts cost of which a window is not stale."""
    return [
        node.host
        for node in nodes
        if node.load is not None and judge_age(now_ms / 1000 - node.load.at_seconds)[0]
    ]


@dataclass(slots=True)
class HostPart:
    """The host's part of the cost: what its last 20 s cost everybody on it."""

    work_ms: float
    now_ms: int
    typical: Mapping[str, float]
    """By cause: what counts where it was not measured."""
    placement: Placement | None = None
    """Of `balance` pods: what they add themselves."""

    def judge(self, node: AnnotatedNode, rating: NodeRating) -> CostPart:
        own = self.placement.judge(node, rating) if self.placement else 0.0
        if node.load is None:
            rating.reasons += (node.load_reason,)
            return CostPart()
        confidence, reason = judge_age(self.now_ms / 1000 - node.load.at_seconds)
        if reason:
            rating.reasons += (f"load: {reason}",)
        rating.host, rating.work_ms = node.host, self.work_ms
        lost = node.host_lost
        if self.typical.keys() - node.host.keys():
            rating.host = self._complete(node, rating)
            lost = sum(rating.host.values())
        return CostPart(self.work_ms * lost + own, confidence)

    def _complete(self, node: AnnotatedNode, rating: NodeRating) -> Mapping[str, float]:
        """With what was not measured: by the node's pods where they are known, else as the others have it."""
        missing = self.typical.keys() - node.host.keys()
        found = {**node.host, **{name: self.typical[name] for name in missing}}
        bus = self.placement.estimate_bus(node) if self.placement and BUS in missing else None
        if bus is not None:
            found[BUS] = FILLING[BUS] * derive_queue(bus)
            rating.reasons += (f"{BUS}: not measured, estimated from what its pods use",)
            missing -= {BUS}
        if missing:
            rating.reasons += (f"{', '.join(sorted(missing))}: not measured, taken as the others' median",)
        return found
