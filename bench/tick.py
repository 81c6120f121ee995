"""
One tick's reading and parsing over 200 containers x 2 processes, against the floor.

The files are learnt from the reader itself, by watching what it reads in one
tick. Then reader and floor take turns on exactly these files, with a pause
between turns in which the containers work and the counters move. All is CPU
time, user + system, of the thread or process that reads.
"""

import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from bench.floor import Floor
from bench.node import PROCESSES, containers
from bench.result import Goal, Options, Row, median
from nodescope.base.clock import SystemClock, thread_cpu_ns
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.batch import FileGrid, ReadSegment, read_segments
from nodescope.collect.files.native import Native, load_native
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.sampler import Sampler
from nodescope.collect.run.source import BatchSource, Context, MakeBatchSource, Tick
from nodescope.collect.sources import BATCH_SOURCES

CONTAINERS = 200
PAUSE_SECONDS = 0.02
# Part of the limit that the agent would use; 200 containers need some 4,000.
DESCRIPTORS = 8_000
# The native reader's goal is what C with parsing costs above C without.
GOALS = {"plain": Goal(3.5, "ratio"), "native": Goal(1.2, "ratio")}


@dataclass
class Turns:
    """CPU seconds of every turn: each reader's, and the floor's on the same files."""

    readers: dict[str, list[float]]
    floor: Floor


def run(options: Options) -> list[Row]:
    readers = find_readers()
    raise_descriptor_limit()
    with containers(CONTAINERS):
        everything = measure(options.rounds, readers, lambda _: True)
        only = measure(options.rounds, readers, lambda make: make.name == "container")
        ticks = {name: measure_ticks(native) for name, native in readers.items()}
    what = f"tick, {CONTAINERS} containers x {PROCESSES} processes"
    rows = []
    for name in readers:
        rows += compare(
            f"{what}: read + parse, {name}", everything.readers[name], everything.floor, GOALS[name]
        )
        rows += compare(f"{what}: containers alone, {name}", only.readers[name], only.floor, None)
        floor, remark = median(everything.floor.kept), "with refresh, blocks, slow tiers"
        rows.append(
            Row(f"{what}: all of it, {name}", ticks[name], "s", floor, "pread in C, median", remark=remark)
        )
    return rows


def compare(what: str, ours: list[float], floor: Floor, goal: Goal | None) -> list[Row]:
    remark = f"{floor.files} files, {floor.bytes >> 10} KiB"
    return [
        Row(what, median(ours), "s", median(floor.kept), "pread in C, median", goal, remark),
        Row(what, min(ours), "s", min(floor.kept), "pread in C, min"),
        Row(what, median(ours), "s", median(floor.opened), "open, read, close in C, median"),
    ]


def find_readers() -> dict[str, Native | None]:
    """The plain reader, and the native one where it was built."""
    native, _ = load_native("auto")
    return {"plain": None} | ({"native": native} if native else {})


def raise_descriptor_limit() -> None:
    """Two readers and the watching of both stand open at once."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def measure(
    rounds: int, readers: Mapping[str, Native | None], wanted: Callable[[MakeBatchSource], bool]
) -> Turns:
    sources: dict[str, list[BatchSource]] = {name: [] for name in readers}
    try:
        for name, native in readers.items():
            context = build_context(native)
            sources[name] += [make(context) for make in BATCH_SOURCES if wanted(make)]
        segments = {name: due_segments(sources[name]) for name in readers}
        # Only the plain reader can be watched; the native one reads the same.
        with Floor(files_read(segments["plain"])) as floor:
            turns = Turns({name: [] for name in readers}, floor)
            for _ in range(rounds):
                time.sleep(PAUSE_SECONDS)
                for name, spent in turns.readers.items():
                    # The floor reads every file; so does the reader, whatever a parent would spare it.
                    for segment in segments[name]:
                        if isinstance(segment, FileGrid):
                            segment.read_all_next()
                    start = thread_cpu_ns()
                    read_segments(segments[name])
                    spent.append((thread_cpu_ns() - start) / 1e9)
                floor.round()
        return turns
    finally:
        for source in (source for opened in sources.values() for source in opened):
            source.close()


def build_context(native: Native | None) -> Context:
    root = NodeRoot(Path("/"), native=native)
    return Context(root, Descriptors(DESCRIPTORS), Settings(), ContainerNames(root), LiveContainers())


def due_segments(sources: Sequence[BatchSource]) -> list[ReadSegment]:
    """What is read every second, once all entities are found."""
    clock = SystemClock()
    for source in sources:
        source.refresh(Tick(0, clock.wall_ns(), clock.mono_ns()))
    return [segment for source in sources for segment, tier in source.segments() if tier == 1]


def files_read(segments: Sequence[ReadSegment]) -> list[str]:
    """Where every read of one batch call went."""
    paths: list[str] = []
    read = os.pread

    def watching(descriptor: int, size: int, offset: int) -> bytes:
        if offset == 0:
            paths.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        return read(descriptor, size, offset)

    with mock.patch("os.pread", watching):
        read_segments(segments)
    return paths


def measure_ticks(native: Native | None, count: int = 30) -> float:
    """CPU seconds of a whole tick, the mean over one round of all tiers."""
    sampler = Sampler(BATCH_SOURCES, [], [], build_context(native), SystemClock())
    sampler.tick()
    start = thread_cpu_ns()
    for _ in range(count):
        sampler.tick()
    spent = (thread_cpu_ns() - start) / 1e9 / count
    sampler.stop()
    return spent
