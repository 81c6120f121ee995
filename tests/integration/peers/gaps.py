"""
What the peers publish and we do not, and why: the table behind docs/peers.md.

A group is a pattern over whole metric names. The peers' test fails for a name
that no group explains, and for a group that names something we do publish.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.integration.peers.binaries import Peer, peer_version

PAGE = Path(__file__).parents[3] / "docs" / "peers.md"


@dataclass(frozen=True)
class Gap:
    peer: Peer
    what: str
    """A few words for a reader who does not read patterns."""
    pattern: str
    """Whole names; a regular expression."""
    reason: str
    elsewhere: bool = False
    """We publish it too, but not on every machine or not for what the peer has it for."""

    def explains(self, name: str) -> bool:
        return re.fullmatch(self.pattern, name) is not None


OWN = "about the exporter itself; our own such metrics begin with `nodescope_`"
UNUSED = "no rule and no dashboard that we ship uses it"

GAPS: tuple[Gap, ...] = (
    Gap("node_exporter", "Go runtime, HTTP handler", r"(go|process|promhttp)_.+", OWN),
    Gap(
        "node_exporter",
        "neighbours by state, IPVS",
        r"node_(arp_states|ipvs_.+)",
        "needs netlink in the node's network namespace; the entries by interface are published",
    ),
    Gap(
        "node_exporter",
        "time zone, clock sources",
        r"node_time_(zone_offset_seconds|clocksource_.+)",
        "settings of the node; `node_time_seconds` and `node_timex_*` are published",
    ),
    Gap(
        "node_exporter",
        "inventory",
        r"node_(disk_info|disk_ata_.+|disk_device_mapper_info|disk_filesystem_info|os_info|os_version|dmi_info"
        r"|cpu_info|nvme_info|selinux_.+)",
        "changes with a reboot or an upgrade at most",
    ),
    Gap(
        "node_exporter",
        "mounts",
        r"node_filesystem_(mount_info|purgeable_bytes)",
        "mount_info repeats the labels of the other series; purgeable space exists on macOS only and is 0 elsewhere",
    ),
    Gap(
        "node_exporter",
        "interrupts, states of processes",
        r"node_(interrupts_total|softirqs_.+|processes_(threads_)?state)",
        "off by default in node_exporter: hundreds of series, or a look at every process",
    ),
    Gap(
        "node_exporter",
        "frequencies of cores",
        r"node_cpu_(frequency|scaling)_.+",
        "published where the node has a cpufreq driver; the governors are not",
        elsewhere=True,
    ),
    Gap(
        "node_exporter",
        "systemd",
        r"node_systemd_.+",
        "off by default in node_exporter; services that run are published where systemd is, their failures and restarts "
        'with `systemd = "dbus"`',
        elsewhere=True,
    ),
    Gap(
        "node_exporter",
        "special hardware and file systems",
        r"node_(fibrechannel|zfs|xfs|btrfs|bcache|bcachefs|nfs|nfsd"
        r"|tape|watchdog|pci|drm|nvme|cpu_vulnerabilities|dmmultipath)_.+",
        "most nodes do not have them; use node_exporter for them",
    ),
    Gap(
        "cadvisor",
        "version, errors",
        r"cadvisor_version_info|container_scrape_error",
        OWN,
    ),
    Gap(
        "cadvisor",
        "load and task states",
        r"container_(cpu_load_average_10s|cpu_load_d_average_10s|tasks_state)",
        "needs taskstats over netlink; the published library leaves that out and publishes 0",
    ),
    Gap(
        "cadvisor",
        "health",
        r"container_health_state",
        "health checks belong to the runtime",
    ),
    Gap(
        "cadvisor",
        "start of a container, a second time",
        r"container_creation_time_seconds",
        "the same as `container_start_time_seconds`",
    ),
    Gap(
        "cadvisor",
        "descriptors and sockets",
        r"container_(file_descriptors|sockets|ulimits_soft)",
        "needs a listing of /proc/PID/fd of every process every second; its cost grows with the number of connections",
    ),
    Gap(
        "cadvisor",
        "CPU bursts",
        r"container_cpu_cfs_burst_(periods|seconds)_total",
        "counts only with a burst allowance, which Kubernetes has no field for",
    ),
    Gap(
        "cadvisor",
        "reclaim and writeback",
        r"container_memory_(events_(high|max)_total|file_(dirty|writeback)_bytes|pgscan_total|pgsteal_total"
        r"|workingset_refault_(anon|file)_total)",
        f"{UNUSED}; stalls that follow from reclaim are in `container_pressure_memory_*`, "
        "dirty pages in the archive (`memory.stat.file_dirty`)",
    ),
    Gap(
        "cadvisor",
        "kernel memory on cgroup v1",
        r"container_memory_kernel_usage",
        "published from cgroup v2 only; v1 is being phased out",
        elsewhere=True,
    ),
    Gap(
        "cadvisor",
        "traffic of the root cgroup",
        r"container_network_(receive|transmit)_(bytes|packets|errors|packets_dropped)_total",
        "published for every pod with its own network; a pod on the host's network and the root cgroup would "
        "repeat the node's traffic, which is `node_network_*`",
        elsewhere=True,
    ),
    Gap(
        "cadvisor",
        "I/O by device and operation on cgroup v1",
        r"container_blkio_device_usage_total",
        "repeats the bytes of `container_fs_*_bytes_total` for every device and five kinds of operation",
    ),
    Gap(
        "cadvisor",
        "requests",
        r"container_spec_(cpu_shares|memory_reservation_limit_bytes|memory_swap_limit_bytes)",
        "what a pod requests, not what it uses; limits, which decide about throttling and OOM kills, are published",
    ),
)


def unexplained(peer: Peer, missing: Iterable[str]) -> list[str]:
    groups = [gap for gap in GAPS if gap.peer == peer]
    return sorted(name for name in missing if not any(gap.explains(name) for gap in groups))


def outdated(peer: Peer, ours: Iterable[str]) -> list[str]:
    """Names that a group calls missing although we publish them."""
    groups = [gap for gap in GAPS if gap.peer == peer and not gap.elsewhere]
    return sorted(name for name in ours if any(gap.explains(name) for gap in groups))


def render_page() -> str:
    """docs/peers.md, from the table above and the versions that go.mod pins."""
    head = f"""# Comparison with node_exporter and cAdvisor

