"""
A realistic archive that never happened: for a first look, for studies, for benches.

A node runs ordinary services, and six that have a story: a leak that ends in
an OOM kill, a quota that is too small, a cron job, a deploy that costs more, a
crash loop, a GPU job. What was planted, where and when, is in truth.json.

The kernel's own invariants hold, in every sample:

    usage = user + system      memory.current <= memory.max
    counters never fall while a container lives
    an OOM kill ends the container, and what starts after it has a new id

Everything follows from the seed and the end; the same command makes the same
bytes of data.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.base.entity import NODE, Entity
from nodescope.base.metric import Kind, Metric
from nodescope.keep.convert import Seen, publish
from nodescope.keep.disk import TEMPORARY, Disk
from nodescope.keep.layout import (
    MS_PER_DAY,
    MS_PER_HOUR,
    PARQUET,
    DataFolder,
    clean_identifier,
    render_day,
    render_stamp,
)
from nodescope.keep.parquet import ArchiveWriter, Rows
from nodescope.keep.series import Identity, Subject, describe_entity
from nodescope.keep.session import Session, render_time, write_session
from nodescope.keep.sidecar import Head, Sidecar, Ticks, render_sidecar

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MIB = 2.0**20
ROTATION_MS = 90_000
# The last stretch is left as a collector leaves it: small files.
FRESH_MS = 900_000
PERIOD_USEC = 100_000.0


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


@dataclass(frozen=True, slots=True)
class Story:
    """What a service does: its demand of CPU (cores) and memory (bytes) at each second."""

    name: str
    namespace: str
    kind: str
    limit_bytes: float
    quota_cores: float
    """Infinite: no quota."""
    base_cores: float
    base_bytes: float
    phase: float
    """So that not all services breathe together."""


@dataclass(slots=True)
class Life:
    """One container: from its first second to its last, and its counters so far."""

    story: Story
    container_id: str
    pod: str
    pod_uid: str
    start_ms: int
    end_ms: int
    """Exclusive."""
    ends_in_oom: bool = False
    restarts: int = 0
    version: str = "1.4.2"
    totals: dict[str, float] = field(default_factory=dict)
    peak_bytes: float = 0.0

    def entity(self) -> Entity:
        names = (
            ("namespace", self.story.namespace),
            ("pod", self.pod),
            ("container", self.story.name),
            ("image", f"registry.example/{self.story.name}:{self.version}"),
        )
        details = (
            ("container_id", self.container_id),
            ("pod_uid", self.pod_uid),
            ("qos", "Burstable" if math.isinf(self.story.quota_cores) else "Guaranteed"),
            ("restarts", str(self.restarts) if self.restarts else ""),
            ("owner", f"Deployment/{self.story.name}"),
        )
        return Entity("container", (self.container_id,), names, details)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for."""

    data: Path
    hours: float
    containers: int
    seed: int
    end_ms: int
    node: str
    number: int = 0
    """Its place in a fleet, from 0."""
    nodes: int = 1

    @property
    def start_ms(self) -> int:
        return self.end_ms - round(self.hours * MS_PER_HOUR)


def hexadecimal(*words: object) -> str:
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


NOISE_SECONDS = 4096


# A node of forty containers has some ninety kinds of noise; forty small files
# lie in one block of each.
@lru_cache(maxsize=512)
def noise_block(seed: int, node: str, name: str, number: int) -> Floats:
    dice = np.random.default_rng(int(hexadecimal(seed, node, name, number)[:15], 16))
    return dice.standard_normal(NOISE_SECONDS)


