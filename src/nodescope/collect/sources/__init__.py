"""
The sources, one file each: the plug-in point.

Order is value: who comes first pins its descriptors first.
"""

from nodescope.collect.run.source import MakeBatchSource, MakeCallSource
from nodescope.collect.sources import (
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
    pod,
    pressure,
    rapl,
    resctrl,
    smaps_rollup,
    vmstat,
)
from nodescope.collect.sources.amd import source as amd
from nodescope.collect.sources.container import source as container
from nodescope.collect.sources.nvidia import source as nvidia
from nodescope.collect.sources.pcm import source as pcm
from nodescope.collect.sources.perf import cgroup_source as perf_cgroup
from nodescope.collect.sources.perf import source as perf
from nodescope.collect.sources.pod_resources import source as pod_resources
from nodescope.collect.sources.process import source as process

BATCH_SOURCES: tuple[MakeBatchSource, ...] = (
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
CALL_SOURCES: tuple[MakeCallSource, ...] = (
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
