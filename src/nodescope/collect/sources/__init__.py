"""
The sources, one file each: the plug-in point.

Order is value: who comes first pins its descriptors first.
"""

from nodescope.collect.run.source import MakeBatchSource, MakeCallSource
from nodescope.collect.sources import cpu, disk, kernel, memory, network, pressure, vmstat
from nodescope.collect.sources.amd.source import AmdSource
from nodescope.collect.sources.board import (
    edac,
    hwmon,
    machine,
    md,
    power_supply,
    schedstat,
    sys_kernel,
    thermal,
    timex,
)
from nodescope.collect.sources.container.device_source import ContainerDeviceSource
from nodescope.collect.sources.container.level_source import ContainerLevelSource
from nodescope.collect.sources.container.page_source import ContainerPageSource
from nodescope.collect.sources.container.source import ContainerSource
from nodescope.collect.sources.cpufreq import CpufreqSource
from nodescope.collect.sources.cpuidle import CpuidleSource
from nodescope.collect.sources.drm.source import DrmSource
from nodescope.collect.sources.filesystem import FilesystemSource
from nodescope.collect.sources.fpga import FpgaSource
from nodescope.collect.sources.host import HostSource
from nodescope.collect.sources.intel.source import IntelSource
from nodescope.collect.sources.kubernetes import KubernetesSource
from nodescope.collect.sources.nvidia.source import NvidiaSource
from nodescope.collect.sources.pcm.source import PcmSource
from nodescope.collect.sources.perf.cgroup_source import PerfCgroupSource
from nodescope.collect.sources.perf.source import PerfSource
from nodescope.collect.sources.pod import PodSource
from nodescope.collect.sources.pod_resources.source import PodResourcesSource
from nodescope.collect.sources.process.source import ProcessSource
from nodescope.collect.sources.rapl import RaplSource
from nodescope.collect.sources.resctrl import ResctrlSource
from nodescope.collect.sources.smaps_rollup import SmapsRollupSource
from nodescope.collect.sources.stack import (
    bonding,
    infiniband,
    netstat,
    nf_conntrack,
    sockets,
    sockstat,
    softnet,
)
from nodescope.collect.sources.stack.interface import InterfaceSource
from nodescope.collect.sources.stack.pod_tcp import PodTcpSource
from nodescope.collect.sources.systemd.source import SystemdSource

BATCH_SOURCES: tuple[MakeBatchSource, ...] = (
    cpu.make,
    memory.make,
    pressure.make,
    vmstat.make,
    kernel.make,
    disk.make,
    network.make,
    ContainerSource,
    PodSource,
    ProcessSource,
    schedstat.make,
    ContainerLevelSource,
)
CALL_SOURCES: tuple[MakeCallSource, ...] = (
    FilesystemSource,
    FpgaSource,
    HostSource,
    KubernetesSource,
    SmapsRollupSource,
    PcmSource,
    PerfSource,
    PerfCgroupSource,
    ResctrlSource,
    RaplSource,
    CpufreqSource,
    CpuidleSource,
    NvidiaSource,
    AmdSource,
    IntelSource,
    DrmSource,
    PodResourcesSource,
    netstat.make,
    sockstat.make,
    softnet.make,
    nf_conntrack.make,
    sockets.make,
    InterfaceSource,
    bonding.make,
    infiniband.make,
    timex.make,
    sys_kernel.make,
    hwmon.make,
    thermal.make,
    power_supply.make,
    edac.make,
    md.make,
    machine.make,
    ContainerDeviceSource,
    ContainerPageSource,
    PodTcpSource,
    SystemdSource,
)
