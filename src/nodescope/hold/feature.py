"""
The node's window features: one row each, from columns to a number a scheduler uses.

A feature is top / bottom, both weighted sums over columns and rows. Counters
are differenced first, so that a ratio over a window is the ratio of the sums,
not the mean of ratios. `missing` is explained by the outcomes of the sources
that could have given it.
"""

from dataclasses import dataclass
from typing import Literal

Weights = tuple[tuple[str, float], ...]


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
    bottom: Weights | Literal["elapsed", "one"] = "one"
    complement: bool = False
    """1 - top / bottom."""


MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def stalled(resource: str) -> Weights:
    return ((f"pressure.{resource}.some.total", 1e-6),)


COUNTERS = ("pcm", "perf")
POWER = ("pcm", "rapl")
GPUS = ("nvidia", "amd")

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
    Feature("ipc", "ratio", "Instructions per cycle.", COUNTERS),
    Feature("cache_miss", "ratio", "Share of last-level cache references that missed.", COUNTERS),
    Feature("l3_miss_rate", "1/s", "Last-level cache misses per second.", COUNTERS),
    Feature("l2_miss_rate", "1/s", "Second-level cache misses per second.", ("pcm",)),
    Feature("mem_bw", "GB/s", "Memory bandwidth, read and write.", ("pcm", "resctrl")),
    Feature("mem_read_bw", "GB/s", "Memory read bandwidth.", ("pcm",)),
    Feature("mem_write_bw", "GB/s", "Memory write bandwidth.", ("pcm",)),
    Feature("mem_bw_util", "ratio", "Memory bandwidth against its peak.", ("pcm",)),
    Feature("freq_ghz", "GHz", "Mean core frequency.", ("pcm", "cpufreq")),
    Feature("power_watts", "watts", "Power of the processors.", POWER),
    Feature("c0_residency", "ratio", "Share of time the cores were awake.", ("pcm", "cpuidle")),
    Feature("gpu_util", "ratio", "Mean utilisation of the GPUs.", GPUS),
    Feature("gpu_mem_util", "ratio", "Mean memory use of the GPUs.", GPUS),
    Feature("gpu_power_watts", "watts", "Mean power of the GPUs.", GPUS),
)
