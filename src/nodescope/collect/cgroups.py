"""
The cgroup tree: which hierarchies there are, and what lives in them.

A v2 node has one hierarchy at /sys/fs/cgroup. A v1 node has one per
controller below it; a hybrid node has those and a v2 tree at `unified`, which
carries no controllers but cpu.stat and pressure. They are told apart by what
is there, not by the mount table, which a container may not see.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from nodescope.collect.cgroup_path import is_container_folder
from nodescope.collect.roots import NodeRoot

BASE = "sys/fs/cgroup"
# In the order in which a container's inode is taken: the first that has it.
V1_CONTROLLERS = ("memory", "cpuacct", "cpu", "cpu,cpuacct", "pids", "blkio")
# kubelet nests about six levels deep, kind inside docker ten. Deeper is a loop or an attack.
DEPTH = 16
# What kubelet's tree looks like inside a container that is itself a node (kind).
NODE_IN_CONTAINER = ("kubelet", "kubelet.slice", "kubepods", "kubepods.slice")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted cgroup tree."""

    name: str
    """`v2`, or the v1 controller's name."""
    path: str


@dataclass(slots=True)
class Tree:
    """What one walk of a hierarchy found; paths are relative to it."""

    containers: set[str] = field(default_factory=set)
    services: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    """Folders in which containers may appear: the ones to watch."""


def find_hierarchies(root: NodeRoot) -> tuple[Hierarchy, ...]:
    """v1 controllers first: where both exist, the controllers are theirs."""
    if root.exists(f"{BASE}/cgroup.controllers"):
        return (Hierarchy("v2", BASE),)
    present = set(root.folders(BASE)) | {
        name for name in V1_CONTROLLERS if root.exists(f"{BASE}/{name}/cgroup.procs")
    }
    found = [
        Hierarchy(name, f"{BASE}/{name}")
        for name in V1_CONTROLLERS
        if name in present and root.exists(f"{BASE}/{name}/cgroup.procs")
    ]
    if root.exists(f"{BASE}/unified/cgroup.controllers"):
        found.append(Hierarchy("v2", f"{BASE}/unified"))
    return tuple(found)


def walk_tree(root: NodeRoot, hierarchy: Hierarchy) -> Tree:
    """Every folder down to the containers; inside one only where a node lives in it."""
    tree = Tree()
    _walk(root, hierarchy.path, "", tree, 0)
    return tree


def _walk(root: NodeRoot, base: str, path: str, tree: Tree, depth: int) -> None:
    tree.inner.add(path)
    if depth >= DEPTH:
        return
    for name in root.folders(f"{base}/{path}" if path else base):
        below = f"{path}/{name}" if path else name
        if is_container_folder(name):
            tree.containers.add(below)
            _walk_nested(root, base, below, tree, depth + 1)
            continue
        if is_service(name):
            tree.services.add(below)
        _walk(root, base, below, tree, depth + 1)


def _walk_nested(root: NodeRoot, base: str, path: str, tree: Tree, depth: int) -> None:
    for name in NODE_IN_CONTAINER:
        if root.exists(f"{base}/{path}/{name}"):
            _walk(root, base, f"{path}/{name}", tree, depth + 1)


def is_service(name: str) -> bool:
    """A unit of systemd, or a group somebody made by hand; slices only hold others."""
    return not name.endswith((".slice", ".mount", ".swap")) and not name.startswith("kube")


def member_folders(root: NodeRoot, path: str) -> Iterator[str]:
    """A cgroup and all below it: processes may sit in nested groups."""
    yield path
    for name in root.folders(path):
        yield from member_folders(root, f"{path}/{name}")
