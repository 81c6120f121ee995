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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from nodescope.base.cgroup_metrics import BY_V2_NAME, list_raw_names
from nodescope.base.text import ABBREVIATIONS

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


def row(name: str, unit: str, form: Form, words: str, *inputs: str, **more: Any) -> Plain:
    """An input is a number of a cgroup by its v2 name, or anything else by its raw name."""
    raw = (list_raw_names(one) if one in BY_V2_NAME else (one,) for one in inputs)
    return Plain(name, unit, form, tuple(raw), words, **more)


# Time in which a core worked; guest time is inside user's (proc_stat(5)).
USER = ("cpu.user", "cpu.nice")
SYSTEM = ("cpu.system", "cpu.irq", "cpu.softirq")
BUSY = (*USER, *SYSTEM, "cpu.steal")
MILLICORES = "CPU time used, in thousandths of a core."


def core_rows(**place: str) -> tuple[Plain, ...]:
    """CPU time of one core, or of all together."""
    share = "CPU time used of the cores' time."
    return (
        row("cpu", "cores", "rates", "CPU time used per second.", *BUSY, **place),
        row("cpu_user", "cores", "rates", "CPU time in user mode per second.", *USER, **place),
        row("cpu_system", "cores", "rates", "CPU time in the kernel per second.", *SYSTEM, **place),
        row("cpu_millicores", "millicores", "rates", MILLICORES, *BUSY, factor=1000.0, **place),
        row("cpu_limit_share", "ratio", "rates", share, *BUSY, join="mean", **place),
    )


def flow_rows(names: tuple[tuple[str, str, str], ...], **place: str) -> tuple[Plain, ...]:
    """Bytes per second of one device, or of all together."""
    return tuple(
        row(name, "bytes/s", "rate", f"Bytes {words} per second.", raw, **place) for name, raw, words in names
    )


def pressure_rows(scope: str) -> Iterator[Plain]:
    for what in ("cpu", "memory", "io"):
        words = f"Share of time in which a task waited for {ABBREVIATIONS.get(what, what)}."
        raw = f"pressure.{what}.some.total" if scope else f"{what}.pressure.some.total"
        yield row(f"pressure_{what}", "ratio", "rate", words, raw, scope=scope)


DISK = (
    ("disk_read", "disk.sectors_read", "read from the disk"),
    ("disk_write", "disk.sectors_written", "written to the disk"),
)
BLOCK_DEVICES = (
    ("disk_read", "io.stat.rbytes", "read from block devices"),
    ("disk_write", "io.stat.wbytes", "written to block devices"),
)
NETWORK = (
    ("network_receive", "network.receive_bytes", "received"),
    ("network_transmit", "network.transmit_bytes", "sent"),
)
POD = (
    ("network_receive", "pod.network.receive_bytes", "that the pod received"),
    ("network_transmit", "pod.network.transmit_bytes", "that the pod sent"),
)
CONTAINERS_POD = tuple(
    (name, raw, words.replace("the pod", "the container's pod")) for name, raw, words in POD
)
# Plain name, unit, how it is derived, what is counted, the kernel's words for it.
TCP: tuple[tuple[str, str, Form, str, tuple[str, ...]], ...] = (
    ("tcp_retransmits", "segments/s", "rate", "TCP segments sent again per second", ("Tcp_RetransSegs",)),
    (
        "tcp_retransmit_share",
        "ratio",
        "part",
        "TCP segments sent again, of those sent",
        ("Tcp_RetransSegs", "Tcp_OutSegs"),
    ),
    (
        "tcp_resets",
        "connections/s",
        "rate",
        "TCP connections that were reset per second",
        ("Tcp_EstabResets",),
    ),
    (
        "tcp_refused",
        "connections/s",
        "rate",
        "TCP connections refused per second because a queue was full",
        ("TcpExt_ListenOverflows",),
    ),
    ("tcp_connections", "count", "value", "TCP connections that are established", ("Tcp_CurrEstab",)),
)


def tcp_rows(source: str, whose: str, **place: str) -> tuple[Plain, ...]:
    """What a network namespace counts: that of a pod, or the node's own."""
    return tuple(
        row(name, unit, form, f"{words}, {whose}.", *(f"{source}.{key}" for key in keys), **place)
        for name, unit, form, words, keys in TCP
    )


