"""
What the whole pod costs on a node: agent, consolidator and a viewer, while nobody looks, while somebody does, and after.

    python -m bench pod --containers 100 --seconds 600 --against main
    python -m bench pod --containers 100 --seconds 600 --against no-watch     the same without the watcher

The three run as the DaemonSet runs them, on real cgroups, for --seconds (ten minutes
are two passes of the consolidator), scraped every 10 s and probed at kubelet's
pace. Then a page is opened, and left. The limits of the manifest stand beside each; beside the sum stand
node_exporter, process-exporter and cAdvisor, measured in the same run. With --against the pod
of that commit is measured first, for the same time on the same containers.

With a consolidator in the pod, no Parquet child is started. A second run, of the
agent alone, shows what the child would cost.

CPU is user + system of a process and its children from the tenth second on. Memory of
one is its peak of any second; idle it is proportional (pages that they share count once), the
median of the last readings, which are taken every 10 s: a pass of the consolidator is a peak, not its rest. Writes are what the processes caused at the disk, by /proc/PID/io. Bytes of
a day are those of the archive after everything is Parquet, by the time it covers.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.peers.binaries import PEERS
from tests.integration.peers.servers import free_port, peer_running
from tests.manifests import parse_cores, parse_memory, read_pod

from bench.agent import PEER_SECONDS, WARM_UP_SECONDS, Cost, measure
from bench.beside import ROOT, unpack
from bench.node import PROCESSES, containers
from bench.result import Goal, Options, Row

NODESCOPE = (sys.executable, "-m", "nodescope")
NAMES = ("agent", "consolidator", "viewer")
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
# What the page asks for when it is opened.
PAGE = (
    "/",
    "/api/instance",
    "/api/metrics",
    "/api/studies",
    "/api/timeseries?metric=cpu&range=15m",
    "/api/containers?range=15m",
)
# The viewer's default is five minutes; waiting for them would measure nothing else.
REST_SECONDS = 15
# Not a commit: this tree's pod, whose agent has no watcher.
UNWATCHED = "no-watch"
READ_SECONDS = 10
READINGS = 5
# "Disk writes ~5 KiB/s" of a child, in its sizing documentation.
NETDATA_WRITES_KIB = 5.0
# What its README says of the archive, 50 to 100 MB a node and day.
FGM_DAY_MB = 75.0

MIB = 2**20
GOAL_POD_CORES = 0.01
GOAL_POD_BYTES = 140 * MIB
GOAL_BYTES = {"agent": 64 * MIB, "consolidator": 10 * MIB, "viewer": 40 * MIB}
GOAL_FIRST_SECONDS = 1.5
GOAL_WRITES_KIB = 8.0
GOAL_DAY_MB = 90.0


@dataclass(frozen=True)
class Reading:
    mono: float
    cpu: float
    """Its own and that of children that have ended."""
    children_cpu: float
    written_bytes: float

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
        )

    def per_second(self, earlier: "Reading", field: str) -> float:
        """How much of a counter was added a second."""
        added: float = getattr(self, field) - getattr(earlier, field)
        return added / (self.mono - earlier.mono)


@dataclass
class MemoryWatch:
    """Of the three, as time goes by; a process that runs its program anew begins with a new peak."""

    pids: Mapping[str, int]
    peaks: dict[str, float] = field(default_factory=dict)
    readings: list[dict[str, float]] = field(default_factory=list)

    def look(self, second: int) -> None:
        for name, pid in self.pids.items():
            self.peaks[name] = max(self.peaks.get(name, 0.0), read_peak(pid))
        if second % READ_SECONDS == 0:
            self.readings.append(self.read())

    def read(self) -> dict[str, float]:
        return {name: read_proportional(pid) for name, pid in self.pids.items()}

    def rest(self) -> dict[str, float]:
        last = self.readings[-READINGS:] or [self.read()]
        return {name: statistics.median(one[name] for one in last) for name in self.pids}


@dataclass(frozen=True)
class Limit:
    cores: float
    memory_bytes: float


@dataclass(frozen=True)
class Pod:
    """What one run of the three was seen to cost."""

    before: Mapping[str, Reading]
    after: Mapping[str, Reading]
    peaks: Mapping[str, float]
    idle: Mapping[str, float]
    asked: Mapping[str, float]
    rested: Mapping[str, float]
    first_seconds: float
    first_cpu: float
    day_bytes: float

    def cores(self, name: str) -> float:
        return self.after[name].per_second(self.before[name], "cpu")

    def written(self, name: str) -> float:
        return self.after[name].per_second(self.before[name], "written_bytes")


@dataclass(frozen=True)
class Child:
    cores: float
    peak_bytes: float


@dataclass(frozen=True)
class Tree:
    """Whose pod is measured."""

    sources: Path = ROOT / "src"
    viewer_words: tuple[str, ...] = ("--rest", f"{REST_SECONDS}s")
    agent_words: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """With bytecode, as an installed one has it: without, each waking of the viewer compiles all that it loads."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, "PYTHONPATH": str(self.sources)}