def noise(wish: Wish, name: str, from_ms: int, count: int) -> Floats:
    """Unit noise that depends on the second, not on where a file begins."""
    first = from_ms // 1000
    blocks = range(first // NOISE_SECONDS, (first + count) // NOISE_SECONDS + 1)
    parts = [noise_block(wish.seed, wish.node, name, number) for number in blocks]
    offset = first % NOISE_SECONDS
    return np.concatenate(parts)[offset : offset + count]


# -- the plan ---------------------------------------------------------------------


@dataclass(slots=True)
class Node:
    """Every life on the node, and the truth about them."""

    lives: list[Life]
    truth: list[dict[str, Any]]
    used: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    """Of every container, all its lives: the sum of its memory in every second, and the seconds."""


SERVICES = [
    "frontend",
    "cart",
    "checkout",
    "payment",
    "search",
    "catalog",
    "ads",
    "email",
    "currency",
    "shipping",
    "recommendation",
    "inventory",
    "auth",
    "gateway",
    "sessions",
    "billing",
    "reports",
    "queue",
    "worker",
    "scheduler",
]


Planter = Callable[[Wish, Node, int], None]


def plan_node(wish: Wish, planters: Sequence[Planter] | None = None) -> Node:
    start_ms = wish.start_ms
    node = Node([], [])
    if planters is None:
        planters = (plant_leak, plant_throttling, plant_cron, plant_deploy, plant_crash_loop, plant_gpu)
    for plant in planters[: max(0, wish.containers)]:
        plant(wish, node, start_ms)
    for number in range(max(0, wish.containers - len(planters))):
        name = SERVICES[number % len(SERVICES)] + (
            f"-{number // len(SERVICES)}" if number >= len(SERVICES) else ""
        )
        dice = np.random.default_rng(int(hexadecimal(wish.seed, wish.node, name)[:15], 16))
        limit = float(dice.choice([128, 256, 512, 1024, 2048])) * MIB
        has_quota = bool(dice.random() < 0.4)
        cores = float(dice.uniform(0.005, 0.4))
        story = Story(
            name,
            "shop" if number % 3 else "platform",
            "service",
            limit if dice.random() < 0.9 else math.inf,
            math.ceil(cores * 40) / 10 if has_quota else math.inf,
            cores,
            limit * float(dice.uniform(0.2, 0.6)),
            float(dice.uniform(0, 2 * math.pi)),
        )
        node.lives.append(be_born(wish, story, start_ms, wish.end_ms))
    return node


def be_born(
    wish: Wish, story: Story, start_ms: int, end_ms: int, restarts: int = 0, version: str = "1.4.2"
) -> Life:
    """A restart keeps its pod; another version comes in another pod."""
    words = (wish.seed, wish.node, story.name) + ((version,) if version != "1.4.2" else ())
    uid = hexadecimal("pod", *words)
    return Life(
        story,
        hexadecimal("container", *words, restarts),
        f"{story.name}-{uid[:9]}-{uid[9:14]}",
        f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}",
        start_ms,
        end_ms,
        restarts=restarts,
        version=version,
    )


def tell(node: Node, kind: str, lives: Sequence[Life], metric_name: str, **facts: Any) -> None:
    life = lives[0]
    node.truth.append(
        {
            "kind": kind,
            "namespace": life.story.namespace,
            "pod": life.pod,
            "container": life.story.name,
            "container_ids": [one.container_id for one in lives],
            "metric": metric_name,
            **facts,
        }
    )


CACHE = Story("cache", "shop", "leak", 512 * MIB, math.inf, 0.08, 160 * MIB, 0.0)


def plant_leak(wish: Wish, node: Node, start_ms: int, share: float = 0.7) -> None:
    """Grows from a third of its limit until the kernel ends it, then begins again."""
    story = CACHE
    length_ms = wish.end_ms - start_ms
    oom_ms = start_ms + round(length_ms * share) // 1000 * 1000
    first = be_born(wish, story, start_ms, oom_ms)
    first.ends_in_oom = True
    second = be_born(wish, story, oom_ms + 10_000, wish.end_ms, 1)
    node.lives += [first, second]
    slope = (story.limit_bytes - story.base_bytes) / ((oom_ms - start_ms) / 1000)
    tell(
        node,
        "leak",
        [first, second],
        "memory",
        **{"from": start_ms / 1000, "to": oom_ms / 1000},
        slope_per_second=slope,
        limit=story.limit_bytes,
    )
    tell(node, "oom_kill", [first], "oom_kills", at=(oom_ms - 1000) / 1000, limit=story.limit_bytes)


def plant_throttling(wish: Wish, node: Node, start_ms: int) -> None:
    story = Story("encoder", "media", "throttled", 1024 * MIB, 0.5, 0.3, 300 * MIB, 1.0)
    life = be_born(wish, story, start_ms, wish.end_ms)
    node.lives.append(life)
    from_ms, to_ms = throttled_span(start_ms, wish.end_ms)
    tell(
        node, "throttling", [life], "cpu_throttled", **{"from": from_ms / 1000, "to": to_ms / 1000}, limit=0.5
    )


