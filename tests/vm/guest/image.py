"""
The agent as its DaemonSet runs it: the image's root file system, under runc.

`tests/vm/run --image` puts the image on a disk of its own and a bundle (runc, its
libraries, the container's config.json) beside the project. The pod is made by
hand as the others are: its slice, its folder under /var/log/pods, a network.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.vm.guest import pods
from tests.vm.guest.report import Report, wait_until

BUNDLE = Path("/opt/nodescope/bundle")
DISK = "/dev/nvme0n4"
ROOT = Path("/run/image")
# Where the manifest's hostPath for the archive leads.
DATA = Path("/var/lib/nodescope")
PID_FILE = Path("/run/agent.pid")
HOST = "10.7.1.2"
START_SECONDS = 60
POD = pods.Container("agent", "systemd", "burstable", "")
# What the manifest's defaults do not grant, and docs/security.md says so.
WITHHELD = {"perf": "CAP_PERFMON", "perf_cgroup": "CAP_PERFMON"}
# Bit 19, of linux/capability.h.
SYS_PTRACE = 1 << 19


def is_here() -> bool:
    return BUNDLE.is_dir()


def start(log: Path) -> tuple[pods.Process, int]:
    """runc, which hands signals on and ends as the agent does, and the agent's own pid."""
    for folder in (ROOT, DATA):
        folder.mkdir(parents=True)
    subprocess.run(["mount", DISK, str(ROOT)], check=True)
    pods.write_logs(POD)
    pods.write_controllers(POD.path)
    # Where every program looks: runc starts itself anew, without its environment.
    for library in BUNDLE.glob("*.so*"):
        shutil.copy2(library, "/lib")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [f"{BUNDLE}/runc", "run", "--bundle", str(BUNDLE), "--pid-file", str(PID_FILE), "agent"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    wait_until(lambda: PID_FILE.exists() or process.poll() is not None, START_SECONDS)
    if not PID_FILE.exists():
        raise RuntimeError(f"runc ended with {process.poll()}: {log.read_text()}")
    pid = int(PID_FILE.read_text())
    connect(pid)
    return process, pid


def connect(pid: int) -> None:
    """What a network plugin does for a pod."""
    pods.lay_cable(pid, 1)
    for command in ("ip link set veth0 name eth0", f"ip addr add {HOST}/24 dev eth0", "ip link set eth0 up"):
        subprocess.run(["nsenter", "-t", str(pid), "-n", *command.split()], check=True)


def read_status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def read_mounts(pid: int) -> Iterator[tuple[str, str]]:
    """Mount point and its options, as the process sees them."""
    for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        fields = line.split()
        yield fields[4], fields[5]


def shares(pid: int, namespace: str) -> bool:
    own = Path("/proc/self/ns", namespace).readlink()
    return own == Path(f"/proc/{pid}/ns", namespace).readlink()


def check(report: Report, pid: int) -> None:
    """It is the container that the manifest describes, and not just a program on the node."""
    status, mounts = read_status(pid), dict(read_mounts(pid))
    for kind in ("CapEff", "CapPrm", "CapBnd"):
        held = int(status[kind], 16)
        report.check(f"image: {kind} is SYS_PTRACE alone", held == SYS_PTRACE, status[kind])
    report.check("image: no new privileges", status["NoNewPrivs"] == "1", status["NoNewPrivs"])
    for point in ("/", "/host/proc", "/host/sys", "/host/var/log/pods"):
        options = mounts.get(point, "not mounted")
        report.check(f"image: {point} is read-only", "ro" in options.split(","), options)
    report.check("image: pids are the node's", shares(pid, "pid"))
    report.check("image: the network is its own", not shares(pid, "net"))
    limit, peak = (int((POD.path / f"memory.{name}").read_text()) for name in ("max", "peak"))
    report.check(f"image: {peak >> 20} MiB at most, of {limit >> 20} MiB allowed", peak < limit)
    kept = sum(file.stat().st_size for file in DATA.rglob("*") if file.is_file())
    report.check("image: the archive's log is on the node's disk", kept, sorted(DATA.rglob("*")))
