"""
Host metrics where there is no /proc: macOS, through psutil.

Reads   psutil: cpu_times, getloadavg, virtual_memory, net_io_counters, disk_io_counters, process_iter
Needs   psutil; used only on a machine without /proc/stat
Docs    https://psutil.readthedocs.io/

One answer, as JSON would save it:

    {"cores": [{"user": 1.5, "nice": 0.0, "system": 0.8, "idle": 90.2}], "load": [1.2, 1.0, 0.9],
     "memory": {"total": 17179869184, "available": 8589934592}, "network": {...}, "disk": {...}, "processes": [...]}

The series have the names that the Linux sources give them, so that dashboards
and windows work alike. What the system does not offer (pressure, containers)
is absent.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.files.cores import name_core
from nodescope.collect.files.layout import NAN
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.cpu import LOADS, MODES, time_in
from nodescope.collect.sources.disk import name_disk
from nodescope.collect.sources.network import name_interface

# psutil gives seconds, bytes and counts: every scale is 1.
CORES = Table("cpu.cpu", "host", ("cpu",), tuple(time_in(mode, 1) for mode in MODES))
LOAD = Table("cpu", "host", ("node",), tuple(LOADS.values()))
MEMORY = Table(
    "memory",
    "host",
    ("node",),
    (
        Metric("memory.MemTotal", "gauge", "Memory of the machine.", "node_memory_total_bytes", unit="bytes"),
        Metric(
            "memory.MemAvailable",
            "gauge",
            "Memory that can be had.",
            "node_memory_available_bytes",
            unit="bytes",
        ),
    ),
)
NETWORK_FIELDS = {
    "receive_bytes": "bytes_recv",
    "receive_packets": "packets_recv",
    "receive_errs": "errin",
    "receive_drop": "dropin",
    "transmit_bytes": "bytes_sent",
    "transmit_packets": "packets_sent",
    "transmit_errs": "errout",
    "transmit_drop": "dropout",
}
NETWORK = Table(
    "network.network",
    "host",
    ("network",),
    tuple(
        Metric(f"network.{word}", "counter", f"{word} of the interface.", f"node_network_{word}_total")
        for word in NETWORK_FIELDS
    ),
)
DISK_FIELDS = {
    "reads_completed_total": ("reads", "read_count"),
    "read_bytes_total": ("bytes_read", "read_bytes"),
    "writes_completed_total": ("writes", "write_count"),
    "written_bytes_total": ("bytes_written", "write_bytes"),
}
DISK = Table(
    "disk.disk",
    "host",
    ("disk",),
    tuple(
        Metric(f"disk.{word}", "counter", f"{word} of the device.", f"node_disk_{published}")
        for published, (word, _) in DISK_FIELDS.items()
    ),
)
PROCESS = Table(
    "process",
    "host",
    ("process",),
    (
        Metric(
            "process.cpu",
            "counter",
            "CPU time used, since its start.",
            "cpu_process_cpu_seconds_total",
            unit="seconds",
        ),
        Metric("process.rss", "gauge", "Resident memory.", "cpu_process_rss_bytes", unit="bytes"),
    ),
)


class HostSource(CallDefaults):
    """Asks psutil; its answers become the blocks that the Linux sources would give."""

    name = "host"

    def __init__(self, context: Context) -> None:
        if context.root.exists("proc/stat"):
            raise SourceAbsent("not needed: this machine has /proc")
        try:
            import psutil  # noqa: PLC0415 - not installed on Linux
        except ImportError as error:
            raise SourceAbsent("no /proc, and psutil is not installed: pip install psutil") from error
        self._psutil = psutil
        self._top = context.settings.process_top

    def read(self) -> Any:
        return read_host(self._psutil)

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        return parse_host(answer, self._top, mono_ns)


def read_host(psutil: Any) -> dict[str, Any]:
    """Everything psutil tells, as plain data; what it may not tell is left out."""
    processes = []
    for process in psutil.process_iter(["pid", "name", "create_time", "cpu_times", "memory_info"]):
        facts = process.info
        # None where the system refuses: another user's process.
        if facts["cpu_times"] and facts["memory_info"]:
            cpu_seconds = facts["cpu_times"].user + facts["cpu_times"].system
            processes.append(
                [facts["pid"], facts["name"], facts["create_time"], cpu_seconds, facts["memory_info"].rss]
            )
    memory = psutil.virtual_memory()
    return {
        "cores": [times._asdict() for times in psutil.cpu_times(percpu=True)],
        "load": list(psutil.getloadavg()),
        "memory": {"total": memory.total, "available": memory.available},
        "network": {name: counts._asdict() for name, counts in psutil.net_io_counters(pernic=True).items()},
        "disk": {
            name: counts._asdict() for name, counts in (psutil.disk_io_counters(perdisk=True) or {}).items()
        },
        "processes": processes,
    }


def parse_host(answer: Mapping[str, Any], top: int, mono_ns: int) -> tuple[Block, ...]:
    cores = {
        name_core(str(number)): [times.get(mode, NAN) for mode in MODES]
        for number, times in enumerate(answer["cores"])
    }
    network = {
        name_interface(name): [counts[field] for field in NETWORK_FIELDS.values()]
        for name, counts in answer["network"].items()
    }
    disks = {
        name_disk(name): [counts[field] for _, field in DISK_FIELDS.values()]
        for name, counts in answer["disk"].items()
    }
    memory = answer["memory"]
    return (
        make_block(CORES, cores, mono_ns),
        make_block(LOAD, {NODE: answer["load"]}, mono_ns),
        make_block(MEMORY, {NODE: [memory["total"], memory["available"]]}, mono_ns),
        make_block(NETWORK, network, mono_ns),
        make_block(DISK, disks, mono_ns),
        make_block(PROCESS, choose_processes(answer["processes"], top), mono_ns),
    )


def choose_processes(processes: Iterable[list[Any]], top: int) -> dict[Entity, list[float]]:
    """The top by CPU time since start, and the top by memory."""
    rows = list(processes)
    chosen = sorted(rows, key=lambda row: -row[3])[:top] + sorted(rows, key=lambda row: -row[4])[:top]
    return {
        Entity(
            "process", (str(pid), f"{started:.2f}"), (("pid", str(pid)), ("name", clean_text(name or "")))
        ): [cpu, rss]
        for pid, name, started, cpu, rss in chosen
    }
