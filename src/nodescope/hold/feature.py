"""
The node's window features: one row each, from columns to a number a scheduler uses.

A feature is top / bottom, both weighted sums over columns and rows. Counters
are differenced first, so that a ratio over a window is the ratio of the sums,
not the mean of ratios. Several sources may be able to give one, best first;
the window names the one it came from, for their values are not the same to
the last digit. `missing` is explained by the outcomes of all of them.
"""

from dataclasses import dataclass
from typing import Literal

Weights = tuple[tuple[str, float], ...]
Bottom = Weights | Literal["elapsed", "one", "rows"]
"""Columns; or seconds between moments; or 1; or how many rows were measured: a mean over them."""


@dataclass(frozen=True, slots=True)
class Way:
    """One more source of a feature, and how it gives it."""

    source: str
    table: str
    top: Weights
    bottom: Bottom = "one"
    complement: bool = False


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the scheduler's window."""

    name: str
    unit: str
    help: str
    sources: tuple[str, ...]
    """Who could give it, best first."""
    table: str = ""
    """Empty while no table of this build gives it."""
    top: Weights = ()
    bottom: Bottom = "one"
    complement: bool = False
    """1 - top / bottom."""
    otherwise: tuple[Way, ...] = ()
    """What is tried when the first source gave nothing in the window, in this order."""
    pooled: bool = False
    """The ways do not stand in for each other: a mean over the rows of all of them."""

    @property
    def ways(self) -> tuple[Way, ...]:
        """Every way, best first; none for a feature that no table of this build gives."""
        if not self.table:
            return self.otherwise
        first = Way(self.sources[0], self.table, self.top, self.bottom, self.complement)
        return (first, *self.otherwise)


MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def stalled(resource: str) -> Weights:
    return ((f"pressure.{resource}.some.total", 1e-6),)


def pair(top: str, bottom: str, scale: float = 1.0) -> tuple[Weights, Weights]:
    """Sums that grow together: see the sources that keep them."""
    return ((top, scale),), ((bottom, 1.0),)


PERF_IPC = Way("perf", "perf", *pair("perf.instructions", "perf.cycles"))
PERF_CACHE = Way("perf", "perf", *pair("perf.cache_misses", "perf.cache_references"))
PERF_MISSES = Way("perf", "perf", *pair("perf.cache_misses", "perf.cache.seconds"))
CPUFREQ = Way("cpufreq", "cpufreq", (("cpufreq.scaling_cur_freq", 1e-6),), "rows")
CPUIDLE = Way("cpuidle", "cpuidle", *pair("cpuidle.asleep", "cpuidle.seconds"), complement=True)
COUNTERS = ("pcm", "perf")
POWER = ("pcm", "rapl")
GPUS = ("nvidia", "amd")


def of_gpus(name: str, unit: str, sentence: str, column: str, scale: float) -> Feature:
    """A mean over the GPUs that measured it, whoever made them; the vendors' tables have the same columns."""
    top = ((column, scale),)
    first, *others = (Way(vendor, vendor, top, "rows") for vendor in GPUS)
    return Feature(name, unit, sentence, GPUS, first.table, top, "rows", otherwise=tuple(others), pooled=True)


