"""
The floor of a whole second: exactly the files that a tick reads, read by C once a second, beside the agent.

    python -m bench reads --containers 100 1000 --seconds 40

`tick` repeats its rounds, so that everything is in the caches, and reads every file. Here the files of each
of 30 ticks are learnt from a sampler with the plain reader, which leaves out what the agent's leaves out, and
bench/floor.c reads them with a second between two ticks, as the agent does: `pread` where the agent keeps a
descriptor, open, read and close where it has none left. Nobody who reads these files can be cheaper, so what the agent
costs above it is ours to save, and a goal below it is not to be reached on this machine. Each kind of file is then
read alone, once a second as well.

One process a container, which works once a second; the budget is off.
"""

import os
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.integration.peers.servers import Server, agent_running

from bench.agent import SCRAPE_SECONDS, WARM_UP_SECONDS, Reading, Scrapes
from bench.floor import Floor
from bench.growth import PAUSE_MS
from bench.node import containers
from bench.result import Goal, Options, Row, median
from nodescope.base.clock import SystemClock
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.sampler import Sampler
from nodescope.collect.run.source import Context
from nodescope.collect.sources import BATCH_SOURCES

# One round of all tiers, after the rounds in which everything is read once.
TICKS = 30
SETTLE_TICKS = 12
KINDS = 10
KIND_TURNS = 3
# What the agent leaves to sockets, the archive and its libraries.
RESERVED = 512
GOALS = {1000: Goal(0.025, "ours")}

Turn = list[tuple[str, bool]]
"""The files of a tick in their order, and whether each was opened for it."""


@dataclass(frozen=True)
class AgentCost:
    cores: float
    sampler_cores: float


def run(options: Options) -> list[Row]:
    rows = []
    for count in options.containers:
        with containers(count, processes=1, pause_ms=PAUSE_MS):
            agent = measure_agent(options.seconds)
            turns = learn_turns()
            rows += measure_floor(count, agent, turns)
    return rows


# -- the agent --------------------------------------------------------------------


def measure_agent(seconds: float) -> AgentCost:
    unlimited = mock.patch.dict(os.environ, {"NODESCOPE_BUDGET_RATIO": "1"})
    with tempfile.TemporaryDirectory() as folder, unlimited, agent_running(Path(folder)) as server:
        start = time.monotonic()
        scrapes = Scrapes(server, SCRAPE_SECONDS, start + SCRAPE_SECONDS)
        scrapes.go_on(start + WARM_UP_SECONDS)
        before, threads = Reading.of(server, None), read_threads(server)
        scrapes.go_on(start + WARM_UP_SECONDS + seconds)
        after, later = Reading.of(server, None), read_threads(server)
    busiest = max(spent - threads.get(thread, 0.0) for thread, spent in later.items())
    return AgentCost(after.cores_since(before), busiest / (after.mono - before.mono))


def read_threads(server: Server) -> dict[str, float]:
    """CPU seconds of each thread; the one that samples has the most."""
    files = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return {file.parent.name: int(file.read_text().split()[0]) / 1e9 for file in files}


# -- what a tick reads ------------------------------------------------------------


def learn_turns() -> list[Turn]:
    sampler = Sampler(BATCH_SOURCES, [], [], build_context(), SystemClock())
    try:
        turns = [learn_turn(sampler) for _ in each_second(SETTLE_TICKS + TICKS)]
    finally:
        sampler.stop()
    return turns[SETTLE_TICKS:]


def build_context() -> Context:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    root = NodeRoot(Path("/"))
    # The plain reader is slower than the budget allows.
    settings = Settings(budget_ratio=1.0)
    return Context(root, Descriptors(hard - RESERVED), settings, ContainerNames(root), LiveContainers())


def learn_turn(sampler: Sampler) -> Turn:
    turn: Turn = []
    with watching_reads(turn):
        sampler.tick()
    return turn


@contextmanager
def watching_reads(turn: Turn) -> Iterator[None]:
    pread, read = os.pread, NodeRoot.read

    def note_kept(descriptor: int, size: int, offset: int) -> bytes:
        if offset == 0:
            turn.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), False))
        return pread(descriptor, size, offset)

    def note_opened(root: NodeRoot, path: str) -> bytes:
        turn.append((root.full(path), True))
        with mock.patch("os.pread", pread):
            return read(root, path)

    with mock.patch("os.pread", note_kept), mock.patch.object(NodeRoot, "read", note_opened):
        yield


def each_second(count: int) -> Iterator[int]:
    """At absolute times, as the sampler."""
    due = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, due - time.monotonic()))
        yield number
        due += 1.0


# -- the floor --------------------------------------------------------------------


def measure_floor(count: int, agent: AgentCost, turns: Sequence[Turn]) -> list[Row]:
    kept = sorted({path for turn in turns for path, is_opened in turn if not is_opened})
    opened = sorted({path for turn in turns for path, is_opened in turn if is_opened})
    numbers = {(path, False): place for place, path in enumerate(kept, 1)}
    numbers |= {(path, True): -place for place, path in enumerate(opened, len(kept) + 1)}
    with Floor([*kept, *(f"+{path}" for path in opened)]) as floor:
        whole = [floor.turn([numbers[file] for file in turns[place]]) for place in each_second(len(turns))]
        kinds = list(measure_kinds(turns, lambda files: floor.turn([numbers[file] for file in files])))
    return tabulate(count, agent, turns, sum(whole) / len(whole), kinds)


@dataclass(frozen=True)
class Kind:
    name: str
    a_tick: float
    """Files read, in the mean of the ticks."""
    seconds: float
    """Of one file."""


def measure_kinds(turns: Sequence[Turn], read: Callable[[Turn], float]) -> Iterator[Kind]:
    """Those of which most are read."""
    counts = Counter(name_kind(*file) for turn in turns for file in turn)
    for name, number in counts.most_common(KINDS):
        files = max(([file for file in turn if name_kind(*file) == name] for turn in turns), key=len)
        spent = [read(files) for _ in each_second(KIND_TURNS)]
        yield Kind(name, number / len(turns), median(spent) / len(files))


def name_kind(path: str, is_opened: bool) -> str:
    name = path.rpartition("/")[2]
    place = "/proc/PID/" if path.startswith("/proc/") and path.split("/")[2].isdigit() else ""
    return f"{place}{name}{', opened anew' if is_opened else ''}"


def tabulate(
    count: int, agent: AgentCost, turns: Sequence[Turn], floor: float, kinds: Sequence[Kind]
) -> list[Row]:
    files = sum(map(len, turns)) / len(turns)
    opened = sum(is_opened for turn in turns for _, is_opened in turn) / len(turns)
    beside = "the same files in C, once a second"
    remark = (
        f"{files:.0f} files a tick, {opened:.0f} of them opened anew, {floor / files * 1e6:.1f} us each in C"
    )
    return [
        Row(f"{count} containers: the agent", agent.cores, "core", floor, beside, GOALS.get(count), remark),
        Row(f"{count} containers: its sampling thread", agent.sampler_cores, "core", floor, beside),
        *(
            Row(f"  {kind.name}", kind.seconds * 1e6, "us a file", remark=f"{kind.a_tick:.0f} a tick")
            for kind in kinds
        ),
    ]
