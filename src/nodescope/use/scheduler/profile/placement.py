"""
What it costs to put a pod on a node: what the pod will lose there, and what it takes from the others.

For cores and for the memory bus alike, with q the queue of host_cost and the mean over the
coming hours:

    later      q(busy at that hour) - q(busy now)       by the hours of the node's pods
    own        q(... + the pod's use) - q(...)          by the pod's workload, else its request
    arriving   the same for pods on their way, with their bandwidth
    others     what the pod's use adds to the queue, for each pod that is there

A workload that hardly waits when others do loses less of the CPU's part, and the other way
round (patience). What is not known of a node is the median of those of which it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from nodescope.base.workload.pod_use import HOURS
from nodescope.fpga.node_workloads import MOST_GBPS
from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.host_cost import FILLING, derive_queue
from nodescope.use.scheduler.node import AnnotatedNode
from nodescope.use.scheduler.placed_pods import Arriving, PodSize
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.profile.workload_profiles import (
    WorkloadProfile,
    WorkloadProfiles,
    find_middle,
)
from nodescope.use.scheduler.rating import NodeRating

# How far one looks: a pod that was placed well for some hours may be moved by whoever rolls it out.
COMING_HOURS = 4
# CPU share assumed for a `balance` pod that requests nothing, or of which it is not known; a guess.
BALANCE_SHARE = 0.05
# Cores in use from which on a node's bandwidth for each of them is believed.
LEAST_CORES = 0.5
# GB/s that the memory of a machine can move: what is outside was not measured.
PEAK_BOUNDS = (1.0, 100_000.0)
# Nodes that have measured the bus before the others are judged by it, unless all have: a
# median of fewer is one node's word.
WITNESSES = 3
BUS, CPU = "mem_bw_util", "cpu_util"


class ClusterUse(NamedTuple):
    """What is usual among the nodes that are believed; None where none measures it."""

    peak: float | None = None
    """Of the memory bus, GB/s."""
    bus: float | None = None
    """Share of the peak in use."""
    per_core: float | None = None
    """GB/s for each core in use."""
    pods: float = 0.0


def derive_cluster_use(nodes: Sequence[AnnotatedNode], now_ms: int) -> ClusterUse:
    peaks, buses, per_core, pods, believed = [], [], [], [], 0
    for node in nodes:
        if node.outlook is not None:
            pods.append(node.outlook.pods)
        if node.load is None or not judge_age(now_ms / 1000 - node.load.at_seconds)[0]:
            continue
        believed += 1
        metrics = node.load.metrics
        bus, moved = metrics.get(f"mean_{BUS}"), metrics.get("mean_mem_bw")
        if bus is None or moved is None:
            continue
        buses.append(min(1.0, max(0.0, bus)))
        if peak := find_peak(metrics):
            peaks.append(peak)
        if (cores := metrics.get("mean_cpu_util", 0.0) * metrics.get("cpus", 0.0)) >= LEAST_CORES:
            per_core.append(min(MOST_GBPS, max(0.0, moved) / cores))
    usual = float(median(pods)) if pods else 0.0
    if len(peaks) < min(WITNESSES, believed):
        return ClusterUse(pods=usual)
    return ClusterUse(find_middle(peaks), find_middle(buses), find_middle(per_core), usual)


def find_peak(metrics: Mapping[str, float]) -> float | None:
    """None where it was not measured, or is no peak."""
    bus, moved = min(1.0, metrics.get(f"mean_{BUS}", 0.0)), metrics.get("mean_mem_bw", 0.0)
    peak = moved / bus if bus > 0.001 else 0.0
    return peak if PEAK_BOUNDS[0] <= peak <= PEAK_BOUNDS[1] else None


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What the pod will use in the coming hours."""

    cores: Sequence[float]
    """One for each hour; empty where it is not known."""
    bandwidth: float = 0.0
    """GB/s for each core."""
    patience: float = 1.0
    """What it loses of the CPU's part, beside the usual pod."""
    profile: WorkloadProfile | None = None


def size_pod(profiles: WorkloadProfiles, per_core: float | None, hour: int, pod: PodRequest) -> PodSize:
    """By its workload, else by its request: for pods on their way."""
    demand = derive_demand(pod, profiles, per_core, hour)
    cores = demand.cores[0] if demand.cores else 0.0
    gpu = demand.profile.gpu if demand.profile else None
    return PodSize(cores, cores * demand.bandwidth, PodSize().gpu if gpu is None else gpu)


def derive_demand(
    pod: PodRequest, profiles: WorkloadProfiles, per_core: float | None, hour: int
) -> PodDemand:
    profile = profiles.find(pod.workload) if pod.workload else None
    if profile is None:
        return PodDemand((pod.cores,) * COMING_HOURS if pod.cores else (), per_core or 0.0)
    factor = per_core if profile.bandwidth is None else profile.bandwidth
    return PodDemand(
        [profile.hours[(hour + ahead) % HOURS] for ahead in range(COMING_HOURS)],
        factor or 0.0,
        # Between half and one and a half; who waits in half of the time in which anybody does is usual.
        1.0 if profile.waits is None else 0.5 + profile.waits,
        profile,
    )


