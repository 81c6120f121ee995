"""
Writes the hand-made fixture nodes: `.venv/bin/python -m tests.nodes.make_nodes`.

Each node is described here by its cgroups and processes; the text of the files
comes from `kernel_text`. What it writes is committed, because the files are
what the tests read and what a reviewer looks at. Captured nodes (`make capture`)
are not touched.
"""

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from tests.nodes.gpu_files import gpu_files
from tests.nodes.hardware_files import hardware_files
from tests.nodes.kernel_text import (
    MIB,
    Group,
    Machine,
    Process,
    cgroup1,
    cgroup2,
    lines,
    machine_files,
    net_dev,
    pressure,
    process_stat,
    smaps_rollup,
)

HERE = Path(__file__).parent
ELAPSED_NS = 1_000_213_441
CGROUP = "sys/fs/cgroup"
CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc"
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

Files = dict[str, str | bytes]


def container_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def pod_uid(name: str) -> str:
    return str(uuid.UUID(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()))


@dataclass
class Node:
    """What becomes one folder."""

    name: str
    cgroup: str
    machine: Machine = field(default_factory=Machine)
    groups: tuple[Group, ...] = ()
    processes: tuple[Process, ...] = ()
    later_groups: tuple[Group, ...] | None = None
    """At the second instant, where it differs."""
    later_machine: Machine | None = None
    pod_logs: tuple[str, ...] = ()
    container_logs: tuple[str, ...] = ()
    filesystems: list[dict[str, object]] | None = field(default_factory=lambda: [*FILESYSTEMS])
    tree: Callable[[Iterable[Group], float], Files] | None = None
    """How its cgroups are laid out; v2 unless given."""
    alter: Callable[[int, Files], None] | None = None
    """The last word: what is odd about this node at an instant."""
    faults: Mapping[str, str] = field(default_factory=dict)
    later_at: float = ELAPSED_NS / 1e9
    page_bytes: int = 4096
    is_percent: bool = False
    """File names are percent-encoded: not every checkout can hold them."""


# -- trees --------------------------------------------------------------------


def with_parents(groups: Iterable[Group]) -> dict[str, Group]:
    """Every cgroup on the way to the listed ones, too."""
    known = {group.path: group for group in groups}
    for path in list(known):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            known.setdefault(
                parent, Group(parent, cpu_usec=9_000_000, cores=0.4, anon=96 * MIB, is_inner=True)
            )
    return dict(sorted(known.items()))


def cgroup2_tree(groups: Iterable[Group], at: float, base: str = CGROUP) -> Files:
    files: Files = {
        f"{base}/cgroup.controllers": f"{CONTROLLERS}\n",
        f"{base}/cgroup.subtree_control": "cpu io memory pids\n",
        f"{base}/cgroup.procs": "2\n",
        f"{base}/cpu.stat": lines(
            {"usage_usec": 9_999_000, "user_usec": 6_000_000, "system_usec": 3_999_000}
        ),
    }
    for path, group in with_parents(groups).items():
        files |= {f"{base}/{path}/{name}": text for name, text in offered(group, cgroup2(group, at)).items()}
    return files


def offered(group: Group, files: Mapping[str, str]) -> Mapping[str, str]:
    """A slice keeps few files here: nobody reads the rest, and a checkout stays small."""
    kept = ("cgroup.procs", "cgroup.events", "cpu.stat", "memory.events", "cpuacct.usage", "pids.current")
    return {name: text for name, text in files.items() if name in kept or not group.is_inner}


def cgroup1_tree(groups: Iterable[Group], at: float) -> Files:
    files: Files = {}
    for controller in ("cpu,cpuacct", "memory", "pids", "blkio"):
        files[f"{CGROUP}/{controller}/cgroup.procs"] = "2\n"
    for path, group in with_parents(groups).items():
        for controller, found in cgroup1(group, at).items():
            mine = offered(group, found)
            files |= {f"{CGROUP}/{controller}/{path}/{name}": text for name, text in mine.items()}
    return files


