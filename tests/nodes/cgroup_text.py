"""
The files of one cgroup as the kernel writes them, from a few numbers.

Every function takes the seconds since the first instant, so that a counter at the
second instant has grown by what its rate says.
"""

from dataclasses import dataclass

from tests.nodes.kernel_text import HZ, MIB, lines, pressure

# cgroup v1 writes "no limit" as the largest page-aligned signed number.
V1_UNLIMITED = 9223372036854771712


@dataclass(frozen=True)
class Group:
    """One cgroup: how it stood at the first instant, and what it does per second."""

    path: str
    pids: tuple[int, ...] = ()
    cores: float = 0.1
    """CPU time per second, three quarters of it in user mode."""
    cpu_usec: int = 4_000_000
    anon: int = 24 * MIB
    file: int = 8 * MIB
    anon_growth: int = 0
    memory_max: int | None = None
    quota_usec: int | None = None
    pids_max: int | None = None
    oom_kills: int = 0
    throttled_share: float = 0.0
    """Of the ten periods that pass each second under a quota."""
    devices: tuple[str, ...] = ("259:0",)
    written: int = 2 * MIB
    """Bytes per second to each device."""
    is_inner: bool = False
    """Only on the way to others."""

    def usage(self, at: float) -> int:
        return self.cpu_usec + round(self.cores * at * 1e6)

    def memory(self, at: float) -> int:
        return self.anon_at(at) + self.file + 2 * MIB

    def anon_at(self, at: float) -> int:
        return self.anon + round(self.anon_growth * at)

    def periods(self, at: float) -> tuple[int, int, int]:
        """Periods, throttled ones, throttled microseconds."""
        if self.quota_usec is None:
            return 0, 0, 0
        passed = 900 + round(10 * at)
        throttled = round(passed * self.throttled_share)
        return passed, throttled, throttled * 41_337


def memory_stat_v2(group: Group, at: float) -> str:
    anon = group.anon_at(at)
    faults = 6000 + round(250 * at)
    return lines(
        {
            "anon": anon,
            "file": group.file,
            "kernel": 2 * MIB,
            "kernel_stack": 16384 * max(1, len(group.pids)),
            "pagetables": 159744,
            "sec_pagetables": 0,
            "percpu": 1216,
            "sock": 4096,
            "vmalloc": 0,
            "shmem": 4096,
            "zswap": 0,
            "zswapped": 0,
            "file_mapped": group.file // 4,
            "file_dirty": 12288,
            "file_writeback": 0,
            "swapcached": 0,
            "anon_thp": 0,
            "file_thp": 0,
            "shmem_thp": 0,
            "inactive_anon": anon - 4096,
            "active_anon": 4096,
            "inactive_file": group.file * 3 // 4,
            "active_file": group.file // 4,
            "unevictable": 0,
            "slab_reclaimable": 421_888,
            "slab_unreclaimable": 229_376,
            "slab": 651_264,
            "workingset_refault_anon": 0,
            "workingset_refault_file": 12,
            "workingset_activate_anon": 0,
            "workingset_activate_file": 3,
            "workingset_restore_anon": 0,
            "workingset_restore_file": 0,
            "workingset_nodereclaim": 0,
            "pgscan": 0,
            "pgsteal": 0,
            "pgscan_kswapd": 0,
            "pgscan_direct": 0,
            "pgscan_khugepaged": 0,
            "pgsteal_kswapd": 0,
            "pgsteal_direct": 0,
            "pgsteal_khugepaged": 0,
            "pgfault": faults,
            "pgmajfault": 31,
            "pgrefill": 0,
            "pgactivate": 0,
            "pgdeactivate": 0,
            "pglazyfree": 0,
            "pglazyfreed": 0,
            "thp_fault_alloc": 0,
            "thp_collapse_alloc": 0,
        }
    )


def io_stat(group: Group, at: float) -> str:
    written = round(group.written * at)
    return "".join(
        f"{device} rbytes={6 * MIB} wbytes={40 * MIB + written} rios=312 wios={1024 + written // 65536} "
        "dbytes=0 dios=0\n"
        for device in group.devices
    )


def limit_text(limit: int | None) -> str:
    return "max\n" if limit is None else f"{limit}\n"


