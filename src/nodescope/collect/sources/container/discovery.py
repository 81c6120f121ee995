"""
Discovery: inotify on the cgroup trees plus a slow rescan.

Any creation or removal marks its folder; the next tick looks into it again.
Where inotify cannot be had, every tick walks. When the last process of a
container leaves (cgroup.events, v2 only), the owner gets the chance of a last
look before the runtime removes the folder.
"""

import threading
from collections.abc import Callable, Mapping

from nodescope.base.log import Log
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.container.cgroup_tree import (
    Hierarchy,
    Tree,
    find_hierarchies,
    recount,
    update_folder,
    walk_tree,
)
from nodescope.collect.sources.container.cgroup_watch import (
    IN_CREATE,
    IN_DELETE,
    IN_IGNORED,
    IN_MODIFY,
    IN_ONLYDIR,
    IN_Q_OVERFLOW,
    CgroupWatch,
)

log = Log("discovery")

# Against events lost on the way: the folders of one hierarchy after the other
# are counted again at this pace, which costs one stat each (200 containers:
# 2 ms) and finds all but a swap of two.
RESCAN_TICKS = 30
# Everything is walked again at this pace: 85 ms for 100 containers on six hierarchies.
WALK_TICKS = 600
# The thread only marks and looks; it ends as soon as it is woken.
CLOSE_SECONDS = 2.0


# Hierarchy, path, and whether it is the path's cgroup.events that is watched.
Meaning = tuple[Hierarchy, str, bool]


