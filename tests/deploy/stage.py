"""
A node whose files move, for everything that asks Prometheus about it.

The tree is the fixture node with pods of containerd and Docker; a thread plays
the kernel and lets counters grow a few times a second, as a calm machine's do or
as those of a machine in trouble. GPUs come from the fake NVML, PCM from the fake
pcm, FPGA events over HTTP, and kubelet answers on its socket.
"""

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fakes.kubelet import Kubelet, running_kubelet
from tests.fakes.nvml.library import Scenario, many_gpus
from tests.integration.agents import Agent, running_agent
from tests.nodes.pods import container_id
from tests.support import NODES, copy_node

STEP_SECONDS = 0.25
GPUS = 8
# Its memory is limited to 256 MiB and its CPU to 0.6 cores.
WEB = next(
    path.relative_to(NODES / "cgroup2-systemd/t0")
    for path in (NODES / "cgroup2-systemd/t0").rglob("cri-containerd-*.scope")
    if (path / "memory.max").read_text().strip() == "268435456"
)
MEMORY_LIMIT = 268435456
FAKE_PCM = Path(__file__).parents[1] / "fakes" / "pcm"


@dataclass(frozen=True)
class Mood:
    """What a second does to the counters, in the kernel's own units."""

    waiting_us: int = 10_000
    throttled_periods: int = 0
    oom_kills: int = 0
    busy_share: float = 0.1
    available_kb: int = 0
    """0 leaves it as it is."""
    web_anon: int = 100 * 2**20
    average: str = "1.00"


CALM = Mood()
BAD = Mood(
    waiting_us=950_000,
    throttled_periods=9,
    oom_kills=1,
    busy_share=1.0,
    available_kb=100_000,
    web_anon=MEMORY_LIMIT - 2**20,
    average="96.00",
)