def throttled_span(start_ms: int, end_ms: int) -> tuple[int, int]:
    length = end_ms - start_ms
    return (start_ms + length // 4) // 1000 * 1000, (start_ms + length // 2) // 1000 * 1000


def nightly_spans(start_ms: int, end_ms: int) -> list[tuple[int, int]]:
    """02:00 to 03:00 UTC of every night; in a range without a whole one, its second quarter."""
    days = range(start_ms // MS_PER_DAY, end_ms // MS_PER_DAY + 1)
    nights = [(day * MS_PER_DAY + NIGHT_MS[0], day * MS_PER_DAY + NIGHT_MS[1]) for day in days]
    inside = [(first, last) for first, last in nights if start_ms <= first and last <= end_ms]
    return inside or [throttled_span(start_ms, end_ms)]


def plant_cron(wish: Wish, node: Node, start_ms: int) -> None:
    story = Story("report-cron", "batch", "cron", 512 * MIB, math.inf, 0.02, 90 * MIB, 0.5)
    life = be_born(wish, story, start_ms, wish.end_ms)
    node.lives.append(life)
    span = {"from": start_ms / 1000, "to": wish.end_ms / 1000}
    tell(
        node,
        "cron_spikes",
        [life],
        "cpu",
        **span,
        period_seconds=CRON_SECONDS,
        width_seconds=CRON_WIDTH,
        height=1.2,
    )


def plant_deploy(wish: Wish, node: Node, start_ms: int) -> None:
    story = Story("api", "shop", "deploy", 1024 * MIB, math.inf, 0.3, 210 * MIB, 2.0)
    life = be_born(wish, story, start_ms, wish.end_ms)
    node.lives.append(life)
    at_ms = deploy_moment(start_ms, wish.end_ms)
    tell(
        node,
        "deploy_step",
        [life],
        "memory",
        at=at_ms / 1000,
        before=story.base_bytes,
        after=story.base_bytes + DEPLOY_BYTES,
        magnitude=DEPLOY_BYTES,
    )


def deploy_moment(start_ms: int, end_ms: int) -> int:
    return (start_ms + (end_ms - start_ms) * 6 // 10) // 1000 * 1000


def plant_crash_loop(wish: Wish, node: Node, start_ms: int) -> None:
    """Kubelet's own back-off: 10 s, doubled up to five minutes."""
    story = Story("migrator", "platform", "crash", 256 * MIB, math.inf, 0.4, 60 * MIB, 0.0)
    lives: list[Life] = []
    at_ms = (start_ms + (wish.end_ms - start_ms) // 3) // 1000 * 1000
    wait_seconds = 10
    while at_ms < wish.end_ms:
        end_ms = min(at_ms + 40_000, wish.end_ms)
        lives.append(be_born(wish, story, at_ms, end_ms, len(lives)))
        at_ms = end_ms + wait_seconds * 1000
        wait_seconds = min(300, wait_seconds * 2)
    node.lives += lives
    if lives:
        span = {"from": lives[0].start_ms / 1000, "to": lives[-1].end_ms / 1000}
        tell(node, "crash_loop", lives, "processes", **span, restarts=len(lives) - 1)


def plant_gpu(wish: Wish, node: Node, start_ms: int) -> None:
    story = Story("trainer", "ml", "gpu", 4096 * MIB, math.inf, 0.05, 800 * MIB, 0.0)
    life = be_born(wish, story, start_ms, wish.end_ms)
    node.lives.append(life)
    from_ms, to_ms = throttled_span(start_ms, wish.end_ms)
    tell(
        node,
        "gpu_job",
        [life],
        "gpu_utilization",
        **{"from": from_ms / 1000, "to": to_ms / 1000},
        gpu=gpu_id(wish),
    )


def gpu_id(wish: Wish) -> str:
    return "GPU-" + hexadecimal("gpu", wish.seed, wish.node)[:32]


# -- demand -----------------------------------------------------------------------

NIGHT_MS = (2 * MS_PER_HOUR, 3 * MS_PER_HOUR)
BAD_VERSION = "2.0.0"
CRON_SECONDS = 300
CRON_WIDTH = 20
DEPLOY_BYTES = 120 * MIB
Demand = tuple[Floats, Floats]


def breathe(story: Story, seconds: Floats) -> Floats:
    """A slow wave of an hour and one of a day, as traffic has."""
    return (
        1
        + 0.15 * np.sin(seconds / 3600 * 2 * math.pi + story.phase)
        + 0.1 * np.sin(seconds / 86400 * 2 * math.pi)
    )


def demand_of(wish: Wish, life: Life, time_ms: Integers) -> Demand:
    """Cores and bytes wanted at each second, before limits."""
    story = life.story
    start_ms = wish.start_ms
    seconds = time_ms / 1000
    count = len(time_ms)
    jitter = noise(wish, story.name + life.container_id[:6], int(time_ms[0]), count)
    cores = story.base_cores * breathe(story, seconds) * np.exp(0.2 * jitter)
    wobble = noise(wish, story.name + "m", int(time_ms[0]), count)
    size = story.base_bytes * (1 + 0.01 * np.sin(seconds / 600 + story.phase) + 0.002 * wobble)
    if story.kind == "leak":
        age = (time_ms - life.start_ms) / max(1, life.end_ms - life.start_ms)
        growth = (story.limit_bytes - story.base_bytes) * age if life.ends_in_oom else 0.0
        size = story.base_bytes + growth + 0.5 * MIB * wobble
    elif story.kind == "throttled":
        from_ms, to_ms = throttled_span(start_ms, wish.end_ms)
        cores = np.where((time_ms >= from_ms) & (time_ms < to_ms), cores * 3, cores)
    elif story.kind == "nightly":
        for from_ms, to_ms in nightly_spans(start_ms, wish.end_ms):
            cores = np.where((time_ms >= from_ms) & (time_ms < to_ms), cores * 3, cores)
    elif story.kind == "rollout" and life.version == BAD_VERSION:
        size, cores = size + DEPLOY_BYTES, cores * 1.5
    elif story.kind == "cron":
        in_spike = (time_ms // 1000) % CRON_SECONDS < CRON_WIDTH
        cores = np.where(in_spike, cores + 1.2, cores)
        size = np.where(in_spike, size + 60 * MIB, size)
    elif story.kind == "deploy":
        after = time_ms >= deploy_moment(start_ms, wish.end_ms)
        size, cores = np.where(after, size + DEPLOY_BYTES, size), np.where(after, cores * 1.5, cores)
    elif story.kind == "gpu":
        from_ms, to_ms = throttled_span(start_ms, wish.end_ms)
        cores = np.where((time_ms >= from_ms) & (time_ms < to_ms), cores + 0.9, cores)
    return cores, size


def sample_life(life: Life, time_ms: Integers, demand: Demand) -> dict[str, Floats]:
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


# -- writing ----------------------------------------------------------------------


Span = tuple[int, int, str]
"""From, to, kind of file."""


def cut_files(start_ms: int, end_ms: int) -> Iterator[Span]:
    """Hours as a consolidator leaves them, the last quarter as a collector does."""
    fresh_ms = max(start_ms, end_ms - FRESH_MS)
    at_ms = start_ms
    while at_ms < fresh_ms:
        next_ms = min(fresh_ms, (at_ms // MS_PER_HOUR + 1) * MS_PER_HOUR)
        yield at_ms, next_ms, "consolidated"
        at_ms = next_ms
    while at_ms < end_ms:
        midnight_ms = (at_ms // (24 * MS_PER_HOUR) + 1) * 24 * MS_PER_HOUR
        next_ms = min(end_ms, at_ms + ROTATION_MS, midnight_ms)
        yield at_ms, next_ms, "metrics"
        at_ms = next_ms


def cut_days(start_ms: int, end_ms: int) -> Iterator[Span]:
    """The same when all of it is over and merged: one file a day."""
    at_ms = start_ms
    while at_ms < end_ms:
        next_ms = min(end_ms, (at_ms // MS_PER_DAY + 1) * MS_PER_DAY)
        yield at_ms, next_ms, "consolidated"
        at_ms = next_ms


Column = tuple[Metric, Identity, Integers, Floats]


def sample_file(
    wish: Wish, node: Node, from_ms: int, to_ms: int
) -> tuple[dict[Identity, Subject], list[Column], Ticks]:
    """Every series of one file. A tick is some milliseconds late, as real ones are."""
    seconds = np.arange(from_ms // 1000, to_ms // 1000, dtype=np.int64)
    late = np.rint(np.abs(noise(wish, "late", from_ms, len(seconds))) * 1.5).astype(np.int64)
    times = seconds * 1000 + np.minimum(late, 40)
    subjects: dict[Identity, Subject] = {}
    columns: list[Column] = []
    used_cores, used_bytes = np.zeros(len(seconds)), np.zeros(len(seconds))

    def keep(entity: Entity, rows: Mapping[str, Metric], values: Mapping[str, Floats], inside: Any) -> None:
        at = times[inside]
        subject = describe_entity(entity, wish.node, int(at[0]))
        subjects[subject.identity] = subject
        columns.extend((rows[name], subject.identity, at, value) for name, value in values.items())

    for life in node.lives:
        inside = (seconds * 1000 >= life.start_ms) & (seconds * 1000 < life.end_ms)
        if inside.any():
            demand = demand_of(wish, life, seconds[inside] * 1000)
            values = sample_life(life, seconds[inside] * 1000, demand)
            keep(life.entity(), CONTAINER_METRICS, values, inside)
            used_bytes[inside] += values["memory.current"]
            used = node.used.setdefault((life.story.namespace, life.pod, life.story.name), [0.0, 0.0])
            used[0] += float(values["memory.current"].sum())
            used[1] += len(values["memory.current"])
            used_cores[inside] += np.minimum(demand[0], life.story.quota_cores)
    everything = np.ones(len(seconds), bool)
    total = 32 * 1024 * MIB
    keep(
        NODE,
        NODE_METRICS,
        {
            "load": np.round(used_cores * 1.1, 2),
            "available": total - used_bytes,
            "total": np.full(len(seconds), total),
        },
        everything,
    )
    if any(life.story.kind == "gpu" for life in node.lives):
        start_ms = wish.start_ms
        job_from, job_to = throttled_span(start_ms, wish.end_ms)
        busy = (seconds * 1000 >= job_from) & (seconds * 1000 < job_to)
        wobble = noise(wish, "gpu", from_ms, len(seconds))
        share = np.round(np.clip(np.where(busy, 0.93 + 0.03 * wobble, 0.0), 0, 1), 2)
        uuid = gpu_id(wish)
        labels = (("gpu_index", "0"), ("uuid", uuid), ("vendor", "nvidia"))
        gpu = Entity("gpu", (uuid,), labels, (("name", "NVIDIA A100-SXM4-40GB"),))
        readings = {
            "utilization": share * 100,
            "memory_used": np.where(busy, 18_000 * MIB, 450 * MIB),
            "power": np.round(60 + share * 240 + wobble),
        }
        keep(gpu, GPU_METRICS, readings, everything)
    mono = times * 1_000_000 - (wish.end_ms - 30 * 24 * MS_PER_HOUR) * 1_000_000
    ticks = Ticks(times, mono, np.zeros(len(times), np.int64), (run_of(wish),))
    return subjects, columns, ticks


def run_of(wish: Wish) -> str:
    return hexadecimal("run", wish.seed, wish.node)[:12]


def write_file(disk: Disk, folder: DataFolder, wish: Wish, node: Node, span: Span, number: int) -> int:
    from_ms, to_ms, kind = span
    subjects, columns, ticks = sample_file(wish, node, from_ms, to_ms)
    identifier = clean_identifier(wish.node)
    partition = folder.partition(render_day(from_ms), identifier)
    disk.make_folder(partition)
    first, last = int(ticks.time_ms[0]), int(ticks.time_ms[-1])
    stem = f"{kind}-{render_stamp(first)}" + (f"-{render_stamp(last)}" if kind == "consolidated" else "")
    path = partition / f"{stem}{PARQUET}"
    temporary = path.with_name(path.name + TEMPORARY)
    ordered = dict(sorted(subjects.items()))
    ranks = {identity: place for place, identity in enumerate(ordered)}
    segments = {run_of(wish): [[number, number]]}
    scopes: dict[str, set[str]] = {}
    seen = Seen(len(ordered))
    by_metric: dict[str, list[Column]] = {}
    for column in columns:
        by_metric.setdefault(column[0].name, []).append(column)
    with disk.create(temporary) as output:
        with ArchiveWriter(output, list(ordered.values()), {"segments": segments, "replaces": []}) as writer:
            for name, group in sorted(by_metric.items()):
                group.sort(key=lambda column: ranks[column[1]])
                rank = np.repeat([ranks[column[1]] for column in group], [len(column[2]) for column in group])
                time_ms = np.concatenate([column[2] for column in group])
                seen.note(rank, time_ms)
                scopes[name] = {ordered[column[1]].label("l_scope") or "" for column in group}
                value = np.concatenate([column[3] for column in group])
                writer.add(Rows(name, group[0][0].kind, rank, time_ms, value))
        output.sync()
    seen.mark(list(ordered.values()))
    sidecar = Sidecar(
        Head(writer.rows, first, last, wish.node, identifier, segments),
        tuple(group[0][0] for _, group in sorted(by_metric.items())),
        tuple(ordered.values()),
        ticks,
        {name: tuple(sorted(words)) for name, words in scopes.items()},
        tell_events(wish, node, from_ms, to_ms),
        [(first, {"container": ["ok", ""]})],
    )
    publish(disk, temporary, path, render_sidecar(sidecar))
    return writer.rows


def tell_events(wish: Wish, node: Node, from_ms: int, to_ms: int) -> list[dict[str, Any]]:
    """Births and obituaries, as the container source tells them."""
    events = []
    for life in node.lives:
        entity = life.entity()
        labels = {**dict(entity.labels), **dict(entity.details)}
        base = {"scope": "container", "ids": list(entity.ids), "labels": labels}
        if from_ms <= life.start_ms < to_ms:
            events.append({"kind": "start", "at_ms": life.start_ms, "facts": {}, **base})
        if from_ms <= life.end_ms < to_ms and life.end_ms < wish.end_ms:
            facts = {
                "lifetime_seconds": (life.end_ms - life.start_ms) / 1000,
                "memory_limit_bytes": life.story.limit_bytes,
                "oom_kills": float(life.ends_in_oom),
            }
            kind = "oom_exit" if life.ends_in_oom else "exit"
            events.append({"kind": kind, "at_ms": life.end_ms, "facts": facts, **base})
    return sorted(events, key=lambda event: str(event["at_ms"]))


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    rows: int
    files: int
    truth: list[dict[str, Any]]
    most: dict[str, Any]
    """Who used the most memory on average while it was there: not planted, but true."""


def write_node(
    wish: Wish,
    version: str,
    progress: Callable[[float], None],
    disk: Disk | None = None,
    planters: Sequence[Planter] | None = None,
    cut: Callable[[int, int], Iterator[Span]] = cut_files,
) -> Made:
    """One node's archive into its folder; progress is told as a share of the whole."""
    disk = disk or Disk()
    folder = DataFolder(wish.data)
    disk.make_folder(folder.path)
    node = plan_node(wish, planters)
    start_ms = wish.start_ms
    session = Session(
        run_of(wish),
        clean_identifier(wish.node),
        render_time(start_ms * 1_000_000),
        wish.node,
        "demo",
        1000,
        ROTATION_MS / 1000,
        version,
        {"demo": "true"},
    )
    write_session(disk, folder, session)
    rows = 0
    spans = list(cut(start_ms, wish.end_ms))
    for number, span in enumerate(spans):
        rows += write_file(disk, folder, wish, node, span, number + 1)
        progress((span[1] - start_ms) / (wish.end_ms - start_ms))
    return Made(rows, len(spans), node.truth, tell_most(node))


def tell_most(node: Node) -> dict[str, Any]:
    means = {names: total / seconds for names, (total, seconds) in node.used.items()}
    namespace, pod, container = max(means, key=lambda names: means[names])
    return {
        "metric": "memory",
        "namespace": namespace,
        "pod": pod,
        "container": container,
        "mean": means[namespace, pod, container],
    }


def render_truth(
    wish: Wish, planted: Sequence[Mapping[str, Any]], most: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    start_ms = wish.start_ms
    content = {
        "seed": wish.seed,
        "from": start_ms / 1000,
        "to": wish.end_ms / 1000,
        "containers": wish.containers,
        "planted": list(planted),
        "most": list(most),
    }
    return (json.dumps(content, indent=1) + "\n").encode()
