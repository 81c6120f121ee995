"""
How a series of ours and a series of a peer become the same series.

node_exporter: names and labels are equal as they stand.
cAdvisor: `id` is the cgroup's path on both sides. Ours carries namespace, pod,
container, image and name besides, which a cAdvisor without a container runtime does
not know.
"""

import re
from collections.abc import Callable, Mapping

from tests.cgroups import UNIFIED, mounts
from tests.integration.peers.binaries import Peer
from tests.integration.peers.comparison import Series

Rename = Callable[[Series], Series | None]

CONTAINER_LABELS = frozenset({"id", "cpu", "device", "interface", "failure_type", "scope", "state"})


def as_it_stands(series: Series) -> Series:
    return series


def by_cgroup(series: Series) -> Series | None:
    name, labels = series
    if not name.startswith("container_"):
        return None
    return name, frozenset((key, value) for key, value in labels if key in CONTAINER_LABELS)


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

# Read every 10 to 120 s: theirs is compared with a reading of ours that is late enough.
SLOW = re.compile(
    r"node_(netstat|sockstat|softnet|nf_conntrack|tcp|udp|arp|timex|processes|entropy|kernel_hung|network_(?!receive|transmit)"
    r"|network_receive_nohandler|scrape_collector|exporter|time_|textfile)_?.*|container_fs_.+|container_last_seen"
)
# Sockets and processes come and go between two readings; the clock goes on; about the exporter itself.
UNSTEADY = re.compile(
    r"node_(sockstat_.+|tcp_connection_states|netstat_Tcp_CurrEstab|processes_(pids|threads)|time_seconds|arp_entries"
    r"|scrape_collector_.+|exporter_build_info|textfile_.+|timex_.+|entropy_.+|udp_queues|softnet_backlog_len)"
    r"|container_last_seen|container_start_time_seconds"
)

REQUIRED_OF_NODE = frozenset(
    [
        "node_arp_entries",
        "node_entropy_available_bits",
        "node_netstat_TcpExt_ListenOverflows",
        "node_netstat_Tcp_RetransSegs",
        "node_network_carrier",
        "node_network_info",
        "node_network_speed_bytes",
        "node_network_up",
        "node_sockstat_TCP_mem_bytes",
        "node_softnet_processed_total",
        "node_time_seconds",
        "node_timex_maxerror_seconds",
        "node_udp_queues",
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
        "container_last_seen",
        "container_start_time_seconds",
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
