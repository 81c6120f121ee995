"""
The sources, one file each: the plug-in point.

Order is value: who comes first pins its descriptors first.
"""

from collections.abc import Callable

from nodescope.collect.source import BatchSource, CallSource
from nodescope.collect.sources import (
    amd,
    container,
    cpu,
    cpufreq,
    cpuidle,
    disk,
    filesystem,
    fpga,
    host,
    kernel,
    kubernetes,
    memory,
    network,
    nvidia,
    pcm,
    perf,
    perf_cgroup,
    pod,
    pod_resources,
    pressure,
    process,
    rapl,
    resctrl,
    smaps_rollup,
    vmstat,
)

BATCH_SOURCES: tuple[Callable[[], BatchSource], ...] = (
    cpu.make,
    memory.make,
    pressure.make,
    vmstat.make,
    kernel.make,
    disk.make,
    network.make,
    container.make,
    pod.make,
    process.make,
)
CALL_SOURCES: tuple[Callable[[], CallSource], ...] = (
    filesystem.make,
    fpga.make,
    host.make,
    kubernetes.make,
    smaps_rollup.make,
    pcm.make,
    perf.make,
    perf_cgroup.make,
    resctrl.make,
    rapl.make,
    cpufreq.make,
    cpuidle.make,
    nvidia.make,
    amd.make,
    pod_resources.make,
)
