"""
Who a series is of, in OpenTelemetry's words: a resource, and the attributes of its points.

A container, a pod and a process is a resource of its own; cores, disks,
interfaces, GPUs and file systems are attributes of the node's series.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodescope.base.entity import Entity, Labels

# Our label or detail -> the convention's attribute.
RESOURCES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "container": (
        ("container_id", "container.id"),
        ("image", "container.image.name"),
        ("runtime", "container.runtime.name"),
        ("container", "k8s.container.name"),
        ("restarts", "k8s.container.restart_count"),
        ("pod", "k8s.pod.name"),
        ("pod_uid", "k8s.pod.uid"),
        ("namespace", "k8s.namespace.name"),
    ),
    "pod": (("pod", "k8s.pod.name"), ("pod_uid", "k8s.pod.uid"), ("namespace", "k8s.namespace.name")),
    "process": (
        ("pid", "process.pid"),
        ("name", "process.executable.name"),
        ("container_id", "container.id"),
        ("container", "k8s.container.name"),
        ("pod", "k8s.pod.name"),
        ("pod_uid", "k8s.pod.uid"),
        ("namespace", "k8s.namespace.name"),
    ),
}
# What a resource says already, or what only one tool understands.
UNSAID = frozenset({"id", "name_source", "started", "sandbox"})
POINTS: Mapping[str, Mapping[str, str]] = {
    "cpu": {"cpu": "cpu.logical_number"},
    "disk": {"device": "system.device"},
    "network": {"device": "network.interface.name"},
    "pod": {"interface": "network.interface.name"},
    "filesystem": {
        "device": "system.device",
        "mountpoint": "system.filesystem.mountpoint",
        "fstype": "system.filesystem.type",
    },
    "gpu": {"uuid": "hw.id", "vendor": "hw.vendor", "name": "hw.model", "serial": "hw.serial_number"},
}
# Attributes that the conventions count, and do not name.
NUMBERS = frozenset({"process.pid", "cpu.logical_number", "k8s.container.restart_count"})


@dataclass(frozen=True, slots=True)
class Whose:
    """Where an entity's points belong."""

    resource: Labels
    """Empty for the node itself."""
    points: Labels
    """Attributes of every point, in the conventions' words."""
    labels: Labels
    """The same under names that are not theirs: our labels, as they stand on /metrics."""

    @property
    def is_kubernetes(self) -> bool:
        return any(name == "k8s.pod.uid" for name, _ in self.resource)


def find_whose(entity: Entity) -> Whose:
    resource = tuple(list_resource(entity))
    said = {name for name, _ in RESOURCES.get(entity.scope, ())} | UNSAID if resource else set()
    points = tuple(
        (words, value)
        for name, words in POINTS.get(entity.scope, {}).items()
        if (value := entity.attribute(name))
    )
    if entity.scope == "gpu":
        points = (("hw.type", "gpu"), *points)
    return Whose(resource, points, tuple(pair for pair in entity.labels if pair[0] not in said and pair[1]))


def list_resource(entity: Entity) -> Iterator[tuple[str, str]]:
    """What is not known is left out."""
    for name, words in RESOURCES.get(entity.scope, ()):
        if value := entity.attribute(name):
            yield words, value
    if entity.scope == "service":
        yield "nodescope.cgroup", entity.attribute("id") or "/".join(entity.ids)


def describe_node(node: str, cluster: str) -> Labels:
    """On every resource: whose machine it is, and who says so."""
    named = [
        ("service.name", "nodescope"),
        ("service.instance.id", node),
        ("host.name", node),
        ("k8s.node.name", node),
        ("os.type", "linux"),
    ]
    if cluster:
        named.append(("k8s.cluster.name", cluster))
    return tuple(named)