def read_pairs(path: Path) -> dict[str, float]:
    """`key: number` lines; other lines are left out."""
    pairs = (line.split()[:2] for line in path.read_text().splitlines() if len(line.split()) >= 2)
    return {key.rstrip(":"): float(value) for key, value in pairs if value.isdigit()}


def run(options: Options) -> list[Row]:
    rows = []
    for count in options.containers:
        with containers(count):
            earlier = measure_earlier(options)
            pod = measure_pod(options.seconds, Tree())
            child = measure_child(min(ALONE_SECONDS, options.seconds))
            seconds = min(PEER_SECONDS, options.seconds)
            peers = [measure(peer_running(peer), seconds, 1.0) for peer in PEERS]
        what = f"{count} containers x {PROCESSES} processes"
        rows += compare(what, pod, child, peers, read_limits())
        if earlier:
            rows += compare_earlier(pod, earlier, options.against)
    return rows


def measure_earlier(options: Options) -> Pod | None:
    """The pod of another commit; None where none is named."""
    if options.against == Options.against:
        return None
    if options.against == UNWATCHED:
        return measure_pod(options.seconds, Tree(agent_words=("--no-watch",)))
    with tempfile.TemporaryDirectory() as folder:
        sources = unpack(options.against, Path(folder))
        knows_rest = "--rest" in (sources / "nodescope" / "commands" / "viewer.py").read_text()
        return measure_pod(options.seconds, Tree(sources, Tree().viewer_words if knows_rest else ()))


def measure_pod(seconds: float, tree: Tree) -> Pod:
    with data_folder() as data, pod_running(data, tree) as (pids, addresses):
        start = time.monotonic()
        watch = MemoryWatch(pids)
        ask_until(start + WARM_UP_SECONDS, addresses)
        before = {name: Reading.of(pid) for name, pid in pids.items()}
        ask_until(start + WARM_UP_SECONDS + seconds, addresses, watch)
        after = {name: Reading.of(pid) for name, pid in pids.items()}
        idle = watch.rest()
        first_seconds, first_cpu = open_page(pids["viewer"], addresses["viewer"])
        watch.look(1)
        asked = watch.read()
        leave_page(addresses, watch)
        return Pod(
            before=before,
            after=after,
            peaks=watch.peaks,
            idle=idle,
            asked=asked,
            rested=watch.rest(),
            first_seconds=first_seconds,
            first_cpu=first_cpu,
            day_bytes=measure_day(data, pids, start, tree),
        )


def open_page(viewer: int, address: str) -> tuple[float, float]:
    """Seconds and CPU seconds until the first answer; then all that the page asks for."""
    before, begun = Reading.of(viewer).cpu, time.monotonic()
    fetch(f"{address}{PAGE[1]}")
    first = time.monotonic() - begun, Reading.of(viewer).cpu - before
    for path in PAGE:
        fetch(f"{address}{path}")
    return first


