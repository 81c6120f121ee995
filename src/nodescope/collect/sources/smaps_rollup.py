"""
Proportional memory of containers: what each would free if it went.

Reads   /proc/PID/smaps_rollup of the members of every container
Needs   Linux 4.14; CAP_SYS_PTRACE for other users' processes; setting `pss`
Docs    https://docs.kernel.org/filesystems/proc.html

    Pss:                 904 kB
    Pss_Anon:            308 kB

The kernel walks page tables under the process' memory lock for it, so it is
asked slowly, on a thread of its own, the largest containers first, with a
pause after each process that keeps it below one percent of a core. What a
round did not reach is missing, not zero.
"""

import math
import threading
from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.clock import thread_cpu_ns
from nodescope.base.entity import Entity
from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.collect.layout import KeyValues
from nodescope.collect.source import Context

PARTS = {
    "Pss": ("pss", "Memory in use, shared pages divided by their sharers."),
    "Pss_Anon": ("pss_anon", "Anonymous part of the proportional memory."),
    "Pss_File": ("pss_file", "File part of the proportional memory."),
    "Pss_Shmem": ("pss_shmem", "Shared-memory part of the proportional memory."),
}
METRICS = {
    key: Metric(
        f"smaps_rollup.{word}",
        "gauge",
        sentence,
        f"container_memory_{word}_bytes",
        unit="bytes",
        scale=1024.0,
        plain="memory_pss" if word == "pss" else None,
    )
    for key, (word, sentence) in PARTS.items()
}
TABLE = Table("smaps_rollup", "smaps_rollup", ("container", "service"), tuple(METRICS.values()))
# One percent of a core: after a read of 1 ms the thread rests for 99.
REST_RATIO = 99
# A round ends in time for the next, whatever is left.
ROUND_SECONDS = 25.0


class SmapsRollupSource:
    """Sums the members of each container."""

    name = "smaps_rollup"
    pace_seconds = 30.0
    # smaps_rollup of a process with hundreds of GiB takes seconds.
    deadline_seconds = 60.0

    def __init__(self) -> None:
        self._context: Context | None = None
        self._rest = threading.Event()

    def open(self, context: Context) -> None:
        if not context.settings.pss:
            raise SourceAbsent("turned off: pss = false")
        if not context.root.exists("proc/self/smaps_rollup"):
            raise SourceAbsent("no /proc/PID/smaps_rollup: Linux before 4.14")
        self._context = context

    def read(self) -> Any:
        """{entity key: [kB, ...] or None}, largest container first."""
        assert self._context is not None  # noqa: S101 - open comes first
        root = self._context.root
        parse = KeyValues(METRICS, read_bytes=1024).parser()
        answers: dict[Entity, list[float] | None] = {}
        denied = 0
        spent_seconds = 0.0
        for member in sorted(self._context.roster.members, key=lambda one: -len(one.pids)):
            if spent_seconds > ROUND_SECONDS:
                break
            sums: list[float] | None = None
            for pid in member.pids:
                before_ns = thread_cpu_ns()
                try:
                    values = parse(root.read(f"proc/{pid}/smaps_rollup"))
                except PermissionError:
                    denied += 1
                    continue
                except (OSError, ParseError):
                    # Gone meanwhile, or a kernel thread, which has no memory of its own.
                    continue
                sums = [a + b for a, b in zip(sums, values)] if sums else values
                pause_seconds = (
                    0.0 if root.is_fixture else min(0.5, (thread_cpu_ns() - before_ns) / 1e9 * REST_RATIO)
                )
                spent_seconds += pause_seconds
                if pause_seconds:
                    self._rest.wait(pause_seconds)
            answers[member.entity] = sums
        if denied and not any(answers.values()):
            raise SourceFailed(f"smaps_rollup of {denied} processes denied: it needs CAP_SYS_PTRACE")
        return answers

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        found = {entity: values for entity, values in answer.items() if values and not math.isnan(values[0])}
        values = np.array(list(found.values()), dtype=np.float64).reshape(len(found), len(METRICS))
        return (Block(TABLE, tuple(found), values, mono_ns),)

    def close(self) -> None:
        self._rest.set()


make = SmapsRollupSource
