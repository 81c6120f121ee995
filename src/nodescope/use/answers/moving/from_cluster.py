"""
The state of nodes from the Kubernetes API: what agents write about them, and where pods are.

Agents have to write `window` and `workloads`. One read of nodes, Leases and pods; nothing is
watched, nothing is written. Without the right to one of them, what it would tell is not known.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesRefused
from nodescope.base.workload.pod_use import PodUse
from nodescope.fpga.node_lease import LEASE_LABEL, find_leased_node, path_leases
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad
from nodescope.fpga.node_workloads import WORKLOADS_KEY
from nodescope.kube.client import Client
from nodescope.kube.resource_quantity import parse_resource
from nodescope.kube.watch import ListPages
from nodescope.use.answers.moving.node_state import NodeState, RunningPod
from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.node import parse_uses, parse_window
from nodescope.use.scheduler.pod_request import add_cores, name_workload, read_mapping, read_text

LIVING = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
# What a new pod would not tolerate, for all that is known here.
TAINTED = ("NoSchedule", "NoExecute")


@dataclass(slots=True)
class ToldNode:
    """What an agent tells of its node; the newer of Lease and Node."""

    load: NodeLoad | None = None
    uses: Mapping[str, PodUse] = field(default_factory=dict)
    uses_at: float = 0.0
    has_uses: bool = False

    def take(self, annotations: Mapping[str, Any]) -> None:
        load, _ = parse_window(annotations.get(WINDOW_KEY))
        if load is not None and (self.load is None or load.at_seconds >= self.load.at_seconds):
            self.load = load
        told = parse_uses(annotations.get(WORKLOADS_KEY))
        if told is not None and told.at_seconds >= self.uses_at:
            self.uses, self.uses_at, self.has_uses = told.uses, told.at_seconds, True


@dataclass(slots=True)
class ClusterStates:
    """Reads a cluster once."""

    client: Client
    namespace: str
    """Where agents have their Leases."""
    clock: Clock
    unread: list[str] = field(default_factory=list)
    """What could not be read, in the server's words."""

    def read(self) -> list[NodeState]:
        """KubernetesRefused where not even nodes and pods may be read."""
        nodes = list(ListPages(self.client, "/api/v1/nodes", {}).items())
        told: dict[str, ToldNode] = defaultdict(ToldNode)
        for item in nodes:
            about = read_mapping(item, "metadata")
            told[read_text(about, "name")].take(read_mapping(about, "annotations"))
        for item in self._read_leases():
            about = read_mapping(item, "metadata")
            if name := find_leased_node(read_text(about, "name")):
                told[name].take(read_mapping(about, "annotations"))
        pods: dict[str, list[RunningPod]] = defaultdict(list)
        requested: Counter[str] = Counter()
        for pod in ListPages(self.client, "/api/v1/pods", LIVING).items():
            node = read_text(read_mapping(pod, "spec"), "nodeName")
            requested[node] += add_cores(pod)  # type: ignore[assignment]
            pods[node].append(derive_pod(pod, told[node].uses))
        now_seconds = self.clock.wall_ns() / 1e9
        return [
            derive_node(item, told[name], pods[name], requested[name], now_seconds)
            for item in nodes
            if (name := read_text(read_mapping(item, "metadata"), "name"))
        ]

    def _read_leases(self) -> Iterable[Mapping[str, Any]]:
        query = {"labelSelector": f"{LEASE_LABEL}=true"}
        try:
            return list(ListPages(self.client, path_leases(self.namespace), query).items())
        except KubernetesRefused as error:
            self.unread.append(f"the Leases of nodes in namespace {self.namespace}: {error}")
            return ()


def derive_node(
    item: Mapping[str, Any], told: ToldNode, pods: list[RunningPod], requested: float, now_seconds: float
) -> NodeState:
    about, spec, status = (read_mapping(item, key) for key in ("metadata", "spec", "status"))
    room = read_mapping(status, "allocatable")
    unknown, metrics = [], {}
    if told.load is None:
        unknown.append("its agent writes no window (--annotate window)")
    else:
        confidence, reason = judge_age(now_seconds - told.load.at_seconds)
        if confidence:
            metrics = dict(told.load.metrics)
        else:
            unknown.append(reason)
    if not told.has_uses:
        unknown.append("its agent does not tell what workloads use (--annotate workloads)")
    cores = metrics.get("cpus") or parse_resource(room.get("cpu", "0")) or None
    memory = parse_resource(read_mapping(status, "capacity").get("memory", "0")) or None
    util, filled = metrics.get("mean_cpu_util"), metrics.get("mean_mem_util")
    allocatable = parse_resource(room.get("cpu", "0"))
    return NodeState(
        read_text(about, "name"),
        cores,
        None if util is None or not cores else util * cores,
        metrics.get("mean_cpu_contention", metrics.get("mean_cpu_pressure")),
        None,
        memory,
        None if filled is None or not memory else filled * memory,
        metrics.get("mean_mem_pressure"),
        metrics.get("mean_io_pressure"),
        metrics.get("mean_mem_bw_util"),
        tuple(pods),
        find_refusal(spec),
        None if not allocatable else allocatable - requested,
        {key: str(value) for key, value in read_mapping(about, "labels").items()},
        tuple(unknown),
    )


def find_refusal(spec: Mapping[str, Any]) -> str:
    if spec.get("unschedulable"):
        return "it is cordoned"
    taints = spec.get("taints")
    held = [one for one in (taints if isinstance(taints, list) else ()) if isinstance(one, Mapping)]
    return "it has a taint" if any(one.get("effect") in TAINTED for one in held) else ""


def derive_pod(pod: Mapping[str, Any], uses: Mapping[str, PodUse]) -> RunningPod:
    about, spec = read_mapping(pod, "metadata"), read_mapping(pod, "spec")
    full = name_workload(about)
    use = uses.get(full)
    cores = use.cores if use is not None and use.pods else None
    bandwidth = None if use is None or use.bandwidth is None or cores is None else use.bandwidth * cores
    selector = read_mapping(spec, "nodeSelector")
    return RunningPod(
        read_text(about, "namespace"),
        full.partition("/")[2],
        find_kind(about),
        read_text(about, "name"),
        cores,
        None,
        bandwidth,
        add_cores(pod),
        tuple((key, str(value)) for key, value in selector.items()),
        find_obstacle(spec),
    )


def find_kind(about: Mapping[str, Any]) -> str:
    """Of the controller that would start another pod; empty where there is none."""
    owners = about.get("ownerReferences")
    held = [one for one in (owners if isinstance(owners, list) else ()) if isinstance(one, Mapping)]
    return next((read_text(one, "kind") for one in held if one.get("controller")), "")


def find_obstacle(spec: Mapping[str, Any]) -> str:
    affinity, volumes = read_mapping(spec, "affinity"), spec.get("volumes")
    if affinity.get("nodeAffinity") or affinity.get("podAffinity") or affinity.get("podAntiAffinity"):
        return "it has rules of affinity, which are not judged here"
    if spec.get("resourceClaims"):
        return "it has devices of its node"
    held = [one for one in (volumes if isinstance(volumes, list) else ()) if isinstance(one, Mapping)]
    if any("persistentVolumeClaim" in one for one in held):
        return "it has a volume that may belong to its node"
    if read_text(spec, "priorityClassName").startswith("system-"):
        return "it is of the system"
    return ""
