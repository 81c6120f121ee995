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
        "its collectors",
        r"node_(scrape_collector_.+|exporter_build_info|textfile_scrape_error)",
        f"{OWN} (`nodescope_source_up`, `nodescope_source_seconds_total`)",
    ),
    Gap(
        "node_exporter",
        "network stack",
        r"node_(netstat|sockstat|softnet|udp|arp|nf_conntrack|ipvs|tcp)_.+",
        "counters of the kernel's network stack for the whole node, which cannot be attributed to a container or process",
    ),
    Gap(
        "node_exporter",
        "attributes of interfaces",
        r"node_network_(address_assign_type|carrier.*|device_id|dormant|flags|iface_.+|info|mtu_bytes|name_assign_type"
        r"|net_dev_group|protocol_type|speed_bytes|transmit_queue_length|up)|node_bonding_.+",
        "configuration, not traffic: some twenty files of /sys per interface for what changes once a year",
    ),
    Gap(
        "node_exporter",
        "packets without a handler",
        r"node_network_receive_nohandler_total",
        "not in /proc/net/dev; node_exporter asks netlink for it",
    ),
    Gap(
        "node_exporter",
        "clock discipline",
        r"node_(timex|time)_.+",
        "our frames carry wall and monotonic time themselves, so that a step of the clock does no harm; "
        "use node_exporter to monitor NTP",
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
        "other kernel figures",
        r"node_(entropy_.+|kernel_hung_tasks_total|cooling_device_.+|processes_.+|interrupts_total|schedstat_.+"
        r"|cpu_(frequency|scaling)_.+|cpu_(core|package)_throttles_total)",
        UNUSED,
    ),
    Gap(
        "node_exporter",
        "special hardware and file systems",
        r"node_(hwmon|thermal|power_supply|rapl|edac|infiniband|fibrechannel|md|mdadm|zfs|xfs|btrfs|bcache|nfs|nfsd"
        r"|tape|watchdog|pci|drm|nvme|cpu_vulnerabilities|dmmultipath)_.+",
        "most nodes do not have them; use node_exporter for them",
    ),
    Gap(
        "cadvisor",
        "version, errors, machine",
        r"cadvisor_version_info|container_scrape_error|machine_.+",
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
        "last seen, health",
        r"container_(last_seen|health_state)",
        "a series of ours ends when its container ends, and the obituary says when; health checks belong to the runtime",
    ),
    Gap(
        "cadvisor",
        "start of a container",
        r"container_(creation_time_seconds|start_time_seconds)",
        "a constant repeated in every scrape; start and lifetime are events of the container and part of its obituary",
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

Names and labels are equal, with these differences from cAdvisor:

- nodescope adds `namespace`, `pod`, `container` and `image`, empty where not known.
- `container_fs_*` are summed over the devices of a container.
- No limit is `+Inf`, where cAdvisor writes 0 (`container_spec_memory_limit_bytes`,
  `container_threads_max`) or leaves the series out (`container_spec_cpu_quota`).
- With cgroup v1 controllers cAdvisor does not read the v2 tree beside them and
  publishes `container_pressure_*` as 0; nodescope reads it.

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