def hybrid_tree(groups: Iterable[Group], at: float) -> Files:
    """v1 controllers, and a v2 tree that has cpu.stat and pressure only."""
    files = cgroup1_tree(groups, at)
    here = ("cgroup.procs", "cgroup.events", "cpu.stat", "cpu.pressure", "memory.pressure", "io.pressure")
    base = f"{CGROUP}/unified"
    files |= {f"{base}/cgroup.controllers": "\n", f"{base}/cgroup.procs": "2\n"}
    for path, group in with_parents(groups).items():
        found = cgroup2(group, at)
        # Without the cpu controller there are no quota lines.
        found["cpu.stat"] = "".join(found["cpu.stat"].splitlines(keepends=True)[:3])
        files |= {f"{base}/{path}/{name}": found[name] for name in here}
    return files


def no_tree(groups: Iterable[Group], at: float) -> Files:
    del groups, at
    return {}


# -- writing ------------------------------------------------------------------


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
        if process.cgroup != "/":
            files[f"{here}/smaps_rollup"] = smaps_rollup(process)
    return files


def gather(node: Node, instant: int) -> Files:
    at = node.later_at if instant else 0.0
    machine = node.later_machine if instant and node.later_machine else node.machine
    groups = node.later_groups if instant and node.later_groups is not None else node.groups
    living = {pid for group in groups for pid in group.pids}
    known = {pid for group in (*node.groups, *(node.later_groups or ())) for pid in group.pids}
    processes = [one for one in node.processes if one.pid not in known or one.pid in living]
    files: Files = dict(machine_files(machine, at))
    files |= process_files(processes, at, node.cgroup, node.page_bytes)
    files |= (node.tree or cgroup2_tree)(groups, at)
    files |= {f"var/log/pods/{name}/0.log": "" for name in node.pod_logs}
    files |= {f"var/log/containers/{name}": "" for name in node.container_logs}
    if node.filesystems is not None:
        files["calls/filesystem.json"] = json.dumps(node.filesystems, indent=1) + "\n"
    if node.alter:
        node.alter(instant, files)
    return files


