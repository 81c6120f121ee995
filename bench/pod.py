"""
What the whole pod costs on a node: agent, consolidator and a viewer that nobody looks at.

The three run as the DaemonSet runs them, on real cgroups, for --seconds (ten minutes
are two passes of the consolidator), scraped every 10 s and probed at kubelet's
pace. The limits of the manifest stand beside each; beside the sum stand
node_exporter, process-exporter and cAdvisor, measured in the same run.

With a consolidator in the pod, no Parquet child is started. A second run, of the
agent alone, shows what the child would cost.

CPU is user + system of a process and its children from the tenth second on. Memory of
one is its peak; of all, the sum of proportional sizes at the end (pages that they share
count once). Writes are what the processes caused at the disk, by /proc/PID/io. Bytes of
a day are those of the archive after everything is Parquet, by the time it covers.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.integration.peers.binaries import PEERS
from tests.integration.peers.servers import free_port, peer_running
from tests.manifests import parse_cores, parse_memory, read_pod

from bench.agent import PEER_SECONDS, WARM_UP_SECONDS, Cost, measure
from bench.node import PROCESSES, containers
from bench.result import Goal, Options, Row

NODESCOPE = (sys.executable, "-m", "nodescope")
READY_SECONDS = 60.0
# Two rotations of the log, and the children that follow them.
ALONE_SECONDS = 220.0
DAY_SECONDS = 86_400
# Who is asked for what, every how many seconds: Prometheus, and kubelet by the manifest's probes.
ASKED = (
    ("agent", "/metrics", 10),
    ("agent", "/healthz", 10),
    ("agent", "/readyz", 5),
    ("viewer", "/api/health", 10),
    ("viewer", "/api/health", 20),
)
# "Disk writes ~5 KiB/s" of a child, in its sizing documentation.
NETDATA_WRITES_KIB = 5.0
# What its README says of the archive, 50 to 100 MB a node and day.
FGM_DAY_MB = 75.0


@dataclass(frozen=True)
class Reading:
    mono: float
    cpu: float
    """Its own and that of children that have ended."""
    children_cpu: float
    written_bytes: float
    peak_bytes: float
    proportional_bytes: float

    @classmethod
    def of(cls, pid: int) -> "Reading":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own, children = (sum(map(int, fields[at : at + 2])) / os.sysconf("SC_CLK_TCK") for at in (11, 13))
        io = read_pairs(Path(f"/proc/{pid}/io"))
        return cls(
            mono=time.monotonic(),
            cpu=own + children,
            children_cpu=children,
            written_bytes=io["write_bytes"] - io["cancelled_write_bytes"],
            peak_bytes=read_pairs(Path(f"/proc/{pid}/status"))["VmHWM"] * 1024,
            proportional_bytes=read_pairs(Path(f"/proc/{pid}/smaps_rollup"))["Pss"] * 1024,
        )

    def per_second(self, earlier: "Reading", field: str) -> float:
        """How much of a counter was added a second."""
        added: float = getattr(self, field) - getattr(earlier, field)
        return added / (self.mono - earlier.mono)


@dataclass(frozen=True)
class Limit:
    cores: float
    memory_bytes: float


@dataclass(frozen=True)
class Pod:
    """What one run of the three was seen to cost."""

    before: Mapping[str, Reading]
    after: Mapping[str, Reading]
    day_bytes: float

    def cores(self, name: str) -> float:
        return self.after[name].per_second(self.before[name], "cpu")

    def written(self, name: str) -> float:
        return self.after[name].per_second(self.before[name], "written_bytes")


@dataclass(frozen=True)
class Child:
    cores: float
    peak_bytes: float


def read_pairs(path: Path) -> dict[str, float]:
    """`key: number` lines; other lines are left out."""
    pairs = (line.split()[:2] for line in path.read_text().splitlines() if len(line.split()) >= 2)
    return {key.rstrip(":"): float(value) for key, value in pairs if value.isdigit()}


def run(options: Options) -> list[Row]:
    rows = []
    for count in options.containers:
        with containers(count):
            pod = measure_pod(options.seconds)
            child = measure_child(min(ALONE_SECONDS, options.seconds))
            seconds = min(PEER_SECONDS, options.seconds)
            peers = [measure(peer_running(peer), seconds, 1.0) for peer in PEERS]
        rows += compare(f"{count} containers x {PROCESSES} processes", pod, child, peers, read_limits())
    return rows


def measure_pod(seconds: float) -> Pod:
    with data_folder() as data, pod_running(data) as (pids, addresses):
        start = time.monotonic()
        ask_until(start + WARM_UP_SECONDS, addresses)
        before = {name: Reading.of(pid) for name, pid in pids.items()}
        ask_until(start + WARM_UP_SECONDS + seconds, addresses)
        after = {name: Reading.of(pid) for name, pid in pids.items()}
        return Pod(before, after, measure_day(data, pids, start))


def measure_day(data: Path, pids: Mapping[str, int], start: float) -> float:
    """The agent's log, given to disk and made Parquet to the end, by the time it covers."""
    for name in ("agent", "consolidator"):
        end(pids[name])
    covered = time.monotonic() - start
    subprocess.run(
        [*NODESCOPE, "consolidate", "--once", "--data", str(data)], check=True, stdout=subprocess.DEVNULL
    )
    return sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) / covered * DAY_SECONDS


