"""
Entities and the one function that names a series.

A series is (node, scope, ids). Ids are what cannot change while the thing
lives: container id and cgroup inode, pid and start time, device, interface.
Names and labels are attributes that may arrive later; an entity with new
labels is a new object with the same key, and its series goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]

# How many live series of a scope are kept unless settings say otherwise.
# A large Kubernetes node runs 250 pods, a dense one 1,000; 5,000 containers
# is where the ring's memory, not this number, becomes the limit.
LIMITS: Mapping[str, int] = {
    "node": 1,
    "cpu": 4096,
    "disk": 512,
    "filesystem": 512,
    "network": 1024,
    "pressure": 16,
    "process": 200,
    "service": 1000,
    "pod": 5000,
    "container": 5000,
    "gpu": 512,
    "fpga": 64,
    "pcm": 4096,
}
SCOPES = tuple(LIMITS)


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that is measured: a row of a block."""

    scope: str
    ids: tuple[str, ...] = ()
    labels: Labels = ()
    """What is on every published series."""
    details: Labels = ()
    """What is in the scope's info metric and in the archive's own columns."""

    @property
    def key(self) -> str:
        """The part of a series' name that the entity gives, stable for its life."""
        return "/".join((self.scope, *self.ids))

    def attribute(self, name: str) -> str | None:
        """A label or detail by name; None when this entity has none."""
        for key, value in (*self.labels, *self.details):
            if key == name:
                return value
        return None


NODE = Entity("node")


def series_id(node: str, entity: Entity, metric_name: str) -> str:
    """
    The one name of a series everywhere: node, scope, ids, metric.

    forall a, b: series_id(a) == series_id(b) iff node, scope, ids and metric
    are equal: the separator is escaped inside the parts.
    """
    parts = (node, entity.scope, *entity.ids, metric_name)
    return "|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts)
