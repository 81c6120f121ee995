"""
The files of /proc as the kernel writes them, from a few numbers.

Every function takes the seconds since the first instant, so that a counter at the
second instant has grown by what its rate says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.nodes.kernel_text import HZ, MIB, lines, pressure

PAGE_BYTES = 4096


@dataclass(frozen=True)
class Process:
    """One process: its stat line and what hangs on its pid."""

    pid: int
    name: str
    cgroup: str = "/"
    cores: float = 0.0
    ticks: int = 400
    threads: int = 1
    start: int = 4200
    rss_bytes: int = 12 * MIB
    namespace: int = 4026531840
    """The inode of its network namespace; this one is the host's."""
    received: int = 0
    """Bytes per second on its pod's eth0."""


def process_stat(process: Process, at: float, page_bytes: int = PAGE_BYTES) -> str:
    used = process.ticks + round(process.cores * at * HZ)
    user = used * 3 // 4
    fields = [0] * 52
    fields[3] = 0 if process.pid == 1 else 1
    fields[4] = fields[5] = process.pid
    fields[7] = -1
    fields[8] = 4194560
    fields[9] = 3096
    fields[13], fields[14] = user, used - user
    fields[17] = 20
    fields[19] = process.threads
    fields[21] = process.start
    fields[22] = process.rss_bytes * 9
    fields[23] = process.rss_bytes // page_bytes
    fields[24] = 18446744073709551615
    shown = " ".join(str(number) for number in fields[3:])
    return f"{process.pid} ({process.name}) S {shown}\n"


def smaps_rollup(process: Process) -> str:
    kib = process.rss_bytes // 1024
    parts = {
        "Rss": kib,
        "Pss": kib * 9 // 10,
        "Pss_Dirty": kib // 2,
        "Pss_Anon": kib * 6 // 10,
        "Pss_File": kib * 3 // 10,
        "Pss_Shmem": 0,
        "Shared_Clean": kib // 10,
        "Private_Dirty": kib // 2,
        "Swap": 0,
    }
    head = "55d0c8a2c000-7ffd5e5fe000 ---p 00000000 00:00 0                          [rollup]\n"
    return head + "".join(f"{key + ':':<16}{value:>8} kB\n" for key, value in parts.items())


def net_dev(interfaces: Mapping[str, tuple[int, int]]) -> str:
    """(received, sent) bytes per interface; a packet has about a thousand."""
    head = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast"
        "|bytes    packets errs drop fifo colls carrier compressed\n"
    )
    rows = [
        f"{name:>6}: {received:>7} {received // 1000:>7}    0    0    0     0          0         0 "
        f"{sent:>8} {sent // 1000:>7}    0    0    0     0       0          0\n"
        for name, (received, sent) in interfaces.items()
    ]
    return head + "".join(rows)


@dataclass(frozen=True)
class Machine:
    """What /proc says of the node as a whole."""

    cores: int = 4
    busy: float = 0.35
    """Share of all cores' time that is not idle."""
    memory_kib: int = 16_284_536
    available_kib: int = 9_611_204
    disks: tuple[str, ...] = ("nvme0n1", "nvme0n1p1", "loop0")
    interfaces: tuple[str, ...] = ("lo", "eth0")
    boot: int = 1_700_000_000
    uptime: float = 86_400.0
    hostname: str = "worker-1"
    kernel: str = "6.6.87-1-lts"
    has_irq_pressure: bool = True
    left_out: frozenset[str] = field(default_factory=frozenset)
    """Paths that this node does not have."""


def proc_stat(machine: Machine, at: float) -> str:
    up = machine.uptime + at
    core = [
        round(up * HZ * share)
        for share in (
            machine.busy * 0.7,
            0.001,
            machine.busy * 0.25,
            1 - machine.busy,
            0.002,
            0.0,
            machine.busy * 0.05,
            0.0,
            0.0,
            0.0,
        )
    ]
    numbers = " ".join(map(str, core))
    total = " ".join(str(number * machine.cores) for number in core)
    each = "".join(f"cpu{core_number} {numbers}\n" for core_number in range(machine.cores))
    switches, forks = round(up * 9000), round(up * 21)
    return (
        f"cpu  {total}\n{each}intr {round(up * 4200)} 0 9 0 0 0\nctxt {switches}\nbtime {machine.boot}\n"
        f"processes {forks}\nprocs_running 3\nprocs_blocked 0\nsoftirq {round(up * 2100)} 0 1 2 3\n"
    )