def measure_child(seconds: float) -> Child | None:
    """The agent without a consolidator; None when the run was too short for a child."""
    with data_folder() as data, agent_running(data) as (pid, address):
        before, peak = Reading.of(pid), 0.0
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ask_until(time.monotonic() + 0.1, {"agent": address})
            peak = max([peak, *(read_peak(child) for child in list_children(pid))])
        after = Reading.of(pid)
    return Child(after.per_second(before, "children_cpu"), peak) if peak else None


def read_peak(pid: int) -> float:
    with contextlib.suppress(OSError):
        return read_pairs(Path(f"/proc/{pid}/status")).get("VmHWM", 0.0) * 1024
    return 0.0


def list_children(pid: int) -> list[int]:
    """Of any of its threads."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for file in files for word in file.read_text().split()]


@contextlib.contextmanager
def data_folder() -> Iterator[Path]:
    """On the checkout's disk: /tmp may be memory, where nothing is written."""
    Path("artifacts").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pod-", dir="artifacts") as folder:
        yield Path(folder).absolute()


@contextlib.contextmanager
def pod_running(data: Path) -> Iterator[tuple[dict[str, int], dict[str, str]]]:
    port = free_port()
    with (
        agent_running(data) as (agent, address),
        started("consolidate", "--data", str(data)) as consolidator,
        started("viewer", str(data), "--port", str(port), "--agent", address) as viewer,
    ):
        addresses = {"agent": address, "viewer": f"http://127.0.0.1:{port}"}
        await_answer(f"{addresses['viewer']}/api/health")
        yield {"agent": agent, "consolidator": consolidator, "viewer": viewer}, addresses


@contextlib.contextmanager
def agent_running(data: Path) -> Iterator[tuple[int, str]]:
    address = f"127.0.0.1:{free_port()}"
    with started("agent", "--listen", address, "--data", str(data), "--no-kubernetes") as pid:
        await_answer(f"http://{address}/readyz")
        yield pid, f"http://{address}"


@contextlib.contextmanager
def started(*words: str) -> Iterator[int]:
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen([*NODESCOPE, *words], stdout=log, stderr=log) as process,
    ):
        try:
            yield process.pid
        finally:
            process.terminate()


def end(pid: int) -> None:
    """Asked to end, and waited for; its own `started` reaps it."""
    os.kill(pid, 15)
    while not has_ended(pid):
        time.sleep(0.1)


def has_ended(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def await_answer(url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            fetch(url)
            return
        time.sleep(0.1)
    raise SystemExit(f"{url} gave no answer in {READY_SECONDS:.0f} s")


def fetch(url: str) -> None:
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()


def ask_until(deadline: float, addresses: Mapping[str, str]) -> None:
    """At whole seconds of the clock, each at its own pace."""
    while time.monotonic() < deadline:
        second = int(time.monotonic()) + 1
        time.sleep(max(0.0, min(deadline, second) - time.monotonic()))
        if time.monotonic() < second:
            return
        for who, path, every in ASKED:
            if who in addresses and second % every == 0:
                fetch(addresses[who] + path)


def read_limits() -> dict[str, Limit]:
    """Of the pod's containers, by the manifest."""
    limits = {one["name"]: one["resources"]["limits"] for one in read_pod()["containers"]}
    return {name: Limit(parse_cores(one["cpu"]), parse_memory(one["memory"])) for name, one in limits.items()}


def compare(
    what: str, pod: Pod, child: Child | None, peers: Sequence[Cost], limits: Mapping[str, Limit]
) -> list[Row]:
    names = {"agent": "agent", "consolidator": "consolidator", "viewer": "viewer, idle"}
    cpu = [
        Row(
            f"CPU, {words}",
            pod.cores(name),
            "core",
            limits[name].cores,
            "its limit",
            within(limits[name].cores),
        )
        for name, words in names.items()
    ]
    memory = [
        Row(
            f"memory, {words}",
            pod.after[name].peak_bytes,
            "resident",
            limits[name].memory_bytes,
            "its limit",
            within(limits[name].memory_bytes),
            "peak",
        )
        for name, words in names.items()
    ]
    limit = limits["agent"]
    if child:
        note = "in place of the consolidator"
        cpu.append(
            Row("CPU, Parquet child", child.cores, "core", limit.cores, "the agent's limit", remark=note)
        )
        memory.append(
            Row(
                "memory, Parquet child", child.peak_bytes, "resident", limit.memory_bytes, "the agent's limit"
            )
        )
    return [
        row_of_all("CPU, the pod", pod.cores, names, "core", sum(one.cores for one in peers), what),
        *cpu,
        row_of_all(
            "memory, the pod",
            lambda name: pod.after[name].proportional_bytes,
            names,
            "resident",
            sum(one.resident_bytes for one in peers),
            "proportional sizes",
        ),
        *memory,
        Row(
            "disk writes",
            sum(map(pod.written, names)) / 1024,
            "KiB/s",
            NETDATA_WRITES_KIB,
            "Netdata's as published",
        ),
        Row(
            "archive, a day",
            pod.day_bytes / 1e6,
            "MB",
            FGM_DAY_MB,
            "fgm's claim of 50-100 MB",
            remark="hours not merged yet",
        ),
    ]


def within(limit: float) -> Goal:
    return Goal(limit, "ours")


def row_of_all(
    what: str, figure: Callable[[str], float], names: Mapping[str, str], unit: str, peers: float, remark: str
) -> Row:
    return Row(what, sum(map(figure, names)), unit, peers, "three peers at 1 Hz", remark=remark)
