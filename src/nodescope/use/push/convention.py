"""
OpenTelemetry's names for what we measure: one row per column of a block.

The names, units and attributes are those of the semantic conventions 1.43
(system, container, k8s, process, hardware); what they do not name is pushed
under its name of /metrics. A value is in the base unit of its metric already;
`factor` leads to the convention's (a share of 1 instead of 100).

    rows = conventions_of("disk.sectors_read")
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from nodescope.base.cgroup_metrics import list_raw_names
from nodescope.base.entity import Labels

Instrument = Literal["counter", "updown", "gauge"]
SCHEMA_URL = "https://opentelemetry.io/schemas/1.43.0"


@dataclass(frozen=True, slots=True)
class Convention:
    """What one column is called there."""

    column: str
    """The archive's name."""
    name: str
    unit: str
    instrument: Instrument
    attributes: Labels = ()
    less: tuple[str, ...] = ()
    """Columns of the same row that are taken from it."""
    per: str = ""
    """A column of the same row that it is divided by."""
    factor: float = 1.0
    only_kubernetes: bool = False


def direction(word: str) -> Labels:
    return (("network.io.direction", word),)


def disk_rows() -> Iterator[Convention]:
    for way, count, merged, sectors, time in (
        ("read", "reads", "reads_merged", "sectors_read", "read_ms"),
        ("write", "writes", "writes_merged", "sectors_written", "write_ms"),
    ):
        moved = (("disk.io.direction", way),)
        yield Convention(f"disk.{sectors}", "system.disk.io", "By", "counter", moved)
        yield Convention(f"disk.{count}", "system.disk.operations", "{operation}", "counter", moved)
        yield Convention(f"disk.{merged}", "system.disk.merged", "{operation}", "counter", moved)
        yield Convention(f"disk.{time}", "system.disk.operation_time", "s", "counter", moved)
    yield Convention("disk.io_ms", "system.disk.io_time", "s", "counter")


def network_rows() -> Iterator[Convention]:
    for way in ("receive", "transmit"):
        moved = direction(way)
        yield Convention(f"network.{way}_bytes", "system.network.io", "By", "counter", moved)
        yield Convention(
            f"network.{way}_packets", "system.network.packet.count", "{packet}", "counter", moved
        )
        yield Convention(f"network.{way}_drop", "system.network.packet.dropped", "{packet}", "counter", moved)
        yield Convention(f"network.{way}_errs", "system.network.errors", "{error}", "counter", moved)
        yield Convention(f"pod.network.{way}_bytes", "k8s.pod.network.io", "By", "counter", moved)
        yield Convention(f"pod.network.{way}_errors", "k8s.pod.network.errors", "{error}", "counter", moved)


def memory_rows() -> Iterator[Convention]:
    def state(column: str, word: str, *less: str) -> Convention:
        named = (("system.memory.state", word),)
        columns = tuple(f"memory.{one}" for one in less)
        return Convention(f"memory.{column}", "system.memory.usage", "By", "updown", named, columns)

    yield state("MemTotal", "used", "MemFree", "Buffers", "Cached")
    yield state("MemFree", "free")
    yield state("Buffers", "buffers")
    yield state("Cached", "cached")
    for column, name in (
        ("MemTotal", "system.memory.limit"),
        ("MemAvailable", "system.memory.linux.available"),
        ("Shmem", "system.memory.linux.shared"),
    ):
        yield Convention(f"memory.{column}", name, "By", "updown")
    for column, word in (("SReclaimable", "reclaimable"), ("SUnreclaim", "unreclaimable")):
        slab = (("system.memory.linux.slab.state", word),)
        yield Convention(f"memory.{column}", "system.memory.linux.slab.usage", "By", "updown", slab)
    for column, word, less in (("SwapTotal", "used", ("memory.SwapFree",)), ("SwapFree", "free", ())):
        swap = (("system.paging.state", word),)
        yield Convention(f"memory.{column}", "system.paging.usage", "By", "updown", swap, less)


def filesystem_rows() -> Iterator[Convention]:
    for column, word, less in (
        ("size", "used", ("filesystem.free",)),
        ("free", "reserved", ("filesystem.available",)),
        ("available", "free", ()),
    ):
        state = (("system.filesystem.state", word),)
        yield Convention(f"filesystem.{column}", "system.filesystem.usage", "By", "updown", state, less)
    yield Convention("filesystem.size", "system.filesystem.limit", "By", "updown")


def fault_rows(name: str, minor: str, major: str) -> Iterator[Convention]:
    for column, word, less in ((minor, "minor", (major,)), (major, "major", ())):
        kind = (("system.paging.fault.type", word),)
        yield Convention(column, name, "{fault}", "counter", kind, less)


