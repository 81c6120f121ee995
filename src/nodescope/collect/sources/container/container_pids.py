"""
The processes of each container: how many, and which.

cgroup.procs lists the direct members only; what a container nests below
itself (systemd inside, docker in docker) is found by walking its folder,
which is done every sixth reading. Other sources take their pids from here.
A container that nests more than is walked has no count, and a fault says so.

The batch call counts the pids of every folder and gives a check of the list;
the list itself is looked at only when its check has changed.
"""

import numpy as np

from nodescope.base.block import Block, Table, Values
from nodescope.base.entity import Entity
from nodescope.base.errors import ParseError
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.batch import PATH_CHARACTERS, FileFault, FileGrid
from nodescope.collect.files.fit import fit
from nodescope.collect.files.layout import Pids, parse_pids
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.sources.container.cgroup_tree import (
    NESTED_DEPTH,
    NESTED_FOLDERS,
    Members,
    member_folders,
)

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
COUNT, CHECK = 0, 1
LAYOUT = Pids(
    Metric("members.count", "gauge", "Pids in a folder's cgroup.procs."),
    Metric("members.check", "gauge", "A check of which they are."),
)
WALK_READINGS = 6
# Enough for every container seen; a fork bomb is counted up to here.
PIDS = 32768
# Nested groups of all containers together: each costs an open file and a reading.
ALL_NESTED_FOLDERS = 8192
TOO_NESTED = (
    f"nests more than {NESTED_FOLDERS} cgroups, or deeper than {NESTED_DEPTH}, "
    f"or all containers nest more than {ALL_NESTED_FOLDERS}: its processes are not counted"
)


class ContainerPids:
    """A segment: one row a container, one column: its processes."""

    def __init__(self, root: NodeRoot, descriptors: Descriptors) -> None:
        self.table = TABLE
        self.cost_ns = 0
        self._root = root
        # One row a folder; a container has one, unless it nests others.
        inner = Table("container.members", "container", ("container", "service"), LAYOUT.metrics)
        self._grid = FileGrid(inner, (LAYOUT,), root, descriptors, is_rare=True)
        self._folders: dict[Entity, tuple[str, ...]] = {}
        self._nested = 0
        """Groups that containers nest in themselves, all together."""
        self._cut: set[Entity] = set()
        self._pids: dict[Entity, tuple[int, ...]] = {}
        self._entities: tuple[Entity, ...] = ()
        self._owners = np.empty(0, dtype=np.int64)
        """Of every row of the grid: which container it belongs to."""
        self._checks: Values = np.empty(0)
        self._counts: Values = np.empty(0)
        self._readings = 0
        self.version = 0
        """Grows when any container's processes changed."""

    @property
    def faults(self) -> list[FileFault]:
        cut = [FileFault(path, "cut", TOO_NESTED) for path in self.cut_paths()]
        return self._grid.faults + cut

    @faults.setter
    def faults(self, faults: list[FileFault]) -> None:
        self._grid.faults = faults

    def cut_paths(self) -> list[str]:
        """Containers that nest more groups than are walked."""
        return [clean_text(self._folders[entity][0], PATH_CHARACTERS) for entity in self._cut]

    # -- the set ----------------------------------------------------------

    def add(self, entity: Entity, folder: str) -> None:
        self._keep(entity, self._find(folder))
        self._look(entity)

    def _find(self, folder: str, known: int = 1) -> Members:
        """A container's groups, within what is left for all; `known` of them are counted already."""
        left = ALL_NESTED_FOLDERS - self._nested + known
        return member_folders(self._root, folder, max(1, min(NESTED_FOLDERS, left)))

    def _keep(self, entity: Entity, members: Members) -> None:
        known = self._folders.get(entity, ())
        for folder in set(known).difference(members.folders):
            self._grid.remove(name_row(folder))
        for folder in set(members.folders).difference(known):
            self._grid.add(name_row(folder), [(f"{folder}/cgroup.procs", LAYOUT)])
        self._nested += len(members.folders) - (len(known) or 1)
        self._folders[entity] = members.folders
        (self._cut.add if members.is_cut else self._cut.discard)(entity)

    def remove(self, entity: Entity) -> None:
        folders = self._folders.pop(entity, ())
        for folder in folders:
            self._grid.remove(name_row(folder))
        self._nested -= max(0, len(folders) - 1)
        self._cut.discard(entity)
        self._pids.pop(entity, None)
        self._folders, self._pids = fit(self._folders), fit(self._pids)

    def replace(self, old: Entity, new: Entity) -> None:
        self._folders[new] = self._folders.pop(old)
        self._pids[new] = self._pids.pop(old, ())
        if old in self._cut:
            self._cut.remove(old)
            self._cut.add(new)

    def arrange(self, entities: tuple[Entity, ...]) -> None:
        self._entities = entities
        rows = [
            (number, folder)
            for number, entity in enumerate(entities)
            for folder in self._folders.get(entity, ())
        ]
        self._owners = np.array([number for number, _ in rows], dtype=np.int64)
        self._grid.arrange(tuple(name_row(folder) for _, folder in rows))
        # Compared with nothing: every list is looked at once more.
        self._checks = np.full(len(rows), np.nan)

    def pids_of(self, entity: Entity) -> tuple[int, ...]:
        return self._pids.get(entity, ())

    # -- reading ----------------------------------------------------------

    def read(self) -> None:
        if self._readings % WALK_READINGS == 0:
            self._walk()
        self._readings += 1
        self._grid.read()
        self._grid.gone_rows.clear()
        found = self._grid.matrix()
        self._counts = self._sum(found[:, COUNT])
        changed = np.flatnonzero(found[:, CHECK] != self._checks)
        self._checks = found[:, CHECK]
        for number in sorted({int(self._owners[row]) for row in changed}):
            self._look(self._entities[number])

    def _sum(self, counts: Values) -> Values:
        """By container; one whose own list could not be read is not measured."""
        sums: Values = np.zeros(len(self._entities))
        np.add.at(sums, self._owners, np.nan_to_num(counts))
        if len(self._owners):
            _, first = np.unique(self._owners, return_index=True)
            unread = first[np.isnan(counts[first])]
            sums[self._owners[unread]] = np.nan
        if self._cut:
            sums[[number for number, entity in enumerate(self._entities) if entity in self._cut]] = np.nan
        return sums

    def _walk(self) -> None:
        """Folders that a container made or removed inside itself."""
        changed = False
        for entity, known in list(self._folders.items()):
            members = self._find(known[0], len(known))
            if members.folders != known or members.is_cut != (entity in self._cut):
                self._keep(entity, members)
                changed = True
        if changed:
            self.arrange(self._entities)

    def _look(self, entity: Entity) -> None:
        """The list itself."""
        pids: list[int] = []
        for folder in self._folders[entity]:
            try:
                pids += parse_pids(self._root.read(f"{folder}/cgroup.procs"))
            except (OSError, ParseError):
                # What it was is in the grid's faults.
                continue
        found = tuple(pids[:PIDS])
        if found != self._pids.get(entity):
            self._pids[entity] = found
            self.version += 1

    def block(self, mono_ns: int) -> Block | None:
        return Block(self.table, self._entities, self._counts.reshape(-1, 1), mono_ns)

    def close(self) -> None:
        self._grid.close()
        self._folders.clear()
        self._cut.clear()
        self._nested = 0
        self._pids.clear()
        self.arrange(())
        self._counts = np.empty(0)


def name_row(folder: str) -> Entity:
    return Entity("container", (folder,))
