"""Who runs on the node: workloads, and the lives of their containers."""

import hashlib
import math
from dataclasses import dataclass, field

import numpy as np

from bench.judge_nodes.shapes import Random
from nodescope.base.block import Floats
from nodescope.base.entity import Entity
from nodescope.base.workload import detail_workload, find_workload

LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def mark(*words: object) -> str:
    return hashlib.blake2b("|".join(map(str, words)).encode(), digest_size=32).hexdigest()


def suffix(random: Random, length: int) -> str:
    return "".join(LETTERS[int(place)] for place in random.integers(0, len(LETTERS), length))


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    namespace: str
    kind: str = "Deployment"
    cpu_limit: float = math.inf
    memory_limit: float = math.inf
    weight: float = 1.0
    """Of the CPU where it is short: the request in cores; 0.002 has who asked for nothing."""


@dataclass(slots=True)
class Life:
    """One run of one container, with what it wants every ten seconds."""

    work: Workload
    pod: str
    owner: str
    uid: str
    start: int
    end: int
    """Exclusive; beyond the node's span for one that goes on."""
    cpu: Floats
    anon: Floats
    cache: Floats
    """Page cache that it would fill if there were room."""
    reads: Floats
    writes: Floats
    bursts: float = 0.3
    """How uneven its CPU is from one tenth of a second to the next: a deviation of the logarithm."""
    awake: float = 1.0
    """In which share of the time any of its tasks runs: only then the kernel counts periods of its quota."""
    restarts: int = 0
    is_killed: bool = False
    """For memory, at its end."""
    child_killed: tuple[int, ...] = ()
    """Steps of the life at which one of its processes was killed for memory, and not the first."""
    got: dict[str, Floats] = field(default_factory=dict)
    """What the machine gave, and made it wait."""

    @property
    def container_id(self) -> str:
        return mark("container", self.uid, self.restarts, self.start)

    @property
    def seconds_alive(self) -> float:
        return (self.end - self.start) * 10.0

    def entity(self, node: str, *, has_api: bool) -> Entity:
        work = self.work
        uid, identity = self.uid, self.container_id
        path = f"/kubepods.slice/kubepods-burstable.slice/pod{uid}/cri-containerd-{identity}.scope"
        image = f"registry.example/{work.namespace}/{work.name}:v1" if has_api else ""
        labels = (
            ("namespace", work.namespace),
            ("pod", self.pod),
            ("container", work.name),
            ("image", image),
            ("id", path),
        )
        details: tuple[tuple[str, str], ...] = (
            ("container_id", identity),
            ("pod_uid", uid),
            ("qos", "BestEffort" if work.weight < 0.01 else "Burstable"),
            ("runtime", "containerd"),
            ("name_source", "kube" if has_api else "logs"),
        )
        if has_api:
            details += (("restarts", str(self.restarts)), ("owner", self.owner))
            details += (("cpu_request", f"{work.weight:.6g}"),) if work.weight >= 0.01 else ()
        known = find_workload(
            namespace=work.namespace,
            pod=self.pod,
            container=work.name,
            image=image,
            node=node,
            owner=self.owner if has_api else "",
            container_id=identity,
        )
        return Entity("container", (identity,), labels, details + detail_workload(known))


def name_pod(random: Random, work: Workload, ordinal: int, template: str, minute: int) -> tuple[str, str]:
    """(name of the pod, its owner as the API has it)."""
    if work.kind == "StatefulSet":
        return f"{work.name}-{ordinal}", f"StatefulSet/{work.name}"
    if work.kind == "DaemonSet":
        return f"{work.name}-{suffix(random, 5)}", f"DaemonSet/{work.name}"
    if work.kind == "CronJob":
        return f"{work.name}-{minute}-{suffix(random, 5)}", f"Job/{work.name}-{minute}"
    if work.kind == "Job":
        return f"{work.name}-{suffix(random, 5)}", f"Job/{work.name}"
    return f"{work.name}-{template}-{suffix(random, 5)}", f"Deployment/{work.name}"


def stretch(value: Floats | float, count: int) -> Floats:
    if isinstance(value, np.ndarray):
        return np.maximum(value[:count], 0.0)
    return np.full(count, float(value))
