"""
A node with so many cores, so much memory, a disk and a network card: what its containers get of what they want.

What one takes the others lack, and the kernel counts it as it does on a real
node: CPU and I/O pressure, throttled periods, reclaimed page cache. Every
number of an archive follows from here, so the truth of a story does, too.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.stories.generate.cluster import (
    GIB,
    MIB,
    Course,
    Life,
    Random,
    Shape,
    Workload,
    digest,
    name_pod,
    spread,
    suffix,
)
from tests.stories.generate.noise import Noise, choose_noise, wobble

from nodescope.base.block import Floats
from nodescope.base.entity import Entity

FIRST_VERSION = "1.4.2"
# What the kernel and the kubelet themselves hold.
KERNEL_BYTES = 1.5 * GIB
FLOWS = ("write", "read", "transmit", "receive")
DEFAULTS = {
    "cpu": 0.1,
    "anon": 100 * MIB,
    "file": 30 * MIB,
    "write": 20e3,
    "read": 5e3,
    "transmit": 40e3,
    "receive": 60e3,
}


@dataclass
class StoryNode:
    """One node over one span of seconds."""

    name: str
    seed: int
    seconds: int
    end_ms: int
    cores: int = 16
    memory_bytes: float = 64 * GIB
    disk_bytes_per_second: float = 400e6
    network_bytes_per_second: float = 1.25e8
    filesystem_share: Shape = 0.42
    """Of the root file system, how much is used."""
    host_cores: Shape = 0.15
    """What processes outside of all containers use."""
    has_pressure: bool = True
    """False: the kernel was booted with psi=0."""
    has_api: bool = True
    names_workloads: bool = True
    """False: its agent is of a version that did not."""
    ahead_ms: int = 0
    """How much its clock is ahead of the right time."""
    story: str = ""
    """So that two stories of one seed differ."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Seconds in which no agent ran."""
    lives: list[Life] = field(default_factory=list)
    totals: dict[str, Floats] = field(default_factory=dict)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(int(digest(self.story, self.name, self.seed)[:15], 16))

    @property
    def start_ms(self) -> int:
        """By its own clock, as all times of its archive."""
        return self.end_ms + self.ahead_ms - self.seconds * 1000

    def describe(self, life: Life) -> Entity:
        return life.entity(self.name, has_api=self.has_api, names_workloads=self.names_workloads)

    def at(self, second: float) -> float:
        """Epoch seconds by its own clock."""
        return self.start_ms / 1000 + second

    # -- who runs -----------------------------------------------------------------

    def run(
        self,
        work: Workload,
        replicas: int = 1,
        start: int = 0,
        end: int | None = None,
        version: str = FIRST_VERSION,
        noise: Noise | None = None,
        **shapes: Shape,
    ) -> list[Life]:
        """Pods of one template, each of one container, there from start to end."""
        template = suffix(self.random, int(self.random.integers(8, 11)))
        minute = int(self.at(start) // 60)
        found = []
        for ordinal in range(replicas):
            pod, owner = name_pod(self.random, work, ordinal, template, minute)
            uid = digest("pod", self.name, self.seed, pod, start)
            life = self.live(work, pod, f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}")
            life.owner, life.image = owner, work.image_of(version)
            self.want(life, start, self.seconds if end is None else end, noise, shapes)
            found.append(life)
        return found

    def again(
        self, before: Life, start: int, end: int | None = None, noise: Noise | None = None, **shapes: Shape
    ) -> Life:
        """The same container of the same pod, restarted."""
        life = self.live(before.workload, before.pod, before.uid, before.restarts + 1)
        life.owner, life.image = before.owner, before.image
        self.want(life, start, self.seconds if end is None else end, noise, shapes)
        return life

    def live(self, work: Workload, pod: str, uid: str, restarts: int = 0) -> Life:
        container_id = digest("container", uid, restarts)
        life = Life(work, pod, uid, container_id, "", "", 0, 0, restarts)
        self.lives.append(life)
        return life

    def want(self, life: Life, start: int, end: int, noise: Noise | None, shapes: dict[str, Shape]) -> None:
        life.start, life.end = max(0, start), min(self.seconds, end)
        count = life.end - life.start
        noise = noise or choose_noise(self.random)
        for name, level in DEFAULTS.items():
            shape = shapes.get(name, level)
            if isinstance(shape, np.ndarray):
                # Drawn second by second: as it is.
                life.demand[name] = np.maximum(shape[life.seconds], 0.0)
                continue
            level_there: Any = (
                shape if isinstance(shape, int | float) else spread(shape, self.seconds)[life.seconds]
            )
            if name in ("anon", "file"):
                life.demand[name] = level_there * wobble(self.random, count, 0.01)
            else:
                life.demand[name] = level_there * noise(self.random, count)

    def rest_of_memory(self, share: float) -> float:
        """How much one more may hold so that all together hold this share of the node."""
        held = self._sum((life, life.demand["anon"]) for life in self.lives).mean()
        # A node is bought for what it runs: a power of two that leaves half of it free.
        self.memory_bytes = max(self.memory_bytes, 2.0 ** math.ceil(math.log2(2 * held)))
        return float(share * self.memory_bytes - held - KERNEL_BYTES)

    # -- what they get ------------------------------------------------------------

    def settle(self) -> None:
        """Divides cores, disk, network and memory among all; fills what each used."""
        cpu = {id(life): np.minimum(life.demand["cpu"], life.workload.cpu_limit) for life in self.lives}
        host = spread(self.host_cores, self.seconds)
        cpu_total = host + self._sum((life, cpu[id(life)]) for life in self.lives)
        cpu_scale, cpu_wait = divide(cpu_total, self.cores * 0.98)
        disk_total = self._sum((life, life.demand["write"] + life.demand["read"]) for life in self.lives)
        disk_scale, disk_wait = divide(disk_total, self.disk_bytes_per_second)
        sent = self._sum((life, life.demand["transmit"]) for life in self.lives)
        network_scale, _ = divide(sent, self.network_bytes_per_second)
        keep, squeeze = self._reclaim()
        for life in self.lives:
            at = life.seconds
            self._use_cpu(life, cpu[id(life)], cpu_scale[at], cpu_wait[at])
            use_disk(life, disk_scale[at], disk_wait[at], squeeze[at])
            life.used["transmit"] = life.demand["transmit"] * network_scale[at]
            life.used["receive"] = life.demand["receive"] * network_scale[at]
            self._use_memory(life, keep[at], squeeze[at])
        self._total(host * cpu_scale, cpu_wait, disk_wait, squeeze)

    def _sum(self, parts: Iterable[tuple[Life, Floats]]) -> Floats:
        total = np.zeros(self.seconds)
        for life, values in parts:
            total[life.seconds] += values
        return total

    def _use_cpu(self, life: Life, capped: Floats, scale: Floats, wait: Floats) -> None:
        limit = life.workload.cpu_limit
        demand = life.demand["cpu"]
        life.used["cpu"] = capped * scale
        calm = np.abs(0.0015 * self.random.standard_normal(len(demand)))
        stalled = wait * np.clip(0.55 + 0.3 * np.minimum(demand, 1.5), 0, 1) + calm * np.minimum(1, demand)
        if math.isfinite(limit):
            life.used["throttled"] = np.clip((demand / limit - 0.85) / 0.25, 0, 1)
            stalled = stalled + 0.6 * life.used["throttled"]
        else:
            life.used["throttled"] = np.zeros(len(demand))
        life.used["pressure_cpu"] = np.clip(stalled, 0, 0.98)

    def _reclaim(self) -> tuple[Floats, Floats]:
        """Share of page cache that stays, and how hard the node reclaims (0 to 1)."""
        anon = self._sum((life, self._anon(life)) for life in self.lives)
        cache = self._sum((life, life.demand["file"]) for life in self.lives)
        over = np.maximum(0, anon + cache + KERNEL_BYTES - 0.95 * self.memory_bytes)
        keep = np.clip(1 - over / np.maximum(cache, 1), 0.02, 1)
        return keep, np.clip(over / (0.12 * self.memory_bytes), 0, 1)

    @staticmethod
    def _anon(life: Life) -> Floats:
        return np.minimum(life.demand["anon"], life.workload.memory_limit)

    def _use_memory(self, life: Life, keep: Floats, squeeze: Floats) -> None:
        limit = life.workload.memory_limit
        anon = np.rint(self._anon(life) / 4096) * 4096
        cache = np.rint(np.minimum(life.demand["file"] * keep, limit - anon) / 4096) * 4096
        near = np.clip((anon / limit - 0.93) / 0.07, 0, 1) if math.isfinite(limit) else np.zeros(len(anon))
        if life.is_killed:
            anon[-1], cache[-1] = math.floor(limit / 4096) * 4096, 0
        life.used.update(anon=anon, file=cache, memory=anon + cache)
        calm = np.abs(0.0003 * self.random.standard_normal(len(anon)))
        life.used["pressure_memory"] = np.clip(0.3 * squeeze + 0.3 * near + calm, 0, 0.98)
        full = (anon + cache) >= 0.995 * limit
        life.used["limit_hits"] = np.where(full, 3.0, 0.0)

    def _total(self, host: Floats, cpu_wait: Floats, disk_wait: Floats, squeeze: Floats) -> None:
        for name in ("cpu", "anon", "file", *FLOWS):
            self.totals[name] = self._sum((life, life.used[name]) for life in self.lives)
        self.totals["cpu"] = np.minimum(self.totals["cpu"] + host, self.cores)
        self.totals["pressure_cpu"] = np.clip(cpu_wait + 0.004, 0, 0.98)
        self.totals["pressure_io"] = np.clip(disk_wait + 0.001, 0, 0.98)
        self.totals["pressure_memory"] = np.clip(0.35 * squeeze, 0, 0.98)
        killed = np.zeros(self.seconds)
        for life in self.lives:
            if life.is_killed and life.end < self.seconds:
                killed[life.end - 1] += 1
        self.totals["killed"] = killed

    # -- the truth ----------------------------------------------------------------

    def of(self, name: str) -> list[Life]:
        return [life for life in self.lives if life.workload.name == name]

    def use(self, name: str, what: str = "cpu", start: int = 0, end: int | None = None) -> float:
        """Of a whole workload over a span: integral / span. Missing seconds have no samples and do not count."""
        last = self.seconds if end is None else end
        series = self._sum((life, life.used[what]) for life in self.of(name))
        seen = self.seen()[start:last]
        return float(series[start:last][seen].mean())

    def peak(self, what: str = "cpu", name: str = "") -> float:
        """The highest second of one container, or of any."""
        lives = self.of(name) if name else self.lives
        return max(float(life.used[what].max()) for life in lives if life.end > life.start)

    def ranking(self, what: str = "cpu", start: int = 0, end: int | None = None) -> list[tuple[str, float]]:
        names = {life.workload.name for life in self.lives}
        rows = [(name, self.use(name, what, start, end)) for name in names]
        return sorted(rows, key=lambda row: -row[1])

    def seen(self) -> Any:
        there = np.ones(self.seconds, bool)
        for start, end in self.gaps:
            there[start:end] = False
        return there

    @property
    def workloads(self) -> list[str]:
        return sorted({life.workload.name for life in self.lives})


def divide(total: Floats, capacity: float) -> tuple[Floats, Floats]:
    """(share of its wish that everybody gets, share of time somebody waits)."""
    load = total / capacity
    scale = 1 / np.maximum(load, 1)
    # Queues grow before the resource is full.
    return scale, np.clip(0.9 * (1 - scale) + 0.06 * np.minimum(load, 1) ** 8, 0, 0.95)


def use_disk(life: Life, scale: Floats, wait: Floats, squeeze: Floats) -> None:
    """Who reads and writes waits; where page cache is reclaimed, it is read again."""
    wish = life.demand["write"] + life.demand["read"]
    life.used["write"] = life.demand["write"] * scale
    life.used["read"] = (life.demand["read"] + 2e6 * squeeze) * scale
    active = np.clip(wish / 200e3, 0.15, 1)
    life.used["pressure_io"] = np.clip(wait * active + 0.1 * squeeze, 0, 0.98)


def step(at: int, before: float, after: float, until: int | None = None) -> Course:
    """One level, then another from a second on, and the first again."""

    def shape(second: Floats) -> Floats:
        is_after = (second >= at) & (second < (math.inf if until is None else until))
        return np.where(is_after, after, before)

    return shape


def ramp(start: int, end: int, before: float, after: float) -> Course:
    """Level, then a straight rise, then level."""
    return lambda second: np.interp(second, [start, end], [before, after])


def pulses(period: float, width: float, base: float, height: float, phase: float = 0.0) -> Course:
    return lambda second: np.where((second - phase) % period < width, height, base)


def sawtooth(period: float, low: float, high: float, rise: float = 0.0) -> Course:
    """A heap: fills, is collected, fills; with a rise a second on top."""
    return lambda second: low + (high - low) * ((second % period) / period) + rise * second


def names_of(lives: Sequence[Life]) -> list[str]:
    return [life.name for life in lives]
