"""
What a cgroup's files count: one row per number, with its name in cgroup v2 and in v1.

Both versions are published under the same name; the archive keeps the
kernel's own, `cgroup.v2.memory.current`. Everything else that needs such a
name takes it from here: the container source, plain names, facts of an ended
container, units of an archive that lost its sidecar.
"""

from dataclasses import dataclass
from typing import Any

from nodescope.base.metric import Kind, Metric

MICROSECOND = 1e-6
NANOSECOND = 1e-9
# cpuacct.stat counts in USER_HZ, whose length differs between machines.
CLOCK_TICKS = None


@dataclass(frozen=True, slots=True)
class CgroupMetric:
    """One number of a cgroup; a name is its file's, then the key inside it."""

    v2: str
    """Empty where v2 does not have it."""
    v1: str
    """Empty where v1 does not have it."""
    published: str | None
    help: str
    kind: Kind = "gauge"
    unit: str = ""
    scales: tuple[float, float | None] = (1.0, 1.0)
    """Of v2 and of v1."""
    labels: tuple[tuple[str, str], ...] = ()
    plain: str | None = None

    @property
    def raw(self) -> tuple[tuple[str, float | None], ...]:
        """(the archive's name, its scale) of every version that has it, v2 first."""
        versions = zip(("v2", "v1"), (self.v2, self.v1), self.scales)
        return tuple((f"cgroup.{version}.{name}", scale) for version, name, scale in versions if name)

    def build(self, version: str, ticks_per_second: int) -> Metric:
        name, scale = (self.v2, self.scales[0]) if version == "v2" else (self.v1, self.scales[1])
        return Metric(
            f"cgroup.{version}.{name}",
            self.kind,
            self.help,
            self.published and f"container_{self.published}",
            unit=self.unit,
            scale=1 / ticks_per_second if scale is CLOCK_TICKS else scale,
            labels=self.labels,
            plain=self.plain,
        )


def count(v2: str, v1: str, published: str | None, sentence: str, plain: str | None = None) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, "counter", plain=plain)


def size(v2: str, v1: str, published: str | None, sentence: str, plain: str | None = None) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, unit="bytes", plain=plain)


def seconds(
    v2: str, v1: str, published: str, sentence: str, v1_scale: float | None = NANOSECOND, **more: Any
) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, "counter", "seconds", (MICROSECOND, v1_scale), **more)


def mode_seconds(mode: str, where: str) -> CgroupMetric:
    published, sentence = f"cpu_{mode}_seconds_total", f"CPU time used in {where}."
    return seconds(f"cpu.stat.{mode}_usec", f"cpuacct.stat.{mode}", published, sentence, CLOCK_TICKS)


def quota_periods(key: str, word: str, sentence: str) -> CgroupMetric:
    return count(
        f"cpu.stat.{key}", f"cpu.stat.{key}", f"cpu_cfs_{word}_total", f"Scheduler periods {sentence}."
    )


def quota_part(key: str, sentence: str) -> CgroupMetric:
    return CgroupMetric(f"cpu.max.{key}", f"cpu.cfs_{key}_us", f"spec_cpu_{key}", sentence)


def memory_part(
    v2_key: str, v1_key: str, published: str | None, sentence: str, plain: str | None = None
) -> CgroupMetric:
    """A part of memory.stat; v1's totals are those that include the cgroups below, as v2's do."""
    v1 = f"memory.stat.total_{v1_key}" if v1_key else ""
    return size(f"memory.stat.{v2_key}", v1, published, sentence, plain)


def page_faults(key: str) -> CgroupMetric:
    labels = (("failure_type", key), ("scope", "hierarchy"))
    names = f"memory.stat.{key}", f"memory.stat.total_{key}"
    return CgroupMetric(*names, "memory_failures_total", "Page faults.", "counter", labels=labels)


def moved_bytes(letter: str, way: str, words: str) -> CgroupMetric:
    names = f"io.stat.{letter}bytes", f"blkio.throttle.io_service_bytes.{way}"
    return CgroupMetric(*names, None, f"Bytes {words} all block devices.", "counter", "bytes")