USAGE, QUOTA, PERIOD = "cpu.stat.usage_usec", "cpu.max.quota", "cpu.max.period"
THROTTLED, PERIODS = "cpu.stat.nr_throttled", "cpu.stat.nr_periods"
MEMORY, LIMIT, INACTIVE = "memory.current", "memory.max", "memory.stat.inactive_file"
LEFT = "Memory in use less the page cache that may be dropped first."
# The vendors of GPUs count in percent.
PERCENT = 0.01
GPU_COMPUTED = "Share of time in which the GPU computed."
RAN_OUT = "Share of scheduler periods in which the quota ran out."

ROWS = (
    row("cpu", "cores", "rate", "CPU time used per second.", USAGE),
    row("cpu_user", "cores", "rate", "CPU time used in user mode per second.", "cpu.stat.user_usec"),
    row("cpu_system", "cores", "rate", "CPU time used in the kernel per second.", "cpu.stat.system_usec"),
    row("cpu_millicores", "millicores", "rate", MILLICORES, USAGE, factor=1000.0),
    row("cpu_limit_share", "ratio", "rate_share", "CPU used of the CPU granted.", USAGE, QUOTA, PERIOD),
    row(
        "cpu_limit",
        "cores",
        "share",
        "CPU that the quota grants; without a quota there is none.",
        QUOTA,
        PERIOD,
    ),
    row("cpu_throttled", "ratio", "part", RAN_OUT, THROTTLED, PERIODS),
    row("memory", "bytes", "value", "Memory in use, page cache included.", MEMORY),
    row("memory_working_set", "bytes", "left", LEFT, MEMORY, INACTIVE),
    row("memory_anon", "bytes", "value", "Anonymous memory.", "memory.stat.anon"),
    row("memory_file", "bytes", "value", "Page cache.", "memory.stat.file"),
    row("memory_pss", "bytes", "value", "Proportional share of memory.", "smaps_rollup.pss"),
    row("memory_peak", "bytes", "value", "The most memory that was in use.", "memory.peak"),
    row("memory_limit", "bytes", "value", "Memory limit.", LIMIT),
    row("memory_limit_share", "ratio", "share", "Memory used of its limit.", MEMORY, LIMIT),
    *pressure_rows(""),
    *flow_rows(BLOCK_DEVICES),
    *flow_rows(CONTAINERS_POD, of="pod"),
    *tcp_rows("pod_tcp", "by the container's pod", of="pod"),
    row("oom_kills", "count", "value", "Processes killed for memory.", "memory.events.oom_kill"),
    row("processes", "count", "value", "Processes that run in it.", "container.processes"),
    row("threads", "count", "value", "Threads that run in it.", "pids.current"),
    row("gpu_utilization", "ratio", "value", GPU_COMPUTED, "gpu.utilization", factor=PERCENT, scope="gpu"),
    row("gpu_memory", "bytes", "value", "GPU memory in use.", "gpu.memory_used", scope="gpu"),
    row("gpu_power", "watts", "value", "Power the GPU draws.", "gpu.power", scope="gpu"),
)
GPUS_COMPUTED = "Share of time in which a GPU computed, mean over the GPUs."
GPUS = {"scope": "node", "of": "gpu"}
AVAILABLE, TOTAL = "memory.MemAvailable", "memory.MemTotal"
SCOPED_ROWS = (
    *core_rows(scope="node", of="cpu"),
    *core_rows(scope="cpu"),
    *flow_rows(DISK, scope="node", of="disk"),
    *flow_rows(DISK, scope="disk"),
    *flow_rows(NETWORK, scope="node", of="network"),
    *flow_rows(NETWORK, scope="network"),
    *flow_rows(POD, scope="pod", of="pod"),
    *tcp_rows("pod_tcp", "by the pod", scope="pod", of="pod"),
    *tcp_rows("netstat", "by the node itself", scope="node"),
    row("memory", "bytes", "left", "Memory that is not available.", TOTAL, AVAILABLE, scope="node"),
    row("memory_limit", "bytes", "value", "Memory of the node.", TOTAL, scope="node"),
    row(
        "memory_limit_share",
        "ratio",
        "used",
        "Memory that is not available, of all.",
        AVAILABLE,
        TOTAL,
        scope="node",
    ),
    row("memory_anon", "bytes", "value", "Anonymous memory.", "memory.AnonPages", scope="node"),
    row("memory_file", "bytes", "value", "Page cache.", "memory.Cached", scope="node"),
    *pressure_rows("node"),
    row(
        "oom_kills",
        "count",
        "value",
        "Processes killed for memory, since boot.",
        "vmstat.oom_kill",
        scope="node",
    ),
    row(
        "gpu_utilization",
        "ratio",
        "value",
        GPUS_COMPUTED,
        "gpu.utilization",
        factor=PERCENT,
        join="mean",
        **GPUS,
    ),
    row("gpu_memory", "bytes", "value", "GPU memory in use, all GPUs.", "gpu.memory_used", **GPUS),
    row("gpu_power", "watts", "value", "Power that the GPUs draw.", "gpu.power", **GPUS),
    row("cpu", "cores", "rate", "CPU time used per second.", "process.cpu", scope="process"),
    row("memory", "bytes", "value", "Resident memory.", "process.rss", scope="process"),
    row("threads", "count", "value", "Threads.", "process.num_threads", scope="process"),
)
# Traffic that is counted on a physical interface as well: between pods, over
# bridges and tunnels. A node's own traffic leaves it out.
VIRTUAL = (
    *("lo", "veth", "cali", "lxc", "cilium", "docker", "br-", "cni", "flannel", "virbr", "vnet", "tun"),
    *("tap", "kube", "nodelocaldns", "dummy", "ifb", "vxlan", "gre", "sit", "ip6tnl", "wg", "podman"),
    *("azv", "eni-"),
)
PLAIN = {row.name: row for row in ROWS}
SCOPED = {(row.scope, row.name): row for row in (*SCOPED_ROWS, *(row for row in ROWS if row.scope))}


