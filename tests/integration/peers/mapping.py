"""
How a series of ours and a series of a peer become the same series.

node_exporter: names and labels are equal as they stand.
cAdvisor: `id` is the cgroup's path on both sides. Ours carries namespace, pod,
container and image besides, which a cAdvisor without a container runtime does
not know; its disk figures are split by device where ours are summed.
"""

import math
from collections.abc import Callable, Mapping

from tests.cgroups import UNIFIED, mounts
from tests.integration.peers.binaries import Peer
from tests.integration.peers.comparison import Series

Rename = Callable[[Series], Series | None]

CONTAINER_LABELS = frozenset({"id", "cpu", "interface", "failure_type", "scope", "state"})


def as_it_stands(series: Series) -> Series:
    return series


def by_cgroup(series: Series) -> Series | None:
    name, labels = series
    if not name.startswith("container_"):
        return None
    return name, frozenset((key, value) for key, value in labels if key in CONTAINER_LABELS)


# cAdvisor writes "no limit" as 0, which is also a limit that can be set; ours
# is +Inf.
UNLIMITED_IS_ZERO = frozenset({"container_spec_memory_limit_bytes", "container_threads_max"})


def say_as_cadvisor(series: Series, value: float) -> float:
    return 0.0 if math.isinf(value) and series[0] in UNLIMITED_IS_ZERO else value


# Ours first, theirs second.
MAPPINGS: Mapping[Peer, tuple[Rename, Rename]] = {
    "node_exporter": (as_it_stands, as_it_stands),
    "cadvisor": (by_cgroup, by_cgroup),
}

PRESSURE = tuple(
    f"container_pressure_{resource}_{share}_seconds_total"
    for resource in ("cpu", "io", "memory")
    for share in ("waiting", "stalled")
)
# With v1 controllers cAdvisor never looks into the v2 tree beside them, and
# publishes 0 for what it did not read.
NOT_READ_ON_V1 = frozenset(PRESSURE) if set(mounts()) != {UNIFIED} else frozenset[str]()

EXEMPT: Mapping[Peer, frozenset[str]] = {"node_exporter": frozenset(), "cadvisor": NOT_READ_ON_V1}

REQUIRED_OF_NODE = frozenset(
    [
        "node_boot_time_seconds",
        "node_context_switches_total",
        "node_cpu_seconds_total",
        "node_disk_io_time_seconds_total",
        "node_disk_read_bytes_total",
        "node_disk_written_bytes_total",
        "node_filefd_allocated",
        "node_filesystem_avail_bytes",
        "node_filesystem_files_free",
        "node_filesystem_size_bytes",
        "node_forks_total",
        "node_intr_total",
        "node_load1",
        "node_load15",
        "node_load5",
        "node_memory_Active_anon_bytes",
        "node_memory_HugePages_Total",
        "node_memory_MemAvailable_bytes",
        "node_memory_MemTotal_bytes",
        "node_network_receive_bytes_total",
        "node_network_transmit_packets_total",
        "node_pressure_cpu_waiting_seconds_total",
        "node_pressure_io_stalled_seconds_total",
        "node_pressure_memory_waiting_seconds_total",
        "node_procs_running",
        "node_uname_info",
        "node_vmstat_oom_kill",
        "node_vmstat_pgfault",
    ]
)
REQUIRED_OF_CONTAINERS = frozenset(
    [
        "container_cpu_system_seconds_total",
        "container_cpu_usage_seconds_total",
        "container_cpu_user_seconds_total",
        "container_memory_cache",
        "container_memory_failcnt",
        "container_memory_max_usage_bytes",
        "container_memory_rss",
        "container_memory_usage_bytes",
        "container_memory_working_set_bytes",
        "container_processes",
        "container_spec_memory_limit_bytes",
        "container_threads",
    ]
)