def write_files(folder: Path, files: Files, *, is_percent: bool) -> None:
    for name, content in files.items():
        path = folder / (
            quote(name.encode("utf-8", "surrogateescape"), safe="/.,:=@_-") if is_percent else name
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        if data.startswith(b"-> "):
            path.symlink_to(data[3:].decode())
        else:
            path.write_bytes(data)


def write_node(node: Node, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for instant in (0, 1):
        write_files(folder / f"t{instant}", gather(node, instant), is_percent=node.is_percent)
    described = [
        f'kernel = "{node.machine.kernel}"',
        f"page_bytes = {node.page_bytes}",
        f'cgroup = "{node.cgroup}"',
        f"elapsed_ns = {ELAPSED_NS:_}",
        'captured_with = "written by hand: python -m tests.nodes.make_nodes"',
    ]
    if node.is_percent:
        described.append('names = "percent"')
    (folder / "node.toml").write_text("\n".join(described) + "\n")
    if node.faults:
        rows = [f'{json.dumps(path)} = "{name}"' for path, name in node.faults.items()]
        (folder / "faults.toml").write_text("\n".join(rows) + "\n")


# -- pods ---------------------------------------------------------------------


@dataclass(frozen=True)
class Pod:
    """A pod of Kubernetes and where its cgroup is."""

    namespace: str
    name: str
    qos: str
    is_static: bool = False

    @property
    def uid(self) -> str:
        # Static pods have the hash of their manifest for a UID.
        return pod_uid(self.name).replace("-", "") if self.is_static else pod_uid(self.name)

    def systemd_folder(self, prefix: str = "kubepods") -> str:
        """Dashes separate levels in slice names, so the UID has underscores."""
        top = prefix.rpartition("-")[0]
        outer = f"{top}.slice/{prefix}.slice" if top else f"{prefix}.slice"
        uid = self.uid.replace("-", "_")
        if self.qos == "guaranteed":
            return f"{outer}/{prefix}-pod{uid}.slice"
        return f"{outer}/{prefix}-{self.qos}.slice/{prefix}-{self.qos}-pod{uid}.slice"

    def cgroupfs_folder(self) -> str:
        middle = "" if self.qos == "guaranteed" else f"/{self.qos}"
        return f"kubepods{middle}/pod{self.uid}"

    def log_folder(self, container: str) -> str:
        return f"{self.namespace}_{self.name}_{self.uid}/{container}"

    def log_file(self, container: str) -> str:
        return f"{self.name}_{self.namespace}_{container}-{container_id(f'{self.name}/{container}')}.log"

    def container(self, container: str) -> str:
        return container_id(f"{self.name}/{container}")


WEB = Pod("shop", "web-7d9f8c6b5-x2x4q", "burstable")
BATCH = Pod("jobs", "report-28391-7kq2p", "besteffort")
DATABASE = Pod("shop", "postgres-0", "guaranteed")
PROXY = Pod("kube-system", "kube-proxy-4c2vd", "besteffort")
API = Pod("kube-system", "kube-apiserver-control-1", "burstable", is_static=True)
FRESH = Pod("jobs", "report-28392-d8m1z", "besteffort")

HOST_PROCESSES = (
    Process(1, "systemd", cgroup="/", ticks=9000, rss_bytes=13 * MIB),
    Process(2, "kthreadd", cgroup="/", ticks=12, rss_bytes=0),
    Process(612, "kubelet", cgroup="/", cores=0.03, ticks=61_000, threads=18, rss_bytes=98 * MIB),
)


def web_group(folder: str, name: str, **more: object) -> Group:
    group = Group(
        f"{folder}/{name}",
        pids=(2101, 2102),
        cores=0.55,
        cpu_usec=812_000_000,
        anon=180 * MIB,
        file=40 * MIB,
        anon_growth=MIB,
        memory_max=256 * MIB,
        quota_usec=60_000,
        pids_max=1024,
        throttled_share=0.4,
    )
    return replace(group, **more)  # type: ignore[arg-type]


def pause_group(folder: str, name: str, pid: int) -> Group:
    return Group(
        f"{folder}/{name}", pids=(pid,), cores=0.0, cpu_usec=31_000, anon=MIB // 4, file=0, devices=()
    )


def batch_group(folder: str, name: str) -> Group:
    return Group(f"{folder}/{name}", pids=(2301,), cores=0.2, anon=60 * MIB, devices=("259:0", "253:1"))


def database_group(folder: str, name: str) -> Group:
    return Group(
        f"{folder}/{name}",
        pids=(2401, 2402, 2403),
        cores=0.3,
        cpu_usec=5_120_000_000,
        anon=900 * MIB,
        file=600 * MIB,
        memory_max=2048 * MIB,
        quota_usec=200_000,
        oom_kills=1,
        written=9 * MIB,
    )


def pod_processes(where: Mapping[int, str]) -> tuple[Process, ...]:
    """The processes of the pods above, by the cgroup each pid is in."""
    every = (
        Process(2100, "pause", ticks=3, rss_bytes=MIB // 2, namespace=4026532301, received=90_000),
        Process(2101, "nginx", cores=0.3, ticks=41_000, namespace=4026532301, received=90_000),
        Process(2102, "nginx", cores=0.25, ticks=40_200, namespace=4026532301, received=90_000),
        Process(2301, "python3", cores=0.2, rss_bytes=64 * MIB, namespace=4026532302, received=700),
        Process(
            2401,
            "postgres",
            cores=0.1,
            ticks=250_000,
            rss_bytes=700 * MIB,
            namespace=4026532303,
            received=21_000,
        ),
        Process(
            2402,
            "postgres",
            cores=0.1,
            ticks=130_000,
            rss_bytes=90 * MIB,
            namespace=4026532303,
            received=21_000,
        ),
        Process(
            2403,
            "postgres",
            cores=0.1,
            ticks=132_000,
            rss_bytes=95 * MIB,
            namespace=4026532303,
            received=21_000,
        ),
        Process(2501, "kube-proxy", cores=0.01, ticks=900, rss_bytes=45 * MIB),
        Process(2601, "kube-apiserver", cores=0.1, ticks=99_000, rss_bytes=400 * MIB, threads=12),
        Process(
            2701,
            "python3",
            cores=0.4,
            ticks=30,
            rss_bytes=30 * MIB,
            start=8_640_090,
            namespace=4026532304,
            received=40,
        ),
        Process(2801, "redis-server", cores=0.02, ticks=8_000, threads=5, namespace=4026532305, received=300),
        Process(2802, "memcached", cores=0.01, ticks=70, threads=4, namespace=4026532307, received=200),
        Process(2810, "systemd", ticks=700, namespace=4026532310, received=120_000),
        Process(2901, "caddy", cores=0.01, ticks=600, threads=7, namespace=4026532306, received=100),
        Process(2950, "conmon", ticks=4, rss_bytes=2 * MIB),
    )
    return tuple(replace(one, cgroup=f"/{where[one.pid]}") for one in every if one.pid in where)


def pids_by_group(groups: Iterable[Group]) -> dict[int, str]:
    return {pid: group.path for group in groups for pid in group.pids}


# -- nodes --------------------------------------------------------------------


def make_cgroup2_systemd() -> Node:
    """systemd driver: containerd and CRI-O pods, Docker and Podman beside them."""
    web, batch = WEB.systemd_folder(), BATCH.systemd_folder()
    database, proxy, fresh = DATABASE.systemd_folder(), PROXY.systemd_folder(), FRESH.systemd_folder()
    app = f"cri-containerd-{WEB.container('app')}.scope"
    leaving = batch_group(batch, f"crio-{BATCH.container('main')}.scope")
    docker = f"system.slice/docker-{container_id('docker/redis')}.scope"
    podman = f"machine.slice/libpod-{container_id('podman/caddy')}.scope"
    conmon = f"machine.slice/libpod-conmon-{container_id('podman/caddy')}.scope"
    staying = (
        pause_group(web, f"cri-containerd-{WEB.container('pause')}.scope", 2100),
        # A service manager inside the container nests a cgroup of its own.
        web_group(web, app, pids=(2101,)),
        Group(f"{web}/{app}/init.scope", pids=(2102,)),
        database_group(database, f"cri-containerd-{DATABASE.container('postgres')}.scope"),
        Group(f"{proxy}/crio-{PROXY.container('kube-proxy')}.scope", pids=(2501,), cores=0.01),
        Group(f"{proxy}/crio-conmon-{PROXY.container('kube-proxy')}.scope", pids=(), cores=0.0),
        Group(docker, pids=(2801,), cores=0.02, memory_max=512 * MIB),
        Group(f"system.slice/docker-{container_id('docker/memcached')}.scope", pids=(2802,), cores=0.01),
        Group(f"{podman}/container", pids=(2901,), cores=0.01),
        Group(podman, cores=0.01),
        Group(conmon, pids=(2950,), cores=0.0),
        Group("system.slice/sshd.service", cores=0.0),
    )
    arriving = Group(
        f"{fresh}/crio-{FRESH.container('main')}.scope", pids=(2701,), cores=0.4, cpu_usec=300_000
    )
    groups = (*staying, leaving)
    return Node(
        "cgroup2-systemd",
        "2",
        groups=groups,
        later_groups=(*staying, arriving),
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group((*groups, arriving)))),
        pod_logs=(
            WEB.log_folder("app"),
            BATCH.log_folder("main"),
            DATABASE.log_folder("postgres"),
            PROXY.log_folder("kube-proxy"),
            FRESH.log_folder("main"),
        ),
        container_logs=(WEB.log_file("app"), DATABASE.log_file("postgres"), BATCH.log_file("main")),
    )


def make_cgroup2_cgroupfs() -> Node:
    """cgroupfs driver: kubepods/<qos>/pod<uid>/<id>, no scopes; a static pod."""
    groups = (
        pause_group(WEB.cgroupfs_folder(), WEB.container("pause"), 2100),
        web_group(WEB.cgroupfs_folder(), WEB.container("app")),
        batch_group(BATCH.cgroupfs_folder(), BATCH.container("main")),
        database_group(DATABASE.cgroupfs_folder(), DATABASE.container("postgres")),
        Group(f"{API.cgroupfs_folder()}/{API.container('kube-apiserver')}", pids=(2601,), cores=0.1),
        Group(f"docker/{container_id('docker/redis')}", pids=(2801,), cores=0.02),
    )
    return Node(
        "cgroup2-cgroupfs",
        "2",
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
        pod_logs=(
            WEB.log_folder("app"),
            BATCH.log_folder("main"),
            API.log_folder("kube-apiserver"),
        ),
    )


def kind_groups(outer: str) -> tuple[Group, ...]:
    prefix = "kubelet-kubepods"
    web, batch = WEB.systemd_folder(prefix), BATCH.systemd_folder(prefix)
    return (
        pause_group(f"{outer}{web}", f"cri-containerd-{WEB.container('pause')}.scope", 2100),
        web_group(f"{outer}{web}", f"cri-containerd-{WEB.container('app')}.scope"),
        batch_group(f"{outer}{batch}", f"cri-containerd-{BATCH.container('main')}.scope"),
        Group(f"{outer}kubelet.slice/kubelet.service", cores=0.05),
        Group(f"{outer}system.slice/containerd.service", cores=0.02),
    )


def make_kind() -> Node:
    """A node of kind, seen from inside: kubelet.slice/kubelet-kubepods.slice."""
    groups = kind_groups("")
    return Node(
        "kind",
        "2",
        machine=Machine(hostname="demo-worker"),
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
        pod_logs=(WEB.log_folder("app"), BATCH.log_folder("main")),
    )


def make_kind_host() -> Node:
    """The same cluster seen from the host: containers inside a container."""
    outer = f"system.slice/docker-{container_id('docker/demo-worker')}.scope"
    init = Group(f"{outer}/init.scope", pids=(2810,), cores=0.0)
    groups = (Group(outer, cores=0.9), init, *kind_groups(f"{outer}/"))
    return Node(
        "kind-host",
        "2",
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
    )


def make_cgroup1() -> Node:
    """v1 controllers with cpu,cpuacct together: Docker and kubepods, an older kernel."""
    machine = Machine(
        kernel="5.10.0-28-amd64",
        has_irq_pressure=False,
        left_out=frozenset({"proc/pressure", "proc/sys/kernel/arch"}),
    )
    groups = (
        pause_group(WEB.cgroupfs_folder(), WEB.container("pause"), 2100),
        web_group(WEB.cgroupfs_folder(), WEB.container("app")),
        database_group(DATABASE.cgroupfs_folder(), DATABASE.container("postgres")),
        Group(f"docker/{container_id('docker/redis')}", pids=(2801,), cores=0.02),
        Group("system.slice/sshd.service", cores=0.0),
    )
    return Node(
        "cgroup1",
        "1",
        machine=machine,
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
        tree=cgroup1_tree,
        container_logs=(WEB.log_file("app"), DATABASE.log_file("postgres")),
    )


def make_hybrid() -> Node:
    """systemd's hybrid layout: v1 controllers, pressure and cpu.stat from the v2 tree."""
    machine = Machine(kernel="5.15.0-101-generic", has_irq_pressure=False)
    web, database = WEB.systemd_folder(), DATABASE.systemd_folder()
    groups = (
        pause_group(web, f"cri-containerd-{WEB.container('pause')}.scope", 2100),
        web_group(web, f"cri-containerd-{WEB.container('app')}.scope"),
        database_group(database, f"cri-containerd-{DATABASE.container('postgres')}.scope"),
        Group(f"system.slice/docker-{container_id('docker/redis')}.scope", pids=(2801,), cores=0.02),
    )
    return Node(
        "hybrid",
        "hybrid",
        machine=machine,
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
        tree=hybrid_tree,
        pod_logs=(WEB.log_folder("app"), DATABASE.log_folder("postgres")),
    )


def make_bare() -> Node:
    """Nothing optional exists: stat, loadavg, meminfo and one process."""
    every = ("diskstats", "vmstat", "mounts", "1/mounts", "net", "1/net", "self", "pressure", "sys")
    machine = Machine(cores=1, left_out=frozenset(f"proc/{name}" for name in every))
    return Node(
        "bare", "none", machine=machine, processes=(HOST_PROCESSES[0],), tree=no_tree, filesystems=None
    )


def make_reboot() -> Node:
    """Every counter is smaller at the second instant."""
    before = make_cgroup2_cgroupfs()
    groups = tuple(
        replace(group, cpu_usec=group.cpu_usec // 1000, cores=0.0, devices=(), oom_kills=0)
        for group in before.groups
    )
    later = Machine(boot=1_700_086_430, uptime=12.0)
    return replace(
        before, name="reboot", later_machine=later, later_groups=groups, alter=start_again, later_at=0.0
    )


def start_again(instant: int, files: Files) -> None:
    """The counters that the groups and the machine above do not lower."""
    if instant == 0:
        return
    for path in files:
        if path.endswith(("cpu.pressure", "io.pressure", "pressure/cpu", "pressure/io")):
            files[path] = pressure(900, 100)
        elif path.endswith("net/dev"):
            files[path] = net_dev({"lo": (90, 90), "eth0": (4000, 2000)})
        elif path.startswith("proc/") and path.endswith("/stat") and path.count("/") == 2:
            name, _, rest = str(files[path]).rpartition(") ")
            fields = rest.split(" ")
            fields[11] = fields[12] = "1"
            files[path] = f"{name}) {' '.join(fields)}"
    files["proc/pressure/irq"] = "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"


def make_hotplug() -> Node:
    """A core, a disk and an interface gone at the second instant."""
    machine = Machine(cores=4, disks=("sda", "sda1", "sdb"), interfaces=("lo", "eth0", "eth1"))
    groups = (web_group(WEB.cgroupfs_folder(), WEB.container("app")),)
    return Node(
        "hotplug",
        "2",
        machine=machine,
        later_machine=replace(machine, cores=3, disks=("sda", "sda1"), interfaces=("lo", "eth0")),
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
    )


def make_services() -> Node:
    """A machine without a container: its services are shown instead."""
    groups = (
        Group("system.slice/sshd.service", pids=(701,), cores=0.01),
        Group("system.slice/postgresql.service", pids=(702,), cores=0.2, memory_max=1024 * MIB),
        Group("system.slice/dev-hugepages.mount", cores=0.0),
        Group("user.slice/user-1000.slice/session-3.scope", pids=(703,), cores=0.1),
        Group("init.scope", pids=(1,), cores=0.0),
    )
    where = {pid: f"/{group.path}" for group in groups for pid in group.pids}
    names = {701: "sshd", 702: "postgres", 703: "bash"}
    return Node(
        "services",
        "2",
        machine=Machine(hostname="laptop"),
        groups=groups,
        processes=(*HOST_PROCESSES, *(Process(pid, name, cgroup=where[pid]) for pid, name in names.items())),
    )


def make_arm64_64k() -> Node:
    """Another architecture, and pages of 64 KiB: resident memory is counted in pages."""
    groups = (web_group(WEB.cgroupfs_folder(), WEB.container("app")),)
    return Node(
        "arm64-64k",
        "2",
        machine=Machine(kernel="6.8.0-1015-64k", hostname="arm-1", has_irq_pressure=False),
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups))),
        alter=lambda _, files: files.update({"proc/sys/kernel/arch": "aarch64\n"}),
        page_bytes=65536,
    )


