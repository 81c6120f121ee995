"""
What the files of /proc and of cgroups have in common.

Formats follow Linux 6.6 (`seq_printf` calls of mm/memcontrol.c, kernel/cgroup,
kernel/sched/psi.c, fs/proc).
"""

from collections.abc import Mapping

Files = dict[str, str | bytes]
"""Content by path; bytes where the content is not UTF-8."""

CGROUP = "sys/fs/cgroup"
MIB = 2**20
HZ = 100


def lines(pairs: Mapping[str, int]) -> str:
    return "".join(f"{key} {value}\n" for key, value in pairs.items())


def pressure(some_usec: int, full_usec: int, average: str = "0.00") -> str:
    return (
        f"some avg10={average} avg60=0.12 avg300=0.03 total={some_usec}\n"
        f"full avg10=0.00 avg60=0.00 avg300=0.00 total={full_usec}\n"
    )
