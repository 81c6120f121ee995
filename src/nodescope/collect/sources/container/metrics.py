"""
Every file of a container's cgroup that we read, and what its numbers mean.

Three classes of files, three tables: what is cheap and changes (`container`),
memory.stat, which makes the kernel flush its per-CPU counters
(`container.memory_stat`), and the limits with what tells how near to them the
container came (`container.limits`), which changes slowly. Names
on /metrics are cAdvisor's. cgroup v1 and v2 publish the same names; on a
hybrid node a cell comes from whichever tree has it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nodescope.base.block import Info, Table
from nodescope.base.metric import Kind, Metric
from nodescope.collect.files.layout import (
    Fields,
    GridLayout,
    KeyValues,
    Number,
    OperationSums,
    PairSums,
    PressureLines,
)

MICROSECOND = 1e-6
NANOSECOND = 1e-9
# cgroup v1 writes "no limit" as the largest page-aligned 63-bit number;
# nobody has 2^62 bytes of memory.
V1_UNLIMITED = float(2**62)

INFO = Info(
    "container_info",
    "What is known of a container; always 1.",
    ("container_id", "pod_uid", "qos", "runtime", "name_source", "sandbox", "restarts"),
)


# The same file of the cgroup at the top of the tree, which counts all that happens below it.
PARENT = "parent"
# All OOM kills of the node; v1 counts those of a cgroup in no other.
KILLS = "proc/vmstat"


@dataclass(frozen=True, slots=True)
class CgroupFile:
    """One file of a cgroup: in which hierarchy, its name, its layout."""

    hierarchy: str
    name: str
    layout: GridLayout
    unless: frozenset[str] = frozenset()
    """Not read for a container that is in one of these hierarchies, too: they tell the same."""
    told_by: str = ""
    """Who stands still when it does: PARENT, or another file of the node; empty when nobody."""


def row(
    name: str,
    published: str | None,
    sentence: str,
    *,
    kind: Kind = "gauge",
    unit: str = "",
    scale: float = 1.0,
    labels: tuple[tuple[str, str], ...] = (),
    plain: str | None = None,
) -> Metric:
    return Metric(
        name,
        kind,
        sentence,
        published and f"container_{published}",
        unit=unit,
        scale=scale,
        labels=labels,
        plain=plain,
    )


def seconds(
    name: str, published: str, sentence: str, scale: float, labels: tuple[tuple[str, str], ...] = ()
) -> Metric:
    return row(name, published, sentence, kind="counter", unit="seconds", scale=scale, labels=labels)


def count(name: str, published: str | None, sentence: str, plain: str | None = None) -> Metric:
    return row(name, published, sentence, kind="counter", plain=plain)


def size(name: str, published: str | None, sentence: str, plain: str | None = None) -> Metric:
    return row(name, published, sentence, unit="bytes", plain=plain)


CPU_ACCOUNTS = frozenset({"cpuacct", "cpu,cpuacct"})
TOTAL_CPU = (("cpu", "total"),)
USED = "CPU time used."
USED_USER = "CPU time used in user mode."
USED_SYSTEM = "CPU time used in the kernel."
PERIODS = "Scheduler periods that have passed under a CPU quota."
THROTTLED = "Scheduler periods in which the quota ran out."
THROTTLED_TIME = "Time the container was held back by its CPU quota."
FAULT_LABELS = {"pgfault": (("failure_type", "pgfault"),), "pgmajfault": (("failure_type", "pgmajfault"),)}


def pressure(resource: str) -> PressureLines:
    def stalled(share: str, word: str) -> Metric:
        name = f"cgroup.v2.{resource}.pressure.{share}.total"
        sentence = f"Time tasks of the container were stalled on {resource}."
        return seconds(name, f"pressure_{resource}_{word}_seconds_total", sentence, MICROSECOND)

    return PressureLines(
        {("some", "total"): stalled("some", "waiting"), ("full", "total"): stalled("full", "stalled")}
    )


def v2_main() -> Iterator[CgroupFile]:
    stat = "cgroup.v2.cpu.stat."
    cpu = {
        "usage_usec": seconds(
            f"{stat}usage_usec", "cpu_usage_seconds_total", USED, MICROSECOND, labels=TOTAL_CPU
        ),
        "user_usec": seconds(f"{stat}user_usec", "cpu_user_seconds_total", USED_USER, MICROSECOND),
        "system_usec": seconds(f"{stat}system_usec", "cpu_system_seconds_total", USED_SYSTEM, MICROSECOND),
        "nr_periods": count(f"{stat}nr_periods", "cpu_cfs_periods_total", PERIODS),
        "nr_throttled": count(f"{stat}nr_throttled", "cpu_cfs_throttled_periods_total", THROTTLED),
        "throttled_usec": seconds(
            f"{stat}throttled_usec", "cpu_cfs_throttled_seconds_total", THROTTLED_TIME, MICROSECOND
        ),
    }
    events = {
        "max": row(
            "cgroup.v2.memory.events.max", "memory_failcnt", "Times the memory limit was hit.", kind="counter"
        ),
        "oom_kill": count(
            "cgroup.v2.memory.events.oom_kill",
            "oom_events_total",
            "Processes killed for memory.",
            "oom_kills",
        ),
    }
    io = {
        "rbytes": row(
            "cgroup.v2.io.stat.rbytes",
            "fs_reads_bytes_total",
            "Bytes read from block devices.",
            kind="counter",
            unit="bytes",
        ),
        "wbytes": row(
            "cgroup.v2.io.stat.wbytes",
            "fs_writes_bytes_total",
            "Bytes written to block devices.",
            kind="counter",
            unit="bytes",
        ),
        "rios": count("cgroup.v2.io.stat.rios", "fs_reads_total", "Reads from block devices."),
        "wios": count("cgroup.v2.io.stat.wios", "fs_writes_total", "Writes to block devices."),
    }
    yield CgroupFile("v2", "cpu.stat", KeyValues(cpu, read_bytes=1024), CPU_ACCOUNTS)
    yield CgroupFile(
        "v2",
        "memory.current",
        Number(
            size(
                "cgroup.v2.memory.current",
                "memory_usage_bytes",
                "Memory in use, page cache included.",
                "memory",
            )
        ),
    )
    yield CgroupFile("v2", "memory.events", KeyValues(events), told_by=PARENT)
    # Somebody always waits for a core; memory and disks keep most nodes waiting seldom.
    for resource, told_by in (("cpu", ""), ("memory", PARENT), ("io", PARENT)):
        yield CgroupFile("v2", f"{resource}.pressure", pressure(resource), told_by=told_by)
    yield CgroupFile("v2", "io.stat", PairSums(io), told_by=PARENT)


def v1_main(ticks_per_second: int) -> Iterator[CgroupFile]:
    tick = 1 / ticks_per_second
    cpu = {
        "nr_periods": count("cgroup.v1.cpu.stat.nr_periods", "cpu_cfs_periods_total", PERIODS),
        "nr_throttled": count(
            "cgroup.v1.cpu.stat.nr_throttled", "cpu_cfs_throttled_periods_total", THROTTLED
        ),
        "throttled_time": seconds(
            "cgroup.v1.cpu.stat.throttled_time", "cpu_cfs_throttled_seconds_total", THROTTLED_TIME, NANOSECOND
        ),
    }
    split = {
        "user": seconds("cgroup.v1.cpuacct.stat.user", "cpu_user_seconds_total", USED_USER, tick),
        "system": seconds("cgroup.v1.cpuacct.stat.system", "cpu_system_seconds_total", USED_SYSTEM, tick),
    }
    usage = seconds("cgroup.v1.cpuacct.usage", "cpu_usage_seconds_total", USED, NANOSECOND, labels=TOTAL_CPU)
    killed = {
        "oom_kill": count(
            "cgroup.v1.memory.oom_control.oom_kill",
            "oom_events_total",
            "Processes killed for memory.",
            "oom_kills",
        )
    }
    moved = {
        "Read": row(
            "cgroup.v1.blkio.throttle.io_service_bytes.read",
            "fs_reads_bytes_total",
            "Bytes read from block devices.",
            kind="counter",
            unit="bytes",
        ),
        "Write": row(
            "cgroup.v1.blkio.throttle.io_service_bytes.write",
            "fs_writes_bytes_total",
            "Bytes written to block devices.",
            kind="counter",
            unit="bytes",
        ),
    }
    served = {
        "Read": count(
            "cgroup.v1.blkio.throttle.io_serviced.read", "fs_reads_total", "Reads from block devices."
        ),
        "Write": count(
            "cgroup.v1.blkio.throttle.io_serviced.write", "fs_writes_total", "Writes to block devices."
        ),
    }
    for hierarchy in ("cpuacct", "cpu,cpuacct"):
        yield CgroupFile(hierarchy, "cpuacct.usage", Number(usage))
        yield CgroupFile(hierarchy, "cpuacct.stat", KeyValues(split))
    for hierarchy in ("cpu", "cpu,cpuacct"):
        yield CgroupFile(hierarchy, "cpu.stat", KeyValues(cpu))
    yield CgroupFile(
        "memory",
        "memory.usage_in_bytes",
        Number(
            size(
                "cgroup.v1.memory.usage_in_bytes",
                "memory_usage_bytes",
                "Memory in use, page cache included.",
                "memory",
            )
        ),
    )
    yield CgroupFile("memory", "memory.oom_control", KeyValues(killed), told_by=KILLS)
    yield CgroupFile(
        "blkio", "blkio.throttle.io_service_bytes_recursive", OperationSums(moved), told_by=PARENT
    )
    yield CgroupFile("blkio", "blkio.throttle.io_serviced_recursive", OperationSums(served), told_by=PARENT)


# Key in v2's memory.stat, key in v1's, published name, kind, sentence, plain name.
MEMORY_STAT: tuple[tuple[str, str, str | None, Kind, str, str | None], ...] = (
    ("anon", "total_rss", "memory_rss", "gauge", "Anonymous memory.", "memory_anon"),
    ("file", "total_cache", "memory_cache", "gauge", "Page cache.", "memory_file"),
    ("shmem", "total_shmem", None, "gauge", "Shared memory.", None),
    (
        "file_mapped",
        "total_mapped_file",
        "memory_mapped_file",
        "gauge",
        "Page cache mapped into processes.",
        None,
    ),
    ("file_dirty", "total_dirty", None, "gauge", "Page cache not yet written to disk.", None),
    (
        "inactive_file",
        "total_inactive_file",
        "memory_total_inactive_file_bytes",
        "gauge",
        "Page cache that may be dropped first.",
        None,
    ),
    (
        "active_file",
        "total_active_file",
        "memory_total_active_file_bytes",
        "gauge",
        "Page cache in active use.",
        None,
    ),
    ("kernel", "", "memory_kernel_usage", "gauge", "Memory of the kernel for the container.", None),
    ("", "total_swap", "memory_swap", "gauge", "Swap in use.", None),
    ("slab", "", None, "gauge", "Memory for kernel objects.", None),
    ("sock", "", None, "gauge", "Memory for network buffers.", None),
    ("pgfault", "total_pgfault", "memory_failures_total", "counter", "Page faults.", None),
    ("pgmajfault", "total_pgmajfault", "memory_failures_total", "counter", "Page faults.", None),
)


def memory_stat(version: str) -> Iterator[CgroupFile]:
    wanted = {}
    for v2_key, v1_key, published, kind, sentence, plain in MEMORY_STAT:
        key = v2_key if version == "v2" else v1_key
        # The two versions do not tell quite the same.
        if key:
            labels = (
                *FAULT_LABELS.get(v2_key, ()),
                *((("scope", "hierarchy"),) if kind == "counter" else ()),
            )
            unit = "bytes" if kind == "gauge" else ""
            wanted[key] = row(
                f"cgroup.{version}.memory.stat.{key}",
                published,
                sentence,
                kind=kind,
                unit=unit,
                labels=labels,
                plain=plain,
            )
    yield CgroupFile("v2" if version == "v2" else "memory", "memory.stat", KeyValues(wanted, read_bytes=4096))


def v2_limits() -> Iterator[CgroupFile]:
    quota = {
        0: row("cgroup.v2.cpu.max.quota", "spec_cpu_quota", "CPU time allowed per period, in microseconds."),
        1: row(
            "cgroup.v2.cpu.max.period", "spec_cpu_period", "Length of a scheduler period, in microseconds."
        ),
    }
    yield CgroupFile(
        "v2",
        "memory.max",
        Number(
            size(
                "cgroup.v2.memory.max",
                "spec_memory_limit_bytes",
                "Memory limit; +Inf when there is none.",
                "memory_limit",
            )
        ),
    )
    yield CgroupFile(
        "v2",
        "memory.peak",
        Number(
            size(
                "cgroup.v2.memory.peak",
                "memory_max_usage_bytes",
                "The most memory that was in use.",
                "memory_peak",
            )
        ),
    )
    yield CgroupFile(
        "v2",
        "memory.swap.current",
        Number(size("cgroup.v2.memory.swap.current", "memory_swap", "Swap in use.")),
    )
    yield CgroupFile("v2", "cpu.max", Fields(quota))
    yield CgroupFile(
        "v2",
        "pids.current",
        Number(
            row("cgroup.v2.pids.current", "threads", "Threads that run in the container.", plain="threads")
        ),
    )
    yield CgroupFile(
        "v2",
        "pids.max",
        Number(
            row(
                "cgroup.v2.pids.max",
                "threads_max",
                "The most threads the container may have; +Inf when unlimited.",
            )
        ),
    )


def v1_limits() -> Iterator[CgroupFile]:
    limit = size(
        "cgroup.v1.memory.limit_in_bytes",
        "spec_memory_limit_bytes",
        "Memory limit; +Inf when there is none.",
        "memory_limit",
    )
    quota = row(
        "cgroup.v1.cpu.cfs_quota_us", "spec_cpu_quota", "CPU time allowed per period, in microseconds."
    )
    period = row(
        "cgroup.v1.cpu.cfs_period_us", "spec_cpu_period", "Length of a scheduler period, in microseconds."
    )
    failed = row(
        "cgroup.v1.memory.failcnt", "memory_failcnt", "Times the memory limit was hit.", kind="counter"
    )
    yield CgroupFile("memory", "memory.limit_in_bytes", Number(limit, unlimited_from=V1_UNLIMITED))
    yield CgroupFile(
        "memory",
        "memory.max_usage_in_bytes",
        Number(
            size(
                "cgroup.v1.memory.max_usage_in_bytes",
                "memory_max_usage_bytes",
                "The most memory that was in use.",
                "memory_peak",
            )
        ),
    )
    yield CgroupFile("memory", "memory.failcnt", Number(failed))
    for hierarchy in ("cpu", "cpu,cpuacct"):
        yield CgroupFile(hierarchy, "cpu.cfs_quota_us", Number(quota, unlimited_from=V1_UNLIMITED))
        yield CgroupFile(hierarchy, "cpu.cfs_period_us", Number(period))
    yield CgroupFile(
        "pids",
        "pids.current",
        Number(
            row("cgroup.v1.pids.current", "threads", "Threads that run in the container.", plain="threads")
        ),
    )
    yield CgroupFile(
        "pids",
        "pids.max",
        Number(
            row(
                "cgroup.v1.pids.max",
                "threads_max",
                "The most threads the container may have; +Inf when unlimited.",
            )
        ),
    )


def choose_files(hierarchies: frozenset[str], ticks_per_second: int) -> dict[str, list[CgroupFile]]:
    """The files of each table on a node with these hierarchies; v1 first where both are."""
    v1 = [*v1_main(ticks_per_second)], [*memory_stat("v1")], [*v1_limits()]
    v2 = [*v2_main()], [*memory_stat("v2")], [*v2_limits()]
    names = ("container", "container.memory_stat", "container.limits")
    return {
        name: [file for file in (*v1_files, *v2_files) if file.hierarchy in hierarchies]
        for name, v1_files, v2_files in zip(names, v1, v2)
    }


def make_table(name: str, files: list[CgroupFile]) -> Table:
    metrics = {metric.name: metric for file in files for metric in file.layout.metrics}
    info = INFO if name == "container" else None
    return Table(name, "container", ("container", "service"), tuple(metrics.values()), info)
