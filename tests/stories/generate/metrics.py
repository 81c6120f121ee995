"""A settled node as the series that an agent would have sampled, under the kernel's own names."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from tests.stories.generate.cluster import Life, spread
from tests.stories.generate.machine import StoryNode

from nodescope.base.block import Floats
from nodescope.base.cgroup_metrics import BY_V2_NAME
from nodescope.base.entity import NODE, Entity
from nodescope.base.metric import Kind, Metric
from nodescope.collect.sources import filesystem, network, pod

# USER_HZ of every Linux of ours.
TICKS = 100
MICROSECONDS = 1e6
SECTOR = 512
PERIOD_USEC = 100_000.0
FILESYSTEM_BYTES = 200e9


def metric(name: str, kind: Kind, sentence: str, unit: str = "", scale: float = 1.0) -> Metric:
    return Metric(name, kind, sentence, unit=unit, scale=scale)


CONTAINER = {
    name: BY_V2_NAME[name].build("v2", TICKS)
    for name in (
        "cpu.stat.usage_usec",
        "cpu.stat.user_usec",
        "cpu.stat.system_usec",
        "cpu.stat.nr_periods",
        "cpu.stat.nr_throttled",
        "cpu.stat.throttled_usec",
        "cpu.max.quota",
        "cpu.max.period",
        "cpu.pressure.some.total",
        "memory.current",
        "memory.max",
        "memory.peak",
        "memory.stat.anon",
        "memory.stat.file",
        "memory.stat.inactive_file",
        "memory.stat.pgmajfault",
        "memory.events.max",
        "memory.events.oom_kill",
        "memory.pressure.some.total",
        "io.stat.rbytes",
        "io.stat.wbytes",
        "io.pressure.some.total",
        "pids.current",
    )
}
FLOWS = ("receive_bytes", "transmit_bytes")
POD = {name: one for name in FLOWS for one in pod.TABLE.metrics if one.name == f"pod.network.{name}"}
NETWORK = {name: one for name in FLOWS for one in network.rows().values() if one.name == f"network.{name}"}
FILESYSTEM = {
    name: one
    for name in ("size", "free", "available")
    for one in filesystem.TABLE.metrics
    if one.name == f"filesystem.{name}"
}
CPU = {
    name: metric(f"cpu.{name}", "counter", "Seconds the CPUs spent in each mode.", "seconds", 0.01)
    for name in ("user", "system", "idle", "iowait")
}
NODE_ROWS = {
    "load": metric("cpu.load_1m", "gauge", "Load average over 1 minute."),
    **{
        name: metric(f"memory.{name}", "gauge", f"{name} as meminfo has it.", "bytes", 1024)
        for name in ("MemTotal", "MemAvailable", "AnonPages", "Cached")
    },
    "oom_kill": metric("vmstat.oom_kill", "counter", "oom_kill as vmstat has it, since boot."),
}
DISK = {
    "read": metric("disk.sectors_read", "counter", "Bytes read.", "bytes", SECTOR),
    "written": metric("disk.sectors_written", "counter", "Bytes written.", "bytes", SECTOR),
    "busy": metric("disk.io_ms", "counter", "Time with a request in flight.", "seconds", 0.001),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Series of one entity: all over the same seconds."""

    entity: Entity
    start: int
    values: Mapping[str, tuple[Metric, Floats]]

    @property
    def end(self) -> int:
        return self.start + len(next(iter(self.values.values()))[1])


def count(growth: Floats, base: float = 0.0) -> Floats:
    """A counter of whole units."""
    return base + np.floor(np.cumsum(growth))


def list_tables(node: StoryNode) -> Iterator[Table]:
    for table in all_tables(node):
        kept = {
            name: row for name, row in table.values.items() if node.has_pressure or "pressure" not in name
        }
        if kept:
            yield Table(table.entity, table.start, kept)


def all_tables(node: StoryNode) -> Iterator[Table]:
    for life in node.lives:
        if life.end > life.start:
            yield container_table(node, life)
    yield from pod_tables(node)
    yield from node_tables(node)


def join(rows: Mapping[str, Metric], values: Mapping[str, Floats]) -> dict[str, tuple[Metric, Floats]]:
    return {rows[name].name: (rows[name], np.asarray(value, np.float64)) for name, value in values.items()}


