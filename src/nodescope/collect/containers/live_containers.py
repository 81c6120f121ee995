"""
The containers that run now, shared by the sources that need them.

Written by the container source in the tick; read by others from any thread,
as one immutable snapshot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import NOTHING, CgroupName, find_container, parse_cgroup_path
from nodescope.collect.containers.standing import Standing, judge_path


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
    networks: Mapping[str, tuple[int, LiveContainer]] = field(default_factory=dict)
    """The process that stands for the network of each pod that has its own, and a container of the pod."""
    most: int | None = None
    """Containers that are sampled at the most, while memory is short."""
    version: int = 0
    """Grows when a container came, went or was named anew; not when its processes changed."""

    def limit(self, most: int | None) -> None:
        self.most = most

    def replace(self, members: tuple[LiveContainer, ...]) -> None:
        if [(one.path, one.entity) for one in members] != [(one.path, one.entity) for one in self.members]:
            self.version += 1
        self.by_container = {
            member.cgroup.container_id: member for member in members if member.cgroup.container_id
        }
        self.members = members

    def find(self, path: str) -> LiveContainer | None:
        """
        The innermost container that a process is in, by its path in /proc/PID/cgroup.

        An id in the path is a claim only: the container of that id must stand
        at this very place. In a cgroup namespace of our own the path begins
        with `..` and lacks what we have in common with the process.
        """
        parts = [part for part in path.split("/") if part and part != ".."]
        for end in range(len(parts), 0, -1):
            member = self.by_container.get(find_container(parts[end - 1]))
            if member and member.path.endswith("/".join(parts[:end])):
                return member
        return None

    def identify(self, path: str) -> tuple[CgroupName, LiveContainer | None]:
        """What a process' path says, as far as it is believed; and the container, if the tick has met it."""
        member = self.find(path)
        if member:
            return member.cgroup, member
        is_believed = judge_path(path.strip("/")) is Standing.NODE
        return (parse_cgroup_path(path) if is_believed else NOTHING), None
