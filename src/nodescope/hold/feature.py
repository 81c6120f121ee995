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
    """One source of a feature, and how it gives it."""

    source: str
    table: str
    top: Weights
    bottom: Bottom = "one"
    complement: bool = False
    """1 - top / bottom."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the scheduler's window."""

    name: str
    unit: str
    help: str
    ways: tuple[Way, ...]
    """Best first: the first that gave something in the window counts."""
    is_pooled: bool = False
    """The ways do not stand in for each other: a mean over the rows of all of them."""


def pair(top: str, bottom: str, scale: float = 1.0) -> tuple[Weights, Weights]:
    """Sums that grow together: see the sources that keep them."""
    return ((top, scale),), ((bottom, 1.0),)


def pcm(top: str, bottom: str = "", scale: float = 1.0, table: str = "pcm") -> Way:
    """Over the seconds in which it was counted, unless something else is the bottom."""
    return Way("pcm", table, *pair(f"{table}.{top}", f"{table}.{bottom or top + '.seconds'}", scale))


def core(top: str, bottom: str = "", scale: float = 1.0) -> Way:
    return pcm(top, bottom, scale, "pcm.core")


def stalled(name: str, resource: str, words: str) -> Feature:
    top = ((f"pressure.{resource}.some.total", 1e-6),)
    sentence = f"Share of the window in which some task waited for {words}."
    return Feature(name, "ratio", sentence, (Way("pressure", "pressure", top, "elapsed"),))


def of_gpus(name: str, unit: str, sentence: str, column: str, scale: float) -> Feature:
    """A mean over the GPUs that measured it, whoever made them; the vendors' tables have the same columns."""
    ways = tuple(Way(vendor, vendor, ((column, scale),), "rows") for vendor in GPUS)
    return Feature(name, unit, sentence, ways, is_pooled=True)


MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
GPUS = ("nvidia", "amd")
NOT_IDLE = Way(
    "cpu",
    "cpu.cpu",
    (("cpu.idle", 1.0), ("cpu.iowait", 1.0)),
    tuple((f"cpu.{mode}", 1.0) for mode in MODES),
    complement=True,
)
MEMORY = Way(
    "memory", "memory", (("memory.MemAvailable", 1.0),), (("memory.MemTotal", 1.0),), complement=True
)
PERF_IPC = Way("perf", "perf", *pair("perf.instructions", "perf.cycles"))
PERF_CACHE = Way("perf", "perf", *pair("perf.cache_misses", "perf.cache_references"))
PERF_MISSES = Way("perf", "perf", *pair("perf.cache_misses", "perf.cache.seconds"))
PERF_NODE_MISSES = Way("perf", "perf", *pair("perf.cache_misses", "perf.cache.node_seconds"))
CPUFREQ = Way("cpufreq", "cpufreq", (("cpufreq.scaling_cur_freq", 1e-6),), "rows")
CPUIDLE = Way("cpuidle", "cpuidle", *pair("cpuidle.asleep", "cpuidle.seconds"), complement=True)
RESCTRL = Way("resctrl", "resctrl", *pair("resctrl.memory", "resctrl.memory.seconds", 1e-9))
RAPL = Way("rapl", "rapl", *pair("rapl.package.energy", "rapl.package.seconds"))

