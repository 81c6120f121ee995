"""What the kernel would have counted: every series of one file of the demo."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nodescope.base.block import Floats, Integers
from nodescope.base.entity import NODE, Entity
from nodescope.base.metric import Kind, Metric
from nodescope.keep.demo.demand import Demand, demand_of
from nodescope.keep.demo.plan import gpu_id, throttled_span
from nodescope.keep.demo.story import MIB, DemoLife, DemoNode, DemoRequest, hexadecimal, noise, within
from nodescope.keep.folder import MS_PER_DAY
from nodescope.keep.label_columns import Identity, Subject, describe_entity
from nodescope.keep.sidecar import Ticks

PERIOD_USEC = 100_000.0
NODE_BYTES = 32 * 1024 * MIB


def metric(
    name: str, kind: Kind, sentence: str, unit: str = "", scale: float = 1.0, plain: str | None = None
) -> Metric:
    return Metric(name, kind, sentence, unit=unit, scale=scale, plain=plain)


CONTAINER_METRICS = {
    row.name.removeprefix("cgroup.v2."): row
    for row in (
        metric("cgroup.v2.cpu.stat.usage_usec", "counter", "CPU time used.", "seconds", 1e-6),
        metric("cgroup.v2.cpu.stat.user_usec", "counter", "CPU time used in user mode.", "seconds", 1e-6),
        metric("cgroup.v2.cpu.stat.system_usec", "counter", "CPU time used in the kernel.", "seconds", 1e-6),
        metric("cgroup.v2.cpu.stat.nr_periods", "counter", "Scheduler periods under a CPU quota."),
        metric("cgroup.v2.cpu.stat.nr_throttled", "counter", "Periods in which the quota ran out."),
        metric(
            "cgroup.v2.cpu.stat.throttled_usec", "counter", "Time held back by the quota.", "seconds", 1e-6
        ),
        metric("cgroup.v2.cpu.max.quota", "gauge", "CPU time allowed per period, in microseconds."),
        metric("cgroup.v2.cpu.max.period", "gauge", "Length of a scheduler period, in microseconds."),
        metric("cgroup.v2.cpu.pressure.some.total", "counter", "Time stalled on cpu.", "seconds", 1e-6),
        metric("cgroup.v2.memory.current", "gauge", "Memory in use.", "bytes", plain="memory"),
        metric("cgroup.v2.memory.max", "gauge", "Memory limit.", "bytes", plain="memory_limit"),
        metric("cgroup.v2.memory.peak", "gauge", "The most memory in use.", "bytes", plain="memory_peak"),
        metric("cgroup.v2.memory.stat.anon", "gauge", "Anonymous memory.", "bytes", plain="memory_anon"),
        metric("cgroup.v2.memory.stat.file", "gauge", "Page cache.", "bytes", plain="memory_file"),
        metric("cgroup.v2.memory.stat.inactive_file", "gauge", "Page cache that may go first.", "bytes"),
        metric("cgroup.v2.memory.events.oom_kill", "counter", "Processes killed for memory."),
        metric("cgroup.v2.memory.pressure.some.total", "counter", "Time stalled on memory.", "seconds", 1e-6),
        metric("cgroup.v2.pids.current", "gauge", "Threads.", plain="threads"),
        metric("cgroup.v2.io.stat.wbytes", "counter", "Bytes written to block devices.", "bytes"),
    )
}
GPU_METRICS = {
    "utilization": metric("gpu.utilization", "gauge", "Share of time computing.", "percent"),
    "memory_used": metric("gpu.memory_used", "gauge", "GPU memory in use.", "bytes", plain="gpu_memory"),
    "power": metric("gpu.power", "gauge", "Power drawn.", "watts", plain="gpu_power"),
}
NODE_METRICS = {
    "load": metric("cpu.load_1m", "gauge", "Load average over a minute."),
    "available": metric("memory.MemAvailable", "gauge", "Memory available.", "bytes"),
    "total": metric("memory.MemTotal", "gauge", "Memory installed.", "bytes"),
}


def sample_life(life: DemoLife, time_ms: Integers, demand: Demand) -> dict[str, Floats]:
    """Every metric of a container over neighbouring seconds; its counters go on from the last call."""
    story = life.story
    cores, size = demand
    totals = life.totals
    count = len(time_ms)

    def accumulate(name: str, growth: Floats) -> Floats:
        series = totals.get(name, 0.0) + np.cumsum(np.rint(np.maximum(growth, 0.0)))
        totals[name] = float(series[-1])
        return series

    used = np.minimum(cores, story.quota_cores)
    # Integers, and usage is their sum: as the kernel keeps them.
    user = accumulate("user", used * 0.72e6)
    system = accumulate("system", used * 0.28e6)
    over = np.maximum(cores - story.quota_cores, 0.0) if math.isfinite(story.quota_cores) else np.zeros(count)
    size = np.minimum(np.rint(np.maximum(size, MIB) / 4096) * 4096, story.limit_bytes)
    killed = np.zeros(count)
    if life.ends_in_oom:
        killed[time_ms >= life.end_ms - 1000] = 1.0
        size[time_ms >= life.end_ms - 1000] = story.limit_bytes
    peak = np.maximum.accumulate(np.maximum(size, life.peak_bytes))
    life.peak_bytes = float(peak[-1])
    file_bytes = np.rint(size * 0.2 / 4096) * 4096
    near = (
        np.clip((size / story.limit_bytes - 0.9) * 10, 0, 1)
        if math.isfinite(story.limit_bytes)
        else np.zeros(count)
    )
    found = {
        "cpu.stat.usage_usec": user + system,
        "cpu.stat.user_usec": user,
        "cpu.stat.system_usec": system,
        "cpu.max.quota": np.full(count, story.quota_cores * PERIOD_USEC),
        "cpu.max.period": np.full(count, PERIOD_USEC),
        "cpu.pressure.some.total": accumulate("cpu.pressure", np.minimum(1.0, over + 0.004 * cores) * 1e6),
        "memory.current": size,
        "memory.max": np.full(count, story.limit_bytes),
        "memory.peak": peak,
        "memory.stat.anon": size - file_bytes,
        "memory.stat.file": file_bytes,
        "memory.stat.inactive_file": np.rint(file_bytes * 0.5 / 4096) * 4096,
        "memory.events.oom_kill": np.cumsum(killed),
        "memory.pressure.some.total": accumulate("memory.pressure", near * 0.3e6),
        "pids.current": np.full(count, 4.0 + len(story.name)),
        "io.stat.wbytes": accumulate("wbytes", np.where(cores > 0.25, 64.0, 4.0) * 4096),
    }
    if math.isfinite(story.quota_cores):
        found["cpu.stat.nr_periods"] = accumulate("nr_periods", np.full(count, 10.0))
        found["cpu.stat.nr_throttled"] = accumulate("nr_throttled", np.where(over > 0, 10.0, 0.0))
        found["cpu.stat.throttled_usec"] = accumulate("throttled_usec", over * 1e6)
    return found


class DemoColumn(NamedTuple):
    """One series in one file."""

    metric: Metric
    identity: Identity
    time_ms: Integers
    value: Floats


class Page:
    """The content of one file: its ticks, subjects and columns."""

    def __init__(self, request: DemoRequest, from_ms: int, to_ms: int) -> None:
        self.request = request
        self.second_ms = np.arange(from_ms // 1000, to_ms // 1000, dtype=np.int64) * 1000
        # A tick is some milliseconds late, as real ones are.
        late = np.rint(np.abs(noise(request, "late", from_ms, len(self.second_ms))) * 1.5).astype(np.int64)
        self.time_ms = self.second_ms + np.minimum(late, 40)
        self.subjects: dict[Identity, Subject] = {}
        self.columns: list[DemoColumn] = []

    def keep(
        self,
        entity: Entity,
        rows: Mapping[str, Metric],
        values: Mapping[str, Floats],
        inside: Any = slice(None),
    ) -> None:
        at = self.time_ms[inside]
        subject = describe_entity(entity, self.request.node, int(at[0]))
        self.subjects[subject.identity] = subject
        self.columns.extend(
            DemoColumn(rows[name], subject.identity, at, value) for name, value in values.items()
        )

    def ticks(self) -> Ticks:
        booted_ms = self.request.end_ms - 30 * MS_PER_DAY
        mono = (self.time_ms - booted_ms) * 1_000_000
        return Ticks(self.time_ms, mono, np.zeros(len(mono), np.int64), (run_of(self.request),))


def sample_file(request: DemoRequest, node: DemoNode, from_ms: int, to_ms: int) -> Page:
    """Every series of one file."""
    page = Page(request, from_ms, to_ms)
    cores, size = sample_lives(page, node)
    total = np.full(len(size), NODE_BYTES)
    page.keep(
        NODE, NODE_METRICS, {"load": np.round(cores * 1.1, 2), "available": total - size, "total": total}
    )
    if any(life.story.kind == "gpu" for life in node.lives):
        sample_gpu(page)
    return page


def sample_lives(page: Page, node: DemoNode) -> tuple[Floats, Floats]:
    """Every container's own series; cores and bytes of all together, at each second."""
    used_cores, used_bytes = np.zeros(len(page.second_ms)), np.zeros(len(page.second_ms))
    for life in node.lives:
        inside = within(page.second_ms, life.start_ms, life.end_ms)
        if not inside.any():
            continue
        demand = demand_of(page.request, life, page.second_ms[inside])
        values = sample_life(life, page.second_ms[inside], demand)
        page.keep(life.entity(), CONTAINER_METRICS, values, inside)
        size = values["memory.current"]
        used_bytes[inside] += size
        used_cores[inside] += np.minimum(demand[0], life.story.quota_cores)
        used = node.used.setdefault((life.story.namespace, life.pod, life.story.name), [0.0, 0.0])
        used[0] += float(size.sum())
        used[1] += len(size)
    return used_cores, used_bytes


def sample_gpu(page: Page) -> None:
    request = page.request
    busy = within(page.second_ms, *throttled_span(request))
    wobble = noise(request, "gpu", int(page.second_ms[0]), len(busy))
    share = np.round(np.clip(np.where(busy, 0.93 + 0.03 * wobble, 0.0), 0, 1), 2)
    uuid = gpu_id(request)
    labels = (("gpu_index", "0"), ("uuid", uuid), ("vendor", "nvidia"))
    readings = {
        "utilization": share * 100,
        "memory_used": np.where(busy, 18_000 * MIB, 450 * MIB),
        "power": np.round(60 + share * 240 + wobble),
    }
    page.keep(Entity("gpu", (uuid,), labels, (("name", "NVIDIA A100-SXM4-40GB"),)), GPU_METRICS, readings)


def run_of(request: DemoRequest) -> str:
    return hexadecimal("run", request.seed, request.node)[:12]