def container_table(node: StoryNode, life: Life) -> Table:
    used, work = life.used, life.workload
    many = life.end - life.start
    # What ran before the archive began has counted before it.
    older = 1.0 if life.start == 0 else 0.0
    user = count(used["cpu"] * 0.74 * MICROSECONDS, older * 4e9)
    system = count(used["cpu"] * 0.26 * MICROSECONDS, older * 1.5e9)
    has_quota = math.isfinite(work.cpu_limit)
    periods = np.full(many, 10.0 if has_quota else 0.0)
    killed = np.zeros(many)
    if life.is_killed:
        killed[-1] = 1
    size = used["memory"]
    values = {
        "cpu.stat.usage_usec": user + system,
        "cpu.stat.user_usec": user,
        "cpu.stat.system_usec": system,
        "cpu.stat.nr_periods": np.cumsum(periods),
        "cpu.stat.nr_throttled": count(used["throttled"] * periods),
        "cpu.stat.throttled_usec": count(used["throttled"] * 0.35 * MICROSECONDS),
        "cpu.max.quota": np.full(many, work.cpu_limit * PERIOD_USEC),
        "cpu.max.period": np.full(many, PERIOD_USEC),
        "cpu.pressure.some.total": count(used["pressure_cpu"] * MICROSECONDS, older * 1e8),
        "memory.current": size,
        "memory.max": np.full(many, work.memory_limit),
        "memory.peak": np.maximum.accumulate(size),
        "memory.stat.anon": used["anon"],
        "memory.stat.file": used["file"],
        "memory.stat.inactive_file": np.rint(used["file"] * 0.7 / 4096) * 4096,
        "memory.stat.pgmajfault": count(used["pressure_memory"] * 400, older * 900),
        "memory.events.max": count(used["limit_hits"]),
        "memory.events.oom_kill": np.cumsum(killed),
        "memory.pressure.some.total": count(used["pressure_memory"] * MICROSECONDS, older * 1e7),
        "io.stat.rbytes": count(used["read"] / 4096, older * 1e5) * 4096,
        "io.stat.wbytes": count(used["write"] / 4096, older * 1e6) * 4096,
        "io.pressure.some.total": count(used["pressure_io"] * MICROSECONDS, older * 1e7),
        "pids.current": np.full(many, 8.0 + len(work.name)),
    }
    return Table(node.describe(life), life.start, join(CONTAINER, values))


def pod_tables(node: StoryNode) -> Iterator[Table]:
    """One interface a pod; a restart keeps it, and its counters."""
    by_pod: dict[str, list[Life]] = {}
    for life in node.lives:
        if life.end > life.start:
            by_pod.setdefault(life.uid, []).append(life)
    for uid, lives in by_pod.items():
        start, end = min(life.start for life in lives), max(life.end for life in lives)
        flows = {name: np.zeros(end - start) for name in ("receive", "transmit")}
        for life in lives:
            for name, total in flows.items():
                total[life.start - start : life.end - start] += life.used[name]
        labels = (
            ("namespace", lives[0].workload.namespace),
            ("pod", lives[0].pod),
            ("interface", "eth0"),
            ("id", f"/kubepods.slice/kubepods-pod{uid}.slice"),
        )
        entity = Entity("pod", (uid, "eth0"), labels, (("pod_uid", uid),))
        values = {f"{name}_bytes": count(total) for name, total in flows.items()}
        yield Table(entity, start, join(POD, values))


def node_tables(node: StoryNode) -> Iterator[Table]:
    totals, many = node.totals, node.seconds
    yield from cpu_tables(node)
    used = totals["anon"] + totals["file"]
    total = np.full(many, node.memory_bytes / 1024)
    available = np.maximum(0.0, node.memory_bytes - 1.5 * 2**30 - totals["anon"] - 0.15 * totals["file"])
    values = {
        "load": np.round(totals["cpu"] * (1 + totals["pressure_cpu"]), 2),
        "MemTotal": total,
        "MemAvailable": np.rint(available / 1024),
        "AnonPages": np.rint(totals["anon"] / 1024),
        "Cached": np.rint((used - totals["anon"]) / 1024),
        "oom_kill": np.cumsum(totals["killed"]),
    }
    yield Table(NODE, 0, join(NODE_ROWS, values))
    for what in ("cpu", "io", "memory"):
        row = metric(
            f"pressure.{what}.some.total",
            "counter",
            f"Time tasks were stalled on {what}, since boot.",
            "seconds",
            1e-6,
        )
        yield Table(NODE, 0, {row.name: (row, count(totals[f"pressure_{what}"] * MICROSECONDS, 1e9))})
    yield from device_tables(node)


def cpu_tables(node: StoryNode) -> Iterator[Table]:
    """Its work lies on its cores evenly, give or take."""
    share = node.totals["cpu"] / node.cores
    waiting = np.minimum(node.totals["pressure_io"] * 0.3, 1 - share)
    for number in range(node.cores):
        values = {
            "user": count(share * 0.74 * TICKS, 1e6),
            "system": count(share * 0.26 * TICKS, 3e5),
            "iowait": count(waiting * TICKS, 1e4),
            "idle": count((1 - share - waiting) * TICKS, 9e6),
        }
        yield Table(Entity("cpu", (str(number),), (("cpu", str(number)),)), 0, join(CPU, values))


def device_tables(node: StoryNode) -> Iterator[Table]:
    totals, many = node.totals, node.seconds
    busy = np.clip((totals["read"] + totals["write"]) / node.disk_bytes_per_second, 0, 1)
    disk = {
        "read": count(totals["read"] / SECTOR, 1e8),
        "written": count(totals["write"] / SECTOR, 1e8),
        "busy": count(busy * 1000, 1e7),
    }
    yield Table(Entity("disk", ("nvme0n1",), (("device", "nvme0n1"),)), 0, join(DISK, disk))
    network = {f"{name}_bytes": count(totals[name], 1e9) for name in ("receive", "transmit")}
    yield Table(Entity("network", ("eth0",), (("device", "eth0"),)), 0, join(NETWORK, network))
    share = spread(node.filesystem_share, many)
    free = np.rint((1 - share) * FILESYSTEM_BYTES)
    labels = (("device", "/dev/nvme0n1p1"), ("fstype", "ext4"), ("mountpoint", "/"))
    sizes = {"size": np.full(many, FILESYSTEM_BYTES), "free": free, "available": free}
    yield Table(Entity("filesystem", ("/",), labels), 0, join(FILESYSTEM, sizes))