CPU_UTIL = Feature(
    "cpu_util",
    "ratio",
    "Share of all cores' time that was not idle; waiting for I/O counts as idle.",
    (NOT_IDLE,),
)
FEATURES: tuple[Feature, ...] = (
    CPU_UTIL,
    Feature("load_1m", "", "Load average over one minute.", (Way("cpu", "cpu", (("cpu.load_1m", 1.0),)),)),
    Feature("mem_util", "ratio", "1 - available / total memory.", (MEMORY,)),
    stalled("cpu_pressure", "cpu", "a CPU"),
    stalled("mem_pressure", "memory", "memory"),
    stalled("io_pressure", "io", "I/O"),
    Feature("ipc", "ratio", "Instructions per cycle.", (pcm("ipc.instructions", "ipc.cycles"), PERF_IPC)),
    Feature(
        "cache_miss",
        "ratio",
        "Share of last-level cache references that missed.",
        (pcm("cache.missed", "cache.lookups"), PERF_CACHE),
    ),
    Feature(
        "l3_miss_rate", "1/s", "Last-level cache misses per second.", (pcm("l3_misses"), PERF_NODE_MISSES)
    ),
    Feature("l2_miss_rate", "1/s", "Second-level cache misses per second.", (pcm("l2_misses"),)),
    Feature("mem_bw", "GB/s", "Memory bandwidth, read and write.", (pcm("memory", scale=1e-9), RESCTRL)),
    Feature("mem_read_bw", "GB/s", "Memory read bandwidth.", (pcm("memory_read", scale=1e-9),)),
    Feature("mem_write_bw", "GB/s", "Memory write bandwidth.", (pcm("memory_written", scale=1e-9),)),
    Feature(
        "mem_bw_util",
        "ratio",
        "Memory bandwidth against its peak: configured, else the highest seen.",
        (pcm("memory_share", "memory_share.capacity"),),
    ),
    Feature(
        "freq_ghz",
        "GHz",
        "Mean core frequency.",
        (pcm("frequency.hertz_seconds", "frequency.seconds", 1e-9), CPUFREQ),
    ),
    Feature("power_watts", "watts", "Power of the processors.", (pcm("energy"), RAPL)),
    Feature(
        "c0_residency",
        "ratio",
        "Share of time the cores were awake.",
        (pcm("c0.in_state", "c0.seconds"), CPUIDLE),
    ),
    of_gpus("gpu_util", "ratio", "Mean utilisation of the GPUs.", "gpu.utilization", 0.01),
    of_gpus(
        "gpu_mem_util", "ratio", "Mean share of the GPUs' memory in use.", "gpu.memory_used_percent", 0.01
    ),
    of_gpus("gpu_power_watts", "watts", "Mean power of the GPUs.", "gpu.power", 1.0),
)


# Features of single cores, on request. Over a set of cores these are means per core.
CORE_FEATURES: tuple[Feature, ...] = (
    CPU_UTIL,
    Feature("ipc", "ratio", "Instructions per cycle.", (core("ipc.instructions", "ipc.cycles"), PERF_IPC)),
    Feature("cache_miss", "ratio", "L3 miss ratio.", (core("cache.missed", "cache.lookups"), PERF_CACHE)),
    Feature("l3_miss_rate", "1/s", "L3 misses per second.", (core("l3_misses"), PERF_MISSES)),
    Feature("l2_miss_rate", "1/s", "L2 misses per second.", (core("l2_misses"),)),
    Feature(
        "freq_ghz", "GHz", "Frequency.", (core("frequency.hertz_seconds", "frequency.seconds", 1e-9), CPUFREQ)
    ),
    Feature("c0_residency", "ratio", "Share of time awake.", (core("c0.in_state", "c0.seconds"), CPUIDLE)),
    Feature("c1_residency", "ratio", "Share of time in C1.", (core("c1.in_state", "c1.seconds"),)),
    Feature("c6_residency", "ratio", "Share of time in C6.", (core("c6.in_state", "c6.seconds"),)),
)

# The names of the original model's inputs, in the units PCM prints once a
# second: millions of misses per second, percent of time.
THESIS_FEATURES: tuple[Feature, ...] = (
    Feature("IPC", "ratio", "Instructions per cycle.", (core("ipc.instructions", "ipc.cycles"), PERF_IPC)),
    Feature("L3MISS", "million/s", "L3 misses.", (core("l3_misses", scale=1e-6),)),
    Feature("L2MISS", "million/s", "L2 misses.", (core("l2_misses", scale=1e-6),)),
    Feature("C0res", "percent", "Time awake.", (core("c0.in_state", "c0.seconds", 100.0),)),
    Feature("C1res", "percent", "Time in C1.", (core("c1.in_state", "c1.seconds", 100.0),)),
    Feature("C6res", "percent", "Time in C6.", (core("c6.in_state", "c6.seconds", 100.0),)),
)
