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
    pattern: str
    """Whole names; a regular expression."""
    reason: str

    def explains(self, name: str) -> bool:
        return re.fullmatch(self.pattern, name) is not None


OWN = "about the exporter itself; what we say about ourselves begins with `nodescope_`"
STACK = "counters of the kernel's network stack for the whole node, which no container, process or study of ours uses"

GAPS: tuple[Gap, ...] = (
    Gap("node_exporter", r"(go|process|promhttp)_.+", f"Go runtime and HTTP handler: {OWN}"),
    Gap("node_exporter", r"node_(scrape_collector_.+|exporter_build_info|textfile_scrape_error)", OWN),
    Gap("node_exporter", r"node_(netstat|sockstat|softnet|udp|arp|nf_conntrack|ipvs|tcp)_.+", STACK),
    Gap(
        "node_exporter",
        r"node_network_(address_assign_type|carrier.*|device_id|dormant|flags|iface_.+|info|mtu_bytes|name_assign_type"
        r"|net_dev_group|protocol_type|speed_bytes|transmit_queue_length|up)",
        "attributes of an interface, not traffic; one folder of /sys per interface would be read every second "
        "for what changes once a year",
    ),
    Gap(
        "node_exporter",
        r"node_network_receive_nohandler_total",
        "not in /proc/net/dev; node_exporter asks netlink for it",
    ),
    Gap("node_exporter", r"node_bonding_.+", "state of bonded interfaces: configuration, not use"),
    Gap(
        "node_exporter",
        r"node_(timex|time)_.+",
        "how well the clock is disciplined; our frames carry wall and monotonic time, and no study reads an NTP state",
    ),
    Gap(
        "node_exporter",
        r"node_(disk_info|disk_ata_.+|disk_device_mapper_info|disk_filesystem_info|os_info|os_version|dmi_info"
        r"|cpu_info|cpu_core_throttles_total|cpu_package_throttles_total|nvme_info|selinux_.+|boottime_.+)",
        "an inventory of the machine, which changes with a reboot at most",
    ),
    Gap(
        "node_exporter",
        r"node_filesystem_(mount_info|purgeable_bytes)",
        "mount_info repeats the labels of the other series; purgeable space exists on macOS only and is 0 elsewhere",
    ),
    Gap(
        "node_exporter",
        r"node_(entropy_.+|kernel_hung_tasks_total|cooling_device_.+|processes_.+|interrupts_total|schedstat_.+"
        r"|cpu_(frequency|scaling)_.+)",
        "not asked for by any rule or dashboard that we ship",
    ),
    Gap(
        "node_exporter",
        r"node_(hwmon|thermal|power_supply|rapl|edac|infiniband|fibrechannel|md|mdadm|zfs|xfs|btrfs|bcache|nfs|nfsd"
        r"|tape|watchdog|pci|drm|nvme|cpu_vulnerabilities|dmmultipath|kernel)_.+",
        "hardware and file systems that most nodes do not have; node_exporter stays the place for them",
    ),
    Gap("cadvisor", r"cadvisor_version_info|container_scrape_error|machine_.+", OWN),
    Gap(
        "cadvisor",
        r"container_(cpu_load_average_10s|cpu_load_d_average_10s|tasks_state)",
        "needs the kernel's taskstats over netlink; the published library leaves it out and publishes 0",
    ),
    Gap(
        "cadvisor",
        r"container_(last_seen|health_state)",
        "a series of ours ends when its container ends, and a container's last reading is kept with its age; "
        "health checks belong to the runtime",
    ),
    Gap(
        "cadvisor",
        r"container_(file_descriptors|sockets|ulimits_soft)",
        "means listing /proc/PID/fd of every process every second, a cost that grows with the connections of the busiest",
    ),
)


def unexplained(peer: Peer, missing: Iterable[str]) -> list[str]:
    groups = [gap for gap in GAPS if gap.peer == peer]
    return sorted(name for name in missing if not any(gap.explains(name) for gap in groups))


def outdated(peer: Peer, ours: Iterable[str]) -> list[str]:
    """Names that a group calls missing although we publish them."""
    groups = [gap for gap in GAPS if gap.peer == peer]
    return sorted(name for name in ours if any(gap.explains(name) for gap in groups))


def render_page() -> str:
    """docs/peers.md, from the table above and the versions that go.mod pins."""
    head = f"""# Beside node_exporter and cAdvisor

Where node_exporter {peer_version("node_exporter")[1:]} or cAdvisor {peer_version("cadvisor")[1:]} and nodescope publish the same series, the
values agree within what one second can change. A test starts all three on one
machine with real load and compares every series that they share.

Names and labels are equal, with these differences to cAdvisor:

- nodescope adds `namespace`, `pod`, `container` and `image`, empty where not known.
- `container_fs_*` are summed over the devices of a container.
- With cgroup v1 controllers cAdvisor does not look into the v2 tree beside
  them and publishes `container_pressure_*` as 0; nodescope reads it.

What they publish and nodescope does not, with the reason. This page is made
from the table that the test checks: a name without a reason fails it.
"""
    return "\n".join([head, *(_render_peer(title, peer) for title, peer in TITLES), ""])


TITLES: Sequence[tuple[str, Peer]] = (("node_exporter", "node_exporter"), ("cAdvisor", "cadvisor"))


def _render_peer(title: str, peer: Peer) -> str:
    lines = [f"## {title}", "", "| names (regular expression) | reason |", "|---|---|"]
    lines += [f"| `{_cell(gap.pattern)}` | {gap.reason} |" for gap in GAPS if gap.peer == peer]
    return "\n".join([*lines, ""])


def _cell(pattern: str) -> str:
    """A bar would end the cell."""
    return pattern.replace("|", "\\|")