class QueueSteps(NamedTuple):
    """What comes on top of the queue that a node has now."""

    later: float = 0.0
    own: float = 0.0
    arriving: float = 0.0
    others: float = 0.0


def derive_steps(now: float, coming: Sequence[float], own: Sequence[float], ahead: float) -> QueueSteps:
    """Shares of what is there: now, at each coming hour, of the pod itself, of pods on their way."""
    count = len(coming)
    alone = sum(map(derive_queue, coming)) / count
    together = [base + more for base, more in zip(coming, own)] if own else coming
    with_own = sum(map(derive_queue, together)) / count if own else alone
    if not ahead:
        return QueueSteps(alone - derive_queue(now), with_own - alone, 0.0, with_own - alone)
    with_ahead = sum(derive_queue(base + ahead) for base in coming) / count
    with_all = sum(derive_queue(base + ahead) for base in together) / count if own else with_ahead
    return QueueSteps(alone - derive_queue(now), with_own - alone, with_all - with_own, with_all - with_ahead)


@dataclass(slots=True)
class Placement:
    """One pod, on any node."""

    work_ms: float
    hour: int
    demand: PodDemand
    arriving: Mapping[str, Arriving]
    cluster: ClusterUse

    def estimate_bus(self, node: AnnotatedNode) -> float | None:
        """The share of the memory bus on a node that does not measure it, by its pods; None where too few are known."""
        if node.outlook is None or not node.outlook.has_bandwidth or not self.cluster.peak:
            return None
        return min(1.0, node.outlook.bandwidth[self.hour] / self.cluster.peak)

    def judge(self, node: AnnotatedNode, rating: NodeRating) -> float:
        """In ms, without pods on their way: those are noted as arriving."""
        metrics = node.load.metrics if node.load else {}
        coming = self.arriving.get(node.name)
        cores, bus = self._step_cores(node, metrics, coming), self._step_bus(node, metrics, coming)
        pods = node.outlook.pods if node.outlook else self.cluster.pods
        others = (pods + (coming.pods if coming else 0.0)) * (cores.others + bus.others) if pods else 0.0
        shares = {"own": cores.own + bus.own, "later": cores.later + bus.later, "others": others}
        shares["patience"] = (self.demand.patience - 1.0) * (
            self._find_waiting(node) + cores.own + cores.later
        )
        price = self.work_ms * FILLING[CPU]
        rating.terms.update({name: price * share for name, share in shares.items() if share})
        if coming:
            rating.facts["in_flight"] = round(coming.pods, 3)
            rating.terms["arriving"] = price * (cores.arriving * self.demand.patience + bus.arriving)
        return price * sum(shares.values())

    def _find_waiting(self, node: AnnotatedNode) -> float:
        """What the host costs by its CPUs, in units of a queue."""
        return (node.host.get("cpu_pressure", 0.0) + node.host.get(CPU, 0.0)) / FILLING[CPU]

    def _step_cores(
        self, node: AnnotatedNode, metrics: Mapping[str, float], coming: Arriving | None
    ) -> QueueSteps:
        cpus = metrics.get("cpus", 0.0)
        busy = min(1.0, max(0.0, metrics.get("mean_cpu_util", 0.0)))
        ahead = coming.share(cpus, BALANCE_SHARE) if coming else 0.0
        if cpus < 1:
            return derive_steps(busy, (busy,), (), ahead)
        hours = self._look_ahead(node.outlook.cores if node.outlook else (), busy, cpus)
        return derive_steps(busy, hours, [min(1.0, one / cpus) for one in self.demand.cores], ahead)

    def _step_bus(
        self, node: AnnotatedNode, metrics: Mapping[str, float], coming: Arriving | None
    ) -> QueueSteps:
        if not self.cluster.peak:
            return QueueSteps()
        peak = find_peak(metrics) or self.cluster.peak
        measured = metrics.get(f"mean_{BUS}")
        busy = self.estimate_bus(node) if measured is None else measured
        busy = self.cluster.bus if busy is None else busy
        if busy is None:
            return QueueSteps()
        busy = min(1.0, max(0.0, busy))
        outlook = node.outlook.bandwidth if node.outlook and node.outlook.has_bandwidth else ()
        hours = self._look_ahead(outlook, busy, peak)
        own = [min(1.0, one * self.demand.bandwidth / peak) for one in self.demand.cores]
        return derive_steps(busy, hours, own, coming.bandwidth / peak if coming else 0.0)

    def _look_ahead(self, outlook: Sequence[float], busy: float, whole: float) -> list[float]:
        """The share at each coming hour: what is measured now, moved by what the hours differ."""
        if not outlook:
            return [busy] * COMING_HOURS
        now = outlook[self.hour]
        hours = (outlook[(self.hour + ahead) % HOURS] for ahead in range(COMING_HOURS))
        return [min(1.5, max(0.0, busy + (one - now) / whole)) for one in hours]