def leave_page(addresses: Mapping[str, str], watch: MemoryWatch) -> None:
    """Nobody asks for as long as it takes to rest, and for the readings after that."""
    ask_until(time.monotonic() + REST_SECONDS * 2, addresses, watch)
    watch.readings.clear()
    ask_until(time.monotonic() + READ_SECONDS * READINGS, addresses, watch)


def measure_day(data: Path, pids: Mapping[str, int], start: float, tree: Tree) -> float:
    """The agent's log, given to disk and made Parquet to the end, by the time it covers."""
    for name in ("agent", "consolidator"):
        end(pids[name])
    covered = time.monotonic() - start
    words = [*NODESCOPE, "consolidate", "--once", "--data", str(data)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=tree.environment)
    return sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) / covered * DAY_SECONDS


def measure_child(seconds: float) -> Child | None:
    """The agent without a consolidator; None when the run was too short for a child."""
    with data_folder() as data, agent_running(data, Tree()) as (pid, address):
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


def read_proportional(pid: int) -> float:
    return read_pairs(Path(f"/proc/{pid}/smaps_rollup"))["Pss"] * 1024


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
def pod_running(data: Path, tree: Tree) -> Iterator[tuple[dict[str, int], dict[str, str]]]:
    port = free_port()
    with (
        agent_running(data, tree) as (agent, address),
        started(tree, "consolidate", "--data", str(data)) as consolidator,
        started(
            tree, "viewer", str(data), "--port", str(port), "--agent", address, *tree.viewer_words
        ) as viewer,
    ):
        addresses = {"agent": address, "viewer": f"http://127.0.0.1:{port}"}
        await_answer(f"{addresses['viewer']}/api/health")
        # In a new checkout the first question compiles what it loads. The viewer rests again long before it is measured.
        fetch(f"{addresses['viewer']}{PAGE[1]}")
        yield {"agent": agent, "consolidator": consolidator, "viewer": viewer}, addresses


@contextlib.contextmanager
def agent_running(data: Path, tree: Tree) -> Iterator[tuple[int, str]]:
    address = f"127.0.0.1:{free_port()}"
    words = ("--listen", address, "--data", str(data), "--no-kubernetes", *tree.agent_words)
    with started(tree, "agent", *words) as pid:
        await_answer(f"http://{address}/readyz")
        yield pid, f"http://{address}"


@contextlib.contextmanager
def started(tree: Tree, *words: str) -> Iterator[int]:
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen([*NODESCOPE, *words], stdout=log, stderr=log, env=tree.environment) as process,
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
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def ask_until(deadline: float, addresses: Mapping[str, str], watch: MemoryWatch | None = None) -> None:
    """At whole seconds of the clock, each at its own pace."""
    while time.monotonic() < deadline:
        second = int(time.monotonic()) + 1
        time.sleep(max(0.0, min(deadline, second) - time.monotonic()))
        if time.monotonic() < second:
            return
        for who, path, every in ASKED:
            if who in addresses and second % every == 0:
                # A starved machine's agent is not ready now and then; the kubelet asks again, too.
                with contextlib.suppress(urllib.error.HTTPError):
                    fetch(addresses[who] + path)
        if watch:
            watch.look(second)


def read_limits() -> dict[str, Limit]:
    """Of the pod's containers, by the manifest."""
    limits = {one["name"]: one["resources"]["limits"] for one in read_pod()["containers"]}
    return {name: Limit(parse_cores(one["cpu"]), parse_memory(one["memory"])) for name, one in limits.items()}


