"""Small fixture nodes for one case each: nothing optional, services, a reboot, hotplug, another architecture."""

from dataclasses import replace

from tests.nodes.cgroup_text import Group
from tests.nodes.cgroup_tree import no_tree
from tests.nodes.kernel_text import MIB, Files, pressure
from tests.nodes.kubernetes_nodes import make_cgroup2_cgroupfs
from tests.nodes.node import Node
from tests.nodes.pods import HOST_PROCESSES, WEB, all_processes, web_group
from tests.nodes.proc_text import Machine, Process, net_dev


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
        processes=all_processes(groups),
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
        processes=all_processes(groups),
        alter=lambda _, files: files.update({"proc/sys/kernel/arch": "aarch64\n"}),
        page_bytes=65536,
    )
