"""
The cgroup tree: which hierarchies there are, and what lives in them.

A v2 node has one hierarchy at /sys/fs/cgroup. A v1 node has one per
controller below it; a hybrid node has those and a v2 tree at `unified`, which
carries no controllers but cpu.stat and pressure. They are told apart by what
is there, not by the mount table, which a container may not see.
"""

from collections import Counter
from dataclasses import dataclass, field
from sys import intern

from nodescope.collect.containers.cgroup_path import is_container_folder
from nodescope.collect.containers.standing import is_boundary
from nodescope.collect.files.fit import fit
from nodescope.collect.files.roots import NodeRoot

BASE = "sys/fs/cgroup"
# In the order in which a container's inode is taken: the first that has it.
V1_CONTROLLERS = ("memory", "cpuacct", "cpu", "cpu,cpuacct", "pids", "blkio")
# kubelet nests about six levels deep, kind inside docker ten. Deeper is a loop or an attack.
DEPTH = 16
# What kubelet's tree looks like inside a container that is itself a node (kind).
NODE_IN_CONTAINER = frozenset({"kubelet", "kubelet.slice", "kubepods", "kubepods.slice"})
# Folders that are looked into below one container, unit or user: a node of kind
# with kubelet's 110 pods has some 500.
TENANT_FOLDERS = 2000
# The same of all of them together, in one hierarchy.
TENANTS_FOLDERS = 10_000
# Groups that a container nests in itself: systemd inside has some 60, a node of kind 500.
NESTED_FOLDERS = 1024
NESTED_DEPTH = 32
# PATH_MAX of linux/limits.h is 4096; left for the longest file name.
PATH_CHARACTERS = 3800


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted cgroup tree."""

    name: str
    """`v2`, or the v1 controller's name."""
    path: str

    def full(self, path: str) -> str:
        """A folder's path on the node."""
        return f"{self.path}/{path}" if path else self.path


@dataclass(slots=True)
class Tree:
    """What a hierarchy holds; paths are relative to it."""

    containers: set[str] = field(default_factory=set)
    services: set[str] = field(default_factory=set)
    children: dict[str, set[str]] = field(default_factory=dict)
    """The folders in which containers may appear, each with its folders: the ones to watch."""
    tenants: dict[str, str] = field(default_factory=dict)
    """Of what was not made by the node itself: the container, unit or user it is below."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many those are, by tenant."""
    cut: set[str] = field(default_factory=set)
    """Folders of which not all that is below them is looked at."""
    closed: set[str] = field(default_factory=set)
    """Folders that may not be listed: what is below them is not known."""
    owner: int | None = None
    """Whom the top of the hierarchy belongs to."""
    most: int = TENANTS_FOLDERS

    def forget(self, path: str) -> None:
        """A folder and all below it are gone."""
        waiting = [path]
        while waiting:
            gone = waiting.pop()
            names = (*self.children.pop(gone, ()), *NODE_IN_CONTAINER)
            self.containers.discard(gone)
            self.services.discard(gone)
            self.cut.discard(gone)
            self.closed.discard(gone)
            tenant = self.tenants.pop(gone, "")
            if tenant:
                self._uncount(tenant)
            waiting += [below for name in names if self.has(below := join(gone, name))]
        self.children, self.tenants = fit(self.children), fit(self.tenants)
        self.containers, self.services = fit(self.containers), fit(self.services)

    def _uncount(self, tenant: str) -> None:
        self.counts[tenant] -= 1
        if not self.counts[tenant]:
            del self.counts[tenant]

    def has(self, path: str) -> bool:
        return path in self.children or path in self.containers or path in self.services

    def room(self, tenant: str) -> int:
        """How many more folders of a tenant are looked at."""
        return min(TENANT_FOLDERS - self.counts[tenant], self.most - len(self.tenants))

    def cut_tenants(self) -> set[str]:
        """Who has more below him than is looked at."""
        return {self.tenants.get(path, path) for path in self.cut}


def join(path: str, name: str) -> str:
    """One object for the same path of all hierarchies."""
    return intern(f"{path}/{name}") if path else name


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
    tree = Tree(owner=root.owner(hierarchy.path))
    update_folder(root, hierarchy, tree, "")
    return tree


def update_folder(root: NodeRoot, hierarchy: Hierarchy, tree: Tree, path: str) -> list[str]:
    """Bring one folder up to date; the folders that are new below it."""
    fresh: list[str] = []
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        known = tree.children.get(folder)
        if folder and not known:
            fresh.append(folder)
        arrived = _list(root, hierarchy, tree, folder, known or set())
        waiting += [below for name in arrived for below in _add(root, hierarchy, tree, folder, name)]
    return fresh


