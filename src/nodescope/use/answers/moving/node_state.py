"""
Nodes and their pods in figures, as far as they were measured: what advice about moving pods is made of.

None is what nobody measured. It is neither idle nor busy: a node without a
figure is neither left nor moved to because of it, and the answer says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# Whose controller starts another pod, on a node that a scheduler chooses.
MOVABLE = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
FIXED = {
    "DaemonSet": "a DaemonSet has one pod on every node",
    "Job": "a pod of a Job begins its work anew",
    "CronJob": "a pod of a CronJob ends by itself",
    "Node": "a static pod belongs to its node",
}
NOBODY = "nobody is known to start it anew"
# Of the nodes of which the same is not known.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class RunningPod:
    """One pod of a workload, or one of several alike."""

    namespace: str
    workload: str
    kind: str
    name: str = ""
    """Empty where only the workload is known."""
    cores: float | None = None
    memory_bytes: float | None = None
    bandwidth: float | None = None
    """GB/s."""
    requested: float | None = None
    """Cores that it requests, where its specification was read."""
    selector: tuple[tuple[str, str], ...] = ()
    """Labels that its node must have."""
    obstacle: str = ""
    """Why it stays, beyond its kind."""

    @property
    def full_name(self) -> str:
        workload = f"{self.namespace}/{self.workload}" if self.namespace else self.workload
        return f"{workload} ({self.name})" if self.name else workload

    @property
    def fixed(self) -> str:
        """Why it cannot be moved; empty where it can."""
        return self.obstacle or ("" if self.kind in MOVABLE else FIXED.get(self.kind, NOBODY))


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node over the span that was looked at."""

    name: str
    cores: float | None = None
    used_cores: float | None = None
    contention: float | None = None
    """Share of time in which some task waited for a CPU."""
    throttled: float | None = None
    """The largest share of time in which a quota held one of its containers back; 0 where none did."""
    memory_bytes: float | None = None
    used_bytes: float | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    bus: float | None = None
    """Share of the memory bandwidth in use."""
    pods: tuple[RunningPod, ...] = ()
    refuses: str = ""
    """Why no pod may be moved there, such as a cordon."""
    unrequested: float | None = None
    """Cores that no pod has requested."""
    labels: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    """What is not known of it, in words."""

    @property
    def busy(self) -> float | None:
        """Share of its cores in use."""
        return self.used_cores / self.cores if self.cores and self.used_cores is not None else None

    @property
    def filled(self) -> float | None:
        """Share of its memory in use."""
        return (
            self.used_bytes / self.memory_bytes if self.memory_bytes and self.used_bytes is not None else None
        )


def list_unknown(nodes: Sequence[NodeState]) -> list[str]:
    """In words; what is the same of several nodes is one line."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        for words in describe_unknown(node):
            found.setdefault(words, []).append(node.name)
    lines = [f"{name_some(names)}: {words}" for words, names in found.items()]
    if nodes and all(node.bus is None for node in nodes):
        lines.append("how full memory buses are was measured on none of the nodes")
    return lines


def describe_unknown(node: NodeState) -> Iterator[str]:
    figures = (
        ("its CPU use", node.busy),
        ("how long tasks wait for CPUs", node.contention),
        ("its memory use", node.filled),
    )
    missing = [word for word, value in figures if value is None]
    if missing:
        yield f"{', '.join(missing)} was not measured"
    yield from node.unknown
    unsized = sum(pod.cores is None for pod in node.pods)
    if unsized:
        yield f"what {unsized} of its {len(node.pods)} pods use is not known"


def name_some(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMED
    return f"{', '.join(names[:MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''}"
