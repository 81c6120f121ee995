"""
The roster: which containers there are now, shared by the sources that need it.

Written by the container source in the tick; read by others from any thread,
as one immutable snapshot.
"""

from dataclasses import dataclass, field

from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import CgroupName


@dataclass(frozen=True, slots=True)
class Member:
    """One container (or service) as it stands."""

    entity: Entity
    cgroup: CgroupName
    path: str
    """Relative to its hierarchy."""
    folder: str
    """A folder of the node that has its cgroup.procs."""
    pids: tuple[int, ...] = ()


@dataclass(slots=True)
class Roster:
    """The newest snapshot; replaced whole, never changed in place."""

    members: tuple[Member, ...] = ()
    by_container: dict[str, Member] = field(default_factory=dict)

    def replace(self, members: tuple[Member, ...]) -> None:
        self.by_container = {
            member.cgroup.container_id: member for member in members if member.cgroup.container_id
        }
        self.members = members