def container_rows() -> Iterator[Convention]:
    for v2_name, name, unit, instrument in (
        ("cpu.stat.usage_usec", "container.cpu.time", "s", "counter"),
        ("memory.current", "container.memory.usage", "By", "updown"),
        ("memory.stat.anon", "container.memory.rss", "By", "updown"),
    ):
        for column in list_raw_names(v2_name):
            yield Convention(column, name, unit, "counter" if instrument == "counter" else "updown")
    for v2_name, way in (("io.stat.rbytes", "read"), ("io.stat.wbytes", "write")):
        for column in list_raw_names(v2_name):
            yield Convention(column, "container.disk.io", "By", "counter", (("disk.io.direction", way),))
    for minor, major in zip(list_raw_names("memory.stat.pgfault"), list_raw_names("memory.stat.pgmajfault")):
        yield from fault_rows("container.paging.faults", minor, major)
    for column in list_raw_names("memory.max"):
        yield Convention(column, "k8s.container.memory.limit.current", "By", "updown", only_kubernetes=True)
    for quota, period in zip(list_raw_names("cpu.max.quota"), list_raw_names("cpu.max.period")):
        yield Convention(
            quota, "k8s.container.cpu.limit.current", "{cpu}", "updown", per=period, only_kubernetes=True
        )


PERCENT = 0.01


def gpu_rows() -> Iterator[Convention]:
    for column, task in (("utilization", "general"), ("encoder", "encoder"), ("decoder", "decoder")):
        named = (("hw.gpu.task", task),)
        yield Convention(f"gpu.{column}", "hw.gpu.utilization", "1", "gauge", named, factor=PERCENT)
    yield Convention("gpu.memory_used", "hw.gpu.memory.usage", "By", "updown")
    yield Convention("gpu.memory_total", "hw.gpu.memory.limit", "By", "updown")
    yield Convention("gpu.memory_used_percent", "hw.gpu.memory.utilization", "1", "gauge", factor=PERCENT)
    for way in ("transmit", "receive"):
        yield Convention(f"gpu.pcie_{way}", "hw.gpu.io", "By", "counter", direction(way))
    for error in ("corrected", "uncorrected"):
        yield Convention(f"gpu.ecc.{error}", "hw.errors", "{error}", "counter", (("error.type", error),))
    yield Convention("gpu.power", "hw.power", "W", "gauge")
    yield Convention("gpu.energy", "hw.energy", "J", "counter")
    yield Convention("gpu.temperature", "hw.temperature", "Cel", "gauge")
    yield Convention("gpu.fan_rpm", "hw.fan.speed", "rpm", "gauge")


# hostmetricsreceiver's words; the conventions allow others than their own few.
MODES = {"user": "user", "nice": "nice", "system": "system", "idle": "idle", "iowait": "iowait"}
MODES |= {"irq": "interrupt", "softirq": "softirq", "steal": "steal"}


def cpu_rows() -> Iterator[Convention]:
    for column, mode in MODES.items():
        yield Convention(f"cpu.{column}", "system.cpu.time", "s", "counter", (("cpu.mode", mode),))
    yield Convention("cpu.processes", "system.process.created", "{process}", "counter")
    yield Convention("machine.cpu_cores", "system.cpu.logical.count", "{cpu}", "updown")
    yield Convention("machine.cpu_physical_cores", "system.cpu.physical.count", "{cpu}", "updown")


def process_rows() -> Iterator[Convention]:
    yield Convention("process.cpu", "process.cpu.time", "s", "counter")
    yield Convention("process.rss", "process.memory.usage", "By", "updown")
    yield Convention("process.num_threads", "process.thread.count", "{thread}", "updown")


CONVENTIONS = (
    *cpu_rows(),
    *memory_rows(),
    *fault_rows("system.paging.faults", "vmstat.pgfault", "vmstat.pgmajfault"),
    *disk_rows(),
    *network_rows(),
    *filesystem_rows(),
    *container_rows(),
    *process_rows(),
    *gpu_rows(),
)
# Of two tables: memory in use less the page cache that may be dropped first.
WORKING_SET = Convention("", "container.memory.working_set", "By", "updown")
USAGE, INACTIVE = list_raw_names("memory.current"), list_raw_names("memory.stat.inactive_file")


@cache
def conventions_of(column: str) -> tuple[Convention, ...]:
    """Empty where the conventions have no name for it."""
    return tuple(row for row in CONVENTIONS if row.column == column)
