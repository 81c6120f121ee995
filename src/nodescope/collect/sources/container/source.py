"""
Containers: CPU, memory, pressure, I/O and limits of each, from its cgroup.

Reads   /sys/fs/cgroup: v2, v1 controllers, or both; /var/log/{containers,pods} for names
Needs   Linux; read access to /sys/fs/cgroup. Pressure needs v2 and CONFIG_PSI
Docs    https://docs.kernel.org/admin-guide/cgroup-v2.html

One file, cpu.stat of a v2 container with a CPU quota:

    usage_usec 4834
    user_usec 1021
    system_usec 3812
    nr_periods 40
    nr_throttled 39
    throttled_usec 3112831

Containers are found by their folder's name, whatever made them. When one goes
an event keeps its last good reading with its age, peak, OOM kills and
lifetime. While a node has no container, its services are shown instead.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.frame import EXIT, OOM_EXIT, START, Event
from nodescope.base.text import clean_text, shorten_path
from nodescope.base.workload import detail_workload, find_workload
from nodescope.collect.containers.bundle import read_bundle
from nodescope.collect.containers.cgroup_path import NOTHING, CgroupName, parse_cgroup_path
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.containers.names import UNNAMED, Name
from nodescope.collect.containers.standing import Standing, judge_path
from nodescope.collect.files.batch import FileGrid, ReadSegment
from nodescope.collect.files.fit import fit
from nodescope.collect.files.idle_rows import IdleRows
from nodescope.collect.files.still_files import StillFiles
from nodescope.collect.run.source import Context, Tick
from nodescope.collect.sources.container.births import Birth
from nodescope.collect.sources.container.cgroup_tree import DEPTH, TENANT_FOLDERS, TENANTS_FOLDERS
from nodescope.collect.sources.container.claims import Claims
from nodescope.collect.sources.container.container_pids import TOO_NESTED, ContainerPids
from nodescope.collect.sources.container.discovery import Discovery
from nodescope.collect.sources.container.facts import (
    FACT_NAMES,
    FACTS,
    Glimpses,
    derive_facts,
    derive_short_facts,
)
from nodescope.collect.sources.container.kubelet_root import list_roots
from nodescope.collect.sources.container.metrics import (
    LIMITS,
    MAIN,
    PARENT,
    QUOTA,
    SETTING,
    STAT,
    STILL,
    WITNESS,
    CgroupFile,
    choose_files,
    make_table,
)

TIERS_BY_TABLE = {"container": 1, "container.memory_stat": 1, "container.limits": 5}
# Limits are read with every sixth reading of their table: what was set is known within half a minute.
SETTING_READINGS = 6
OOM_KILLS = list_raw_names(FACTS["oom_kills"])[0]
NOT_LOOKED_INTO = (
    f"has more than {TENANT_FOLDERS} cgroups below it, or deeper ones than {DEPTH}, "
    f"or all such have more than {TENANTS_FOLDERS}: not all are looked into"
)
CLOSED = "may not be listed (permission denied): run as root, or with CAP_DAC_READ_SEARCH"
# In /status.
CUT_SHOWN = 20
# A runtime sets up a pod's sandbox, then lets it run `pause`: within a second, on a busy node within some.
SETTLE_TICKS = 10


@dataclass(slots=True)
class ContainerLife:
    """One container from its first second to its last."""

    path: str
    cgroup: CgroupName
    hierarchies: frozenset[str]
    entity: Entity
    inode: str
    first_mono_ns: int
    first_at_ns: int
    folder: str
    standing: Standing = Standing.NODE
    is_sandbox: bool = False
    made_at_ns: int = 0
    """When its cgroup was made, which may be long before it was first seen."""
    first: Mapping[str, float] | None = None
    """Read at its start: it may not run until the next turn of a slow tier."""
    last: Mapping[str, float] | None = None
    """The last look, when its last process had just left."""


class ContainerSource:
    """Keeps the set of containers; the batch call reads their files."""

    name = "container"

    def __init__(self, context: Context) -> None:
        self._lives: dict[str, ContainerLife] = {}
        self._grids: dict[str, FileGrid] = {}
        self._dropped = {"container": 0, "service": 0}
        self._lock = threading.Lock()
        self._names_version = -1
        self._young: dict[str, int] = {}
        """Containers of pods that may still turn out to be the pod's sandbox, and for how many ticks yet."""
        self._entities: tuple[Entity, ...] = ()
        self._pids_version = 0
        self._most: int | None = None
        """Containers that may be sampled, while memory is short."""
        self._ended_kills: dict[str, float] = {}
        """OOM kills of containers that ended, by pod that still has others."""
        self._context = context
        self._names = context.names
        self._counters = context.container_counters
        self._discovery = Discovery(context.root, self._look_last, context.clock, self._counters)
        if not self._discovery.hierarchies:
            self._discovery.close()
            raise SourceAbsent("no cgroup file system at /sys/fs/cgroup")
        self._paths = {hierarchy.name: hierarchy.path for hierarchy in self._discovery.hierarchies}
        self._claims = Claims(
            context.root,
            {hierarchy.name: hierarchy for hierarchy in self._discovery.hierarchies},
            context.container_counters,
            context.clock.mono_ns,
            list_roots(context.settings.kubelet_cgroup_root),
        )
        self._files = choose_files(frozenset(self._paths), context.ticks_per_second)
        for table, files in self._files.items():
            layouts = tuple(file.layout for file in files)
            self._grids[table] = FileGrid(
                make_table(table, files),
                layouts,
                context.root,
                context.descriptors,
                is_rare=TIERS_BY_TABLE[table] > 1,
            )
        if not context.root.is_fixture:
            # Two moments of a node that were saved file by file show no idleness.
            self._spare_readings()
        self._glimpses = Glimpses(context.root, self._paths, self._files)
        self._pids = ContainerPids(context.root, context.descriptors)

    def _spare_readings(self) -> None:
        """Files of containers that do nothing, and files that only somebody's hand changes, are read less often."""
        main, stat, limits = (self._grids[name] for name in (MAIN, STAT, LIMITS))
        watched = (list_raw_names("cpu.stat.usage_usec"), list_raw_names("memory.current"))
        for grid in (stat, limits):
            grid.idle_rows = IdleRows(main, *watched)
        roles = {
            role: [file.layout for file in self._files[MAIN] if file.role == role]
            for role in (WITNESS, STILL, QUOTA)
        }
        spared = [*roles[STILL], *roles[QUOTA]]
        main.still_files = StillFiles(main.table, roles[WITNESS], spared, roles[QUOTA])
        settings = [file.layout for file in self._files[LIMITS] if file.role == SETTING]
        limits.seldom = {id(layout): SETTING_READINGS for layout in settings}

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        grids: list[tuple[ReadSegment, int]] = [
            (grid, TIERS_BY_TABLE[name]) for name, grid in self._grids.items()
        ]
        return [*grids, (self._pids, 5)]

    def dropped(self) -> dict[str, int]:
        return self._dropped

    # -- the set ----------------------------------------------------------

    def refresh(self, tick: Tick) -> Iterable[Event]:
        """Containers that came and went since the last tick, and names that arrived meanwhile."""
        self._note_gone()
        self._settle()
        changed = self._discovery.refresh(tick.number)
        self._names.refresh()
        events: list[Event] = []
        ended: dict[str, ContainerLife] = {}
        most, self._most = self._most, self._context.live_containers.most
        if changed or self._names.version != self._names_version or most != self._most:
            with self._lock:
                events, ended = self._look_around(tick)
        elif self._pids.version != self._pids_version:
            self._publish_containers()
        events += self._tell_short(self._discovery.take_short(self._lives), ended, tick)
        self._note_cut()
        return events

    def _look_around(self, tick: Tick) -> tuple[list[Event], dict[str, ContainerLife]]:
        another = {path for path in self._lives if self._is_another(path)}
        for path in another:
            self._claims.forget(path)
        wanted = self._wanted()
        ended = {path: life for path, life in self._lives.items() if path not in wanted or path in another}
        return self._apply(wanted, ended, tick), ended

    def _note_cut(self) -> None:
        """Who nests more cgroups than are looked into, and what may not be looked into, for /status."""
        cut = {f"/{path}": NOT_LOOKED_INTO for path in self._discovery.cut()}
        cut.update({f"/{path}": CLOSED for path in self._discovery.closed()})
        cut.update(dict.fromkeys(self._pids.cut_paths(), TOO_NESTED))
        if cut or self._counters.cut_now:
            self._counters.cut_now = {clean_text(path, 1024): cut[path] for path in sorted(cut)[:CUT_SHOWN]}

    def _note_gone(self) -> None:
        gone = any(grid.gone_rows for grid in self._grids.values())
        for grid in self._grids.values():
            grid.gone_rows.clear()
        if gone:
            # A descriptor answered "no such device" before its folder's
            # removal was announced: all folders are looked at again to be sure.
            self._discovery.rescan()

    def _wanted(self) -> dict[str, frozenset[str]]:
        """Paths to sample, within the scopes' limits: the node's own and the longest known stay."""
        claims = self._claims.admit(self._discovery.containers(), self._lives)
        containers = {path: claim.hierarchies for path, claim in claims.items()}
        choice = self._context.settings.services
        wants_services = choice == "always" or (choice == "auto" and not containers)
        services = self._discovery.services() if wants_services else {}
        wanted = self._limit(containers, "container", self._claims.standing)
        wanted.update(self._limit(services, "service", lambda _: Standing.NODE))
        return wanted

    def _limit(
        self, found: Mapping[str, frozenset[str]], scope: str, standing: Callable[[str], Standing]
    ) -> dict[str, frozenset[str]]:
        limit = self._context.limit(scope)
        if self._most is not None:
            limit = min(limit, self._most)
        known = sorted(found, key=lambda path: (path not in self._lives, path))
        self._dropped[scope] = max(0, len(known) - limit)
        if len(known) > limit:
            # Stable: who is known longest stays first among those that stand alike.
            known = sorted(known, key=standing)[:limit]
        return {path: found[path] for path in known}

    def _apply(self, wanted: Mapping[str, frozenset[str]], ended: Iterable[str], tick: Tick) -> list[Event]:
        events = [self._end_life(self._lives.pop(path), tick) for path in ended]
        self._lives = fit(self._lives)
        reopened = False
        for path, hierarchies in wanted.items():
            life = self._lives.get(path)
            if life is None:
                life = self._add_life(path, hierarchies, tick)
                if life is not None:
                    events.append(
                        Event(START, tick.at_ns, life.entity.scope, life.entity.ids, life.entity.labels)
                    )
            elif hierarchies - life.hierarchies:
                self._reopen(life, hierarchies)
                reopened = True
        self._rename()
        entities = tuple(life.entity for life in self._lives.values())
        if reopened or entities != self._entities:
            self._arrange(entities)
        return events

    def _is_another(self, path: str) -> bool:
        """Whether the folder was removed and made again under the same name."""
        life = self._lives[path]
        inode = self._context.root.inode(life.folder)
        return inode is not None and str(inode) != life.inode

    def _add_life(self, path: str, hierarchies: frozenset[str], tick: Tick) -> ContainerLife | None:
        folder = self._folder(path, hierarchies)
        inode = self._context.root.inode(folder)
        if inode is None:
            return None
        cgroup = parse_cgroup_path(path)
        life = ContainerLife(
            path,
            cgroup,
            hierarchies,
            Entity("container"),
            str(inode),
            tick.mono_ns,
            tick.at_ns,
            folder,
            Standing.NODE if cgroup is NOTHING else self._claims.standing(path),
        )
        life.made_at_ns = min(tick.at_ns, self._context.root.made_at_ns(folder) or tick.at_ns)
        life.is_sandbox = self._identify(life)
        life.entity = self._describe(life)
        self._open(life)
        life.first = self._read_now(life)
        birth = self._discovery.births.find(path)
        if birth and birth.last:
            # Its last process had left before this tick met it.
            life.last = birth.last
        self._lives[path] = life
        self._note_kills(life)
        return life

    def _folder(self, path: str, hierarchies: frozenset[str]) -> str:
        """Its folder in the first hierarchy that has it: the one whose inode counts."""
        name = next(name for name in self._paths if name in hierarchies)
        return f"{self._paths[name]}/{path}"

    def _identify(self, life: ContainerLife) -> bool:
        """Note what the node's own files say about a container; whether it is its pod's sandbox."""
        if life.standing is Standing.NODE:
            self._names.look_again(life.cgroup.pod_uid)
            bundle = read_bundle(self._context.root, life.cgroup.container_id)
            if bundle:
                self._names.note_bundle(life.cgroup.container_id, bundle.name)
                return bundle.is_sandbox
        if not life.cgroup.pod_uid:
            return False
        self._young[life.path] = SETTLE_TICKS
        return self._is_sandbox(life.folder)

    def _is_sandbox(self, folder: str) -> bool:
        """The pod's pause container is told by its only process."""
        first = (self._context.root.read_text(f"{folder}/cgroup.procs") or "").split()
        return len(first) == 1 and self._context.root.read_text(f"proc/{first[0]}/comm") == "pause"

    def _settle(self) -> None:
        """A sandbox that was met before it ran `pause` is told now, and gives back the name it was given."""
        for path, ticks in list(self._young.items()):
            life = self._lives.get(path)
            if life is not None and not life.is_sandbox and self._is_sandbox(life.folder):
                life.is_sandbox = True
                self._names.note_sandbox(life.cgroup)
            if life is None or life.is_sandbox or ticks <= 1:
                del self._young[path]
            else:
                self._young[path] = ticks - 1

    def _open(self, life: ContainerLife) -> None:
        for table, grid in self._grids.items():
            files = {
                f"{self._paths[file.hierarchy]}/{life.path}/{file.name}": file
                for file in self._files[table]
                if file.hierarchy in life.hierarchies and not file.unless & life.hierarchies
            }
            parents = {
                path: self._find_parent(file, life.path)
                for path, file in files.items()
                if file.unchanged_with
            }
            grid.add(life.entity, [(path, file.layout) for path, file in files.items()], parents)
        self._pids.add(life.entity, life.folder)

    def _find_parent(self, file: CgroupFile, path: str) -> str:
        """The file that is unchanged while this container's is; empty where there is none."""
        if self._context.root.is_fixture:
            # Two moments of a node that were saved file by file.
            return ""
        if file.unchanged_with != PARENT:
            return file.unchanged_with
        top, _, below = path.partition("/")
        return f"{self._paths[file.hierarchy]}/{top}/{file.name}" if below else ""

    def _reopen(self, life: ContainerLife, hierarchies: frozenset[str]) -> None:
        """It appeared in one more hierarchy: runtimes make them one after the other."""
        self._close(life.entity)
        life.hierarchies = hierarchies | life.hierarchies
        self._open(life)

    def _close(self, entity: Entity) -> None:
        for grid in self._grids.values():
            grid.remove(entity)
        self._pids.remove(entity)

    # -- names ------------------------------------------------------------

    def _describe(self, life: ContainerLife) -> Entity:
        path = shorten_path("/" + life.path)
        if life.cgroup is NOTHING or not life.cgroup.container_id:
            labels = (("namespace", ""), ("pod", ""), ("container", ""), ("image", ""), ("id", path))
            workload = find_workload(service=path)
            details = (("name_source", "path"), *detail_workload(workload))
            return Entity("service", (path, life.inode), labels, details)
        # What somebody nests in himself is not what kubelet speaks of, whatever it is called.
        is_own = life.standing is Standing.NODE
        name = self._names.lookup(life.cgroup, is_sandbox=life.is_sandbox) if is_own else UNNAMED
        return Entity(
            "container",
            (life.cgroup.container_id, life.inode),
            (
                ("namespace", name.namespace),
                ("pod", name.pod),
                ("container", name.container),
                ("image", name.image),
                *self._alias(life, name),
                ("id", path),
            ),
            self._details(life, name),
        )

    def _alias(self, life: ContainerLife, name: Name) -> tuple[tuple[str, str], ...]:
        """The label `name` as cAdvisor has it, where a runtime or the API told of the container; it repeats the id."""
        told = name.alias or (life.cgroup.container_id if name.source in ("bundle", "kube") else "")
        return (("name", told),) if told else ()

    def _details(self, life: ContainerLife, name: Name) -> tuple[tuple[str, str], ...]:
        workload = find_workload(
            namespace=name.namespace,
            pod=name.pod,
            container=name.container,
            image=name.image,
            node=self._context.node,
            owner=name.owner,
            container_id=life.cgroup.container_id,
        )
        told = (
            ("owner", name.owner),
            ("labels", name.labels),
            ("cpu_request", name.cpu_request),
            ("memory_request", name.memory_request),
            ("previous_exit", name.previous_exit),
        )
        return (
            ("container_id", life.cgroup.container_id),
            ("pod_uid", life.cgroup.pod_uid),
            ("qos", life.cgroup.qos),
            ("runtime", life.cgroup.runtime),
            ("name_source", name.source),
            ("sandbox", "true" if life.is_sandbox else ""),
            ("restarts", name.restarts),
            ("started", str(life.made_at_ns // 10**9) if life.made_at_ns else ""),
            # Only the Kubernetes API tells these.
            *((key, value) for key, value in told if value),
            *detail_workload(workload),
        )

    def _rename(self) -> None:
        if self._names.version == self._names_version:
            return
        self._names_version = self._names.version
        for life in self._lives.values():
            entity = self._describe(life)
            if entity != life.entity:
                for grid in self._grids.values():
                    grid.replace(life.entity, entity)
                self._pids.replace(life.entity, entity)
                life.entity = entity

    def _arrange(self, entities: tuple[Entity, ...]) -> None:
        if entities == self._entities:
            # The same set stays the same object, though its files were opened again.
            entities = self._entities
        self._entities = entities
        for grid in self._grids.values():
            grid.arrange(entities)
        self._pids.arrange(entities)
        self._publish_containers()

    def _publish_containers(self) -> None:
        """The containers that run now, with their processes, for the sources that need them."""
        self._pids_version = self._pids.version
        self._context.live_containers.replace(
            tuple(
                LiveContainer(
                    life.entity, life.cgroup, life.path, life.folder, self._pids.pids_of(life.entity)
                )
                for life in self._lives.values()
            )
        )

    # -- the end ----------------------------------------------------------

    def _look_last(self, path: str) -> None:
        """On the watching thread, as soon as a container's last process left."""
        if path not in self._lives:
            self._discovery.births.note_look(path, self._glimpses.read(path))
            return
        with self._lock:
            life = self._lives.get(path)
            if life is not None:
                life.last = self._read_now(life)

    def _read_now(self, life: ContainerLife) -> dict[str, float]:
        values: dict[str, float] = {}
        for grid in self._grids.values():
            found = zip(grid.table.metrics, grid.read_row(life.entity))
            values.update({metric.name: value for metric, value in found if metric.name in FACT_NAMES})
        return {name: value for name, value in values.items() if not math.isnan(value)}

    def _end_life(self, life: ContainerLife, tick: Tick) -> Event:
        """The event of its end, with the newest of the last look and the last good tick."""
        known = dict(life.first or {})
        for grid in self._grids.values():
            known.update(grid.last_row(life.entity))
        known.update(life.last or {})
        facts = derive_facts(known)
        missed = self._missed_kills(life, facts.get("oom_kills", 0.0))
        if missed:
            facts["oom_kills"] = float(facts.get("oom_kills", 0.0)) + missed
        facts["lifetime_seconds"] = (tick.mono_ns - life.first_mono_ns) / 1e9
        facts["started_at"] = life.first_at_ns / 1e9
        facts["last_look"] = "at exit" if life.last else "last tick"
        self._close(life.entity)
        if life.standing is Standing.NODE:
            self._names.forget(life.cgroup)
            self._claims.end(life.cgroup)
        kind = OOM_EXIT if facts.get("oom_kills") else EXIT
        return Event(
            kind,
            tick.at_ns,
            life.entity.scope,
            life.entity.ids,
            (*life.entity.labels, *life.entity.details),
            facts,
        )

    # -- lives between two ticks ------------------------------------------

    def _tell_short(self, over: list[Birth], ended: Mapping[str, ContainerLife], tick: Tick) -> list[Event]:
        events: list[Event] = []
        births = self._discovery.births
        self._counters.unmeasured["pod"] = births.unseen_pods
        self._counters.unmeasured["not noted"] = births.unnoted
        for birth in over:
            life = ended.get(birth.path)
            lives = birth.lives - (life is not None and is_same_life(birth, life))
            if lives > 0 and not self._is_claimed(birth):
                self._counters.unmeasured["looked" if birth.last else "unseen"] += lives
                events += self._describe_short(birth, lives, tick)
        return events

    def _is_claimed(self, birth: Birth) -> bool:
        """Another container, which is there, has its id."""
        cgroup = parse_cgroup_path(birth.path)
        holder = self._context.live_containers.by_container.get(cgroup.container_id)
        if holder is None or holder.path == birth.path:
            return False
        self._counters.refused["container"] += 1
        return True

    def _describe_short(self, birth: Birth, lives: int, tick: Tick) -> list[Event]:
        """Its start and its end, with what is known of them."""
        cgroup = parse_cgroup_path(birth.path)
        standing = judge_path(birth.path, self._claims.kubelet_roots)
        life = ContainerLife(
            birth.path,
            cgroup,
            frozenset(birth.by_hierarchy),
            Entity("container"),
            birth.inode,
            birth.mono_ns,
            birth.at_ns,
            birth.path,
            standing,
        )
        if standing is Standing.NODE:
            self._names.look_again(cgroup.pod_uid)
        entity = self._describe(life)
        if standing is Standing.NODE:
            self._names.forget(cgroup)
            self._claims.end(cgroup)
        facts = derive_short_facts(birth, lives, tick.mono_ns)
        kind = OOM_EXIT if facts.get("oom_kills") else EXIT
        start = Event(START, tick.at_ns, entity.scope, entity.ids, entity.labels)
        labels = (*entity.labels, *entity.details)
        return [start, Event(kind, tick.at_ns, entity.scope, entity.ids, labels, facts)]

    # -- kills that nobody saw --------------------------------------------

    def _read_pod_kills(self, life: ContainerLife) -> float | None:
        """
        OOM kills of the whole pod, which outlive its containers.

        memory.events of a v2 cgroup counts everything below it, what is gone
        already included. v1 has no such file.
        """
        if not life.cgroup.pod_uid or "v2" not in life.hierarchies:
            return None
        folder = f"{self._paths['v2']}/{life.path}".rpartition("/")[0]
        text = self._context.root.read_text(f"{folder}/memory.events") or ""
        words = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
        return float(words["oom_kill"]) if words.get("oom_kill", "").isdigit() else None

    def _count_kills(self, pod_uid: str) -> float:
        """Kills that the living containers of a pod had at the last tick."""
        kills = 0.0
        for life in self._lives.values():
            if life.cgroup.pod_uid == pod_uid:
                known = {
                    **(life.first or {}),
                    **self._grids["container"].last_row(life.entity),
                    **(life.last or {}),
                }
                kills += known.get(OOM_KILLS, 0.0)
        return kills

    def _note_kills(self, life: ContainerLife) -> None:
        """At the first sight of a pod: kills of containers that ended before us."""
        if life.cgroup.pod_uid in self._ended_kills:
            return
        total = self._read_pod_kills(life)
        if total is not None:
            self._ended_kills[life.cgroup.pod_uid] = total - self._count_kills(life.cgroup.pod_uid)

    def _missed_kills(self, life: ContainerLife, own: float | str) -> float:
        """Kills that only the pod knows of: between our last look and the end."""
        pod_uid = life.cgroup.pod_uid
        total = self._read_pod_kills(life)
        if total is None or pod_uid not in self._ended_kills:
            return 0.0
        missed = max(0.0, total - self._count_kills(pod_uid) - float(own) - self._ended_kills[pod_uid])
        self._ended_kills[pod_uid] += float(own) + missed
        if not any(other.cgroup.pod_uid == pod_uid for other in self._lives.values()):
            # Its last container for now; a successor starts from the file again.
            del self._ended_kills[pod_uid]
        return missed

    def close(self) -> None:
        # Before the lock: the watching thread may wait for it to take its last look.
        self._discovery.close()
        with self._lock:
            for segment, _ in self.segments():
                segment.close()
            self._lives.clear()


def is_same_life(birth: Birth, life: ContainerLife) -> bool:
    """Whether what was announced is what a tick had met already: it was listed before it was announced."""
    announced = {str(one.inode) for one in birth.by_hierarchy.values() if one.inode}
    return not announced or life.inode in announced