@dataclass
class Stage:
    """One node: its files, its GPUs, its agent."""

    name: str
    folder: Path
    library: Path
    mood: Mood = CALM
    agent: Agent | None = None
    kubelet: Kubelet | None = None
    scenario: Scenario = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)
    _texts: dict[str, str] = field(default_factory=dict)
    _grown: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = copy_node("cgroup2-systemd", self.folder / "root")
        # Answers of a fixture; here the sources ask for themselves.
        shutil.rmtree(self.root / "calls")
        self.data = self.folder / "data"
        self.scenario = Scenario(self.folder / "gpus")
        self.scenario.say(many_gpus(GPUS) | {"all.fan": 33} | first_gpu_in_parts())

    # -- the kernel ------------------------------------------------------------

    def play(self) -> None:
        while not self._stop.wait(STEP_SECONDS):
            self.step(STEP_SECONDS)

    def step(self, seconds: float) -> None:
        mood = self.mood
        for resource in ("cpu", "io", "memory"):
            waited = self.grow(f"pressure.{resource}", mood.waiting_us * seconds)
            self.rewrite(f"proc/pressure/{resource}", partial(press, waited_us=waited, average=mood.average))
        busy = self.grow("busy", 100 * mood.busy_share * seconds)
        idle = self.grow("idle", 100 * (1 - mood.busy_share) * seconds)
        self.rewrite("proc/stat", lambda text: spend(text, busy, idle))
        kills = self.grow("kills", mood.oom_kills * seconds)
        self.rewrite("proc/vmstat", lambda text: add(text, "oom_kill", kills))
        if mood.available_kb:
            self.rewrite("proc/meminfo", lambda text: put(text, "MemAvailable:", mood.available_kb))
            self.rewrite("proc/loadavg", lambda text: re.sub(r"^\S+ \S+", "64.00 64.00", text))
        self.move_web(seconds, kills)

    def move_web(self, seconds: float, kills: float) -> None:
        mood = self.mood
        used = self.grow("used", 0.5e6 * seconds)
        periods = self.grow("periods", 10 * seconds)
        held = self.grow("held", mood.throttled_periods * seconds)
        self.rewrite(
            f"{WEB}/cpu.stat",
            lambda text: add(add(add(text, "usage_usec", used), "nr_periods", periods), "nr_throttled", held),
        )
        self.rewrite(f"{WEB}/memory.events", lambda text: add(text, "oom_kill", kills))
        self.rewrite(f"{WEB}/memory.stat", lambda text: put(text, "anon", mood.web_anon))
        self.rewrite(f"{WEB}/memory.current", lambda _: f"{mood.web_anon + 40 * 2**20}\n")

    def grow(self, what: str, by: float) -> float:
        self._grown[what] = self._grown.get(what, 0.0) + by
        return self._grown[what]

    def rewrite(self, path: str, change: Callable[[str], str]) -> None:
        """In place, because the agent keeps the file open, and in one call, so that it reads all or nothing."""
        original = self._texts.setdefault(path, (self.root / path).read_text())
        data = change(original).encode()
        descriptor = os.open(self.root / path, os.O_WRONLY)
        try:
            if os.fstat(descriptor).st_size > len(data):
                os.ftruncate(descriptor, len(data))
            os.pwrite(descriptor, data, 0)
        finally:
            os.close(descriptor)

    # -- FPGAs -------------------------------------------------------------------

    def report(self, duration_ms: int, reconfiguration_ms: int) -> None:
        assert self.agent is not None
        fields = {
            "timestamp_ms": str(time.time_ns() // 10**6),
            "duration_ms": str(duration_ms),
            "reconfiguration_ms": str(reconfiguration_ms),
            "bitstream_identifier": container_id("bitstream")[:8],
        }
        self.agent.client.post("/fpga/events", data=fields).raise_for_status()


def press(text: str, waited_us: float, average: str) -> str:
    """PSI: totals grow by microseconds; the averages are what the kernel would say."""
    longer = re.sub(r"total=(\d+)", lambda match: f"total={int(match[1]) + round(waited_us)}", text)
    return re.sub(r"avg10=\S+", f"avg10={average}", longer)


def spend(text: str, busy: float, idle: float) -> str:
    """/proc/stat: every core's user and idle time, in ticks; the first line is their sum."""
    lines = []
    cores = len(re.findall(r"^cpu\d", text, re.MULTILINE))
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("cpu"):
            many = cores if words[0] == "cpu" else 1
            words[1] = str(int(words[1]) + round(busy) * many)
            words[4] = str(int(words[4]) + round(idle) * many)
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def add(text: str, key: str, grown: float) -> str:
    return re.sub(
        rf"^{key} (\d+)", lambda match: f"{key} {int(match[1]) + round(grown)}", text, flags=re.MULTILINE
    )


def put(text: str, key: str, value: int) -> str:
    """With the old width at least: the file must not shrink under a reader."""
    return re.sub(
        rf"^{re.escape(key)}(\s+)(\d+)",
        lambda match: f"{key}{match[1]}{value:>{len(match[2])}}",
        text,
        flags=re.MULTILINE,
    )


def first_gpu_in_parts() -> dict[str, object]:
    """MIG on GPU 0, a process with a share of GPU 1."""
    lines: dict[str, object] = {
        "gpu0.mig": 1,
        "gpu0.utilization": "!3",
        "gpu1.compute": f"1:{3 * 2**30}",
        "gpu1.shares": f"1:{time.time_ns() // 1000}:55",
    }
    for part in range(2):
        lines |= {
            f"gpu0.mig{part}.uuid": f"MIG-{part}",
            f"gpu0.mig{part}.name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
            f"gpu0.mig{part}.instance": part + 3,
            f"gpu0.mig{part}.compute_instance": 0,
            f"gpu0.mig{part}.memory.total": 10 * 2**30,
            f"gpu0.mig{part}.memory.used": (part + 1) * 2**30,
            f"gpu0.mig{part}.multiprocessors": 16,
        }
    return lines


@contextlib.contextmanager
def running_stage(name: str, folder: Path, library: Path, *flags: str) -> Iterator[Stage]:
    """A calm node with its agent."""
    folder.mkdir()
    stage = Stage(name, folder, library)
    player = threading.Thread(target=stage.play, daemon=True)
    environment = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_SCENARIO": str(stage.scenario.path)}
    flags = (
        *("--root", str(stage.root), "--node", name, "--data", str(stage.data), "--interval", "0.5s"),
        *("--pcm-command", f"{FAKE_PCM} --loop --stamp now"),
        *flags,
    )
    with running_kubelet(stage.root) as stage.kubelet:
        stage.kubelet.give("trainer-0", "nvidia.com/gpu", "GPU-00000002-1111-2222-3333-444444444444")
        player.start()
        try:
            with running_agent(*flags, environment=environment) as stage.agent:
                yield stage
        finally:
            stage._stop.set()
            player.join()