def compare(
    what: str, pod: Pod, child: Child | None, peers: Sequence[Cost], limits: Mapping[str, Limit]
) -> list[Row]:
    peers_cores = sum(one.cores for one in peers)
    peers_bytes = sum(one.resident_bytes for one in peers)
    beside = "three peers at 1 Hz"
    return [
        Row(
            "CPU, the pod",
            sum(map(pod.cores, NAMES)),
            "core",
            peers_cores,
            beside,
            within(GOAL_POD_CORES),
            what,
        ),
        *(limit_row(f"CPU, {name}", pod.cores(name), "core", limits[name].cores) for name in NAMES),
        *child_rows(child, limits["agent"]),
        Row(
            "memory, the pod, idle",
            sum(pod.idle.values()),
            "resident",
            peers_bytes,
            beside,
            within(GOAL_POD_BYTES),
            "proportional sizes",
        ),
        *(
            Row(f"memory, {name}, idle", pod.idle[name], "resident", goal=within(GOAL_BYTES[name]))
            for name in NAMES
        ),
        Row("memory, the pod, page open", sum(pod.asked.values()), "resident", peers_bytes, beside),
        Row(
            "memory, the pod, page left",
            sum(pod.rested.values()),
            "resident",
            peers_bytes,
            beside,
            within(GOAL_POD_BYTES),
            f"{REST_SECONDS} s without a question",
        ),
        *(
            limit_row(f"memory, {name}", pod.peaks[name], "resident", limits[name].memory_bytes, "peak")
            for name in NAMES
        ),
        Row(
            "first answer after idle",
            pod.first_seconds,
            "s",
            goal=within(GOAL_FIRST_SECONDS),
            remark=f"{pod.first_cpu:.2f} s of CPU",
        ),
        Row(
            "disk writes",
            sum(map(pod.written, NAMES)) / 1024,
            "KiB/s",
            NETDATA_WRITES_KIB,
            "Netdata's as published",
            within(GOAL_WRITES_KIB),
        ),
        Row(
            "archive, a day",
            pod.day_bytes / 1e6,
            "MB",
            FGM_DAY_MB,
            "fgm's claim of 50-100 MB",
            within(GOAL_DAY_MB),
            "hours not merged yet",
        ),
    ]


def child_rows(child: Child | None, limit: Limit) -> list[Row]:
    if child is None:
        return []
    beside, remark = "the agent's limit", "in place of the consolidator"
    return [
        Row("CPU, Parquet child", child.cores, "core", limit.cores, beside, remark=remark),
        Row("memory, Parquet child", child.peak_bytes, "resident", limit.memory_bytes, beside),
    ]


def compare_earlier(pod: Pod, earlier: Pod, commit: str) -> list[Row]:
    """The same figures of both."""
    sums = (
        ("CPU, the pod", "core", [sum(map(one.cores, NAMES)) for one in (pod, earlier)]),
        ("memory, the pod, idle", "resident", [sum(one.idle.values()) for one in (pod, earlier)]),
        *(
            (f"memory, {name}, idle", "resident", [one.idle[name] for one in (pod, earlier)])
            for name in NAMES
        ),
        ("memory, the pod, page open", "resident", [sum(one.asked.values()) for one in (pod, earlier)]),
        ("memory, the pod, page left", "resident", [sum(one.rested.values()) for one in (pod, earlier)]),
        ("first answer after idle, CPU", "s", [one.first_cpu for one in (pod, earlier)]),
        ("disk writes", "KiB/s", [sum(map(one.written, NAMES)) / 1024 for one in (pod, earlier)]),
        ("archive, a day", "MB", [one.day_bytes / 1e6 for one in (pod, earlier)]),
    )
    return [
        Row(f"{what}, beside {commit}", ours, unit, theirs, commit) for what, unit, (ours, theirs) in sums
    ]


def limit_row(what: str, figure: float, unit: str, limit: float, remark: str = "") -> Row:
    return Row(what, figure, unit, limit, "its limit", within(limit), remark)


def within(limit: float) -> Goal:
    return Goal(limit, "ours")
