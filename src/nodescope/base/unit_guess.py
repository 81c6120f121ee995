"""
What a raw name says about its unit, for rows that came without their sidecar.

The archive keeps the kernel's own numbers; which unit they are in is in the
sidecar. When that is lost, or somebody else wrote the file with the same
names, most names still fix it: `usage_usec` is microseconds everywhere. A few
do not: clock ticks, pages and meminfo's kilobytes differ between machines and
systems, and a number that is a thousand times too large is worse than none.
"""

import re
from dataclasses import dataclass

from nodescope.base.cgroup_metrics import CGROUP_METRICS, CLOCK_TICKS

NOT_KNOWN = "unit not known"


@dataclass(frozen=True, slots=True)
class KernelUnit:
    """The base unit, and the factor that leads to it."""

    unit: str
    scale: float = 1.0


UNKNOWN = KernelUnit(NOT_KNOWN)
COUNT = KernelUnit("")
# The first that fits the whole name.
RULES = tuple(
    (re.compile(pattern), unit)
    for pattern, unit in (
        # Ticks, pages and kB on Linux; seconds and bytes where psutil reads.
        (r"cpu\.(user|nice|system|idle|iowait|irq|softirq|steal|guest|guest_nice)", UNKNOWN),
        (r"process\.(cpu|utime|stime|rss)", UNKNOWN),
        (r"memory\.HugePages_\w+", COUNT),
        (r"memory\..+", UNKNOWN),
        # What other programs read of the files whose declared names are in DECLARED.
        (r"cgroup\.v2\.cpu\.stat\.\w+_usec", KernelUnit("seconds", 1e-6)),
        (r"pressure\.\w+\.(some|full)\.total", KernelUnit("seconds", 1e-6)),
        (r"pressure\.\w+\.(some|full)\.avg10", KernelUnit("percent")),
        (r"cgroup\.v2\.memory\.(current|max|peak|swap\.current|stat\.\w+)", KernelUnit("bytes")),
        (r"cgroup\.v1\.memory\.(\w+_in_bytes|stat\.total_\w+)", KernelUnit("bytes")),
        (r"smaps_rollup\.pss\w*", KernelUnit("bytes", 1024.0)),
        (r"disk\.sectors_(read|written)", KernelUnit("bytes", 512.0)),
        (r"(disk|fpga)\.[\w.]+_ms", KernelUnit("seconds", 1e-3)),
        (r"cpufreq\.\w+_freq", KernelUnit("hertz", 1000.0)),
        (r"cpuidle\..+\.time", KernelUnit("seconds", 1e-6)),
        (r"rapl\.\w+\.energy_uj", KernelUnit("joules", 1e-6)),
        (r"(rapl\.\w+|gpu)\.energy", KernelUnit("joules")),
        (r"(pod\.)?network\.\w+_bytes|filesystem\.(size|free|available)", KernelUnit("bytes")),
        # Read in base units already; the names of these say which.
        (r"gpu\.(mig\.)?(memory|visible|gtt)_(used|total|free|reserved)", KernelUnit("bytes")),
        (r"gpu\.(process\.memory|(pcie|nvlink)[._](transmit|receive|speed)(_rate)?)", KernelUnit("bytes")),
        (r"pcm\.((socket|core)\.)?(memory_(read|written)(\.seconds)?|l3_occupancy)", KernelUnit("bytes")),
        (
            r"sockstat\.\w+_mem_bytes|interface\.mtu|machine\.\w+_bytes",
            KernelUnit("bytes"),
        ),
        (r"container_device\.[rw]bytes", KernelUnit("bytes")),
        (r"container_page\.hugetlb_(max_)?usage", KernelUnit("bytes")),
        (r"infiniband\.port_(rcv|xmit)_data(_64)?", KernelUnit("bytes", 4.0)),
        (r"infiniband\.rate", KernelUnit("bytes", 125_000_000.0)),
        (r"infiniband\.lifespan", KernelUnit("seconds", 1e-3)),
        (r"interface\.speed", KernelUnit("bytes", 125_000.0)),
        (r"schedstat\.(running|waiting)", KernelUnit("seconds", 1e-9)),
        (r"drm\.engine_busy", KernelUnit("seconds", 1e-9)),
        (r"drm\.memory", KernelUnit("bytes")),
        (r"hwmon\.temp_(alarm|fault)|hwmon\.in_alarm", COUNT),
        (r"hwmon\.temp_\w+_alarm", KernelUnit("", 1e-3)),
        (r"hwmon\.temp_\w+", KernelUnit("celsius", 1e-3)),
        (r"hwmon\.in_\w+", KernelUnit("volts", 1e-3)),
        (r"hwmon\.curr_\w+", KernelUnit("amperes", 1e-3)),
        (r"hwmon\.(power|energy|humidity)_\w+", KernelUnit("", 1e-6)),
        (r"thermal\.temp", KernelUnit("", 1e-3)),
        (r"power_supply\.(\w+_now|energy_full)", KernelUnit("", 1e-6)),
        (r"power_supply\.temp", KernelUnit("", 0.1)),
        (r"resctrl\.(llc_occupancy|mbm_\w+_bytes|memory)", KernelUnit("bytes")),
    )
)


DECLARED = {
    name: UNKNOWN if scale is CLOCK_TICKS else KernelUnit(row.unit, scale)
    for row in CGROUP_METRICS
    for name, scale in row.raw
}


def unit_of(name: str) -> KernelUnit:
    """A name that no rule has is taken as it is: a count, or in its base unit already."""
    # Pods and slices have the numbers of containers, under names of their own.
    declared = DECLARED.get(name.replace("level.", "cgroup.", 1) if name.startswith("level.") else name)
    if declared is not None:
        return declared
    return next((unit for pattern, unit in RULES if pattern.fullmatch(name)), COUNT)
