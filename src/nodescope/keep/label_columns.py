"""
From an entity to the label columns of the archive, and which of them distinguish series.

A row of the archive carries its series as plain columns; what does not apply
is null. IDENTITY are the columns that cannot change while the entity lives;
the rest are names that may arrive later and are then set on all rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from nodescope.base.entity import Entity

# The order of the columns in a file; the first five are fixed by the seed.
LABELS = (
    "l_container_id",
    "l_pod_name",
    "l_namespace",
    "l_qos_class",
    "l_node_name",
    "l_container_name",
    "l_pod_uid",
    "l_device",
    "l_pid",
    "l_process_start",
    "l_gpu",
    "l_cpu",
    "l_scope",
    "l_service",
)
IDENTITY = (
    "l_container_id",
    "l_scope",
    "l_pod_uid",
    "l_device",
    "l_pid",
    "l_process_start",
    "l_gpu",
    "l_cpu",
    "l_service",
)
# Which column an entity's ids go to, in their order. An inode is no column:
# a container id does not come twice, and a service that comes back goes on.
ID_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "container": ("l_container_id",),
    "service": ("l_service",),
    "pod": ("l_pod_uid", "l_device"),
    "process": ("l_pid", "l_process_start"),
    "cpu": ("l_cpu",),
    "disk": ("l_device",),
    "filesystem": ("l_device",),
    "network": ("l_device",),
    "gpu": ("l_gpu", "l_device"),
    "pressure": ("l_device",),
    "fpga": ("l_device",),
    "pcm": ("l_device",),
}
# An inode adds nothing to these ids. In other scopes the remaining ids go
# into the last column, joined: a GPU's part, a zone of a package.
SHORTER = frozenset({"container", "service", "process", "pod", "cpu"})
ATTRIBUTES = {
    "l_pod_name": "pod",
    "l_namespace": "namespace",
    "l_qos_class": "qos",
    "l_container_name": "container",
    "l_pod_uid": "pod_uid",
    "l_container_id": "container_id",
}

Labels = tuple[str | None, ...]
Identity = tuple[str, ...]
_PLACES = {name: place for place, name in enumerate(LABELS)}
_SCOPE = _PLACES["l_scope"]
# A scope without a row of its own is distinguished by one id.
OTHER_COLUMNS = ("l_device",)


def label_entity(entity: Entity, node: str) -> Labels:
    """The label columns of an entity, in the order of LABELS."""
    found: dict[str, str | None] = {"l_scope": entity.scope, "l_node_name": node}
    attributes = {**dict(entity.labels), **dict(entity.details)}
    for column, attribute in ATTRIBUTES.items():
        found[column] = attributes.get(attribute) or None
    columns = ID_COLUMNS.get(entity.scope, OTHER_COLUMNS)
    ids = entity.ids
    if entity.scope not in SHORTER and len(ids) > len(columns):
        ids = (*ids[: len(columns) - 1], "/".join(ids[len(columns) - 1 :]))
    found.update(zip(columns, ids))
    return tuple(found.get(name) for name in LABELS)


@lru_cache(maxsize=64)
def _identity_places(scope: str | None) -> tuple[int, ...]:
    """For each column of IDENTITY its place in LABELS, or -1 where the scope does not use it."""
    used = {"l_scope", *ID_COLUMNS.get(scope or "", OTHER_COLUMNS)}
    return tuple(LABELS.index(name) if name in used else -1 for name in IDENTITY)


@lru_cache(maxsize=4096)
def identify(labels: Labels) -> Identity:
    """
    What is the same in every file for one series; also its place in the order of rows.

    A process belongs to a container, but the container is not part of its
    identity: its name may arrive later, and the series goes on.
    """
    return tuple((labels[place] or "") if place >= 0 else "" for place in _identity_places(labels[_SCOPE]))


@dataclass(slots=True)
class Subject:
    """A container, process, disk ... that has rows in a file: its labels and details."""

    labels: Labels
    details: dict[str, str] = field(default_factory=dict)
    """Image, runtime, restarts and the like: in the sidecar, not in rows."""
    first_ms: int = 0
    last_ms: int = 0

    @property
    def identity(self) -> Identity:
        return identify(self.labels)

    def label(self, name: str) -> str | None:
        return self.labels[_PLACES[name]]

    def learn(self, other: "Subject") -> None:
        """The same entity in another file: newer names win, what they do not have stays."""
        if other.first_ms >= self.first_ms:
            newer, older = other, self
        else:
            newer, older = self, other
        self.labels = tuple(new or old for new, old in zip(newer.labels, older.labels))
        self.details = {**older.details, **newer.details}
        self.first_ms, self.last_ms = min(self.first_ms, other.first_ms), max(self.last_ms, other.last_ms)


def learn_subject(found: dict[Identity, Subject], identity: Identity, subject: Subject) -> None:
    there = found.setdefault(identity, subject)
    if there is not subject:
        there.learn(subject)


# Sets of processes change every second and contain mostly the same entities.
@lru_cache(maxsize=65_536)
def _known_entity(entity: Entity, node: str) -> tuple[Labels, Identity, dict[str, str]]:
    labels = label_entity(entity, node)
    named = set(ATTRIBUTES.values())
    details = {key: value for key, value in (*entity.labels, *entity.details) if value and key not in named}
    return labels, identify(labels), details


def identify_entity(entity: Entity, node: str) -> Identity:
    return _known_entity(entity, node)[1]


def describe_entity(entity: Entity, node: str, time_ms: int) -> Subject:
    labels, _, details = _known_entity(entity, node)
    return Subject(labels, dict(details), time_ms, time_ms)
