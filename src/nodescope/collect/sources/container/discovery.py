"""
Discovery: inotify on the cgroup trees plus a slow rescan.

Any creation or removal marks its folder; the next tick looks into it again.
Where inotify cannot be had, every tick walks. When the last process of a
container leaves (cgroup.events, v2 only), the owner gets the chance of a last
look before the runtime removes the folder.

The node's own folders have a thread that listens. A pod's new folder is watched
as soon as it is announced, not at the next tick: a container in it that
ends before the tick is heard of (`births`). What a container, a unit or a user
makes below itself has a queue of its own, which the tick reads, so much of it
at a time: who makes a million folders fills his own queue and delays nobody.
"""

import threading
from collections.abc import Callable, Iterable, Mapping

from nodescope.base.clock import Clock
from nodescope.base.log import Log
from nodescope.base.self_counters import ContainerCounters
from nodescope.collect.containers.cgroup_path import is_container_folder
from nodescope.collect.containers.standing import is_boundary
from nodescope.collect.files.fit import fit
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.container.births import Birth, Births
from nodescope.collect.sources.container.cgroup_tree import (
    DEPTH,
    Hierarchy,
    Tree,
    find_hierarchies,
    join,
    recount,
    update_folder,
    walk_tree,
)
from nodescope.collect.sources.container.cgroup_watch import (
    IN_CREATE,
    IN_DELETE,
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
# Of what tenants nest: so many folders are listed in one tick (10 us each), the others in the next.
TENANT_UPDATES = 500
# Reads of 64 KiB from the tenants' queue in one tick; what is left waits in the kernel.
TENANT_READS = 8
FOLDER = IN_CREATE | IN_DELETE | IN_ONLYDIR

# Hierarchy, path, and whether it is the path's cgroup.events that is watched.
Meaning = tuple[Hierarchy, str, bool]
Place = tuple[Hierarchy, str]
Watched = tuple[CgroupWatch[Meaning], int]


class Discovery:
    """The trees of all hierarchies, looked at again only where something changed."""

    def __init__(
        self, root: NodeRoot, on_empty: Callable[[str], None], clock: Clock, counters: ContainerCounters
    ) -> None:
        self.root = root
        self.hierarchies = find_hierarchies(root)
        self.trees: dict[Hierarchy, Tree] = {hierarchy: Tree() for hierarchy in self.hierarchies}
        self.watching = False
        self.births = Births(clock.wall_ns, clock.mono_ns)
        self._on_empty = on_empty
        self._counters = counters
        self._changed: set[Place] = set()
        self._tenants_changed: dict[Place, None] = {}
        self._is_doubtful = False
        """Something was not announced: everything is looked at again."""
        self._lock = threading.Lock()
        self._watch_lock = threading.RLock()
        """Both threads add watches."""
        self._folder_watches: dict[Hierarchy, dict[str, Watched]] = {
            hierarchy: {} for hierarchy in self.hierarchies
        }
        self._event_watches: dict[str, Watched] = {}
        self._sets: dict[tuple[frozenset[str], str], frozenset[str]] = {}
        self._own: CgroupWatch[Meaning] | None = None
        self._tenants: CgroupWatch[Meaning] | None = None
        self._thread: threading.Thread | None = None
        self._start_watching()

    def _start_watching(self) -> None:
        if self.root.is_fixture:
            return
        try:
            self._own, self._tenants = CgroupWatch(), CgroupWatch()
        except (OSError, AttributeError) as error:
            log.warning("no inotify, the cgroup tree is walked every tick", error=str(error))
            return
        self.watching = True
        self._thread = threading.Thread(target=self._listen, args=(self._own,), name="discovery", daemon=True)
        self._thread.start()

    # -- the tick ---------------------------------------------------------

    def refresh(self, tick_number: int) -> bool:
        """Look at what changed; True when any tree may differ from before."""
        if not self.watching or tick_number % WALK_TICKS == 0:
            self._walk()
            return True
        changed = self._take_changed(tick_number)
        for hierarchy, path in sorted(changed, key=lambda item: item[1]):
            # A folder that is gone itself is its parent's news.
            if path in self.trees[hierarchy].children:
                update_folder(self.root, hierarchy, self.trees[hierarchy], path)
        for hierarchy in {hierarchy for hierarchy, _ in changed}:
            self._watch_tree(hierarchy)
        return bool(changed)

    def _walk(self) -> None:
        with self._lock:
            self._changed.clear()
        self._tenants_changed.clear()
        for hierarchy in self.hierarchies:
            self.trees[hierarchy] = walk_tree(self.root, hierarchy)
            self._watch_tree(hierarchy)

    def _take_changed(self, tick_number: int) -> set[Place]:
        with self._lock:
            changed, self._changed = self._changed, set()
            is_doubtful, self._is_doubtful = self._is_doubtful, False
        if is_doubtful:
            changed.update(self._list_known(is_tenant=False))
        turn, is_between = divmod(tick_number, RESCAN_TICKS)
        if not is_between:
            hierarchy = self.hierarchies[turn % len(self.hierarchies)]
            miscounted = recount(self.root, hierarchy, self.trees[hierarchy])
            self._sort_in([(hierarchy, path) for path in miscounted], changed)
        self._read_tenants()
        changed.update(self._take_tenants())
        return changed

    def _list_known(self, *, is_tenant: bool) -> Iterable[Place]:
        return [
            (hierarchy, path)
            for hierarchy, tree in self.trees.items()
            for path in tree.children
            if self._is_tenant(hierarchy, path) is is_tenant
        ]

    def _sort_in(self, places: Iterable[Place], changed: set[Place]) -> None:
        """The node's own are looked at now, those of tenants when it is their turn."""
        for hierarchy, path in places:
            if self._is_tenant(hierarchy, path):
                self._tenants_changed[hierarchy, path] = None
            else:
                changed.add((hierarchy, path))

    def _is_tenant(self, hierarchy: Hierarchy, path: str) -> bool:
        """Whether somebody else than the node decides what is in a folder."""
        return path in self.trees[hierarchy].tenants or any(map(is_boundary, path.split("/")))

    def _read_tenants(self) -> None:
        for _ in range(TENANT_READS if self._tenants else 0):
            news = list(self._tenants.read()) if self._tenants else []
            for meaning, mask, name in news:
                if mask & IN_Q_OVERFLOW:
                    self._tenants_changed.update(dict.fromkeys(self._list_known(is_tenant=True)))
                elif meaning:
                    hierarchy, path, _ = meaning
                    self._tenants_changed[hierarchy, path] = None
                    if mask & IN_CREATE:
                        self._forget_stale(hierarchy, join(path, name))
            if not news:
                break

    def _take_tenants(self) -> list[Place]:
        """In the order in which they changed, at most so many a tick."""
        turn = list(self._tenants_changed)[:TENANT_UPDATES]
        for place in turn:
            del self._tenants_changed[place]
        return turn

    def rescan(self) -> None:
        """Look at everything at the next refresh: something was not announced."""
        with self._lock:
            self._is_doubtful = True

    # -- watches ----------------------------------------------------------

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

    def _watch_folders(self, hierarchy: Hierarchy, tree: Tree) -> list[str]:
        watches = self._folder_watches[hierarchy]
        with self._watch_lock:
            for path in watches.keys() - tree.children.keys():
                self._forget(watches, path)
            watches = self._folder_watches[hierarchy] = fit(watches)
            fresh = sorted(tree.children.keys() - watches.keys())
            for path in fresh:
                if not self._watch_folder(hierarchy, path):
                    return []
        return [path for path in fresh if path in watches]

    def _watch_folder(self, hierarchy: Hierarchy, path: str) -> bool:
        watch = self._tenants if self._is_tenant(hierarchy, path) else self._own
        watches = self._folder_watches[hierarchy]
        return self._remember(watch, watches, path, hierarchy.full(path), FOLDER, (hierarchy, path, False))

    def _watch_events(self, hierarchy: Hierarchy, tree: Tree) -> None:
        with self._watch_lock:
            for path in set(self._event_watches) - tree.containers:
                self._forget(self._event_watches, path)
            self._event_watches = fit(self._event_watches)
            for path in tree.containers - set(self._event_watches):
                if not self._watch_end(hierarchy, path):
                    break

    def _watch_end(self, hierarchy: Hierarchy, path: str) -> bool:
        full = f"{hierarchy.full(path)}/cgroup.events"
        return self._remember(self._own, self._event_watches, path, full, IN_MODIFY, (hierarchy, path, True))

    def _forget_stale(self, hierarchy: Hierarchy, path: str) -> None:
        """
        A folder that was made while we watch one of that name is another one.

        cgroupfs does not tell a watch that its folder is gone: without this,
        the watch of a dead folder would stand for the living one.
        """
        events = [self._event_watches] if hierarchy.name == "v2" else []
        with self._watch_lock:
            for watches in (self._folder_watches[hierarchy], *events):
                if path in watches:
                    for key in [key for key in watches if key == path or key.startswith(f"{path}/")]:
                        self._forget(watches, key)

    def _remember(
        self,
        watch: CgroupWatch[Meaning] | None,
        watches: dict[str, Watched],
        key: str,
        path: str,
        mask: int,
        meaning: Meaning,
    ) -> bool:
        """Add a watch; False when there can be no more."""
        if watch is None:
            return False
        try:
            watches[key] = (watch, watch.add(self.root.full(path), mask, meaning))
        except FileNotFoundError:
            return True
        except OSError as error:
            log.warning("watch refused, rescanning instead", path=path, error=str(error))
            self.watching = False
            return False
        return True

    def _forget(self, watches: dict[str, Watched], key: str) -> None:
        watch, number = watches.pop(key)
        # Of a removed folder the kernel has already dropped it; that is fine.
        watch.remove(number)

    # -- the thread that listens ------------------------------------------

    def _listen(self, watch: CgroupWatch[Meaning]) -> None:
        """Marks, new folders and last looks, nothing else."""
        while watch.wait():
            for meaning, mask, name in watch.read():
                if mask & IN_Q_OVERFLOW:
                    self._counters.overflows += 1
                    self.rescan()
                if meaning is None:
                    continue
                hierarchy, path, is_event_file = meaning
                if not is_event_file:
                    self._note(hierarchy, path, mask, name)
                elif self._is_empty(hierarchy, path):
                    self._on_empty(path)

    def _note(self, hierarchy: Hierarchy, folder: str, mask: int, name: str) -> None:
        """A folder was made or removed in one that is watched."""
        with self._lock:
            self._changed.add((hierarchy, folder))
        path = join(folder, name)
        if mask & IN_CREATE:
            self._forget_stale(hierarchy, path)
            self._meet(hierarchy, path)
        elif mask & IN_DELETE:
            self.births.note_removed(hierarchy.name, path)

    def _meet(self, hierarchy: Hierarchy, path: str) -> None:
        """A new folder of the node's own, and what is in it already."""
        waiting = [path]
        while waiting:
            met = waiting.pop()
            full = hierarchy.full(met)
            self.births.note_made(hierarchy.name, met, self.root.inode(full))
            name = met.rpartition("/")[2]
            if is_container_folder(name):
                if hierarchy.name == "v2":
                    with self._watch_lock:
                        self._watch_end(hierarchy, met)
            elif not is_boundary(name) and self.root.owner(full) == self.root.owner(hierarchy.path):
                waiting += [join(met, below) for below in self._watch_new(hierarchy, met)]

    def _watch_new(self, hierarchy: Hierarchy, path: str) -> list[str]:
        """Watch a folder from now on; what is in it."""
        with self._watch_lock:
            if path in self._folder_watches[hierarchy] or path.count("/") >= DEPTH or not self.watching:
                return []
            self._watch_folder(hierarchy, path)
        with self._lock:
            self._changed.add((hierarchy, path))
        return list(self.root.folders(hierarchy.full(path)))

    def _is_empty(self, hierarchy: Hierarchy, path: str) -> bool:
        text = self.root.read_text(f"{hierarchy.path}/{path}/cgroup.events")
        return text is not None and "populated 0" in text

    # -- what there is ----------------------------------------------------

    def cut(self) -> set[str]:
        """Containers, units and users that nest more than is looked into."""
        return {path for tree in self.trees.values() if tree.cut for path in tree.cut_tenants()}

    def closed(self) -> set[str]:
        """Folders that may not be listed."""
        return {path for tree in self.trees.values() if tree.closed for path in tree.closed}

    def take_short(self, met: Iterable[str]) -> list[Birth]:
        """Containers that came and went since the last tick, but for those that a tick has met."""
        return self.births.take(met, self._is_there) if self.births.is_pending else []

    def _is_there(self, path: str) -> bool:
        return any(self.root.exists(hierarchy.full(path)) for hierarchy in self.hierarchies)

    def containers(self) -> Mapping[str, frozenset[str]]:
        """Container paths, each with the hierarchies that have it."""
        return self._union("containers")

    def services(self) -> Mapping[str, frozenset[str]]:
        return self._union("services")

    def _union(self, kind: str) -> Mapping[str, frozenset[str]]:
        union: dict[str, frozenset[str]] = {}
        nowhere: frozenset[str] = frozenset()
        # There are few such sets, and thousands of paths: each set is one object.
        for hierarchy, tree in self.trees.items():
            for path in getattr(tree, kind):
                union[path] = self._with(union.get(path, nowhere), hierarchy.name)
        return union

    def _with(self, names: frozenset[str], name: str) -> frozenset[str]:
        found = self._sets.get((names, name))
        if found is None:
            found = self._sets[names, name] = names | {name}
        return found

    def close(self) -> None:
        """Also after a watch was refused: the descriptors are there all the same."""
        self.watching = False
        if self._own and self._tenants and self._thread:
            self._own.wake()
            self._thread.join(timeout=CLOSE_SECONDS)
            self._own.close()
            self._tenants.close()
            self._own = self._tenants = None
