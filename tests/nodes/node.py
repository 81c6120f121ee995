"""
A fixture node as it is described by hand, and the files that this gives.

A node is described by its machine, cgroups and processes; the text of the files
comes from `kernel_text`, at the first instant (t0) and a second later (t1).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.nodes.cgroup_text import Group
from tests.nodes.cgroup_tree import cgroup2_tree
from tests.nodes.files import Tree, prefix_paths
from tests.nodes.kernel_text import Files
from tests.nodes.proc_text import Machine, Process, machine_files, net_dev, process_stat, smaps_rollup

ELAPSED_NS = 1_000_213_441
FILESYSTEMS: list[dict[str, object]] = [
    {
        "device": "/dev/nvme0n1p1",
        "mountpoint": "/",
        "fstype": "ext4",
        "values": [105_088_212_992.0, 61_203_005_440.0, 55_820_132_352.0, 6_553_600.0, 6_012_331.0, 0.0],
    },
    {
        "device": "tmpfs",
        "mountpoint": "/run",
        "fstype": "tmpfs",
        "values": [3_335_073_792.0, 3_331_842_048.0, 3_331_842_048.0, 819_200.0, 818_412.0, 0.0],
    },
]


@dataclass
class Node:
    """One fixture node, before it is written as files."""

    name: str
    cgroup: str
    """The cgroup version: "2", "1", "hybrid" or "none"."""
    machine: Machine = field(default_factory=Machine)
    groups: tuple[Group, ...] = ()
    processes: tuple[Process, ...] = ()
    later_groups: tuple[Group, ...] | None = None
    """The cgroups of t1, where they are not those of t0."""
    later_machine: Machine | None = None
    """The machine at t1, where it is not that of t0."""
    pod_logs: tuple[str, ...] = ()
    container_logs: tuple[str, ...] = ()
    filesystems: list[dict[str, object]] | None = field(default_factory=lambda: [*FILESYSTEMS])
    tree: Callable[[Iterable[Group], float], Files] = cgroup2_tree
    """Where the files of the cgroups are."""
    alter: Callable[[int, Files], None] | None = None
    """Called last, with 0 or 1 and the files of that instant; changes them in place."""
    faults: Mapping[str, str] = field(default_factory=dict)
    later_at: float = ELAPSED_NS / 1e9
    """Seconds since t0 that the counters of t1 have run."""
    page_bytes: int = 4096
    settings: Mapping[str, str | bool] = field(default_factory=dict)
    """Where the agent must be asked for what the node has."""
    is_percent: bool = False
    """File names are percent-encoded: not every file system can hold them as they are."""


def process_files(processes: Iterable[Process], at: float, version: str, page_bytes: int) -> Files:
    files: Files = {}
    for process in processes:
        here = f"proc/{process.pid}"
        v1 = f"4:memory:{process.cgroup}\n2:cpu,cpuacct:{process.cgroup}\n1:name=systemd:{process.cgroup}\n"
        unified = f"0::{process.cgroup}\n"
        files[f"{here}/stat"] = process_stat(process, at, page_bytes)
        files[f"{here}/comm"] = f"{process.name[:15]}\n"
        files[f"{here}/cgroup"] = {"2": unified, "1": v1, "hybrid": v1 + unified, "none": "0::/\n"}[version]
        files[f"{here}/ns/net"] = f"-> net:[{process.namespace}]"
        if process.received:
            moved = round(process.received * (100 + at))
            files[f"{here}/net/dev"] = net_dev({"lo": (1200, 1200), "eth0": (moved, moved // 3)})
            files |= pod_stack(here, round(process.received * (100 + at)))
        if process.cgroup != "/":
            files[f"{here}/smaps_rollup"] = smaps_rollup(process)
    return files


def pod_stack(here: str, moved: int) -> Files:
    """What the kernel counts in a pod's network namespace: one segment in a thousand is sent again."""
    segments = moved // 1000
    return {
        f"{here}/net/snmp": "Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab"
        " InSegs OutSegs RetransSegs InErrs OutRsts\n"
        f"Tcp: 1 -1 12 340 1 2 5 {segments} {segments} {segments // 1000} 0 3\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 80 0 1 82 1 0\n",
        f"{here}/net/netstat": "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans TCPRcvQDrop\n"
        "TcpExt: 0 4 5 6 7 8\nIpExt: InOctets OutOctets\nIpExt: 1 2\n",
        f"{here}/net/sockstat": "sockets: used 31\nTCP: inuse 6 orphan 0 tw 3 alloc 9 mem 2\nUDP: inuse 1 mem 0\n",
    }


def list_processes(node: Node, groups: Iterable[Group]) -> list[Process]:
    """Those in the given cgroups, and those that no cgroup of the node lists."""
    running = {pid for group in groups for pid in group.pids}
    known = {pid for group in (*node.groups, *(node.later_groups or ())) for pid in group.pids}
    return [process for process in node.processes if process.pid not in known or process.pid in running]


def render_instant(node: Node, instant: int) -> Files:
    at = node.later_at if instant else 0.0
    machine = node.later_machine if instant and node.later_machine else node.machine
    groups = node.later_groups if instant and node.later_groups is not None else node.groups
    files: Files = dict(machine_files(machine, at))
    files |= process_files(list_processes(node, groups), at, node.cgroup, node.page_bytes)
    files |= node.tree(groups, at)
    files |= {f"var/log/pods/{name}/0.log": "" for name in node.pod_logs}
    files |= {f"var/log/containers/{name}": "" for name in node.container_logs}
    if node.filesystems is not None:
        files["calls/filesystem.json"] = json.dumps(node.filesystems, indent=1) + "\n"
    if node.alter:
        node.alter(instant, files)
    return files


def encode(text: str | bytes) -> bytes:
    """A lone surrogate stands for a byte that is not UTF-8."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def encode_files(files: Files, *, is_percent: bool) -> Tree:
    return {
        quote(encode(name), safe="/.,:=@_-") if is_percent else name: encode(content)
        for name, content in files.items()
    }


def render_description(node: Node) -> str:
    """node.toml."""
    rows = [
        f'kernel = "{node.machine.kernel}"',
        f"page_bytes = {node.page_bytes}",
        f'cgroup = "{node.cgroup}"',
        f"elapsed_ns = {ELAPSED_NS:_}",
        'captured_with = "written by hand: python -m tests.nodes.make_nodes"',
    ]
    if node.is_percent:
        rows.append('names = "percent"')
    if node.settings:
        rows += ["[settings]", *(f"{key} = {json.dumps(value)}" for key, value in node.settings.items())]
    return "\n".join(rows) + "\n"


def render_node(node: Node) -> Tree:
    """All files of the node's folder."""
    tree: Tree = {"node.toml": render_description(node).encode()}
    for instant in (0, 1):
        files = encode_files(render_instant(node, instant), is_percent=node.is_percent)
        tree |= prefix_paths(f"t{instant}", files)
    if node.faults:
        rows = [f'{json.dumps(path)} = "{name}"\n' for path, name in node.faults.items()]
        tree["faults.toml"] = "".join(rows).encode()
    return tree