def _list(root: NodeRoot, hierarchy: Hierarchy, tree: Tree, path: str, known: set[str]) -> list[str]:
    """A folder's folders as they are now; those that are new."""
    tenant = find_tenant(root, hierarchy, tree, path)
    most = max(0, tree.room(tenant)) + len(known) if tenant else None
    found = list(root.folders(hierarchy.full(path), None if most is None else most + 1))
    tree.cut.discard(path)
    is_closed = not found and not root.may_list(hierarchy.full(path))
    (tree.closed.add if is_closed else tree.closed.discard)(path)
    if most is not None and len(found) > most:
        tree.cut.add(path)
        del found[most:]
    names = set(map(intern, found))
    for name in known - names:
        tree.forget(join(path, name))
    tree.children[path] = names
    arrived = sorted(names - known, reverse=True)
    for name in arrived if tenant else ():
        tree.tenants[join(path, name)] = tenant
        tree.counts[tenant] += 1
    return arrived


def find_tenant(root: NodeRoot, hierarchy: Hierarchy, tree: Tree, path: str) -> str:
    """Who decides what is below a folder: a container, a unit, a user; empty for the node itself."""
    if path in tree.tenants or not path:
        return tree.tenants.get(path, "")
    is_own = not is_boundary(path.rpartition("/")[2]) and root.owner(hierarchy.full(path)) == tree.owner
    return "" if is_own else path


def _add(root: NodeRoot, hierarchy: Hierarchy, tree: Tree, parent: str, name: str) -> list[str]:
    """A new folder; what is to be looked into because of it."""
    path = join(parent, name)
    if path.count("/") >= DEPTH or len(path) > PATH_CHARACTERS:
        tree.cut.add(parent)
        return []
    if is_container_folder(name):
        tree.containers.add(path)
        nodes = [join(path, below) for below in find_nodes(root, hierarchy, path)]
        for below in nodes:
            take_node(tree, path, below)
        return nodes
    if is_service(name) and not is_kubelets(path):
        tree.services.add(path)
    return [path]


def take_node(tree: Tree, container: str, path: str) -> None:
    """Kubelet's folder inside a container is that container's affair."""
    tenant = tree.tenants.get(container, container)
    if path not in tree.tenants:
        tree.tenants[path] = tenant
        tree.counts[tenant] += 1


def find_nodes(root: NodeRoot, hierarchy: Hierarchy, path: str) -> list[str]:
    """What is kubelet's inside a container."""
    folder = hierarchy.full(path)
    if root.count_folders(folder) == 0:
        return []
    return sorted(name for name in NODE_IN_CONTAINER if root.exists(f"{folder}/{name}"))


def recount(root: NodeRoot, hierarchy: Hierarchy, tree: Tree) -> list[str]:
    """
    Folders that hold more or fewer folders than we know, without listing any.

    A folder whose file system does not count is left to the next walk.
    """
    wrong = []
    for path, children in tree.children.items():
        count = root.count_folders(hierarchy.full(path))
        if count is not None and count != len(children) and path not in tree.cut:
            wrong.append(path)
    for container in sorted(tree.containers):
        for below in find_nodes(root, hierarchy, container):
            path = join(container, below)
            if path not in tree.children:
                take_node(tree, container, path)
                tree.children[path] = set()
                wrong.append(path)
    return wrong


def is_service(name: str) -> bool:
    """A unit of systemd, or a group somebody made by hand; slices only hold others."""
    return not name.endswith((".slice", ".mount", ".swap"))


def is_kubelets(path: str) -> bool:
    """Inside kubelet's tree: pods and classes of pods are no services."""
    return any(part.startswith(("kubepods", "kubelet-kubepods")) for part in path.split("/"))


@dataclass(frozen=True, slots=True)
class Members:
    """A cgroup and what is below it, as far as that is looked at."""

    folders: tuple[str, ...]
    is_cut: bool = False
    """There are more, or deeper ones."""


def member_folders(root: NodeRoot, path: str, most: int = NESTED_FOLDERS) -> Members:
    """
    A cgroup and those below it: processes may sit in nested groups.

    Who runs in a container may nest without end, so there is a limit to the
    number, the depth and the length of the path.
    """
    found: list[str] = []
    waiting = [(path, 0)]
    is_cut = False
    while waiting:
        folder, depth = waiting.pop()
        found.append(folder)
        if root.count_folders(folder) == 0:
            continue
        room = max(0, most - len(found) - len(waiting)) if depth < NESTED_DEPTH else 0
        if len(folder) > PATH_CHARACTERS:
            is_cut = True
            continue
        names = list(root.folders(folder, room + 1))
        is_cut = is_cut or len(names) > room
        waiting += [(f"{folder}/{name}", depth + 1) for name in sorted(names[:room], reverse=True)]
    return Members(tuple(found), is_cut)
