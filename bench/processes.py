"""
480 processes: what the process source reads of all of them, against psutil.

Both find out who is there and read CPU time, threads, start and resident
memory of every process; ours chooses the top ones and makes a block, too, and
here leaves nobody to a later turn. psutil's process_iter keeps its objects and
reads each file once (oneshot), as its documentation advises. CPU time of the
reading thread, in turns.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator

import psutil

from bench.compiled import compiled
from bench.result import Goal, Options, Row, median
from bench.tick import build_context, find_readers, raise_descriptor_limit
from nodescope.base.clock import thread_cpu_ns
from nodescope.collect.files.native import Native
from nodescope.collect.run.source import Tick
from nodescope.collect.sources.process.source import ProcessSource

PROCESSES = 480
PAUSE_MS = 1000
FIELDS = ["cpu_times", "num_threads", "create_time", "memory_info"]
GOALS = {"plain": None, "native": Goal(0.1, "ratio")}
# Everybody is listed at tick 0; at tick 1 everybody is young, so that all are read.
FIRST, SECOND = Tick(0, 0, 0), Tick(1, 0, 0)


def run(options: Options) -> list[Row]:
    raise_descriptor_limit()
    readers = find_readers()
    spent: dict[str, list[float]] = {name: [] for name in (*readers, "psutil")}
    with contextlib.ExitStack() as stack:
        stack.enter_context(working(PROCESSES))
        sources = {name: stack.enter_context(opened(native)) for name, native in readers.items()}
        for number in range(options.rounds + 1):
            for name, source in sources.items():
                spent[name].append(look(source))
            spent["psutil"].append(ask_psutil())
            if number == 0:
                # The first look opens what the others find open.
                for times in spent.values():
                    times.clear()
            time.sleep(0.02)
        count = len(psutil.pids())
    return [
        Row(
            f"all of {PROCESSES} processes and more, {name}",
            median(spent[name]),
            "s",
            median(spent["psutil"]),
            f"psutil {psutil.__version__}",
            GOALS[name],
            f"{count} processes on this machine",
        )
        for name in readers
    ]


@contextlib.contextmanager
def working(count: int) -> Iterator[None]:
    worker = [str(compiled("worker")), str(PAUSE_MS)]
    started = [subprocess.Popen(worker) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


@contextlib.contextmanager
def opened(native: Native | None) -> Iterator[ProcessSource]:
    source = ProcessSource(build_context(native))
    source.refresh(FIRST)
    try:
        yield source
    finally:
        source.close()


def look(source: ProcessSource) -> float:
    before = thread_cpu_ns()
    source.refresh(SECOND)
    for segment, _ in source.segments():
        segment.read()
        segment.block(0)
    return (thread_cpu_ns() - before) / 1e9


def ask_psutil() -> float:
    before = thread_cpu_ns()
    for process in psutil.process_iter(FIELDS):
        del process
    return (thread_cpu_ns() - before) / 1e9
