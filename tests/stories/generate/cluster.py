"""
Workloads, pods and containers as Kubernetes names them, each with what it wants of the node second by second.

A life is one run of one container. Demands are arrays over the seconds of the
life; what the node could give is decided in machine.py.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodescope.base.block import Floats
from nodescope.base.entity import Entity
from nodescope.base.workload import detail_workload, find_workload

MIB = 2.0**20
GIB = 2.0**30
# k8s.io/apimachinery/pkg/util/rand: what generated names are made of.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
Random = np.random.Generator
Course = Callable[[Floats], Floats]
Shape = float | Floats | Course
"""A level, an array over the whole span of the node, or a function of its seconds."""


def suffix(random: Random, length: int = 5) -> str:
    return "".join(random.choice(list(ALPHABET), length))


def digest(*words: object) -> str:
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Workload:
    """What people speak of: a Deployment, a StatefulSet, a CronJob ..."""

    name: str
    kind: str = "Deployment"
    namespace: str = "shop"
    cpu_limit: float = math.inf
    memory_limit: float = math.inf
    cpu_request: float = 0.0
    memory_request: float = 0.0
    image: str = ""

    def image_of(self, version: str) -> str:
        return f"registry.example/{self.image or self.name}:{version}"


@dataclass(slots=True)
class Life:
    """One run of a container: from its first second on the node to its last."""

    workload: Workload
    pod: str
    uid: str
    container_id: str
    image: str
    owner: str
    start: int
    end: int
    """Exclusive, in seconds from the beginning of the span."""
    restarts: int = 0
    is_killed: bool = False
    """By the kernel, for memory."""
    demand: dict[str, Floats] = field(default_factory=dict)
    """cpu in cores; anon, file in bytes; write, read, transmit, receive in bytes a second."""
    used: dict[str, Floats] = field(default_factory=dict)
    """What it got, filled by the machine."""

    @property
    def seconds(self) -> slice:
        return slice(self.start, self.end)

    @property
    def name(self) -> str:
        return f"{self.pod}/{self.workload.name}"

    @property
    def qos(self) -> str:
        work = self.workload
        return "BestEffort" if math.isinf(work.cpu_limit) and math.isinf(work.memory_limit) else "Burstable"

    def entity(self, node: str, *, has_api: bool, names_workloads: bool) -> Entity:
        """
        As the agent has it: without the Kubernetes API neither image nor owner is known.

        An agent of an earlier version does not name workloads.
        """
        path = f"/kubepods.slice/kubepods-pod{self.uid}.slice/cri-containerd-{self.container_id}.scope"
        labels = (
            ("namespace", self.workload.namespace),
            ("pod", self.pod),
            ("container", self.workload.name),
            ("image", self.image if has_api else ""),
            ("id", path),
        )
        details: tuple[tuple[str, str], ...] = (
            ("container_id", self.container_id),
            ("pod_uid", self.uid),
            ("qos", self.qos),
            ("runtime", "containerd"),
            ("name_source", "kube" if has_api else "logs"),
        )
        if has_api:
            app = f"app={self.workload.name}"
            details += (("restarts", str(self.restarts)), ("owner", self.owner), ("labels", app))
            asked = {"cpu_request": self.workload.cpu_request, "memory_request": self.workload.memory_request}
            details += tuple((name, f"{value:.15g}") for name, value in asked.items() if value)
        if names_workloads:
            details += self._workload(node, has_api=has_api)
        return Entity("container", (self.container_id,), labels, details)

    def _workload(self, node: str, *, has_api: bool) -> tuple[tuple[str, str], ...]:
        known = find_workload(
            namespace=self.workload.namespace,
            pod=self.pod,
            container=self.workload.name,
            image=self.image if has_api else "",
            node=node,
            owner=self.owner if has_api else "",
            container_id=self.container_id,
        )
        return detail_workload(known)


def name_pod(random: Random, work: Workload, ordinal: int, template: str, at_minute: int) -> tuple[str, str]:
    """(pod's name, its controller as the API tells it)."""
    if work.kind == "StatefulSet":
        return f"{work.name}-{ordinal}", f"StatefulSet/{work.name}"
    if work.kind == "DaemonSet":
        return f"{work.name}-{suffix(random)}", f"DaemonSet/{work.name}"
    if work.kind == "CronJob":
        job = f"{work.name}-{at_minute}"
        return f"{job}-{suffix(random)}", f"Job/{job}"
    if work.kind == "Job":
        return f"{work.name}-{suffix(random)}", f"Job/{work.name}"
    return f"{work.name}-{template}-{suffix(random)}", f"Deployment/{work.name}"


def spread(shape: Shape, seconds: int) -> Floats:
    """A shape over the whole span."""
    if callable(shape):
        return np.asarray(shape(np.arange(seconds, dtype=np.float64)), np.float64)
    if isinstance(shape, np.ndarray):
        return shape
    return np.full(seconds, float(shape))


Shapes = dict[str, Any]
"""By name of a demand, a Shape."""
