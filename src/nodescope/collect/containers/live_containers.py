"""
The containers that run now, shared by the sources that need them.

Written by the container source in the tick; read by others from any thread,
as one immutable snapshot.
"""

from dataclasses import dataclass, field

from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import CgroupName


@dataclass(frozen=True, slots=True)
class LiveContainer:
    """One container (or service) as it stands."""

    entity: Entity
    cgroup: CgroupName
    path: str
    """Relative to its hierarchy."""
    folder: str
    """A folder of the node that has its cgroup.procs."""
    pids: tuple[int, ...] = ()


@dataclass(slots=True)
class LiveContainers:
    """The newest snapshot; replaced whole, never changed in place."""

    members: tuple[LiveContainer, ...] = ()
    by_container: dict[str, LiveContainer] = field(default_factory=dict)

    def replace(self, members: tuple[LiveContainer, ...]) -> None:
        self.by_container = {
            member.cgroup.container_id: member for member in members if member.cgroup.container_id
        }
        self.members = members
