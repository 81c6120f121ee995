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

from nodescope.base.cgroup_metrics import list_raw_names

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


def container_row(name: str, unit: str, form: Form, *v2_names: str, words: str, factor: float = 1.0) -> Plain:
    return Plain(name, unit, form, tuple(list_raw_names(one) for one in v2_names), words, factor)


USAGE, QUOTA, PERIOD = "cpu.stat.usage_usec", "cpu.max.quota", "cpu.max.period"
MEMORY, LIMIT = "memory.current", "memory.max"

ROWS = (
    container_row("cpu", "cores", "rate", USAGE, words="CPU time used per second."),
    container_row(
        "cpu_user", "cores", "rate", "cpu.stat.user_usec", words="CPU time used in user mode per second."
    ),
    container_row(
        "cpu_system", "cores", "rate", "cpu.stat.system_usec", words="CPU time used in the kernel per second."
    ),
    container_row(
        "cpu_millicores",
        "millicores",
        "rate",
        USAGE,
        words="CPU time used, in thousandths of a core.",
        factor=1000.0,
    ),
    container_row(
        "cpu_limit_share", "ratio", "rate_share", USAGE, QUOTA, PERIOD, words="CPU used of the CPU granted."
    ),
    container_row(
        "cpu_throttled",
        "ratio",
        "part",
        "cpu.stat.nr_throttled",
        "cpu.stat.nr_periods",
        words="Share of scheduler periods in which the quota ran out.",
    ),
    container_row("memory", "bytes", "value", MEMORY, words="Memory in use, page cache included."),
    container_row(
        "memory_working_set",
        "bytes",
        "left",
        MEMORY,
        "memory.stat.inactive_file",
        words="Memory in use less the page cache that may be dropped first.",
    ),
    container_row("memory_anon", "bytes", "value", "memory.stat.anon", words="Anonymous memory."),
    container_row("memory_file", "bytes", "value", "memory.stat.file", words="Page cache."),
    Plain("memory_pss", "bytes", "value", (("smaps_rollup.pss",),), "Proportional share of memory."),
    container_row("memory_peak", "bytes", "value", "memory.peak", words="The most memory that was in use."),
    container_row("memory_limit", "bytes", "value", LIMIT, words="Memory limit."),
    container_row("memory_limit_share", "ratio", "share", MEMORY, LIMIT, words="Memory used of its limit."),
    container_row(
        "pressure_cpu",
        "ratio",
        "rate",
        "cpu.pressure.some.total",
        words="Share of time in which a task waited for CPU.",
    ),
    container_row(
        "pressure_memory",
        "ratio",
        "rate",
        "memory.pressure.some.total",
        words="Share of time in which a task waited for memory.",
    ),
    container_row(
        "pressure_io",
        "ratio",
        "rate",
        "io.pressure.some.total",
        words="Share of time in which a task waited for I/O.",
    ),
    container_row(
        "disk_read", "bytes/s", "rate", "io.stat.rbytes", words="Bytes read from block devices per second."
    ),
    container_row(
        "disk_write", "bytes/s", "rate", "io.stat.wbytes", words="Bytes written to block devices per second."
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
    container_row(
        "oom_kills", "count", "value", "memory.events.oom_kill", words="Processes killed for memory."
    ),
    Plain("processes", "count", "value", (("container.processes",),), "Processes that run in it."),
    container_row("threads", "count", "value", "pids.current", words="Threads that run in it."),
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
