"""
Pods as kubelet and containerd lay them out, made by hand, with real workloads.

Both cgroup drivers are in the one tree:

    kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice/cri-containerd-<id>.scope
    kubepods/besteffort/pod<uid>/<id>

Workloads are busybox: it runs at the virtual machine's own speed and weighs a
few hundred kilobytes, where each Python would cost seconds and megabytes.
"""

import hashlib
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
CONTROLLERS = "+cpu +memory +io +pids +cpuset"
NAMESPACE = "vm"
MIB = 1 << 20
HOARD_BYTES = 200 * MIB
# dd touches every byte of its block before it writes it; the pipe takes 64 KiB
# and blocks, so the block stays resident for as long as the sleep lives.
HOLD = "dd if=/dev/zero bs={} count=1 2>/dev/null | sleep 9999"

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Container:
    name: str
    driver: str
    qos: str
    command: str
    limits: dict[str, str] = field(default_factory=dict, hash=False)
    nested: bool = False
    """Run in a cgroup below the container's own, as a container with systemd inside does."""
    beside: str = ""
    """The container whose pod this one joins; its own pod otherwise."""

    @property
    def id(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()

    @property
    def pod(self) -> str:
        return f"{self.beside or self.name}-0"

    @property
    def uid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, self.pod))

    @property
    def pod_path(self) -> Path:
        guaranteed = self.qos == "guaranteed"
        if self.driver == "cgroupfs":
            return CGROUP / "kubepods" / ("" if guaranteed else self.qos) / f"pod{self.uid}"
        parent = "kubepods" if guaranteed else f"kubepods-{self.qos}"
        middle = "" if guaranteed else f"{parent}.slice"
        return CGROUP / "kubepods.slice" / middle / f"{parent}-pod{self.uid.replace('-', '_')}.slice"

    @property
    def path(self) -> Path:
        return self.pod_path / (self.id if self.driver == "cgroupfs" else f"cri-containerd-{self.id}.scope")

    @property
    def cgroup(self) -> str:
        """The path as `/proc/PID/cgroup` and cAdvisor's `id` label spell it."""
        return "/" + str(self.path.relative_to(CGROUP))


BURNER = Container(
    "burner",
    "systemd",
    "burstable",
    "while :; do :; done",
    {"cpu.max": "20000 100000", "memory.max": "67108864"},
)
HOARDER = Container(
    "hoarder",
    "systemd",
    "guaranteed",
    HOLD.format(HOARD_BYTES),
    {"cpu.max": "200000 100000", "memory.max": str(512 * MIB), "pids.max": "64"},
)
WRITER = Container(
    "writer",
    "systemd",
    "burstable",
    "while :; do"
    " dd if=/dev/zero of=/var/writer bs=65536 count=16 conv=notrunc oflag=direct;"
    " dd if=/var/writer of=/dev/null bs=65536 iflag=direct;"
    " sleep 0.3; done 2>/dev/null",
    nested=True,
)
# Every page over memory.high puts its owner to sleep for up to two seconds, so
# 96 MiB over 24 MiB is memory pressure for longer than any run lasts.
PRESSER = Container("presser", "cgroupfs", "burstable", HOLD.format(96 * MIB), {"memory.high": str(24 * MIB)})
# The child that takes 64 MiB is killed, its shell lives on: oom_kill without an exit.
SURVIVOR = Container(
    "survivor",
    "cgroupfs",
    "besteffort",
    f"dd if=/dev/zero of=/dev/null bs={64 * MIB} count=1 2>/dev/null; exec sleep 9999",
    {"memory.max": str(32 * MIB)},
)
CROWD = Container("crowd", "cgroupfs", "guaranteed", "for n in 1 2 3; do sleep 9999 & done; wait")
# The one pod with a network of its own; the others use the node's.
TALKER = Container(
    "talker",
    "systemd",
    "besteffort",
    "exec unshare -n sh -c '"
    " until ip link set veth0 name eth0; do sleep 0.1; done;"
    " ip addr add 10.7.0.2/24 dev eth0; ip link set eth0 up;"
    " while :; do ping -c 1 -W 1 -s 1000 10.7.0.1; sleep 0.2; done'",
)
Processes = dict[Container, Process]
STANDING = (BURNER, HOARDER, WRITER, PRESSER, SURVIVOR, CROWD, TALKER)
FORKING = (WRITER, TALKER)