def cgroup2(group: Group, at: float) -> dict[str, str]:
    """Every file of a v2 cgroup that we read, and those that tell what it is."""
    usage = group.usage(at)
    passed, throttled, throttled_usec = group.periods(at)
    quota = "max" if group.quota_usec is None else str(group.quota_usec)
    return {
        "cgroup.procs": "".join(f"{pid}\n" for pid in group.pids),
        "cgroup.events": f"populated {int(bool(group.pids))}\nfrozen 0\n",
        "cpu.stat": lines(
            {
                "usage_usec": usage,
                "user_usec": usage * 3 // 4,
                "system_usec": usage - usage * 3 // 4,
                "core_sched.force_idle_usec": 0,
                "nr_periods": passed,
                "nr_throttled": throttled,
                "throttled_usec": throttled_usec,
                "nr_bursts": 0,
                "burst_usec": 0,
            }
        ),
        "cpu.max": f"{quota} 100000\n",
        "cpu.pressure": pressure(210_000 + round(9_000 * at), 180_000 + round(4_000 * at), "0.91"),
        "memory.current": f"{group.memory(at)}\n",
        "memory.peak": f"{group.memory(at) + 5 * MIB}\n",
        "memory.max": limit_text(group.memory_max),
        "memory.events": lines(
            {
                "low": 0,
                "high": 0,
                "max": 3 * group.oom_kills,
                "oom": group.oom_kills,
                "oom_kill": group.oom_kills,
                "oom_group_kill": 0,
            }
        ),
        "memory.stat": memory_stat_v2(group, at),
        "memory.swap.current": "0\n",
        "memory.pressure": pressure(0, 0),
        "io.stat": io_stat(group, at),
        "io.pressure": pressure(51_000 + round(2_000 * at), 50_000 + round(2_000 * at)),
        "pids.current": f"{len(group.pids) + 2 if group.pids else 0}\n",
        "pids.max": limit_text(group.pids_max),
    }


def memory_stat_v1(group: Group, at: float) -> str:
    own = {
        "cache": group.file,
        "rss": group.anon_at(at),
        "rss_huge": 0,
        "shmem": 4096,
        "mapped_file": group.file // 4,
        "dirty": 12288,
        "writeback": 0,
        "swap": 0,
        "workingset_refault_anon": 0,
        "workingset_refault_file": 12,
        "pgpgin": 5000 + round(100 * at),
        "pgpgout": 1200 + round(60 * at),
        "pgfault": 6000 + round(250 * at),
        "pgmajfault": 31,
        "inactive_anon": group.anon_at(at) - 4096,
        "active_anon": 4096,
        "inactive_file": group.file * 3 // 4,
        "active_file": group.file // 4,
        "unevictable": 0,
    }
    limit = V1_UNLIMITED if group.memory_max is None else group.memory_max
    limits = {"hierarchical_memory_limit": limit, "hierarchical_memsw_limit": V1_UNLIMITED}
    return lines(own) + lines(limits) + lines({f"total_{key}": value for key, value in own.items()})


def operations(group: Group, read: int, write: int) -> str:
    text = ""
    for device in group.devices:
        counts = {
            "Read": read,
            "Write": write,
            "Sync": write,
            "Async": read,
            "Discard": 0,
            "Total": read + write,
        }
        text += "".join(f"{device} {word} {count}\n" for word, count in counts.items())
    return f"{text}Total {(read + write) * len(group.devices)}\n"


def cgroup1(group: Group, at: float) -> dict[str, dict[str, str]]:
    """Files by controller."""
    usage = group.usage(at)
    passed, throttled, throttled_usec = group.periods(at)
    written = round(group.written * at)
    procs = {"cgroup.procs": "".join(f"{pid}\n" for pid in group.pids)}
    cpuacct = {
        "cpuacct.usage": f"{usage * 1000}\n",
        "cpuacct.stat": lines(
            {"user": usage * 3 // 4 // (1_000_000 // HZ), "system": usage // 4 // (1_000_000 // HZ)}
        ),
    }
    cpu = {
        "cpu.stat": lines(
            {
                "nr_periods": passed,
                "nr_throttled": throttled,
                "throttled_time": throttled_usec * 1000,
                "nr_bursts": 0,
                "burst_time": 0,
            }
        ),
        "cpu.cfs_quota_us": f"{-1 if group.quota_usec is None else group.quota_usec}\n",
        "cpu.cfs_period_us": "100000\n",
    }
    memory = {
        "memory.usage_in_bytes": f"{group.memory(at)}\n",
        "memory.max_usage_in_bytes": f"{group.memory(at) + 5 * MIB}\n",
        "memory.limit_in_bytes": f"{V1_UNLIMITED if group.memory_max is None else group.memory_max}\n",
        "memory.failcnt": f"{3 * group.oom_kills}\n",
        "memory.oom_control": lines({"oom_kill_disable": 0, "under_oom": 0, "oom_kill": group.oom_kills}),
        "memory.stat": memory_stat_v1(group, at),
    }
    pids = {
        "pids.current": f"{len(group.pids) + 2 if group.pids else 0}\n",
        "pids.max": limit_text(group.pids_max),
    }
    blkio = {
        "blkio.throttle.io_service_bytes_recursive": operations(group, 6 * MIB, 40 * MIB + written),
        "blkio.throttle.io_serviced_recursive": operations(group, 312, 1024 + written // 65536),
    }
    files = {"cpu,cpuacct": cpu | cpuacct, "memory": memory, "pids": pids, "blkio": blkio}
    return {controller: procs | found for controller, found in files.items()}
