"""
The kernel's own figures for one cgroup: the truth that the agent is held to.

Written without any of nodescope's code on purpose: an error in a parser must
not be able to agree with itself. One row per published metric; the unit is
the published one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

Reader = Callable[[Path], float]


def read_pairs(path: Path) -> dict[str, float]:
    return {key: float(value) for key, value in map(str.split, path.read_text().splitlines())}


def read_limit(text: str) -> float:
    return inf if text.strip() == "max" else float(text)


def pair(file: str, key: str, scale: float = 1.0) -> Reader:
    return lambda cgroup: read_pairs(cgroup / file)[key] * scale


def number(file: str) -> Reader:
    return lambda cgroup: read_limit((cgroup / file).read_text())


def read_stalled(path: Path, share: str) -> float:
    """`some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`: total is in microseconds."""
    (line,) = (line for line in path.read_text().splitlines() if line.startswith(share))
    return int(line.rpartition("=")[2]) / 1e6


def stalled(resource: str, share: str) -> Reader:
    return lambda cgroup: read_stalled(cgroup / f"{resource}.pressure", share)


def moved(key: str) -> Reader:
    """`259:0 rbytes=1 wbytes=2 ...`: one line per device, summed."""

    def read(cgroup: Path) -> float:
        fields = (cgroup / "io.stat").read_text().split()
        return float(sum(int(field.partition("=")[2]) for field in fields if field.startswith(f"{key}=")))

    return read


def read_working_set(cgroup: Path) -> float:
    return number("memory.current")(cgroup) - pair("memory.stat", "inactive_file")(cgroup)


def listed(file: str) -> Reader:
    """Ids in a file of this cgroup and all below it."""
    return lambda cgroup: float(sum(len(one.read_text().split()) for one in cgroup.rglob(file)))


def part_of_cpu_max(position: int) -> Reader:
    return lambda cgroup: read_limit((cgroup / "cpu.max").read_text().split()[position])


@dataclass(frozen=True)
class Truth:
    metric: str
    read: Reader
    counter: bool = True


TRUTHS = (
    Truth("container_cpu_usage_seconds_total", pair("cpu.stat", "usage_usec", 1e-6)),
    Truth("container_cpu_user_seconds_total", pair("cpu.stat", "user_usec", 1e-6)),
    Truth("container_cpu_system_seconds_total", pair("cpu.stat", "system_usec", 1e-6)),
    Truth("container_cpu_cfs_periods_total", pair("cpu.stat", "nr_periods")),
    Truth("container_cpu_cfs_throttled_periods_total", pair("cpu.stat", "nr_throttled")),
    Truth("container_cpu_cfs_throttled_seconds_total", pair("cpu.stat", "throttled_usec", 1e-6)),
    Truth("container_memory_failcnt", pair("memory.events", "max")),
    Truth("container_oom_events_total", pair("memory.events", "oom_kill")),
    Truth("container_pressure_cpu_waiting_seconds_total", stalled("cpu", "some")),
    Truth("container_pressure_cpu_stalled_seconds_total", stalled("cpu", "full")),
    Truth("container_pressure_memory_waiting_seconds_total", stalled("memory", "some")),
    Truth("container_pressure_memory_stalled_seconds_total", stalled("memory", "full")),
    Truth("container_pressure_io_waiting_seconds_total", stalled("io", "some")),
    Truth("container_pressure_io_stalled_seconds_total", stalled("io", "full")),
    Truth("container_fs_reads_bytes_total", moved("rbytes")),
    Truth("container_fs_writes_bytes_total", moved("wbytes")),
    Truth("container_memory_max_usage_bytes", number("memory.peak")),
    Truth("container_memory_usage_bytes", number("memory.current"), counter=False),
    Truth("container_memory_working_set_bytes", read_working_set, counter=False),
    Truth("container_memory_rss", pair("memory.stat", "anon"), counter=False),
    Truth("container_memory_cache", pair("memory.stat", "file"), counter=False),
    Truth("nodescope_container_spec_memory_limit_bytes", number("memory.max"), counter=False),
    Truth("nodescope_container_spec_cpu_quota", part_of_cpu_max(0), counter=False),
    Truth("container_spec_cpu_period", part_of_cpu_max(1), counter=False),
    Truth("container_processes", listed("cgroup.procs"), counter=False),
    Truth("container_threads", number("pids.current"), counter=False),
)


READERS = {truth.metric: truth.read for truth in TRUTHS}


def read_truth(cgroup: Path, metric: str) -> float:
    return READERS[metric](cgroup)


def read_truths(cgroup: Path) -> dict[str, float]:
    return {truth.metric: truth.read(cgroup) for truth in TRUTHS}