# memory.oom.group is what kubelet sets: the whole container dies, not one process of it.
DOOM_LIMITS = {"memory.max": str(32 * MIB), "memory.oom.group": "1"}
DOOM = f"until [ -e /run/doom ]; do sleep 0.1; done; dd if=/dev/zero of=/dev/null bs={64 * MIB} count=1"
VICTIM = Container("victim", "systemd", "burstable", DOOM, DOOM_LIMITS)
HASTY = Container("hasty", "cgroupfs", "besteffort", DOOM, DOOM_LIMITS)
# Joins a pod that had one container, and whose name was certain until now.
SIDECAR = Container("sidecar", "cgroupfs", "guaranteed", "exec sleep 9999", beside="crowd")
BRIEF = Container("brief", "cgroupfs", "burstable", "while :; do :; done", {"cpu.max": "50000 100000"})


def write_controllers(path: Path) -> None:
    """Every level above a container hands its controllers down."""
    for level in (*reversed(path.relative_to(CGROUP).parents),):
        folder = CGROUP / level
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(CONTROLLERS)


def write_logs(container: Container) -> None:
    """
    What kubelet leaves on the node, where names are read without asking anybody.

    The links with container ids are there for the systemd driver only, so that
    a name must also be found where there is nothing but the pod's folder.
    """
    folder = Path("/var/log/pods", f"{NAMESPACE}_{container.pod}_{container.uid}", container.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0.log").touch()
    if container.driver == "systemd":
        links = Path("/var/log/containers")
        links.mkdir(parents=True, exist_ok=True)
        link = links / f"{container.pod}_{NAMESPACE}_{container.name}-{container.id}.log"
        link.symlink_to(folder / "0.log")


def start_in(path: Path, command: list[str], log: Path | None = None) -> Process:
    """The shell enters the cgroup and then becomes the command: all of its life is counted there."""
    enter = f'echo $$ > {path}/cgroup.procs && exec "$@" >{log or "/dev/null"} 2>&1'
    return subprocess.Popen(["sh", "-c", enter, "sh", *command])


def start_service(name: str, command: list[str], log: Path | None = None) -> Process:
    path = CGROUP / "system.slice" / name
    write_controllers(path)
    path.mkdir()
    return start_in(path, command, log)


def start(container: Container) -> Process:
    write_logs(container)
    write_controllers(container.path)
    container.path.mkdir()
    for file, value in container.limits.items():
        (container.path / file).write_text(value)
    inside = container.path / "init.scope" if container.nested else container.path
    inside.mkdir(exist_ok=True)
    return start_in(inside, ["sh", "-c", container.command])


def connect(process: Process) -> None:
    """Lay a cable between the node and the talker's network, once it has one."""
    own = Path(f"/proc/{process.pid}/ns/net")
    while own.readlink() == Path("/proc/self/ns/net").readlink():
        time.sleep(0.05)
    lay_cable(process.pid, 0)


def lay_cable(pid: int, number: int) -> None:
    """The node's end is 10.7.<number>.1; the other is veth0 in the process's network, not set up yet."""
    for command in (
        f"ip link add pod{number} type veth",
        f"ip addr add 10.7.{number}.1/24 dev pod{number}",
        f"ip link set pod{number} up",
        f"ip link set veth0 netns {pid}",
    ):
        subprocess.run(command.split(), check=True)


def end(container: Container, process: Process) -> None:
    """As a runtime does: kill what is left, and reap."""
    (container.path / "cgroup.kill").write_text("1")
    process.wait()


def remove(container: Container) -> None:
    """The container's own cgroup; the pod's stays for as long as the pod."""
    # The kernel takes dead tasks out of the cgroup a moment after their parent has reaped them.
    # Tried without a pause: nobody gets time for a last look that a runtime would not give.
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            container.path.rmdir()
        except OSError:
            continue
        return
    raise RuntimeError(f"{container.path} is still populated")
