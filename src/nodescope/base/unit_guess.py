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
        (r"cgroup\.v1\.cpuacct\.stat\.(user|system)", UNKNOWN),
        (r"cgroup\.v1\.(cpuacct\.usage|cpu\.stat\.throttled_time)", KernelUnit("seconds", 1e-9)),
        (r"cgroup\.v2\.cpu\.stat\.\w+_usec", KernelUnit("seconds", 1e-6)),
        (r"(cgroup\.v2\.\w+\.)?pressure\.(\w+\.)?(some|full)\.total", KernelUnit("seconds", 1e-6)),
        (r"pressure\.\w+\.(some|full)\.avg10", KernelUnit("percent")),
        (r"cgroup\.v2\.memory\.(current|max|peak|swap\.current|stat\.\w+)", KernelUnit("bytes")),
        (r"cgroup\.v1\.memory\.(\w+_in_bytes|stat\.total_\w+)", KernelUnit("bytes")),
        (r"cgroup\.(v2\.io\.stat\.[rw]bytes|v1\.blkio\..*_bytes\.\w+)", KernelUnit("bytes")),
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
        (r"resctrl\.(llc_occupancy|mbm_\w+_bytes|memory)", KernelUnit("bytes")),
    )
)


def unit_of(name: str) -> KernelUnit:
    """A name that no rule has is taken as it is: a count, or in its base unit already."""
    return next((unit for pattern, unit in RULES if pattern.fullmatch(name)), COUNT)