FEATURES: tuple[Feature, ...] = (
    Feature(
        "cpu_util",
        "ratio",
        "Share of all cores' time that was not idle; waiting for I/O counts as idle.",
        ("cpu",),
        "cpu.cpu",
        (("cpu.idle", 1.0), ("cpu.iowait", 1.0)),
        tuple((f"cpu.{mode}", 1.0) for mode in MODES),
        complement=True,
    ),
    Feature("load_1m", "", "Load average over one minute.", ("cpu",), "cpu", (("cpu.load_1m", 1.0),)),
    Feature(
        "mem_util",
        "ratio",
        "1 - available / total memory.",
        ("memory",),
        "memory",
        (("memory.MemAvailable", 1.0),),
        (("memory.MemTotal", 1.0),),
        complement=True,
    ),
    Feature(
        "cpu_pressure",
        "ratio",
        "Share of the window in which some task waited for a CPU.",
        ("pressure",),
        "pressure",
        stalled("cpu"),
        "elapsed",
    ),
    Feature(
        "mem_pressure",
        "ratio",
        "Share of the window in which some task waited for memory.",
        ("pressure",),
        "pressure",
        stalled("memory"),
        "elapsed",
    ),
    Feature(
        "io_pressure",
        "ratio",
        "Share of the window in which some task waited for I/O.",
        ("pressure",),
        "pressure",
        stalled("io"),
        "elapsed",
    ),
    Feature(
        "ipc",
        "ratio",
        "Instructions per cycle.",
        COUNTERS,
        "pcm",
        *pair("pcm.ipc.instructions", "pcm.ipc.cycles"),
        otherwise=(PERF_IPC,),
    ),
    Feature(
        "cache_miss",
        "ratio",
        "Share of last-level cache references that missed.",
        COUNTERS,
        "pcm",
        *pair("pcm.cache.missed", "pcm.cache.lookups"),
        otherwise=(PERF_CACHE,),
    ),
    Feature(
        "l3_miss_rate",
        "1/s",
        "Last-level cache misses per second.",
        COUNTERS,
        "pcm",
        *pair("pcm.l3_misses", "pcm.l3_misses.seconds"),
        otherwise=(Way("perf", "perf", *pair("perf.cache_misses", "perf.cache.node_seconds")),),
    ),
    Feature(
        "l2_miss_rate",
        "1/s",
        "Second-level cache misses per second.",
        ("pcm",),
        "pcm",
        *pair("pcm.l2_misses", "pcm.l2_misses.seconds"),
    ),
    Feature(
        "mem_bw",
        "GB/s",
        "Memory bandwidth, read and write.",
        ("pcm", "resctrl"),
        "pcm",
        *pair("pcm.memory", "pcm.memory.seconds", 1e-9),
        otherwise=(Way("resctrl", "resctrl", *pair("resctrl.memory", "resctrl.memory.seconds", 1e-9)),),
    ),
    Feature(
        "mem_read_bw",
        "GB/s",
        "Memory read bandwidth.",
        ("pcm",),
        "pcm",
        *pair("pcm.memory_read", "pcm.memory_read.seconds", 1e-9),
    ),
    Feature(
        "mem_write_bw",
        "GB/s",
        "Memory write bandwidth.",
        ("pcm",),
        "pcm",
        *pair("pcm.memory_written", "pcm.memory_written.seconds", 1e-9),
    ),
    Feature(
        "mem_bw_util",
        "ratio",
        "Memory bandwidth against its peak: configured, else the highest seen.",
        ("pcm",),
        "pcm",
        *pair("pcm.memory_share", "pcm.memory_share.capacity"),
    ),
    Feature(
        "freq_ghz",
        "GHz",
        "Mean core frequency.",
        ("pcm", "cpufreq"),
        "pcm",
        *pair("pcm.frequency.hertz_seconds", "pcm.frequency.seconds", 1e-9),
        otherwise=(CPUFREQ,),
    ),
    Feature(
        "power_watts",
        "watts",
        "Power of the processors.",
        POWER,
        "pcm",
        *pair("pcm.energy", "pcm.energy.seconds"),
        otherwise=(Way("rapl", "rapl", *pair("rapl.package.energy", "rapl.package.seconds")),),
    ),
    Feature(
        "c0_residency",
        "ratio",
        "Share of time the cores were awake.",
        ("pcm", "cpuidle"),
        "pcm",
        *pair("pcm.c0.in_state", "pcm.c0.seconds"),
        otherwise=(CPUIDLE,),
    ),
    of_gpus("gpu_util", "ratio", "Mean utilisation of the GPUs.", "gpu.utilization", 0.01),
    of_gpus(
        "gpu_mem_util", "ratio", "Mean share of the GPUs' memory in use.", "gpu.memory_used_percent", 0.01
    ),
    of_gpus("gpu_power_watts", "watts", "Mean power of the GPUs.", "gpu.power", 1.0),
)


def of_core(name: str, unit: str, sentence: str, top: str, bottom: str, scale: float, *ways: Way) -> Feature:
    """A feature of one core, from PCM or its fallbacks."""
    formula = pair(f"pcm.core.{top}", f"pcm.core.{bottom}", scale)
    sources = ("pcm", *(way.source for way in ways))
    return Feature(name, unit, sentence, sources, "pcm.core", *formula, otherwise=ways)


# What is told of single cores, on request. Over a set of cores these are means per core.
CORE_FEATURES: tuple[Feature, ...] = (
    FEATURES[0],
    of_core("ipc", "ratio", "Instructions per cycle.", "ipc.instructions", "ipc.cycles", 1.0, PERF_IPC),
    of_core("cache_miss", "ratio", "L3 miss ratio.", "cache.missed", "cache.lookups", 1.0, PERF_CACHE),
    of_core(
        "l3_miss_rate", "1/s", "L3 misses per second.", "l3_misses", "l3_misses.seconds", 1.0, PERF_MISSES
    ),
    of_core("l2_miss_rate", "1/s", "L2 misses per second.", "l2_misses", "l2_misses.seconds", 1.0),
    of_core("freq_ghz", "GHz", "Frequency.", "frequency.hertz_seconds", "frequency.seconds", 1e-9, CPUFREQ),
    of_core("c0_residency", "ratio", "Share of time awake.", "c0.in_state", "c0.seconds", 1.0, CPUIDLE),
    of_core("c1_residency", "ratio", "Share of time in C1.", "c1.in_state", "c1.seconds", 1.0),
    of_core("c6_residency", "ratio", "Share of time in C6.", "c6.in_state", "c6.seconds", 1.0),
)

# The names of the original model's inputs, in the units PCM prints once a
# second: millions of misses per second, percent of time.
THESIS_FEATURES: tuple[Feature, ...] = (
    of_core("IPC", "ratio", "Instructions per cycle.", "ipc.instructions", "ipc.cycles", 1.0, PERF_IPC),
    of_core("L3MISS", "million/s", "L3 misses.", "l3_misses", "l3_misses.seconds", 1e-6),
    of_core("L2MISS", "million/s", "L2 misses.", "l2_misses", "l2_misses.seconds", 1e-6),
    of_core("C0res", "percent", "Time awake.", "c0.in_state", "c0.seconds", 100.0),
    of_core("C1res", "percent", "Time in C1.", "c1.in_state", "c1.seconds", 100.0),
    of_core("C6res", "percent", "Time in C6.", "c6.in_state", "c6.seconds", 100.0),
)