HOSTILE_SLICE = 'a"b\n<script>alert(1)<%2fscript>\udcff.slice'
HOSTILE_NAMES = ('");drop', "x) R 1 1 1", "<script>", "na\udcffme", "two\nlines", "tab\tbell\x07")


def make_hostile() -> Node:
    """Names that attack every way out, files cut off, errors no file can give."""
    healthy = DATABASE.systemd_folder()
    broken = WEB.systemd_folder()
    app = f"{broken}/cri-containerd-{WEB.container('app')}.scope"
    denied = f"{BATCH.systemd_folder()}/crio-{BATCH.container('main')}.scope"
    odd = f"{HOSTILE_SLICE}/docker-{container_id('docker/odd')}.scope"
    groups = (
        database_group(healthy, f"cri-containerd-{DATABASE.container('postgres')}.scope"),
        web_group(broken, f"cri-containerd-{WEB.container('app')}.scope"),
        Group(denied, pids=(2301,), cores=0.2),
        Group(odd, pids=(2801,), cores=0.02),
    )
    attackers = tuple(
        Process(3000 + number, name, cores=0.01, rss_bytes=(5 + number) * MIB)
        for number, name in enumerate(HOSTILE_NAMES)
    )

    def alter(instant: int, files: Files) -> None:
        files[f"{CGROUP}/{app}/cpu.stat"] = "usage_usec 812000000\nuser_us"
        files[f"{CGROUP}/{app}/memory.max"] = ""
        files[f"{CGROUP}/{app}/io.stat"] = "259:0 rbytes=abc wbytes=-\n"
        files[f"{CGROUP}/{app}/memory.current"] = f"{2**64 - 1}\n"
        files[f"{CGROUP}/{odd}/pids.current"] = "many\n"
        files["proc/3100/stat"] = "3100 (cut"
        files["proc/3101/stat"] = ""
        files["proc/3102/stat"] = process_stat(
            Process(3102, "huge", ticks=2**66, rss_bytes=2**64), 1.0 if instant else 0.0
        )
        if instant == 0:
            files["proc/3103/stat"] = process_stat(Process(3103, "vanishes", rss_bytes=90 * MIB), 0.0)
        else:
            files["proc/3000/stat"] = "3000 (cut off later) S 1"
            files["proc/meminfo"] = str(files["proc/meminfo"])[:300]
        files["proc/diskstats"] = str(files["proc/diskstats"])[:40]
        dev = str(files["proc/1/net/dev"])
        row = dev.splitlines()[-1].partition(":")[2]
        hostile = b"".join(
            name + b":" + row.encode() + b"\n" for name in (b'"><script>', b"eth\xff", b"eth\xfe", b"a\\b")
        )
        files["proc/1/net/dev"] = dev.encode() + hostile
        files["proc/sys/kernel/hostname"] = b'worker\xff"\n<script>\n'

    mounts: list[dict[str, object]] = [
        *FILESYSTEMS,
        {
            "device": "//nas/a b",
            "mountpoint": '/mnt/"quoted"\n<script>\udcff',
            "fstype": "cifs",
            "values": None,
        },
    ]
    return Node(
        "hostile",
        "2",
        groups=groups,
        processes=(*HOST_PROCESSES, *pod_processes(pids_by_group(groups)), *attackers),
        alter=alter,
        filesystems=mounts,
        pod_logs=(DATABASE.log_folder("postgres"), f'ns"\n_<script>_{WEB.uid}/c\udcff'),
        container_logs=(f'po\nd_n"s_<script>-{BATCH.container("main")}.log',),
        faults={
            f"{CGROUP}/{denied}/memory.current": "EACCES",
            f"{CGROUP}/{denied}/cpu.stat": "EIO",
            "proc/pressure/irq": "EOPNOTSUPP",
            "proc/pressure/io": "EIO",
            "proc/vmstat": "EACCES",
            "proc/sys/fs/file-nr": "EIO",
            "proc/2301/stat": "EACCES",
        },
        is_percent=True,
    )


def make_hardware() -> Node:
    """No container, but every hardware counter there is: PCM, perf, RAPL, resctrl, cpufreq, cpuidle."""
    return replace(
        make_bare(),
        name="hardware",
        machine=Machine(cores=2),
        filesystems=[*FILESYSTEMS],
        alter=lambda instant, files: files.update(hardware_files(instant)),
    )


def make_gpus() -> Node:
    """No container, but GPUs of both vendors, whole, split, lost and given away."""
    return replace(make_bare(), name="gpus", alter=lambda instant, files: files.update(gpu_files(instant)))


MAKERS = (
    make_cgroup2_systemd,
    make_cgroup2_cgroupfs,
    make_kind,
    make_kind_host,
    make_cgroup1,
    make_hybrid,
    make_bare,
    make_reboot,
    make_hotplug,
    make_services,
    make_arm64_64k,
    make_hostile,
    make_hardware,
    make_gpus,
)


if __name__ == "__main__":
    for make in MAKERS:
        made = make()
        write_node(made, HERE / made.name)
