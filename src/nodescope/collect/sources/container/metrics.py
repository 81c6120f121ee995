"""
Every file of a container's cgroup that we read, and how it is laid out.

Three classes of files, three tables: what is cheap and changes (`container`),
memory.stat, which makes the kernel flush its per-CPU counters
(`container.memory_stat`), and the limits with what tells how near to them the
container came (`container.limits`), which changes slowly. Names on /metrics
are cAdvisor's. What a file's numbers mean is in `base.cgroup_metrics`; on a
hybrid node a cell comes from whichever tree has it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from nodescope.base.block import Info, Table
from nodescope.base.cgroup_metrics import CGROUP_METRICS
from nodescope.base.metric import Metric
from nodescope.collect.files.layout import (
    Fields,
    GridLayout,
    KeyValues,
    Number,
    OperationSums,
    PairSums,
    PressureLines,
)

# cgroup v1 writes "no limit" as the largest page-aligned 63-bit number;
# nobody has 2^62 bytes of memory.
V1_UNLIMITED = float(2**62)
INFO = Info(
    "container_info",
    "What is known of a container; always 1.",
    (
        "container_id",
        "pod_uid",
        "qos",
        "runtime",
        "name_source",
        "sandbox",
        "restarts",
        "workload",
        "workload_kind",
    ),
)
# The same file of the cgroup at the top of the tree, which counts all that happens below it.
PARENT = "parent"
# All OOM kills of the node; v1 counts those of a cgroup in no other.
KILLS = "proc/vmstat"
# Tells whether a container has done anything since it was last read.
WITNESS = "witness"
# Stands still while the container does nothing.
STILL = "still"
# The same, and all zeros as long as the container has no quota.
QUOTA = "quota"
# Is set, and not measured.
SETTING = "setting"

Columns = dict[str, Metric]
"""By the key inside the file; a file with a single number has the empty key."""


@dataclass(frozen=True, slots=True)
class CgroupFile:
    """One file of a cgroup: in which hierarchy, its name, its layout."""

    hierarchy: str
    name: str
    layout: GridLayout
    unless: frozenset[str] = frozenset()
    """Not read for a container that is in one of these hierarchies, too: they hold the same."""
    unchanged_with: str = ""
    """The file that stands still when this one does: PARENT, or another file of the node."""
    role: str = ""
    """WITNESS, STILL, QUOTA or SETTING; empty for a file that is read with its table."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file, in each hierarchy that may have it."""

    table: str
    hierarchies: tuple[str, ...]
    name: str
    layout: Callable[[Columns], GridLayout]
    unchanged_with: str = ""
    unless: tuple[str, ...] = ()
    role: str = ""

    def build(self, ticks_per_second: int) -> list[CgroupFile]:
        columns = self._columns(ticks_per_second)
        unless = frozenset(self.unless)
        return [
            CgroupFile(hierarchy, self.name, self.layout(columns), unless, self.unchanged_with, self.role)
            for hierarchy in self.hierarchies
        ]

    def _columns(self, ticks_per_second: int) -> Columns:
        """The metrics named after this file, `cpu.stat.usage_usec` after cpu.stat."""
        version = "v2" if self.hierarchies == ("v2",) else "v1"
        # blkio's files that count nested groups in are named like those that do not.
        file = f"cgroup.{version}.{self.name.removesuffix('_recursive')}"
        metrics = [row.build(version, ticks_per_second) for row in CGROUP_METRICS if getattr(row, version)]
        return {
            metric.name.removeprefix(file).removeprefix("."): metric
            for metric in metrics
            if metric.name == file or metric.name.startswith(f"{file}.")
        }


# -- layouts of columns ---------------------------------------------------------


def number(columns: Columns) -> Number:
    return Number(columns[""])


def limit(columns: Columns) -> Number:
    return Number(columns[""], unlimited_from=V1_UNLIMITED)


def fields(columns: Columns) -> Fields:
    return Fields(dict(enumerate(columns.values())))


