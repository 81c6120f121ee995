"""
Entities: what is measured, named by what cannot change.

A series is a node, an entity's key and a metric. The key is the scope and the
ids: container id and cgroup inode, pid and start time, device, interface.
They cannot change while the entity lives. Names and labels are attributes
that may arrive later; an entity with new labels is a new object with the same
key, and its series goes on. keep.label_columns.identify is the same key in
the columns of the archive.
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
    "device": 4096,
}
SCOPES = tuple(LIMITS)


@dataclass(frozen=True, slots=True)
class Entity:
    """A container, process, disk ... that is measured: a row of a block."""

    scope: str
    ids: tuple[str, ...] = ()
    labels: Labels = ()
    """What is on every published series."""
    details: Labels = ()
    """What is in the scope's info metric and in the archive's own columns."""

    @property
    def key(self) -> tuple[str, ...]:
        """Stable for the entity's life, and no other entity of the node has it."""
        return (self.scope, *self.ids)

    def attribute(self, name: str) -> str | None:
        """A label or detail by name; None when this entity has none."""
        for pairs in (self.labels, self.details):
            for key, value in pairs:
                if key == name:
                    return value
        return None


NODE = Entity("node")
