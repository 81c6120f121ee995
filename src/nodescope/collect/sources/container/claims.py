"""
Which cgroup is a container, when two say they are the same one.

A cgroup's path claims a container id, and perhaps a pod's UID. The claim of
the path that stands better is believed (`containers.standing`), among equals
that of the one known longer, then that of the folder made first (the smaller
inode). The others are refused: not measured, counted, and named in /status and
the log. What was refused stays so while its folder is there. Ids that the node's
own containers had are remembered for a while after their end, so that nobody
continues the series of a container that is gone.
"""

import os
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from nodescope.base.log import Log
from nodescope.base.self_counters import ContainerCounters
from nodescope.base.text import clean_text
from nodescope.collect.containers.cgroup_path import CgroupName, parse_cgroup_path
from nodescope.collect.containers.standing import KUBELET_ROOTS, Standing, judge_folder
from nodescope.collect.files.batch import PATH_CHARACTERS
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.container.cgroup_tree import Hierarchy
from nodescope.collect.sources.container.kubelet_root import find_kubelet_root

log = Log("claims")

# Ids and pods of ended containers that are remembered: a day of a busy node, 1 MiB.
REMEMBERED = 8192
# One line a minute: who makes claims by the thousand must not fill the log.
LOG_SECONDS = 60.0
# Refused paths that /status lists.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Claim:
    """A cgroup that says it is a container."""

    path: str
    found_in: frozenset[str]
    hierarchies: frozenset[str]
    """Those in which it stands best: the others are not read."""
    standing: Standing
    inode: int
    container_id: str
    pod_uid: str


@dataclass(slots=True)
class Claims:
    """Decides anew whenever the set of cgroups changed."""

    root: NodeRoot
    hierarchies: Mapping[str, Hierarchy]
    counters: ContainerCounters
    mono_ns: Callable[[], int]
    kubelet_roots: tuple[str, ...] = KUBELET_ROOTS
    _judged: dict[str, Claim] = field(default_factory=dict)
    _refused: dict[str, tuple[Claim, str]] = field(default_factory=dict)
    _ended: dict[int, None] = field(default_factory=dict)
    """
    Container ids and pod UIDs that the node's own containers had, the newest last.

    By their hashes, which nobody outside can foresee: a quarter of the memory.
    """
    _logged_mono_ns: int | None = None
    _asked_kubelet: bool = False

    def admit(self, found: Mapping[str, frozenset[str]], known: Container[str]) -> dict[str, Claim]:
        """Those of the found paths that are believed, the most trustworthy first."""
        judged = [
            claim for path, names in found.items() if (claim := self._judge(path, names, path in known))
        ]
        self._judged = {claim.path: claim for claim in judged}
        judged.sort(key=lambda one: (one.standing, one.path not in known, one.inode, one.path))
        refused: dict[str, tuple[Claim, str]] = {}
        holders: dict[str, Claim] = {}
        admitted = {}
        for claim in judged:
            reason = self._object(claim, holders)
            if reason:
                refused[claim.path] = (claim, reason)
                continue
            admitted[claim.path] = claim
            holders[claim.container_id] = claim
            if claim.pod_uid:
                holders.setdefault(claim.pod_uid, claim)
        self._refused = refused
        shown = list(refused.values())[:SHOWN]
        self.counters.refused_now = {clean_path(claim.path): reason for claim, reason in shown}
        return admitted

    def standing(self, path: str) -> Standing:
        """Of a path that was found last time."""
        return self._judged[path].standing

    def forget(self, path: str) -> None:
        """The folder was made again: it is judged again."""
        self._judged.pop(path, None)

    def _judge(self, path: str, names: frozenset[str], is_known: bool) -> Claim | None:
        before = self._judged.get(path)
        if before and is_known and before.found_in == names:
            return before
        inode = self.root.inode(self._folder(path, names))
        if inode is None:
            return None
        if before and before.inode == inode and before.found_in == names:
            return before
        stands = {name: self._stand(self.hierarchies[name], path) for name in names}
        if self.root.inode(self._folder(path, names)) != inode:
            # It ended meanwhile, and its pod with it: folders that are gone have no owner.
            return None
        best = min(stands.values())
        kept = frozenset(name for name, standing in stands.items() if standing == best)
        kept = names if kept == names else kept
        cgroup = parse_cgroup_path(path)
        return Claim(path, names, kept, best, inode, cgroup.container_id, cgroup.pod_uid)

    def _folder(self, path: str, names: frozenset[str]) -> str:
        """In the first hierarchy that has it."""
        return next(one.full(path) for name, one in self.hierarchies.items() if name in names)

    def _stand(self, hierarchy: Hierarchy, path: str) -> Standing:
        standing = judge_folder(self.root, hierarchy.path, path, self.kubelet_roots)
        if standing is Standing.ELSEWHERE and not self._asked_kubelet and parse_cgroup_path(path).pod_uid:
            self._asked_kubelet = True
            told = find_kubelet_root(self.root)
            if told:
                self.kubelet_roots = (*self.kubelet_roots, *told)
                standing = judge_folder(self.root, hierarchy.path, path, self.kubelet_roots)
        return standing

    def _object(self, claim: Claim, holders: Mapping[str, Claim]) -> str:
        """Why a claim is refused; empty when it is not."""
        earlier, reason = self._refused.get(claim.path, (None, ""))
        if earlier and earlier.inode == claim.inode:
            return reason
        holder = holders.get(claim.container_id)
        if holder:
            return self._refuse(claim, "container", f"{clean_path(holder.path)} is this container")
        holder = holders.get(claim.pod_uid) if claim.pod_uid else None
        if holder and holder.standing < claim.standing:
            return self._refuse(claim, "pod", f"{clean_path(holder.path)} is in this pod")
        if claim.standing > Standing.NODE and not self._ended.keys().isdisjoint(
            map(hash, (claim.container_id, claim.pod_uid or claim.container_id))
        ):
            return self._refuse(claim, "ended", "a container of the node had this id and has ended")
        return ""

    def _refuse(self, claim: Claim, what: str, why: str) -> str:
        self.counters.refused[what] += 1
        now_ns = self.mono_ns()
        if self._logged_mono_ns is None or now_ns - self._logged_mono_ns >= LOG_SECONDS * 1e9:
            self._logged_mono_ns = now_ns
            log.warning(
                "cgroup refused",
                path=clean_path(claim.path),
                claims=what,
                standing=claim.standing.name.lower(),
                why=why,
                refused_so_far=self.counters.refused.total(),
            )
        return f"claims the {what} of another: {why}"

    def end(self, cgroup: CgroupName) -> None:
        """A container of the node's own is gone."""
        for word in filter(None, (cgroup.container_id, cgroup.pod_uid)):
            self._ended.pop(hash(word), None)
            self._ended[hash(word)] = None
        while len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]


def clean_path(path: str) -> str:
    """Tenants name cgroups, and refusals are shown."""
    return clean_text(os.path.join("/", path), PATH_CHARACTERS)