def pressure(columns: Columns) -> PressureLines:
    return PressureLines({(key.split(".")[0], key.split(".")[1]): metric for key, metric in columns.items()})


def operations(columns: Columns) -> OperationSums:
    return OperationSums({key.capitalize(): metric for key, metric in columns.items()})


# -- the files: v1 first, for where both are the controllers are v1's -----------

MAIN, STAT, LIMITS = "container", "container.memory_stat", "container.limits"
V2 = ("v2",)
MEMORY, BLKIO, PIDS = ("memory",), ("blkio",), ("pids",)
ACCOUNTS = ("cpuacct", "cpu,cpuacct")
QUOTAS = ("cpu", "cpu,cpuacct")
LONG_STAT = partial(KeyValues, read_bytes=4096)
FILES = (
    FileRow(MAIN, ACCOUNTS, "cpuacct.usage", number, role=WITNESS),
    FileRow(MAIN, ACCOUNTS, "cpuacct.stat", KeyValues, role=STILL),
    FileRow(MAIN, QUOTAS, "cpu.stat", KeyValues, role=QUOTA),
    FileRow(MAIN, MEMORY, "memory.usage_in_bytes", number),
    FileRow(MAIN, MEMORY, "memory.oom_control", KeyValues, KILLS),
    FileRow(MAIN, BLKIO, "blkio.throttle.io_service_bytes_recursive", operations, PARENT),
    FileRow(MAIN, BLKIO, "blkio.throttle.io_serviced_recursive", operations, PARENT),
    FileRow(MAIN, V2, "cpu.stat", partial(KeyValues, read_bytes=1024), unless=ACCOUNTS, role=WITNESS),
    FileRow(MAIN, V2, "memory.current", number),
    FileRow(MAIN, V2, "memory.events", KeyValues, PARENT),
    # Some task always waits for a core; on most nodes memory and disks seldom make one wait.
    FileRow(MAIN, V2, "cpu.pressure", pressure),
    FileRow(MAIN, V2, "memory.pressure", pressure, PARENT),
    FileRow(MAIN, V2, "io.pressure", pressure, PARENT),
    FileRow(MAIN, V2, "io.stat", PairSums, PARENT),
    FileRow(STAT, MEMORY, "memory.stat", LONG_STAT),
    FileRow(STAT, V2, "memory.stat", LONG_STAT),
    FileRow(LIMITS, MEMORY, "memory.limit_in_bytes", limit, role=SETTING),
    FileRow(LIMITS, MEMORY, "memory.max_usage_in_bytes", number),
    FileRow(LIMITS, MEMORY, "memory.failcnt", number),
    FileRow(LIMITS, QUOTAS, "cpu.cfs_quota_us", limit, role=SETTING),
    FileRow(LIMITS, QUOTAS, "cpu.cfs_period_us", number, role=SETTING),
    FileRow(LIMITS, PIDS, "pids.current", number),
    FileRow(LIMITS, PIDS, "pids.max", number, role=SETTING),
    FileRow(LIMITS, V2, "memory.max", number, role=SETTING),
    FileRow(LIMITS, V2, "memory.peak", number),
    FileRow(LIMITS, V2, "memory.swap.current", number),
    FileRow(LIMITS, V2, "cpu.max", fields, role=SETTING),
    FileRow(LIMITS, V2, "pids.current", number),
    FileRow(LIMITS, V2, "pids.max", number, role=SETTING),
)


def choose_files(hierarchies: frozenset[str], ticks_per_second: int) -> dict[str, list[CgroupFile]]:
    """The files of each table on a node with these hierarchies."""
    chosen: dict[str, list[CgroupFile]] = {MAIN: [], STAT: [], LIMITS: []}
    for row in FILES:
        chosen[row.table] += [file for file in row.build(ticks_per_second) if file.hierarchy in hierarchies]
    return chosen


def make_table(name: str, files: list[CgroupFile]) -> Table:
    metrics = {metric.name: metric for file in files for metric in file.layout.metrics}
    info = INFO if name == MAIN else None
    return Table(name, "container", ("container", "service"), tuple(metrics.values()), info)
