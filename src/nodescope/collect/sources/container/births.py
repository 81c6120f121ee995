"""
Containers that come and go between two ticks: heard of, though no tick saw them.

The watching thread notes what the kernel announces; the tick takes what is
over. A container stands in up to seven hierarchies and is announced in each;
it is one life all the same, told by the inode of its folder where that could
still be read.

    announced in one hierarchy      made    removed
    alive now                       n       n - 1
    over                            n       n
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from nodescope.collect.containers.cgroup_path import is_container_folder, is_pod_folder

# Between two ticks; the kernel's queue of news holds 16,384 by default.
NOTED = 20_000
# A removal that is not announced (the queue was full) is taken for granted after so many takes.
PATIENCE = 3


@dataclass(slots=True)
class Announced:
    """One path in one hierarchy."""

    made: int = 0
    removed: int = 0
    inode: int | None = None


@dataclass(slots=True)
class Birth:
    """A container that was announced since the last tick."""

    path: str
    at_ns: int
    mono_ns: int
    by_hierarchy: dict[str, Announced] = field(default_factory=dict)
    ended_mono_ns: int | None = None
    last: Mapping[str, float] | None = None
    """The last look, when its last process had just left."""
    takes: int = 0

    @property
    def lives(self) -> int:
        return max(one.made for one in self.by_hierarchy.values())

    @property
    def is_over(self) -> bool:
        """All that were made in some hierarchy are removed there."""
        return any(one.removed >= one.made > 0 for one in self.by_hierarchy.values())

    @property
    def inode(self) -> str:
        """Of the first hierarchy that told; empty when the folder was gone too soon."""
        return next((str(one.inode) for one in self.by_hierarchy.values() if one.inode), "")


@dataclass(slots=True)
class Births:
    """Written by the watching thread, taken by the tick."""

    wall_ns: Callable[[], int]
    mono_ns: Callable[[], int]
    unnoted: int = 0
    """Announcements that there was no room for."""
    unseen_pods: int = 0
    """Pods' folders that came and went without a container that was announced."""
    _noted: dict[str, Birth] = field(default_factory=dict)
    _pods: dict[str, bool] = field(default_factory=dict)
    """Pods' folders made since the last tick, and whether a container was seen in them."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_pending(self) -> bool:
        return bool(self._noted or self._pods)

    def note_made(self, hierarchy: str, path: str, inode: int | None) -> None:
        parent, _, name = path.rpartition("/")
        with self._lock:
            if is_container_folder(name):
                if parent in self._pods:
                    self._pods[parent] = True
                self._note(hierarchy, path, inode)
            elif is_pod_folder(name) and len(self._pods) < NOTED:
                self._pods.setdefault(path, False)

    def _note(self, hierarchy: str, path: str, inode: int | None) -> None:
        birth = self._noted.get(path)
        if birth is None:
            if len(self._noted) >= NOTED:
                self.unnoted += 1
                return
            birth = self._noted[path] = Birth(path, self.wall_ns(), self.mono_ns())
        one = birth.by_hierarchy.setdefault(hierarchy, Announced())
        # Listed and announced: the same folder is heard of twice.
        is_same = one.made > one.removed and (inode is None or inode == one.inode)
        if not is_same:
            one.made += 1
            one.inode = inode if inode is not None else one.inode

    def note_removed(self, hierarchy: str, path: str) -> None:
        with self._lock:
            birth = self._noted.get(path)
            if birth and hierarchy in birth.by_hierarchy:
                birth.by_hierarchy[hierarchy].removed += 1
                birth.ended_mono_ns = self.mono_ns()
            elif self._pods.pop(path, True) is False:
                self.unseen_pods += 1

    def note_look(self, path: str, values: Mapping[str, float]) -> None:
        with self._lock:
            birth = self._noted.get(path)
            if birth and values:
                birth.last = values

    def find(self, path: str) -> Birth | None:
        return self._noted.get(path)

    def take(self, met: Iterable[str], is_there: Callable[[str], bool]) -> list[Birth]:
        """
        Those that are over; who was met by the tick is known from now on.

        Whose removal is not announced for some ticks is looked for: it may be
        there and left out by the tick, or the announcement was lost.
        """
        with self._lock:
            noted, self._noted = self._noted, {}
            for path in met:
                self._pods.pop(path.rpartition("/")[0], None)
                birth = noted.get(path)
                if birth:
                    for one in birth.by_hierarchy.values():
                        one.made -= 1
                    if birth.lives < 1:
                        del noted[path]
            self._pods = {path: seen for path, seen in self._pods.items() if not seen}
            over = [birth for birth in noted.values() if birth.is_over]
            for birth in noted.values():
                if birth.is_over:
                    continue
                birth.takes += 1
                if birth.takes < PATIENCE:
                    self._noted[birth.path] = birth
                elif not is_there(birth.path):
                    over.append(birth)
        return over