class Discovery:
    """The trees of all hierarchies, looked at again only where something changed."""

    def __init__(self, root: NodeRoot, on_empty: Callable[[str], None]) -> None:
        self.root = root
        self.hierarchies = find_hierarchies(root)
        self.trees: dict[Hierarchy, Tree] = {hierarchy: Tree() for hierarchy in self.hierarchies}
        self.watching = False
        self._on_empty = on_empty
        self._changed: set[tuple[Hierarchy, str]] = set()
        self._made: set[tuple[Hierarchy, str]] = set()
        self._lock = threading.Lock()
        self._folder_watches: dict[Hierarchy, dict[str, int]] = {
            hierarchy: {} for hierarchy in self.hierarchies
        }
        self._event_watches: dict[str, int] = {}
        self._watched: dict[int, Meaning] = {}
        self._watch: CgroupWatch | None = None
        self._thread: threading.Thread | None = None
        self._start_watching()

    def _start_watching(self) -> None:
        if self.root.is_fixture:
            return
        try:
            watch = CgroupWatch()
        except (OSError, AttributeError) as error:
            log.warning("no inotify, the cgroup tree is walked every tick", error=str(error))
            return
        self._watch = watch
        self.watching = True
        self._thread = threading.Thread(target=self._listen, args=(watch,), name="discovery", daemon=True)
        self._thread.start()

    def refresh(self, tick_number: int) -> bool:
        """Look at what changed; True when any tree may differ from before."""
        walk_all = not self.watching or tick_number % WALK_TICKS == 0
        with self._lock:
            changed, self._changed = self._changed, set()
            made, self._made = self._made, set()
        for hierarchy, path in made:
            self._forget_below(hierarchy, path)
        if walk_all:
            for hierarchy in self.hierarchies:
                self.trees[hierarchy] = walk_tree(self.root, hierarchy)
                self._watch_tree(hierarchy)
            return True
        turn, is_between = divmod(tick_number, RESCAN_TICKS)
        if not is_between:
            hierarchy = self.hierarchies[turn % len(self.hierarchies)]
            miscounted = recount(self.root, hierarchy, self.trees[hierarchy])
            changed.update((hierarchy, path) for path in miscounted)
        for hierarchy, path in sorted(changed, key=lambda item: item[1]):
            # A folder that is gone itself is its parent's news.
            if path in self.trees[hierarchy].children:
                update_folder(self.root, hierarchy, self.trees[hierarchy], path)
        for hierarchy in {hierarchy for hierarchy, _ in changed}:
            self._watch_tree(hierarchy)
        return bool(changed)

    def rescan(self) -> None:
        """Walk everything at the next refresh: something was not announced."""
        with self._lock:
            self._changed.update(
                (hierarchy, path) for hierarchy in self.hierarchies for path in self.trees[hierarchy].children
            )

    def _watch_tree(self, hierarchy: Hierarchy) -> None:
        """Watch folders that are new; look once more into them, for they may have got children before."""
        tree = self.trees[hierarchy]
        while self.watching:
            fresh = self._watch_folders(hierarchy, tree)
            below = [update_folder(self.root, hierarchy, tree, path) for path in fresh]
            if not any(below):
                break
        if self.watching and hierarchy.name == "v2":
            self._watch_events(hierarchy, tree)

    def _forget_below(self, hierarchy: Hierarchy, path: str) -> None:
        """
        A folder that was made while we watch one of that name is another one.

        cgroupfs does not tell a watch that its folder is gone: without this,
        the watch of a dead folder would stand for the living one.
        """
        events = [self._event_watches] if hierarchy.name == "v2" else []
        for watches in (self._folder_watches[hierarchy], *events):
            if path in watches:
                for key in [key for key in watches if key == path or key.startswith(f"{path}/")]:
                    self._forget(watches, key)

    def _watch_folders(self, hierarchy: Hierarchy, tree: Tree) -> list[str]:
        watches = self._folder_watches[hierarchy]
        for path in watches.keys() - tree.children.keys():
            self._forget(watches, path)
        fresh = sorted(tree.children.keys() - watches.keys())
        mask = IN_CREATE | IN_DELETE | IN_ONLYDIR
        for path in fresh:
            full = f"{hierarchy.path}/{path}".rstrip("/")
            if not self._remember(watches, path, full, mask, (hierarchy, path, False)):
                return []
        return [path for path in fresh if path in watches]

    def _watch_events(self, hierarchy: Hierarchy, tree: Tree) -> None:
        for path in set(self._event_watches) - tree.containers:
            self._forget(self._event_watches, path)
        for path in tree.containers - set(self._event_watches):
            full = f"{hierarchy.path}/{path}/cgroup.events"
            if not self._remember(self._event_watches, path, full, IN_MODIFY, (hierarchy, path, True)):
                break

    def _remember(self, watches: dict[str, int], key: str, path: str, mask: int, meaning: Meaning) -> bool:
        """Add a watch; False when there can be no more."""
        if self._watch is None:
            return False
        try:
            number = self._watch.add(self.root.full(path), mask)
        except FileNotFoundError:
            return True
        except OSError as error:
            log.warning("watch refused, rescanning instead", path=path, error=str(error))
            self.watching = False
            return False
        watches[key] = number
        self._watched[number] = meaning
        return True

    def _forget(self, watches: dict[str, int], key: str) -> None:
        number = watches.pop(key)
        self._watched.pop(number, None)
        if self._watch:
            # Of a removed folder the kernel has already dropped it; that is fine.
            self._watch.remove(number)

    def _listen(self, watched: CgroupWatch) -> None:
        """The watching thread: marks and last looks, nothing else."""
        while watched.wait():
            for number, mask, name in watched.read():
                if mask & IN_Q_OVERFLOW:
                    self.rescan()
                meaning = self._watched.get(number)
                if meaning is None or mask & IN_IGNORED:
                    continue
                hierarchy, path, is_event_file = meaning
                if not is_event_file:
                    with self._lock:
                        self._changed.add((hierarchy, path))
                        if mask & IN_CREATE:
                            self._made.add((hierarchy, f"{path}/{name}" if path else name))
                elif self._is_empty(hierarchy, path):
                    self._on_empty(path)

    def _is_empty(self, hierarchy: Hierarchy, path: str) -> bool:
        text = self.root.read_text(f"{hierarchy.path}/{path}/cgroup.events")
        return text is not None and "populated 0" in text

    def containers(self) -> Mapping[str, frozenset[str]]:
        """Container paths, each with the hierarchies that have it."""
        return self._union("containers")

    def services(self) -> Mapping[str, frozenset[str]]:
        return self._union("services")

    def _union(self, kind: str) -> Mapping[str, frozenset[str]]:
        union: dict[str, set[str]] = {}
        for hierarchy, tree in self.trees.items():
            for path in getattr(tree, kind):
                union.setdefault(path, set()).add(hierarchy.name)
        return {path: frozenset(names) for path, names in union.items()}

    def close(self) -> None:
        """Also after a watch was refused: the descriptor is there all the same."""
        self.watching = False
        if self._watch and self._thread:
            self._watch.wake()
            self._thread.join(timeout=CLOSE_SECONDS)
            self._watch.close()
            self._watch = None
