"""
What a cgroup's files count: one row per number, with its name in cgroup v2 and in v1.

Both versions are published under the same name; the archive keeps the
kernel's own, `cgroup.v2.memory.current`. Everything else that needs such a
name takes it from here: the container source, plain names, facts of an ended
container, units of an archive that lost its sidecar.
"""

from dataclasses import dataclass

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


def count(v2: str, v1: str, published: str, sentence: str, plain: str | None = None) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, "counter", plain=plain)


def size(v2: str, v1: str, published: str | None, sentence: str, plain: str | None = None) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, unit="bytes", plain=plain)


def seconds(
    v2: str, v1: str, published: str, sentence: str, v1_scale: float | None = NANOSECOND
) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, "counter", "seconds", (MICROSECOND, v1_scale))


def page_faults(key: str) -> CgroupMetric:
    labels = (("failure_type", key), ("scope", "hierarchy"))
    names = f"memory.stat.{key}", f"memory.stat.total_{key}"
    return CgroupMetric(*names, "memory_failures_total", "Page faults.", "counter", labels=labels)


def moved_bytes(v2: str, v1: str, published: str, sentence: str) -> CgroupMetric:
    return CgroupMetric(v2, v1, published, sentence, "counter", "bytes")


def stalled(resource: str, share: str, word: str) -> CgroupMetric:
    name = f"{resource}.pressure.{share}.total"
    sentence = f"Time tasks of the container were stalled on {resource}."
    return seconds(name, "", f"pressure_{resource}_{word}_seconds_total", sentence)


# Rows of one file stand in the order of its table's columns.
CGROUP_METRICS = (
    CgroupMetric(
        "cpu.stat.usage_usec",
        "cpuacct.usage",
        "cpu_usage_seconds_total",
        "CPU time used.",
        "counter",
        "seconds",
        (MICROSECOND, NANOSECOND),
        (("cpu", "total"),),
    ),
    seconds(
        "cpu.stat.user_usec",
        "cpuacct.stat.user",
        "cpu_user_seconds_total",
        "CPU time used in user mode.",
        CLOCK_TICKS,
    ),
    seconds(
        "cpu.stat.system_usec",
        "cpuacct.stat.system",
        "cpu_system_seconds_total",
        "CPU time used in the kernel.",
        CLOCK_TICKS,
    ),
    count(
        "cpu.stat.nr_periods",
        "cpu.stat.nr_periods",
        "cpu_cfs_periods_total",
        "Scheduler periods that have passed under a CPU quota.",
    ),
    count(
        "cpu.stat.nr_throttled",
        "cpu.stat.nr_throttled",
        "cpu_cfs_throttled_periods_total",
        "Scheduler periods in which the quota ran out.",
    ),
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
    moved_bytes(
        "io.stat.rbytes",
        "blkio.throttle.io_service_bytes.read",
        "fs_reads_bytes_total",
        "Bytes read from block devices.",
    ),
    moved_bytes(
        "io.stat.wbytes",
        "blkio.throttle.io_service_bytes.write",
        "fs_writes_bytes_total",
        "Bytes written to block devices.",
    ),
    count("io.stat.rios", "blkio.throttle.io_serviced.read", "fs_reads_total", "Reads from block devices."),
    count("io.stat.wios", "blkio.throttle.io_serviced.write", "fs_writes_total", "Writes to block devices."),
    size("memory.stat.anon", "memory.stat.total_rss", "memory_rss", "Anonymous memory.", "memory_anon"),
    size("memory.stat.file", "memory.stat.total_cache", "memory_cache", "Page cache.", "memory_file"),
    size("memory.stat.shmem", "memory.stat.total_shmem", None, "Shared memory."),
    size(
        "memory.stat.file_mapped",
        "memory.stat.total_mapped_file",
        "memory_mapped_file",
        "Page cache mapped into processes.",
    ),
    size("memory.stat.file_dirty", "memory.stat.total_dirty", None, "Page cache not yet written to disk."),
    size(
        "memory.stat.inactive_file",
        "memory.stat.total_inactive_file",
        "memory_total_inactive_file_bytes",
        "Page cache that may be dropped first.",
    ),
    size(
        "memory.stat.active_file",
        "memory.stat.total_active_file",
        "memory_total_active_file_bytes",
        "Page cache in active use.",
    ),
    size("memory.stat.kernel", "", "memory_kernel_usage", "Memory of the kernel for the container."),
    size("memory.stat.slab", "", None, "Memory for kernel objects."),
    size("memory.stat.sock", "", None, "Memory for network buffers."),
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
    CgroupMetric(
        "cpu.max.quota",
        "cpu.cfs_quota_us",
        "spec_cpu_quota",
        "CPU time allowed per period, in microseconds.",
    ),
    CgroupMetric(
        "cpu.max.period",
        "cpu.cfs_period_us",
        "spec_cpu_period",
        "Length of a scheduler period, in microseconds.",
    ),
    CgroupMetric(
        "pids.current",
        "pids.current",
        "threads",
        "Threads that run in the container.",
        plain="threads",
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