def meminfo(machine: Machine) -> str:
    total, available = machine.memory_kib, machine.available_kib
    sizes = {
        "MemTotal": total,
        "MemFree": available // 3,
        "MemAvailable": available,
        "Buffers": 210_412,
        "Cached": available // 2,
        "SwapCached": 0,
        "Active": total // 4,
        "Inactive": total // 5,
        "Active(anon)": total // 8,
        "Inactive(anon)": 18_220,
        "Active(file)": total // 8,
        "Inactive(file)": total // 5 - 18_220,
        "SwapTotal": 0,
        "SwapFree": 0,
        "Dirty": 412,
        "Writeback": 0,
        "AnonPages": total // 8,
        "Mapped": 402_116,
        "Shmem": 20_480,
        "Slab": 512_004,
        "SReclaimable": 344_800,
        "SUnreclaim": 167_204,
        "KernelStack": 11_456,
        "PageTables": 21_908,
        "CommitLimit": total // 2,
        "Committed_AS": total // 2 + 40_960,
    }
    text = "".join(f"{key + ':':<16}{value:>8} kB\n" for key, value in sizes.items())
    counts = "".join(f"{key + ':':<16}{0:>8}\n" for key in ("HugePages_Total", "HugePages_Free"))
    return f"{text}{counts}Hugepagesize:       2048 kB\nDirectMap4k:      210752 kB\n"


def vmstat(machine: Machine, at: float) -> str:
    up = machine.uptime + at
    return lines(
        {
            "nr_free_pages": machine.available_kib // 12,
            "nr_zone_inactive_anon": 4555,
            "pgpgin": round(up * 40),
            "pgpgout": round(up * 310),
            "pswpin": 0,
            "pswpout": 0,
            "pgalloc_normal": round(up * 9000),
            "pgfault": round(up * 6200),
            "pgmajfault": round(up * 0.4),
            "pgscan_kswapd": 0,
            "oom_kill": 1,
            "thp_fault_alloc": 81,
        }
    )


def diskstats(machine: Machine, at: float) -> str:
    up = machine.uptime + at
    rows = []
    for number, name in enumerate(machine.disks):
        values = [
            round(up * 3),
            12,
            round(up * 90),
            round(up * 2),
            round(up * 11),
            230,
            round(up * 620),
            round(up * 15),
            0,
            round(up * 9),
            round(up * 17),
            0,
            0,
            0,
            0,
            round(up * 0.5),
            round(up * 0.2),
        ]
        rows.append(f"{259:>4} {number:>7} {name} {' '.join(map(str, values))}\n")
    return "".join(rows)


def machine_files(machine: Machine, at: float) -> dict[str, str]:
    """The node's own files below proc."""
    up = machine.uptime + at
    traffic = {name: (round(up * 5000), round(up * 2200)) for name in machine.interfaces}
    mounts = (
        "/dev/nvme0n1p1 / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n"
        "tmpfs /run tmpfs rw,size=3256908k,mode=755 0 0\n"
    )
    files = {
        "proc/stat": proc_stat(machine, at),
        "proc/loadavg": "1.42 1.10 0.87 3/412 90210\n",
        "proc/meminfo": meminfo(machine),
        "proc/vmstat": vmstat(machine, at),
        "proc/diskstats": diskstats(machine, at),
        "proc/mounts": mounts,
        "proc/1/mounts": mounts,
        "proc/1/net/dev": net_dev(traffic),
        "proc/net/dev": net_dev(traffic),
        "proc/self/smaps_rollup": smaps_rollup(Process(1, "self")),
        "proc/pressure/cpu": pressure(48_210_377 + round(31_000 * at), 0, "1.84"),
        "proc/pressure/memory": pressure(120_400, 90_100),
        "proc/pressure/io": pressure(9_120_000 + round(12_000 * at), 8_800_000 + round(9_000 * at), "0.40"),
        "proc/sys/fs/file-nr": "1248\t0\t9223372036854775807\n",
        "proc/sys/kernel/ostype": "Linux\n",
        "proc/sys/kernel/osrelease": f"{machine.kernel}\n",
        "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Thu, 10 Apr 2025 13:04:51 +0000\n",
        "proc/sys/kernel/arch": "x86_64\n",
        "proc/sys/kernel/hostname": f"{machine.hostname}\n",
        "proc/sys/kernel/domainname": "(none)\n",
    }
    if machine.has_irq_pressure:
        # An interrupt that is served stalls everybody: there is no "some".
        total = 3_310_000 + round(700 * at)
        files["proc/pressure/irq"] = f"full avg10=0.07 avg60=0.05 avg300=0.01 total={total}\n"
    return {path: text for path, text in files.items() if not path.startswith(tuple(machine.left_out) or "-")}
