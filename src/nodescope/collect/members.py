"""
The processes of each container: how many, and which.

cgroup.procs lists the direct members only; what a container nests below
itself (systemd inside, docker in docker) is found by walking its folder,
which is done every sixth reading. Other sources take their pids from here.
"""

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.collect.batch import Fault, describe_fault
from nodescope.collect.cgroups import member_folders
from nodescope.collect.layout import NAN
from nodescope.collect.roots import Descriptors, NodeRoot

TABLE = Table(
    "container.processes",
    "container",
    ("container", "service"),
    (
        Metric(
            "container.processes",
            "gauge",
            "Processes that run in the container.",
            "container_processes",
            plain="processes",
        ),
    ),
)
WALK_READINGS = 6
# Enough for every container seen; a fork bomb is counted up to here.
PIDS = 32768


class Members:
    """A segment: one row a container, one column: its processes."""

    def __init__(self, root: NodeRoot, descriptors: Descriptors) -> None:
        self.table = TABLE
        self.faults: list[Fault] = []
        self.cost_ns = 0
        self._root = root
        self._descriptors = descriptors
        self._folders: dict[Entity, list[str]] = {}
        self._pids: dict[Entity, tuple[int, ...]] = {}
        self._entities: tuple[Entity, ...] = ()
        self._counts: list[float] = []
        self._readings = 0
        self.version = 0
        """Grows when any container's processes changed."""

    def add(self, entity: Entity, folder: str) -> None:
        self._folders[entity] = [folder]
        self._read_entity(entity, walk=True)

    def remove(self, entity: Entity) -> None:
        self._folders.pop(entity, None)
        self._pids.pop(entity, None)

    def replace(self, old: Entity, new: Entity) -> None:
        self._folders[new] = self._folders.pop(old)
        self._pids[new] = self._pids.pop(old, ())

    def arrange(self, entities: tuple[Entity, ...]) -> None:
        self._entities = entities

    def pids_of(self, entity: Entity) -> tuple[int, ...]:
        return self._pids.get(entity, ())

    def read(self) -> None:
        self.faults = []
        walk = self._readings % WALK_READINGS == 0
        self._readings += 1
        self._counts = [self._read_entity(entity, walk=walk) for entity in self._entities]

    def _read_entity(self, entity: Entity, *, walk: bool) -> float:
        folders = self._folders.get(entity, [])
        if walk and folders:
            folders = self._folders[entity] = list(member_folders(self._root, folders[0]))
        pids: list[bytes] = []
        for folder in folders:
            path = f"{folder}/cgroup.procs"
            try:
                pids += self._root.read(path).split()
            except OSError as error:
                if folder == folders[0]:
                    self.faults.append(describe_fault(path, error))
                    self._pids[entity] = ()
                    return NAN
        found = tuple(int(pid) for pid in pids[:PIDS] if pid.isdigit())
        if found != self._pids.get(entity):
            self._pids[entity] = found
            self.version += 1
        return float(len(pids))

    def block(self, mono_ns: int) -> Block | None:
        values = np.array(self._counts, dtype=np.float64).reshape(len(self._entities), 1)
        return Block(self.table, self._entities, values, mono_ns)

    def close(self) -> None:
        self._folders.clear()
        self._pids.clear()
        self._entities = ()
        self._counts = []
