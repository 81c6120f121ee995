"""
Cycles, instructions and last-level cache per core, by the kernel's own counters.

Reads   perf_event_open(2) per core: cycles + instructions, cache references + misses
Needs   a PMU (most virtual machines have none); CAP_PERFMON, or kernel.perf_event_paranoid <= 0
Docs    https://man7.org/linux/man-pages/man2/perf_event_open.2.html

    enabled 1000213441 ns, running 500106720 ns, cycles 3100000000, instructions 4200000000

Where the processor takes turns between groups (running < enabled), the growth
of an interval is scaled by enabled / running of that same interval. A group
that never ran in an interval was not measured in it. What perf calls cache
misses is the architecture's event; it is not PCM's L3MISS to the last digit,
so a window names its source.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.collect.files.cores import name_core, parse_core_list
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.perf.perf_event import GROUPS, SYSTEM_CALLS, Count, PerfCalls, explain

COLUMNS = (
    ("work", "cycles", "perf_cycles_total", "Cycles of a core, while it was awake."),
    ("work", "instructions", "perf_instructions_total", "Instructions retired."),
    ("cache", "cache_references", "perf_cache_references_total", "Lookups of the last-level cache."),
    ("cache", "cache_misses", "perf_cache_misses_total", "Misses of the last-level cache."),
)
TABLE = Table(
    "perf",
    "perf",
    ("cpu",),
    (
        *(
            Metric(f"perf.{word}", "counter", f"{sentence[:-1]}, since the start of nodescope.", published)
            for _, word, published, sentence in COLUMNS
        ),
        Metric("perf.work.seconds", "counter", "Time in which cycles were counted."),
        Metric("perf.cache.seconds", "counter", "Time in which cache lookups were counted."),
        # Summed over the cores it is time itself: misses of all cores by it
        # are misses per second of the node.
        Metric(
            "perf.cache.node_seconds", "counter", "A core's share of the time in which lookups were counted."
        ),
    ),
)


@dataclass(slots=True)
class Sum:
    """One group of one core: scaled growth since the start."""

    before: Count
    first: float = 0.0
    second: float = 0.0
    seconds: float = 0.0
    node_seconds: float = 0.0

    def add(self, now: Count, cores: int) -> None:
        enabled = now.enabled_ns - self.before.enabled_ns
        running = now.running_ns - self.before.running_ns
        grown = (now.first - self.before.first, now.second - self.before.second)
        self.before = now
        if running <= 0 or enabled < 0 or min(grown) < 0:
            return
        scale = max(1.0, enabled / running)
        self.first += grown[0] * scale
        self.second += grown[1] * scale
        self.seconds += max(enabled, running) / 1e9
        self.node_seconds += max(enabled, running) / 1e9 / cores


class PerfSource(CallDefaults):
    """Two groups of two events on every core."""

    name = "perf"

    def __init__(self, context: Context, calls: PerfCalls = SYSTEM_CALLS) -> None:
        self.pace_seconds = context.settings.interval_seconds
        self._context = context
        self._calls = calls
        self._groups: dict[tuple[str, str], list[int]] = {}
        self._sums: dict[tuple[str, str], Sum] = {}
        self._online: list[int] = []
        if not context.root.is_fixture:
            self._open_cores()
        elif not context.root.exists("calls/perf.json"):
            raise SourceAbsent("not captured on this fixture node")

    def _open_cores(self) -> None:
        faults: list[OSError] = []
        self._online = list_online(self._context)
        for core in self._online:
            for name, events in GROUPS.items():
                try:
                    self._groups[str(core), name] = self._calls.open_group(core, events)
                except OSError as error:
                    faults.append(error)
            # The first core speaks for all: no need to ask 255 others.
            if not self._groups:
                break
        if not self._groups:
            self._online = []
            raise explain(faults[0], self._context.root) if faults else SourceAbsent("no core is online")

    def read(self) -> Any:
        """{core: {group: [enabled ns, running ns, first, second] or None}}."""
        return self._context.root.call("perf", self._ask)

    def _ask(self) -> dict[str, dict[str, list[int] | None]]:
        if list_online(self._context) != self._online:
            # A core came or went: the sums stay, the counters are opened anew.
            self.close()
            self._open_cores()
        answer: dict[str, dict[str, list[int] | None]] = {}
        for (core, name), descriptors in self._groups.items():
            answer.setdefault(core, {})[name] = self._calls.read_group(descriptors)
        if not any(numbers for groups in answer.values() for numbers in groups.values()):
            self.close()
            raise SourceFailed("the counters of every core ended; they are opened again")
        return answer

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        cores = sorted(answer, key=int)
        values = np.full((len(cores), len(TABLE.metrics)), NAN)
        for row, core in enumerate(cores):
            for place, name in enumerate(GROUPS):
                sums = self._add(core, name, answer[core].get(name), len(cores))
                if sums:
                    values[row, 2 * place : 2 * place + 2] = sums.first, sums.second
                    values[row, 4 + place] = sums.seconds
                    values[row, 6] = sums.node_seconds
        return (Block(TABLE, tuple(map(name_core, cores)), values, mono_ns),)

    def _add(self, core: str, name: str, numbers: list[int] | None, cores: int) -> Sum | None:
        sums = self._sums.get((core, name))
        if numbers is None:
            return sums
        if sums is None:
            sums = self._sums[core, name] = Sum(Count(*numbers))
        else:
            sums.add(Count(*numbers), cores)
        return sums

    def close(self) -> None:
        self._calls.close_groups(self._groups.values())
        for sums in self._sums.values():
            # Counters that are opened anew start at 0.
            sums.before = Count(0, 0, 0, 0)
        self._groups = {}
        self._online = []


def list_online(context: Context) -> list[int]:
    """Cores that can count; this one machine's, for counters are not files of a mounted host."""
    text = context.root.read_text("sys/devices/system/cpu/online") or "0"
    try:
        return parse_core_list(text)
    except ValueError:
        return [0]
