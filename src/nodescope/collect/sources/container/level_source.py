"""
Cgroups above containers: the root, the slices below it, and each pod as a whole.

Reads   cpu.stat, memory.stat, memory.current, limits and pids.current of /sys/fs/cgroup and of every folder
        in which a container stands; the same of v1
Needs   Linux; the setting cgroup_levels
Docs    https://docs.kernel.org/admin-guide/cgroup-v2.html

    usage_usec 4834

As cAdvisor has it: the same names as for containers, with an empty label
`container`, the cgroup in `id`, and for pods `namespace` and `pod`. A pod has more than the
sum of its containers: its sandbox, its memory-backed volumes, what ended containers left.
A query that adds up containers must leave them out, so they are off unless asked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from nodescope.base.block import Table
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.frame import Event
from nodescope.base.metric import Metric
from nodescope.base.text import shorten_path
from nodescope.collect.containers.cgroup_path import is_pod_folder, parse_cgroup_path
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.files.batch import FileGrid, ReadSegment
from nodescope.collect.files.layout import GridLayout
from nodescope.collect.run.source import Context, Tick
from nodescope.collect.sources.container.cgroup_tree import find_hierarchies
from nodescope.collect.sources.container.metrics import FILES, CgroupFile, Columns, FileRow

# Ticks between two readings: dashboards ask for a pod as a whole, incidents for its containers.
TIER = 30
# Files of a container that are read of a pod as well: use, limits, throttling.
NAMES = frozenset(
    [
        *("cpuacct.usage", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max", "pids.current"),
        *("memory.usage_in_bytes", "memory.current", "memory.stat", "memory.limit_in_bytes", "memory.max"),
    ]
)
# Of memory.stat those parts that dashboards ask for, and what the working set and the root's use need.
MEMORY_PARTS = (
    "anon",
    "file",
    "inactive_file",
    "total_rss",
    "total_cache",
    "total_inactive_file",
    "total_swap",
)


def narrow(row: FileRow) -> FileRow:
    """The same file with columns of a name of their own: what is added up over containers stays as it is."""
    return replace(row, layout=partial(choose_columns, row))


def choose_columns(row: FileRow, columns: Columns) -> GridLayout:
    kept = {
        key: rename(metric)
        for key, metric in columns.items()
        if row.name != "memory.stat" or key in MEMORY_PARTS
    }
    return row.layout(kept)


def rename(metric: Metric) -> Metric:
    return replace(metric, name=metric.name.replace("cgroup.", "level.", 1), plain=None)


def list_files(hierarchies: frozenset[str], ticks_per_second: int) -> list[CgroupFile]:
    """Of a node with these hierarchies; what a v1 controller has is not read of v2 again."""
    built = [file for row in FILES if row.name in NAMES for file in narrow(row).build(ticks_per_second)]
    return [file for file in built if file.hierarchy in hierarchies and not file.unless & hierarchies]


class ContainerLevelSource:
    """Follows the containers: a level is there while a container is below it, the root always."""

    name = "container_level"

    def __init__(self, context: Context) -> None:
        if not context.settings.cgroup_levels:
            raise SourceAbsent("turned off: cgroup_levels = false")
        self._context = context
        self._paths = {one.name: one.path for one in find_hierarchies(context.root)}
        if not self._paths:
            raise SourceAbsent("no cgroup file system at /sys/fs/cgroup")
        self._files = list_files(frozenset(self._paths), context.ticks_per_second)
        metrics = {metric.name: metric for file in self._files for metric in file.layout.metrics}
        table = Table(self.name, self.name, ("pod", "device"), tuple(metrics.values()))
        layouts = tuple(file.layout for file in self._files)
        self._grid = FileGrid(table, layouts, context.root, context.descriptors)
        self._known: dict[str, Entity] = {}
        self._members: tuple[LiveContainer, ...] | None = None
        self._dropped = 0

    def refresh(self, tick: Tick) -> Iterable[Event]:
        """Before a reading only: what comes and goes in between is never read."""
        members = self._context.live_containers.members
        if tick.number % TIER or (members is self._members and not self._grid.gone_rows):
            return ()
        if self._grid.gone_rows:
            # A pod's folder may have been made again under the same name.
            self._grid.gone_rows.clear()
            self._follow({})
        self._members = members
        self._follow(self._choose(members))
        return ()

    def _choose(self, members: Iterable[LiveContainer]) -> dict[str, Entity]:
        levels = {path: self._describe(path, below) for path, below in list_levels(members).items()}
        limit = self._context.limit("pod")
        self._dropped = max(0, len(levels) - limit)
        return {path: levels[path] for path in sorted(levels)[:limit]}

    def _describe(self, path: str, below: LiveContainer | None) -> Entity:
        shown = shorten_path(f"/{path}")
        made_ns = self._context.root.made_at_ns(self._folder(path))
        started = (("started", str(made_ns // 10**9)),) if made_ns else ()
        named = dict(below.entity.labels) if below and is_pod_folder(path.rpartition("/")[2]) else {}
        labels = (
            *(("namespace", named.get("namespace", "")), ("pod", named.get("pod", ""))),
            *(("container", ""), ("image", ""), ("id", shown)),
        )
        uid = parse_cgroup_path(path).pod_uid
        if named and uid:
            return Entity("pod", (uid,), labels, (("pod_uid", uid), *started))
        return Entity("device", ("cgroup", shown), labels, started)

    def _folder(self, path: str) -> str:
        return f"{next(iter(self._paths.values()))}/{path}".rstrip("/")

    def _follow(self, wanted: Mapping[str, Entity]) -> None:
        for path in self._known.keys() - wanted.keys():
            self._grid.remove(self._known.pop(path))
        for path, entity in wanted.items():
            known = self._known.get(path)
            if known is None:
                self._grid.add(entity, self._list_paths(path))
            elif known != entity:
                self._grid.replace(known, entity)
            self._known[path] = entity
        self._grid.arrange(tuple(self._known.values()))

    def _list_paths(self, path: str) -> list[tuple[str, GridLayout]]:
        return [
            (f"{self._paths[file.hierarchy]}/{path}/{file.name}".replace("//", "/"), file.layout)
            for file in self._files
        ]

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(self._grid, TIER)]

    def dropped(self) -> dict[str, int]:
        return {"pod": self._dropped}

    def close(self) -> None:
        self._grid.close()


def list_levels(members: Iterable[LiveContainer]) -> dict[str, LiveContainer | None]:
    """Every cgroup above a container, each with one that is below it; the empty path is the root."""
    containers = {member.path for member in members if member.entity.scope == "container"}
    levels: dict[str, LiveContainer | None] = {"": None}
    for member in members:
        if member.path in containers:
            for path in list_above(member.path):
                if path in containers:
                    # What is nested in a container is its own affair; its own levels are found by itself.
                    break
                levels.setdefault(path, member)
    return levels


def list_above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
