"""
Plain names: what a person calls a metric, and how it is made of what the kernel says.

Wherever a metric is asked for, a raw name of the archive or one of these is
accepted. Each input lists the raw names that may stand for it: cgroup v2
first, then v1; a node has one or, when hybrid, both, and the first that the
archive has is taken. Raw values are in the kernel's unit; `scale` of their
metric leads to the base unit before anything is derived.

    value      the first input as it is
    rate       its increase per second
    left       first input less the second, not below 0
    share      first / second
    rate_share rate of the first / (second / third): cores of the cores granted
    part       increase of the first / increase of the second
"""

from dataclasses import dataclass
from typing import Literal

Form = Literal["value", "rate", "left", "share", "rate_share", "part"]


@dataclass(frozen=True, slots=True)
class Plain:
    """One name, its unit, and how it is derived."""

    name: str
    unit: str
    form: Form
    inputs: tuple[tuple[str, ...], ...]
    help: str
    factor: float = 1.0
    by_pod: bool = False
    """Measured per pod: a container's is its pod's, summed over interfaces."""


USAGE = ("cgroup.v2.cpu.stat.usage_usec", "cgroup.v1.cpuacct.usage")
MEMORY = ("cgroup.v2.memory.current", "cgroup.v1.memory.usage_in_bytes")
LIMIT = ("cgroup.v2.memory.max", "cgroup.v1.memory.limit_in_bytes")
QUOTA = ("cgroup.v2.cpu.max.quota", "cgroup.v1.cpu.cfs_quota_us")
PERIOD = ("cgroup.v2.cpu.max.period", "cgroup.v1.cpu.cfs_period_us")

ROWS = (
    Plain("cpu", "cores", "rate", (USAGE,), "CPU time used per second."),
    Plain(
        "cpu_user",
        "cores",
        "rate",
        (("cgroup.v2.cpu.stat.user_usec", "cgroup.v1.cpuacct.stat.user"),),
        "CPU time used in user mode per second.",
    ),
    Plain(
        "cpu_system",
        "cores",
        "rate",
        (("cgroup.v2.cpu.stat.system_usec", "cgroup.v1.cpuacct.stat.system"),),
        "CPU time used in the kernel per second.",
    ),
    Plain(
        "cpu_millicores", "millicores", "rate", (USAGE,), "CPU time used, in thousandths of a core.", 1000.0
    ),
    Plain("cpu_limit_share", "ratio", "rate_share", (USAGE, QUOTA, PERIOD), "CPU used of the CPU granted."),
    Plain(
        "cpu_throttled",
        "ratio",
        "part",
        (
            ("cgroup.v2.cpu.stat.nr_throttled", "cgroup.v1.cpu.stat.nr_throttled"),
            ("cgroup.v2.cpu.stat.nr_periods", "cgroup.v1.cpu.stat.nr_periods"),
        ),
        "Share of scheduler periods in which the quota ran out.",
    ),
    Plain("memory", "bytes", "value", (MEMORY,), "Memory in use, page cache included."),
    Plain(
        "memory_working_set",
        "bytes",
        "left",
        (
            MEMORY,
            ("cgroup.v2.memory.stat.inactive_file", "cgroup.v1.memory.stat.total_inactive_file"),
        ),
        "Memory in use less the page cache that may be dropped first.",
    ),
    Plain(
        "memory_anon",
        "bytes",
        "value",
        (("cgroup.v2.memory.stat.anon", "cgroup.v1.memory.stat.total_rss"),),
        "Anonymous memory.",
    ),
    Plain(
        "memory_file",
        "bytes",
        "value",
        (("cgroup.v2.memory.stat.file", "cgroup.v1.memory.stat.total_cache"),),
        "Page cache.",
    ),
    Plain("memory_pss", "bytes", "value", (("smaps_rollup.pss",),), "Proportional share of memory."),
    Plain(
        "memory_peak",
        "bytes",
        "value",
        (("cgroup.v2.memory.peak", "cgroup.v1.memory.max_usage_in_bytes"),),
        "The most memory that was in use.",
    ),
    Plain("memory_limit", "bytes", "value", (LIMIT,), "Memory limit."),
    Plain("memory_limit_share", "ratio", "share", (MEMORY, LIMIT), "Memory used of its limit."),
    Plain(
        "pressure_cpu",
        "ratio",
        "rate",
        (("cgroup.v2.cpu.pressure.some.total",),),
        "Share of time in which a task waited for CPU.",
    ),
    Plain(
        "pressure_memory",
        "ratio",
        "rate",
        (("cgroup.v2.memory.pressure.some.total",),),
        "Share of time in which a task waited for memory.",
    ),
    Plain(
        "pressure_io",
        "ratio",
        "rate",
        (("cgroup.v2.io.pressure.some.total",),),
        "Share of time in which a task waited for I/O.",
    ),
    Plain(
        "disk_read",
        "bytes/s",
        "rate",
        (("cgroup.v2.io.stat.rbytes", "cgroup.v1.blkio.throttle.io_service_bytes.read"),),
        "Bytes read from block devices per second.",
    ),
    Plain(
        "disk_write",
        "bytes/s",
        "rate",
        (("cgroup.v2.io.stat.wbytes", "cgroup.v1.blkio.throttle.io_service_bytes.write"),),
        "Bytes written to block devices per second.",
    ),
    Plain(
        "network_receive",
        "bytes/s",
        "rate",
        (("pod.network.receive_bytes",),),
        "Bytes that the container's pod received per second.",
        by_pod=True,
    ),
    Plain(
        "network_transmit",
        "bytes/s",
        "rate",
        (("pod.network.transmit_bytes",),),
        "Bytes that the container's pod sent per second.",
        by_pod=True,
    ),
    Plain(
        "oom_kills",
        "count",
        "value",
        (("cgroup.v2.memory.events.oom_kill", "cgroup.v1.memory.oom_control.oom_kill"),),
        "Processes killed for memory.",
    ),
    Plain("processes", "count", "value", (("container.processes",),), "Processes that run in it."),
    Plain(
        "threads",
        "count",
        "value",
        (("cgroup.v2.pids.current", "cgroup.v1.pids.current"),),
        "Threads that run in it.",
    ),
    Plain(
        "gpu_utilization",
        "ratio",
        "value",
        (("gpu.utilization",),),
        "Share of time in which the GPU computed.",
        # The vendors count in percent.
        0.01,
    ),
    Plain(
        "gpu_memory",
        "bytes",
        "value",
        (("gpu.memory_used",),),
        "GPU memory in use.",
    ),
    Plain(
        "gpu_power",
        "watts",
        "value",
        (("gpu.power",),),
        "Power the GPU draws.",
    ),
)
PLAIN = {row.name: row for row in ROWS}