# -- what people say --------------------------------------------------------------------

# Other tools' names and everyday words, in lower case with underscores, and the plain name that is meant.
SYNONYMS = {
    "cpu": (
        "cpu_usage cpu_used cpu_use cpu_util cpu_utilization cpu_utilisation cpu_load cpu_seconds cpu_time cpu_cores cores "
        "core processor load container_cpu_usage_seconds_total"
    ),
    "cpu_throttled": "throttled throttling throttle cpu_throttling cpu_throttle container_cpu_cfs_throttled_periods_total",
    "cpu_limit_share": "quota cpu_of_limit",
    "cpu_limit": "cpu_quota cpu_limits container_spec_cpu_quota",
    "pressure_cpu": "pressure cpu_pressure psi psi_cpu cpu_psi cpu_wait contention",
    "pressure_memory": "memory_pressure mem_pressure psi_memory memory_psi",
    "pressure_io": "io_pressure disk_pressure psi_io io_psi iowait io_wait",
    "memory": (
        "mem ram memory_usage mem_usage memory_used mem_used memory_bytes memory_use ram_usage container_memory_usage_bytes"
    ),
    "memory_anon": "rss memory_rss heap anon anonymous container_memory_rss",
    "memory_working_set": "working_set workingset wss container_memory_working_set_bytes",
    "memory_file": "cache page_cache pagecache memory_cache file_cache container_memory_cache",
    "memory_limit_share": "limit memory_of_limit memory_percent headroom",
    "oom_kills": "oom ooms oom_kill oomkilled oom_killed container_oom_events_total",
    "disk_write": "disk io disk_io disk_writes write writes disk_write_bytes container_fs_writes_bytes_total",
    "disk_read": "disk_reads read reads disk_read_bytes container_fs_reads_bytes_total",
    "network_receive": "network net rx traffic network_rx network_in ingress network_bytes",
    "network_transmit": "tx network_tx network_out egress",
    "tcp_retransmits": (
        "retransmits retransmit retransmissions retransmission retransmitted tcp_retransmissions tcp_retransmit "
        "container_network_tcp_retransmitted_segments_total"
    ),
    "tcp_retransmit_share": "retransmit_rate retransmit_ratio retransmission_rate packet_loss",
    "tcp_resets": "resets reset tcp_reset connection_resets container_network_tcp_reset_connections_total",
    "tcp_refused": (
        "listen_overflows listen_overflow refused_connections refused syn_drops backlog "
        "container_network_tcp_listen_overflows_total"
    ),
    "tcp_connections": "connections tcp established container_network_tcp_established_connections",
    "threads": "pids thread pid",
    "gpu_utilization": "gpu gpu_util gpu_usage gpu_utilisation gpu_load",
    "gpu_memory": "vram gpu_mem gpu_memory_used",
    "gpu_power": "gpu_watts",
}
_MEANT = {word: name for name, words in SYNONYMS.items() for word in words.split()}


def find_plain(text: str) -> str:
    """The plain name that is meant by a metric's name in any case and spelling; the text itself where none is."""
    spelled = "_".join(text.lower().replace("-", " ").replace("_", " ").split())
    return spelled if spelled in PLAIN else _MEANT.get(spelled, text)