Where node_exporter {peer_version("node_exporter")[1:]} or cAdvisor {peer_version("cadvisor")[1:]} and nodescope publish the same series, the
values agree except for what can change within one second. A test starts all three on
one machine with real load and compares every series that they share.

Names and labels are equal, with these differences:

- nodescope adds `namespace`, `pod`, `container`, `image` and `name` to cAdvisor's series,
  empty where not known. kubelet's cAdvisor has the same labels.
- No limit is what cAdvisor writes under its names: 0 (`container_spec_memory_limit_bytes`,
  `container_threads_max`) or no series (`container_spec_cpu_quota`). The truth, `+Inf`,
  stands beside it under `nodescope_container_spec_memory_limit_bytes` and so on.
- With cgroup v1 controllers cAdvisor does not read the v2 tree beside them and
  publishes `container_pressure_*` as 0; nodescope reads it.
- Figures that change slowly or only dashboards ask for are read every 10 to 120 s and
  not at each scrape: the network stack every 10 s, I/O by device every 30 s, sensors,
  interfaces, RDMA and TCP of pods every 30 s, systemd's units every 60 s, sockets by
  state every 120 s.
- The root cgroup, slices and pods as a whole are published with `cgroup_levels`, every 30 s.
- Pages by NUMA node and huge pages of containers are published on machines that have more
  than one NUMA node, or huge pages set aside.
- `node_scrape_collector_*` has our sources under the label `collector`, and
  `node_exporter_build_info` has nodescope's version.

Beyond them, nodescope publishes TCP and UDP of each pod (`container_network_tcp_*`,
`container_network_udp_*`): the kernel counts them per network namespace, and a pod is one.

node_exporter's own fixtures and golden output, which its Go module carries, are a test
of ours as well: every series of the families that we publish is equal.

The tables below list what they publish and nodescope does not, with the reason. This
page is generated from the table that the test checks: a name without a reason fails it.
"""
    return "\n".join([head, *(_render_peer(title, peer) for title, peer in TITLES)])


TITLES: Sequence[tuple[str, Peer]] = (("node_exporter", "node_exporter"), ("cAdvisor", "cadvisor"))


def _render_peer(title: str, peer: Peer) -> str:
    lines = [f"## {title}", "", "| what | names (regular expression) | reason |", "|---|---|---|"]
    lines += [f"| {gap.what} | `{_cell(gap.pattern)}` | {gap.reason} |" for gap in GAPS if gap.peer == peer]
    return "\n".join([*lines, ""])


def _cell(pattern: str) -> str:
    """A bar would end the cell."""
    return pattern.replace("|", "\\|")
