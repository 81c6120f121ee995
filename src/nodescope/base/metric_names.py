"""
Plain names: what a person calls a metric, and how it is made of what the kernel says.

Wherever a metric is asked for, a raw name of the archive or one of these is
accepted. Each input lists the raw names that may stand for it: cgroup v2
first, then v1; an archive may have both, of two nodes or of one that is
hybrid. Raw values are in the kernel's unit; `scale` of their metric leads to
the base unit before anything is derived.

    value      the first input as it is
    rate       its increase per second
    rates      the increases of all inputs per second, together
    left       first input less the second, not below 0
    share      first / second
    used       1 - first / second
    rate_share rate of the first / (second / third): cores of the cores granted
    part       increase of the first / increase of the second

Without a scope a name means containers (and services, which have the same
files), the gpu_ names GPUs. With a scope it means the same thing of a node, a
core, a disk, an interface, a pod, a process. What is measured in smaller
pieces is joined: `of` says where its inputs are, `join` whether the pieces add
up or are averaged.
"""

from dataclasses import dataclass
from typing import Literal

Form = Literal["value", "rate", "rates", "left", "share", "used", "rate_share", "part"]
Join = Literal["sum", "mean"]


@dataclass(frozen=True, slots=True)
class Plain:
    """One name, its unit, and how it is derived."""

    name: str
    unit: str
    form: Form
    inputs: tuple[tuple[str, ...], ...]
    help: str
    factor: float = 1.0
    scope: str = ""
    """What its series are of; empty: containers and services."""
    of: str = ""
    """The scope of its inputs, where that is another one."""
    join: Join = "sum"


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
        of="pod",
    ),
    Plain(
        "network_transmit",
        "bytes/s",
        "rate",
        (("pod.network.transmit_bytes",),),
        "Bytes that the container's pod sent per second.",
        of="pod",
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
        scope="gpu",
    ),
    Plain(
        "gpu_memory",
        "bytes",
        "value",
        (("gpu.memory_used",),),
        "GPU memory in use.",
        scope="gpu",
    ),
    Plain(
        "gpu_power",
        "watts",
        "value",
        (("gpu.power",),),
        "Power the GPU draws.",
        scope="gpu",
    ),
)

# Time in which a core worked; guest time is inside user's (proc_stat(5)).
USER = (("cpu.user",), ("cpu.nice",))
SYSTEM = (("cpu.system",), ("cpu.irq",), ("cpu.softirq",))
BUSY = (*USER, *SYSTEM, ("cpu.steal",))


def core_rows(scope: str, of: str) -> tuple[Plain, ...]:
    """CPU time of one core, or of all together."""
    return (
        Plain("cpu", "cores", "rates", BUSY, "CPU time used per second.", scope=scope, of=of),
        Plain("cpu_user", "cores", "rates", USER, "CPU time in user mode per second.", scope=scope, of=of),
        Plain(
            "cpu_system", "cores", "rates", SYSTEM, "CPU time in the kernel per second.", scope=scope, of=of
        ),
        Plain(
            "cpu_millicores",
            "millicores",
            "rates",
            BUSY,
            "CPU time used, in thousandths of a core.",
            1000.0,
            scope=scope,
            of=of,
        ),
        Plain(
            "cpu_limit_share",
            "ratio",
            "rates",
            BUSY,
            "CPU time used of the cores' time.",
            scope=scope,
            of=of,
            join="mean",
        ),
    )


def flow_rows(scope: str, of: str, names: tuple[tuple[str, str, str], ...]) -> tuple[Plain, ...]:
    """Bytes per second of one device, or of all together."""
    return tuple(
        Plain(name, "bytes/s", "rate", ((raw,),), words, scope=scope, of=of) for name, raw, words in names
    )


DISK = (
    ("disk_read", "disk.sectors_read", "Bytes read from the disk per second."),
    ("disk_write", "disk.sectors_written", "Bytes written to the disk per second."),
)
NETWORK = (
    ("network_receive", "network.receive_bytes", "Bytes received per second."),
    ("network_transmit", "network.transmit_bytes", "Bytes sent per second."),
)
POD = (
    ("network_receive", "pod.network.receive_bytes", "Bytes that the pod received per second."),
    ("network_transmit", "pod.network.transmit_bytes", "Bytes that the pod sent per second."),
)


def node_row(name: str, unit: str, form: Form, *inputs: str, words: str) -> Plain:
    return Plain(name, unit, form, tuple((one,) for one in inputs), words, scope="node")


AVAILABLE, TOTAL = "memory.MemAvailable", "memory.MemTotal"
SCOPED_ROWS = (
    *core_rows("node", "cpu"),
    *core_rows("cpu", ""),
    *flow_rows("node", "disk", DISK),
    *flow_rows("disk", "", DISK),
    *flow_rows("node", "network", NETWORK),
    *flow_rows("network", "", NETWORK),
    *flow_rows("pod", "pod", POD),
    node_row("memory", "bytes", "left", TOTAL, AVAILABLE, words="Memory that is not available."),
    node_row("memory_limit", "bytes", "value", TOTAL, words="Memory of the node."),
    node_row(
        "memory_limit_share", "ratio", "used", AVAILABLE, TOTAL, words="Memory that is not available, of all."
    ),
    node_row("memory_anon", "bytes", "value", "memory.AnonPages", words="Anonymous memory."),
    node_row("memory_file", "bytes", "value", "memory.Cached", words="Page cache."),
    *(
        node_row(
            f"pressure_{what}",
            "ratio",
            "rate",
            f"pressure.{what}.some.total",
            words=f"Share of time in which a task waited for {spoken}.",
        )
        for what, spoken in (("cpu", "CPU"), ("memory", "memory"), ("io", "I/O"))
    ),
    node_row(
        "oom_kills", "count", "value", "vmstat.oom_kill", words="Processes killed for memory, since boot."
    ),
    Plain(
        "gpu_utilization",
        "ratio",
        "value",
        (("gpu.utilization",),),
        "Share of time in which a GPU computed, mean over the GPUs.",
        0.01,
        scope="node",
        of="gpu",
        join="mean",
    ),
    *(
        Plain(name, unit, "value", ((raw,),), words, scope="node", of="gpu")
        for name, unit, raw, words in (
            ("gpu_memory", "bytes", "gpu.memory_used", "GPU memory in use, all GPUs."),
            ("gpu_power", "watts", "gpu.power", "Power that the GPUs draw."),
        )
    ),
    Plain("cpu", "cores", "rate", (("process.cpu",),), "CPU time used per second.", scope="process"),
    Plain("memory", "bytes", "value", (("process.rss",),), "Resident memory.", scope="process"),
    Plain("threads", "count", "value", (("process.num_threads",),), "Threads.", scope="process"),
)
# Traffic that is counted on a physical interface as well: between pods, over
# bridges and tunnels. A node's own traffic leaves it out.
VIRTUAL = (
    *(
        "lo",
        "veth",
        "cali",
        "lxc",
        "cilium",
        "docker",
        "br-",
        "cni",
        "flannel",
        "virbr",
        "vnet",
        "tun",
        "tap",
    ),
    *("kube", "nodelocaldns", "dummy", "ifb", "vxlan", "gre", "sit", "ip6tnl", "wg", "podman", "azv", "eni-"),
)
PLAIN = {row.name: row for row in ROWS}
SCOPED = {(row.scope, row.name): row for row in (*SCOPED_ROWS, *(row for row in ROWS if row.scope))}