def stalled(resource: str, share: str, word: str) -> CgroupMetric:
    name = f"{resource}.pressure.{share}.total"
    sentence = f"Time tasks of the container were stalled on {resource}."
    return seconds(name, "", f"pressure_{resource}_{word}_seconds_total", sentence)


# Rows of one file stand in the order of its table's columns.
CGROUP_METRICS = (
    seconds(
        "cpu.stat.usage_usec",
        "cpuacct.usage",
        "cpu_usage_seconds_total",
        "CPU time used.",
        labels=(("cpu", "total"),),
    ),
    mode_seconds("user", "user mode"),
    mode_seconds("system", "the kernel"),
    quota_periods("nr_periods", "periods", "that have passed under a CPU quota"),
    quota_periods("nr_throttled", "throttled_periods", "in which the quota ran out"),
    seconds(
        "cpu.stat.throttled_usec",
        "cpu.stat.throttled_time",
        "cpu_cfs_throttled_seconds_total",
        "Time the container was held back by its CPU quota.",
    ),
    size(
        "memory.current",
        "memory.usage_in_bytes",
        "memory_usage_bytes",
        "Memory in use, page cache included.",
        "memory",
    ),
    count("memory.events.max", "memory.failcnt", "memory_failcnt", "Times the memory limit was hit."),
    count(
        "memory.events.oom_kill",
        "memory.oom_control.oom_kill",
        "oom_events_total",
        "Processes killed for memory.",
        "oom_kills",
    ),
    *(
        stalled(resource, share, word)
        for resource in ("cpu", "memory", "io")
        for share, word in (("some", "waiting"), ("full", "stalled"))
    ),
    moved_bytes("r", "read", "read from"),
    moved_bytes("w", "write", "written to"),
    count("io.stat.rios", "blkio.throttle.io_serviced.read", None, "Reads from all block devices."),
    count("io.stat.wios", "blkio.throttle.io_serviced.write", None, "Writes to all block devices."),
    memory_part("anon", "rss", "memory_rss", "Anonymous memory.", "memory_anon"),
    memory_part("file", "cache", "memory_cache", "Page cache.", "memory_file"),
    memory_part("shmem", "shmem", None, "Shared memory."),
    memory_part("file_mapped", "mapped_file", "memory_mapped_file", "Page cache mapped into processes."),
    memory_part("file_dirty", "dirty", None, "Page cache not yet written to disk."),
    memory_part(
        "inactive_file",
        "inactive_file",
        "memory_total_inactive_file_bytes",
        "Page cache that may be dropped first.",
    ),
    memory_part("active_file", "active_file", "memory_total_active_file_bytes", "Page cache in active use."),
    memory_part("kernel", "", "memory_kernel_usage", "Memory of the kernel for the container."),
    memory_part("slab", "", None, "Memory for kernel objects."),
    memory_part("sock", "", "memory_socket_bytes", "Memory for network buffers."),
    size("memory.swap.current", "memory.stat.total_swap", "memory_swap", "Swap in use."),
    page_faults("pgfault"),
    page_faults("pgmajfault"),
    size(
        "memory.max",
        "memory.limit_in_bytes",
        "spec_memory_limit_bytes",
        "Memory limit; +Inf when there is none.",
        "memory_limit",
    ),
    size(
        "memory.peak",
        "memory.max_usage_in_bytes",
        "memory_max_usage_bytes",
        "The most memory that was in use.",
        "memory_peak",
    ),
    quota_part("quota", "CPU time allowed per period, in microseconds."),
    quota_part("period", "Length of a scheduler period, in microseconds."),
    CgroupMetric(
        "pids.current", "pids.current", "threads", "Threads that run in the container.", plain="threads"
    ),
    CgroupMetric(
        "pids.max",
        "pids.max",
        "threads_max",
        "The most threads the container may have; +Inf when unlimited.",
    ),
)
BY_V2_NAME = {row.v2: row for row in CGROUP_METRICS}


def list_raw_names(v2_name: str) -> tuple[str, ...]:
    """The archive's names of one number, `memory.current` for example: v2's first, then v1's."""
    return tuple(name for name, _ in BY_V2_NAME[v2_name].raw)
