"""
The cgroup tree: which hierarchies there are, and what lives in them.

A v2 node has one hierarchy at /sys/fs/cgroup. A v1 node has one per
controller below it; a hybrid node has those and a v2 tree at `unified`, which
carries no controllers but cpu.stat and pressure. They are told apart by what
is there, not by the mount table, which a container may not see.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from nodescope.collect.containers.cgroup_path import is_container_folder
from nodescope.collect.files.roots import NodeRoot

BASE = "sys/fs/cgroup"
# In the order in which a container's inode is taken: the first that has it.
V1_CONTROLLERS = ("memory", "cpuacct", "cpu", "cpu,cpuacct", "pids", "blkio")
# kubelet nests about six levels deep, kind inside docker ten. Deeper is a loop or an attack.
DEPTH = 16
# What kubelet's tree looks like inside a container that is itself a node (kind).
NODE_IN_CONTAINER = frozenset({"kubelet", "kubelet.slice", "kubepods", "kubepods.slice"})


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted cgroup tree."""

    name: str
    """`v2`, or the v1 controller's name."""
    path: str


@dataclass(slots=True)
class Tree:
    """What a hierarchy holds; paths are relative to it."""

    containers: set[str] = field(default_factory=set)
    services: set[str] = field(default_factory=set)
    children: dict[str, set[str]] = field(default_factory=dict)
    """The folders in which containers may appear, each with its folders: the ones to watch."""

    def forget(self, path: str) -> None:
        """A folder and all below it are gone."""
        self.containers.discard(path)
        self.services.discard(path)
        for name in (*self.children.pop(path, ()), *NODE_IN_CONTAINER):
            below = join(path, name)
            if below in self.children or below in self.containers or below in self.services:
                self.forget(below)


def join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def find_hierarchies(root: NodeRoot) -> tuple[Hierarchy, ...]:
    """v1 controllers first: where both exist, the controllers are theirs."""
    if root.exists(f"{BASE}/cgroup.controllers"):
        return (Hierarchy("v2", BASE),)
    found = [
        Hierarchy(name, f"{BASE}/{name}")
        for name in V1_CONTROLLERS
        if root.exists(f"{BASE}/{name}/cgroup.procs")
    ]
    if root.exists(f"{BASE}/unified/cgroup.controllers"):
        found.append(Hierarchy("v2", f"{BASE}/unified"))
    return tuple(found)


def walk_tree(root: NodeRoot, hierarchy: Hierarchy) -> Tree:
    """Every folder down to the containers; inside one only where a node lives in it."""
    tree = Tree()
    update_folder(root, hierarchy, tree, "")
    return tree


def update_folder(root: NodeRoot, hierarchy: Hierarchy, tree: Tree, path: str) -> list[str]:
    """Bring one folder up to date; the folders that are new below it."""
    found = set(root.folders(f"{hierarchy.path}/{path}" if path else hierarchy.path))
    known = tree.children.get(path, set())
    for name in known - found:
        tree.forget(join(path, name))
    tree.children[path] = found
    fresh = [path] if path and not known else []
    for name in sorted(found - known):
        fresh += _add(root, hierarchy, tree, join(path, name), name)
    return fresh


def _add(root: NodeRoot, hierarchy: Hierarchy, tree: Tree, path: str, name: str) -> list[str]:
    if path.count("/") >= DEPTH:
        return []
    if is_container_folder(name):
        tree.containers.add(path)
        return [
            found
            for below in find_nodes(root, hierarchy, path)
            for found in update_folder(root, hierarchy, tree, join(path, below))
        ]
    if is_service(name) and not is_kubelets(path):
        tree.services.add(path)
    return update_folder(root, hierarchy, tree, path)


def find_nodes(root: NodeRoot, hierarchy: Hierarchy, path: str) -> list[str]:
    """What is kubelet's inside a container."""
    folder = f"{hierarchy.path}/{path}"
    if root.count_folders(folder) == 0:
        return []
    return sorted(NODE_IN_CONTAINER.intersection(root.folders(folder)))


def recount(root: NodeRoot, hierarchy: Hierarchy, tree: Tree) -> list[str]:
    """
    Folders that hold more or fewer folders than we know, without listing any.

    A folder whose file system does not count is left to the next walk.
    """
    wrong = []
    for path, children in tree.children.items():
        count = root.count_folders(f"{hierarchy.path}/{path}" if path else hierarchy.path)
        if count is not None and count != len(children):
            wrong.append(path)
    for container in sorted(tree.containers):
        for below in find_nodes(root, hierarchy, container):
            path = join(container, below)
            if path not in tree.children:
                tree.children[path] = set()
                wrong.append(path)
    return wrong


def is_service(name: str) -> bool:
    """A unit of systemd, or a group somebody made by hand; slices only hold others."""
    return not name.endswith((".slice", ".mount", ".swap"))


def is_kubelets(path: str) -> bool:
    """Inside kubelet's tree: pods and classes of pods are no services."""
    return any(part.startswith(("kubepods", "kubelet-kubepods")) for part in path.split("/"))


def member_folders(root: NodeRoot, path: str) -> Iterator[str]:
    """A cgroup and all below it: processes may sit in nested groups."""
    yield path
    if root.count_folders(path) == 0:
        return
    for name in sorted(root.folders(path)):
        yield from member_folders(root, f"{path}/{name}")
