"""The fixture node `hostile`: names that attack every output, damaged files, errors of the kernel."""

from tests.nodes.cgroup_text import Group
from tests.nodes.kernel_text import CGROUP, MIB, Files
from tests.nodes.node import FILESYSTEMS, Node
from tests.nodes.pods import (
    BATCH,
    DATABASE,
    WEB,
    all_processes,
    container_id,
    database_group,
    web_group,
)
from tests.nodes.proc_text import Process, process_stat

HOSTILE_SLICE = 'a"b\n<script>alert(1)<%2fscript>\udcff.slice'
HOSTILE_NAMES = ('");drop', "x) R 1 1 1", "<script>", "na\udcffme", "two\nlines", "tab\tbell\x07")


def make_hostile() -> Node:
    """Names that attack every way out, files cut off, errors no file can give."""
    healthy = DATABASE.systemd_folder()
    broken = WEB.systemd_folder()
    app = f"{broken}/cri-containerd-{WEB.container('app')}.scope"
    denied = f"{BATCH.systemd_folder()}/crio-{BATCH.container('main')}.scope"
    odd = f"{HOSTILE_SLICE}/docker-{container_id('docker/odd')}.scope"
    groups = (
        database_group(healthy, f"cri-containerd-{DATABASE.container('postgres')}.scope"),
        web_group(broken, f"cri-containerd-{WEB.container('app')}.scope"),
        Group(denied, pids=(2301,), cores=0.2),
        Group(odd, pids=(2801,), cores=0.02),
    )
    attackers = tuple(
        Process(3000 + number, name, cores=0.01, rss_bytes=(5 + number) * MIB)
        for number, name in enumerate(HOSTILE_NAMES)
    )

    def alter(instant: int, files: Files) -> None:
        files[f"{CGROUP}/{app}/cpu.stat"] = "usage_usec 812000000\nuser_us"
        files[f"{CGROUP}/{app}/memory.max"] = ""
        files[f"{CGROUP}/{app}/io.stat"] = "259:0 rbytes=abc wbytes=-\n"
        files[f"{CGROUP}/{app}/memory.current"] = f"{2**64 - 1}\n"
        files[f"{CGROUP}/{odd}/pids.current"] = "many\n"
        files["proc/3100/stat"] = "3100 (cut"
        files["proc/3101/stat"] = ""
        files["proc/3102/stat"] = process_stat(
            Process(3102, "huge", ticks=2**66, rss_bytes=2**64), 1.0 if instant else 0.0
        )
        if instant == 0:
            files["proc/3103/stat"] = process_stat(Process(3103, "vanishes", rss_bytes=90 * MIB), 0.0)
        else:
            files["proc/3000/stat"] = "3000 (cut off later) S 1"
            files["proc/meminfo"] = str(files["proc/meminfo"])[:300]
        files["proc/diskstats"] = str(files["proc/diskstats"])[:40]
        dev = str(files["proc/1/net/dev"])
        row = dev.splitlines()[-1].partition(":")[2]
        hostile = b"".join(
            name + b":" + row.encode() + b"\n" for name in (b'"><script>', b"eth\xff", b"eth\xfe", b"a\\b")
        )
        files["proc/1/net/dev"] = dev.encode() + hostile
        files["proc/sys/kernel/hostname"] = b'worker\xff"\n<script>\n'

    mounts: list[dict[str, object]] = [
        *FILESYSTEMS,
        {
            "device": "//nas/a b",
            "mountpoint": '/mnt/"quoted"\n<script>\udcff',
            "fstype": "cifs",
            "values": None,
        },
    ]
    return Node(
        "hostile",
        "2",
        groups=groups,
        processes=(*all_processes(groups), *attackers),
        alter=alter,
        filesystems=mounts,
        pod_logs=(DATABASE.log_folder("postgres"), f'ns"\n_<script>_{WEB.uid}/c\udcff'),
        container_logs=(f'po\nd_n"s_<script>-{BATCH.container("main")}.log',),
        faults={
            f"{CGROUP}/{denied}/memory.current": "EACCES",
            f"{CGROUP}/{denied}/cpu.stat": "EIO",
            "proc/pressure/irq": "EOPNOTSUPP",
            "proc/pressure/io": "EIO",
            "proc/vmstat": "EACCES",
            "proc/sys/fs/file-nr": "EIO",
            "proc/2301/stat": "EACCES",
        },
        is_percent=True,
    )
