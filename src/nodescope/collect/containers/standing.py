"""
How far a cgroup's path is believed when it says which container it is.

A folder's name is a claim: whoever may make cgroups can call one by another
container's id. What counts is where it stands, and who owns the folders above it:

    node        below kubelet's root, or where a runtime puts its containers, and
                every folder above belongs to root
    elsewhere   root made it somewhere else on the node: a cgroup parent of one's own
    nested      inside a container, or inside a unit of systemd: who runs there made it
    delegated   in a user's slice, or below a folder that another user owns

Only the node's own are given the names that kubelet and the API server know.
All are measured, but one that claims a container or a pod that a more
trustworthy path has is refused (`sources.container.claims`).
"""

import re
from collections.abc import Iterable
from enum import IntEnum

from nodescope.collect.containers.cgroup_path import is_container_folder
from nodescope.collect.files.roots import NodeRoot

# Where kubelet's pods are unless kubelet says otherwise: at the top, and so on a node of kind.
KUBELET_ROOTS = ("kubepods", "kubepods.slice", "kubelet/kubepods", "kubelet.slice/kubelet-kubepods.slice")
# Folders whose direct children are a runtime's containers.
RUNTIME_ROOTS = frozenset({"docker", "libpod_parent", "system.slice", "machine.slice"})
# Runtimes whose driver was told one thing and kubelet another put containers into their own unit.
RUNTIME_SERVICES = frozenset({"containerd.service", "docker.service", "crio.service"})
_USER = re.compile(r"user-\d+\.slice|user@\d+\.service")


class Standing(IntEnum):
    """The smaller is believed before the larger."""

    NODE = 0
    ELSEWHERE = 1
    NESTED = 2
    DELEGATED = 3


def judge_path(path: str, kubelet_roots: Iterable[str] = KUBELET_ROOTS) -> Standing:
    """What the place alone says of a container; who owns the folders is not asked."""
    *above, _ = path.split("/")
    if any(_USER.fullmatch(part) for part in above):
        return Standing.DELEGATED
    if any(is_container_folder(part) for part in above):
        return Standing.NESTED
    units = [part for part in above if is_unit(part)]
    if units:
        is_runtime_s = above[:1] == ["system.slice"] and len(above) == 2 and above[1] in RUNTIME_SERVICES
        return Standing.NODE if is_runtime_s else Standing.NESTED
    parent = "/".join(above)
    is_kubelet_s = any(f"{parent}/".startswith(f"{root}/") for root in kubelet_roots)
    return Standing.NODE if is_kubelet_s or parent in RUNTIME_ROOTS else Standing.ELSEWHERE


def judge_folder(
    root: NodeRoot, hierarchy_path: str, path: str, kubelet_roots: Iterable[str] = KUBELET_ROOTS
) -> Standing:
    """
    The same for a folder that is there: also by the owners of all folders above it.

    Asked after the folder was seen: what another user made stands below a
    folder that was this user's before. The container's own folder may be
    somebody else's: runtimes give it to the root of a user namespace.
    """
    standing = judge_path(path, kubelet_roots)
    top = root.owner(hierarchy_path)
    folder = hierarchy_path
    for part in path.split("/")[:-1]:
        folder = f"{folder}/{part}"
        if root.owner(folder) != top:
            return Standing.DELEGATED
    return standing


def is_unit(name: str) -> bool:
    """A service or scope of systemd: what is below it was made by who runs in it."""
    return name.endswith((".service", ".scope"))


def is_boundary(name: str) -> bool:
    """Whether a folder's name says that somebody else than the node decides what is below it."""
    if name in RUNTIME_SERVICES:
        return False
    return is_unit(name) or is_container_folder(name) or _USER.fullmatch(name) is not None
