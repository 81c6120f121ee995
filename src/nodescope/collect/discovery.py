"""
Discovery: inotify on the cgroup trees plus a slow rescan.

Any creation or removal marks its hierarchy; the next tick walks it again.
Where inotify cannot be had, every tick walks. When the last process of a
container leaves (cgroup.events, v2 only), the owner gets the chance of a last
look before the runtime removes the folder.
"""

import threading
from collections.abc import Callable, Mapping

from nodescope.base.log import Log
from nodescope.collect.cgroups import Hierarchy, Tree, find_hierarchies, walk_tree
from nodescope.collect.roots import NodeRoot

log = Log("discovery")

# Against events lost in an overflowing queue and mounts without inotify.
RESCAN_TICKS = 30


class Discovery:
    """The trees of all hierarchies, walked again only when something changed."""

    def __init__(self, root: NodeRoot, on_empty: Callable[[str], None]) -> None:
        self.root = root
        self.hierarchies = find_hierarchies(root)
        self.trees: dict[Hierarchy, Tree] = {hierarchy: Tree() for hierarchy in self.hierarchies}
        self.watching = False
        self._on_empty = on_empty
        self._dirty = set(self.hierarchies)
        self._lock = threading.Lock()
        self._folder_watches: dict[str, int] = {}
        self._event_watches: dict[str, int] = {}
        self._watched: dict[int, tuple[Hierarchy, str | None]] = {}
        self._stop = threading.Event()
        self._start_watching()

    def _start_watching(self) -> None:
        if self.root.is_fixture:
            return
        try:
            from nodescope.collect.watch import Watch  # noqa: PLC0415 - Linux only

            self._watch = Watch()
        except (OSError, AttributeError) as error:
            log.warning("no inotify, the cgroup tree is walked every tick", error=str(error))
            return
        self.watching = True
        self._thread = threading.Thread(target=self._listen, name="discovery", daemon=True)
        self._thread.start()

    def refresh(self, tick_number: int) -> bool:
        """Walk what changed; True when any tree may differ from before."""
        with self._lock:
            due = (
                set(self.hierarchies)
                if not self.watching or tick_number % RESCAN_TICKS == 0
                else set(self._dirty)
            )
            self._dirty -= due
        for hierarchy in self.hierarchies:
            if hierarchy in due:
                self._walk(hierarchy)
        return bool(due)

    def _walk(self, hierarchy: Hierarchy) -> None:
        tree = walk_tree(self.root, hierarchy)
        if self.watching and self._watch_folders(hierarchy, tree):
            # A folder may have got children before its watch stood.
            tree = walk_tree(self.root, hierarchy)
            self._watch_folders(hierarchy, tree)
        self.trees[hierarchy] = tree

    def _watch_folders(self, hierarchy: Hierarchy, tree: Tree) -> bool:
        """Watch new inner folders; True when there were any."""
        from nodescope.collect import watch  # noqa: PLC0415 - Linux only

        wanted = {f"{hierarchy.path}/{path}".rstrip("/") for path in tree.inner}
        mine = {
            path
            for path in self._folder_watches
            if path == hierarchy.path or path.startswith(f"{hierarchy.path}/")
        }
        for path in mine - wanted:
            self._forget(self._folder_watches, path)
        fresh = wanted - mine
        for path in fresh:
            mask = watch.IN_CREATE | watch.IN_DELETE | watch.IN_ONLYDIR
            if not self._remember(self._folder_watches, path, path, mask, (hierarchy, None)):
                break
        if hierarchy.name == "v2":
            self._watch_events(hierarchy, tree)
        return bool(fresh)

    def _watch_events(self, hierarchy: Hierarchy, tree: Tree) -> None:
        from nodescope.collect import watch  # noqa: PLC0415 - Linux only

        for path in set(self._event_watches) - tree.containers:
            self._forget(self._event_watches, path)
        for path in tree.containers - set(self._event_watches):
            full = f"{hierarchy.path}/{path}/cgroup.events"
            if not self._remember(self._event_watches, path, full, watch.IN_MODIFY, (hierarchy, path)):
                break

    def _remember(
        self, watches: dict[str, int], key: str, path: str, mask: int, meaning: tuple[Hierarchy, str | None]
    ) -> bool:
        """Add a watch; False when there can be no more."""
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
        # Of a removed folder the kernel has already dropped it; that is fine.
        self._watch.remove(number)

    def _listen(self) -> None:
        """The watching thread: marks and last looks, nothing else."""
        from nodescope.collect import watch  # noqa: PLC0415 - Linux only

        while not self._stop.is_set():
            if not self._watch.wait(1.0):
                continue
            for number, mask in self._watch.read():
                if mask & watch.IN_Q_OVERFLOW:
                    with self._lock:
                        self._dirty.update(self.hierarchies)
                meaning = self._watched.get(number)
                if meaning is None or mask & watch.IN_IGNORED:
                    continue
                hierarchy, path = meaning
                if path is None:
                    with self._lock:
                        self._dirty.add(hierarchy)
                elif self._is_empty(hierarchy, path):
                    self._on_empty(path)

    def _is_empty(self, hierarchy: Hierarchy, path: str) -> bool:
        text = self.root.read_text(f"{hierarchy.path}/{path}/cgroup.events")
        return text is not None and "populated 0" in text

    @property
    def watch_count(self) -> int:
        return len(self._watched)

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
        self._stop.set()
        if self.watching:
            self._thread.join(timeout=2)
            self._watch.close()
            self.watching = False
