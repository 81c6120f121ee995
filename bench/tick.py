"""
One tick's reading and parsing over 200 containers x 2 processes, against the floor.

The files are learnt from the reader itself, by watching what it reads in one
tick. Then reader and floor take turns on exactly these files, with a pause
between turns in which the containers work and the counters move. Both are CPU
time, user + system, of the thread or process that reads.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from bench.floor import Floor
from bench.node import PROCESSES, containers
from bench.result import Goal, Options, Row, median
from nodescope.base.clock import SystemClock, thread_cpu_ns
from nodescope.base.settings import Settings
from nodescope.collect.batch import Segment, read_segments
from nodescope.collect.names import Names
from nodescope.collect.roots import Descriptors, NodeRoot
from nodescope.collect.roster import Roster
from nodescope.collect.sampler import Sampler
from nodescope.collect.source import BatchSource, Context, Tick
from nodescope.collect.sources import BATCH_SOURCES

CONTAINERS = 200
PAUSE_SECONDS = 0.02
# Part of the limit that the agent would use; 200 containers need some 4,000.
DESCRIPTORS = 10_000
GOAL = Goal(3.5, "ratio")


def run(options: Options) -> list[Row]:
    with containers(CONTAINERS):
        everything = measure(options.rounds, lambda _: True)
        only = measure(options.rounds, lambda source: source.name == "container")
        ticks = measure_ticks()
    what = f"tick, {CONTAINERS} containers x {PROCESSES} processes"
    rows = []
    for title, (ours, floor) in {
        f"{what}: read + parse": everything,
        f"{what}: containers alone": only,
    }.items():
        goal = GOAL if floor is everything[1] else None
        remark = f"{floor.files} files, {floor.bytes >> 10} KiB"
        rows += [
            Row(title, median(ours), "s", median(floor.kept), "pread in C, median", goal, remark),
            Row(title, min(ours), "s", min(floor.kept), "pread in C, min"),
            Row(title, median(ours), "s", median(floor.opened), "open, read, close in C, median"),
        ]
    whole = "with refresh, blocks, slow tiers"
    rows.append(
        Row(f"{what}: all of it", ticks, "s", median(everything[1].kept), "pread in C, median", remark=whole)
    )
    return rows


def measure(rounds: int, wanted: Callable[[BatchSource], bool]) -> tuple[list[float], Floor]:
    """CPU seconds per turn of the batch call, and the floor on the same files."""
    context = build_context()
    sources = [source for source in (make() for make in BATCH_SOURCES) if wanted(source)]
    try:
        segments = open_segments(sources, context)
        with Floor(files_read(segments)) as floor:
            spent = []
            for _ in range(rounds):
                time.sleep(PAUSE_SECONDS)
                start = thread_cpu_ns()
                read_segments(segments)
                spent.append((thread_cpu_ns() - start) / 1e9)
                floor.round()
        return spent, floor
    finally:
        for source in sources:
            source.close()


def build_context() -> Context:
    root = NodeRoot(Path("/"))
    return Context(root, Descriptors(DESCRIPTORS), Settings(), Names(root), Roster())


def open_segments(sources: Sequence[BatchSource], context: Context) -> list[Segment]:
    """What is due every second."""
    clock = SystemClock()
    for source in sources:
        source.open(context)
    for source in sources:
        source.refresh(Tick(0, clock.wall_ns(), clock.mono_ns()))
    return [segment for source in sources for segment, tier in source.segments() if tier == 1]


def files_read(segments: Sequence[Segment]) -> list[str]:
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


def measure_ticks(count: int = 30) -> float:
    """CPU seconds of a whole tick, the mean over one round of all tiers."""
    sampler = Sampler([make() for make in BATCH_SOURCES], [], [], build_context(), SystemClock())
    sampler.tick()
    start = thread_cpu_ns()
    for _ in range(count):
        sampler.tick()
    spent = (thread_cpu_ns() - start) / 1e9 / count
    sampler.stop()
    return spent
