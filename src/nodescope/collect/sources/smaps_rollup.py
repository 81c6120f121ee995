"""
Proportional memory of containers: what each would free if it went.

Reads   /proc/PID/smaps_rollup of the members of every container
Needs   Linux 4.14; CAP_SYS_PTRACE for other users' processes; setting `pss`
Docs    https://docs.kernel.org/filesystems/proc.html

    Pss:                 904 kB
    Pss_Anon:            308 kB

The kernel walks page tables under the process' memory lock for it, so it is
asked once a minute, on a thread of its own, the largest containers first, with
pauses that keep it below a quarter of a percent of a core (docs/decisions/0707). What a
round did not reach is missing, not zero.
"""

import math
import os
import threading
from collections.abc import Sequence
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.clock import thread_cpu_ns
from nodescope.base.entity import Entity
from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.collect.files.batch import describe_fault
from nodescope.collect.files.layout import KeyValues
from nodescope.collect.run.source import CallDefaults, Context

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
LAYOUT = KeyValues(METRICS, read_bytes=4096)
TABLE = Table("smaps_rollup", "smaps_rollup", ("container", "service"), tuple(METRICS.values()))
# A quarter of a percent of a core: after work of 1 ms the thread rests for 399.
REST_RATIO = 399
# Shorter rests are saved up: waking costs as much as reading a few small processes.
LEAST_REST_SECONDS = 0.4
# A process of hundreds of GiB takes seconds to read; nobody rests for minutes.
LONGEST_REST_SECONDS = 2.0
# Processes read at once, before the next thought of rest.
CHUNK = 8
# A round ends here, whatever is left. On a node of large processes it takes longer than its pace,
# and the next begins at once.
ROUND_SECONDS = 115.0


class Reader:
    """One round over the processes: reads, sums, rests."""

    def __init__(self, context: Context, rest: threading.Event) -> None:
        self.denied = 0
        self.rested_seconds = 0.0
        self._root = context.root
        self._rest = rest
        self._owed_seconds = 0.0
        self._parse = LAYOUT.parser()

    def read_sums(self, pids: Sequence[int]) -> list[float] | None:
        """Of all processes; None when none could be read, or one may not be: the rest would look like all."""
        sums: list[float] | None = None
        denied_before = self.denied
        for start in range(0, len(pids), CHUNK):
            before_ns = thread_cpu_ns()
            for pid in pids[start : start + CHUNK]:
                found = self._read_process(pid)
                if found:
                    sums = found if sums is None else [one + other for one, other in zip(sums, found)]
            self._pause((thread_cpu_ns() - before_ns) / 1e9 * REST_RATIO)
        return sums if self.denied == denied_before else None

    def _read_process(self, pid: int) -> list[float] | None:
        """None for one that is gone, a kernel thread, or not ours to see."""
        path = f"proc/{pid}/smaps_rollup"
        try:
            # Opened for one reading only: a kept descriptor would keep a dead process' memory map.
            descriptor = self._root.open(path)
            try:
                # One read: the kernel would walk the page tables again for the next.
                return self._parse(os.pread(descriptor, LAYOUT.read_bytes, 0))
            finally:
                os.close(descriptor)
        except (OSError, ParseError) as error:
            self.denied += describe_fault(path, error).status == "denied"
            return None

    def _pause(self, seconds: float) -> None:
        self._owed_seconds += seconds
        if self._root.is_fixture or self._owed_seconds < LEAST_REST_SECONDS:
            return
        rest_seconds = min(self._owed_seconds, LONGEST_REST_SECONDS)
        self._owed_seconds = 0.0
        self.rested_seconds += rest_seconds
        self._rest.wait(rest_seconds)


class SmapsRollupSource(CallDefaults):
    """Sums the members of each container."""

    name = "smaps_rollup"
    pace_seconds = 60.0
    # A round with its rests, and smaps_rollup of a process with hundreds of GiB, which takes seconds.
    deadline_seconds = ROUND_SECONDS + 35.0

    def __init__(self, context: Context) -> None:
        if not context.settings.pss:
            raise SourceAbsent("turned off: pss = false")
        if not context.root.exists("proc/self/smaps_rollup"):
            raise SourceAbsent("no /proc/PID/smaps_rollup: Linux before 4.14")
        self._context = context
        self._rest = threading.Event()

    def read(self) -> Any:
        """{entity: [kB, ...] or None}, largest container first."""
        reader = Reader(self._context, self._rest)
        answers: dict[Entity, list[float] | None] = {}
        for member in sorted(self._context.live_containers.members, key=lambda one: -len(one.pids)):
            if reader.rested_seconds > ROUND_SECONDS:
                break
            answers[member.entity] = reader.read_sums(member.pids)
        if reader.denied and not any(answers.values()):
            raise SourceFailed(f"smaps_rollup of {reader.denied} processes denied: it needs CAP_SYS_PTRACE")
        return answers

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        found = {entity: values for entity, values in answer.items() if values and not math.isnan(values[0])}
        return (make_block(TABLE, found, mono_ns),)

    def close(self) -> None:
        self._rest.set()
