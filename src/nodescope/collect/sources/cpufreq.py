"""
The frequency each core runs at, as the kernel's governor knows it.

Reads   /sys/devices/system/cpu/cpuN/cpufreq/{scaling_cur_freq,cpuinfo_min_freq,cpuinfo_max_freq}
Needs   a cpufreq driver; most virtual machines have none
Docs    https://docs.kernel.org/admin-guide/pm/cpufreq.html

    2419200

Kilohertz. On some kernels reading it measures the core for milliseconds, so
it is asked on a thread of its own.
"""

from typing import Any

import numpy as np

from nodescope.base.block import Block, Table, make_block
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.metric import Metric
from nodescope.collect.files.cores import list_cores, name_core
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context

ABSENT = "no cpufreq in /sys/devices/system/cpu: a virtual machine, or no frequency driver is loaded"
KILOHERTZ = 1e3
FILES = (
    ("scaling_cur_freq", "node_cpu_scaling_frequency_hertz", "Frequency of the core now."),
    ("cpuinfo_min_freq", "node_cpu_frequency_min_hertz", "Lowest frequency of the core."),
    ("cpuinfo_max_freq", "node_cpu_frequency_max_hertz", "Highest frequency of the core."),
)
TABLE = Table(
    "cpufreq",
    "cpufreq",
    ("cpu",),
    tuple(
        Metric(f"cpufreq.{file}", "gauge", sentence, published, unit="hertz", scale=KILOHERTZ)
        for file, published, sentence in FILES
    ),
)


class CpufreqSource(CallDefaults):
    """One small file per core and tick; the bounds once."""

    name = "cpufreq"
    deadline_seconds = 20.0

    def __init__(self, context: Context) -> None:
        self.pace_seconds = context.settings.interval_seconds
        self._root = context.root
        cores = list_cores(context.root, "cpufreq/scaling_cur_freq")
        if not cores:
            raise SourceAbsent(ABSENT)
        self._bounds = {core: [self._number(core, file) for file, _, _ in FILES[1:]] for core in cores}

    def _number(self, core: str, file: str) -> float:
        text = self._root.read_text(f"sys/devices/system/cpu/cpu{core}/cpufreq/{file}")
        # `<unknown>` is what some drivers say of a core that sleeps.
        return float(text) if text and text.isdigit() else NAN

    def read(self) -> Any:
        """{core: kilohertz or None}."""
        answer = {core: self._number(core, FILES[0][0]) for core in self._bounds}
        if all(np.isnan(value) for value in answer.values()):
            raise SourceFailed("scaling_cur_freq of no core can be read")
        return {core: None if np.isnan(value) else value for core, value in answer.items()}

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        rows = {
            name_core(core): [NAN if now is None else now, *self._bounds.get(core, [NAN, NAN])]
            for core, now in answer.items()
        }
        return (make_block(TABLE, rows, mono_ns),)
