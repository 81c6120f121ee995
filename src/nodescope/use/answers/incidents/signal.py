"""
What is looked at of every workload: what it takes from the node, and what it lacks.

Each signal names the numbers of a cgroup that it is made of (by their v2
names) or raw names of other sources; GPU time is read process by process. `rest` is the least change that means
anything on any node, in the signal's unit: below, it is the noise of an idle
container. `whole` is the change that counts as a loss of everything.
"""

from dataclasses import dataclass
from typing import Literal

from nodescope.base.cgroup_metrics import BY_V2_NAME, list_raw_names
from nodescope.base.metric_names import PERIODS, THROTTLED, USAGE
from nodescope.base.text import ABBREVIATIONS

MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Signal:
    """One row of the tables below."""

    name: str
    """The plain name, where there is one: other tools take it."""
    words: str
    """In a sentence: `CPU use`."""
    unit: str
    form: Literal["rate", "value", "part"]
    inputs: tuple[str, ...]
    """Added up; of `part` the first is divided by the second."""
    rest: float
    whole: float = 1.0
    join: Literal["sum", "max"] = "sum"
    scope: str = "container"
    falls: bool = False
    """Whether less of it is the loss."""
    pace_seconds: float = 0.0
    """How often it is read, where that is seldom: a rate holds for the whole time since the reading before."""

    def raw_names(self) -> tuple[tuple[str, ...], ...]:
        return tuple(list_raw_names(one) if one in BY_V2_NAME else (one,) for one in self.inputs)


def stand_still(what: str) -> Signal:
    """
    All of a container's tasks waited at once: PSI's `full`, which is part of its `some`.

    It counts half beside `some`: who stands still lost up to one and a half times as much as who only waits.
    """
    words = f"standstill for {ABBREVIATIONS.get(what, what)}"
    raw = f"{what}.pressure.full.total"
    return Signal(f"pressure_{what}_full", words, "ratio", "rate", (raw,), 0.03, 2.0, join="max")


# What one workload takes is not there for the others.
TAKEN = (
    Signal("cpu", "CPU", "cores", "rate", (USAGE,), 0.15),
    Signal("memory_anon", "anonymous memory", "bytes", "value", ("memory.stat.anon",), 48 * MIB),
    Signal("disk", "disk transfer", "bytes/s", "rate", ("io.stat.rbytes", "io.stat.wbytes"), 8 * MIB),
    Signal(
        "disk_operations", "disk operations", "operations/s", "rate", ("io.stat.rios", "io.stat.wios"), 300.0
    ),
    Signal(
        "network",
        "network transfer",
        "bytes/s",
        "rate",
        ("pod.network.receive_bytes", "pod.network.transmit_bytes"),
        16 * MIB,
        scope="pod",
    ),
    Signal("cache_misses", "last-level cache misses", "misses/s", "rate", ("perf_cgroup.cache_misses",), 2e6),
    Signal("gpu", "GPU time", "GPUs", "value", ("gpu.process.utilization",), 0.15, scope="gpu"),
)
# What a workload lacks: time it waits, work it does again, what it had before.
LACKED = (
    Signal("pressure_cpu", "CPU pressure", "ratio", "rate", ("cpu.pressure.some.total",), 0.04, join="max"),
    Signal(
        "pressure_memory",
        "memory pressure",
        "ratio",
        "rate",
        ("memory.pressure.some.total",),
        0.02,
        join="max",
    ),
    Signal("pressure_io", "I/O pressure", "ratio", "rate", ("io.pressure.some.total",), 0.04, join="max"),
    Signal("cpu_throttled", "throttled periods", "ratio", "part", (THROTTLED, PERIODS), 0.08, join="max"),
    Signal("major_faults", "major page faults", "faults/s", "rate", ("memory.stat.pgmajfault",), 15.0, 600.0),
    Signal("memory_file", "page cache", "bytes", "value", ("memory.stat.file",), 48 * MIB, 4.0, falls=True),
    Signal(
        "instructions_per_cycle",
        "instructions per cycle",
        "ratio of instructions",
        "part",
        ("perf_cgroup.instructions", "perf_cgroup.cycles"),
        0.08,
        falls=True,
    ),
    *(stand_still(what) for what in ("cpu", "memory", "io")),
    Signal(
        "tcp_retransmits",
        "TCP segments sent again",
        "segments/s",
        "rate",
        ("pod_tcp.Tcp_RetransSegs",),
        5.0,
        500.0,
        scope="pod",
        pace_seconds=30.0,
    ),
    Signal(
        "tcp_refused",
        "refused connections",
        "connections/s",
        "rate",
        ("pod_tcp.TcpExt_ListenOverflows",),
        1.0,
        50.0,
        scope="pod",
        pace_seconds=30.0,
    ),
)
BY_NAME = {one.name: one for one in (*TAKEN, *LACKED)}
NODE_BANDWIDTH = ("pcm.memory", "pcm.memory.seconds")
# By what is taken: what others then lack of it. Memory that is taken away is read from the disk again.
FAMILY = {
    # Who does not get to a core cannot accept connections: its queue overflows.
    "cpu": ("pressure_cpu", "pressure_cpu_full", "cpu", "tcp_refused"),
    "memory_anon": (
        *("oom_kill", "pressure_memory", "pressure_memory_full", "major_faults", "memory_file"),
        *("pressure_io", "pressure_io_full"),
    ),
    "disk": ("pressure_io", "pressure_io_full", "disk"),
    "disk_operations": ("pressure_io", "pressure_io_full", "disk"),
    "network": ("network", "tcp_retransmits", "tcp_refused"),
    "gpu": ("gpu",),
    "cache_misses": ("instructions_per_cycle",),
    "bandwidth": ("instructions_per_cycle", "node_bandwidth"),
}
# By what is taken: what people call it.
RESOURCES = {
    "cpu": "cpu",
    "memory_anon": "memory",
    "disk": "disk",
    "disk_operations": "disk",
    "network": "network",
    "gpu": "GPU",
    "cache_misses": "memory bandwidth",
    "bandwidth": "memory bandwidth",
}
