"""
A node divides its cores, memory and disk among its containers, and counts as Linux does.

CPU goes by weight where it is short, so that who asked for nothing gets what is left and
makes nobody wait for long. A quota is met within tenths of a second: uneven work is
throttled below its limit on average, and the periods of a sleeping container are not
counted. Page cache fills what is free and is given back when others need it. Pressure
follows from all of this: a task that is throttled waits as well, for nobody but itself.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bench.judge_nodes.shapes import GIB, Random
from bench.judge_nodes.workload import Life, Workload, mark, name_pod, stretch, suffix
from nodescope.base.block import Floats

PERIODS = 100.0
"""Of 100 ms in a step."""
LEFTOVER_WEIGHT = 0.01
KERNEL_BYTES = 1.2 * GIB
# Of a throttled period, how much of it the tasks stand still.
STILL_RATIO = 0.55
HALVINGS = 20


@dataclass(slots=True)
class Mount:
    device: str
    point: str
    kind: str
    size: float
    used: Floats
    """Share of what others than root may use, as df tells it."""
    is_readonly: bool = False


@dataclass(slots=True)
class Gpus:
    names: tuple[str, ...] = ()
    gone: dict[str, int] = field(default_factory=dict)
    """By name, from which step on it is missing."""
    failed: list[tuple[int, int]] = field(default_factory=list)
    """Steps in which the driver does not answer."""


@dataclass
class Machine:
    name: str
    random: Random
    steps: int
    start_at: float
    """Epoch seconds."""
    cores: int = 16
    memory_bytes: float = 64 * GIB
    disk_bytes_per_second: float = 500e6
    has_api: bool = True
    lives: list[Life] = field(default_factory=list)
    mounts: list[Mount] = field(default_factory=list)
    gpus: Gpus = field(default_factory=Gpus)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Steps in which no agent ran; a new one starts behind each."""
    clock_steps: list[tuple[int, float]] = field(default_factory=list)
    """From this step on the wall clock is so many seconds off."""
    pressure: dict[str, Floats] = field(default_factory=dict)
    available: Floats = field(default_factory=lambda: np.zeros(0))
    busy: Floats = field(default_factory=lambda: np.zeros(0))
    """Cores in use."""

    @property
    def at(self) -> Floats:
        return self.start_at + 10.0 * np.arange(self.steps, dtype=np.float64)

    # -- who runs -------------------------------------------------------------------

    def run(
        self,
        work: Workload,
        start: int = 0,
        end: int | None = None,
        *,
        ordinal: int = 0,
        template: str = "",
        before: Life | None = None,
        cpu: Floats | float = 0.05,
        anon: Floats | float = 50 * 2.0**20,
        cache: Floats | float = 20 * 2.0**20,
        reads: Floats | float = 1e3,
        writes: Floats | float = 5e3,
        bursts: float = 0.3,
        awake: float = 1.0,
    ) -> Life:
        """One life; arrays begin with the life. `before` makes it a restart of the same container."""
        start, stop = max(0, start), self.steps if end is None else min(end, self.steps)
        count = max(0, stop - start)
        minute = int((self.start_at + start * 10) // 60)
        if before is None:
            template = template or suffix(self.random, 9)
            pod, owner = name_pod(self.random, work, ordinal, template, minute)
            number = mark(self.name, pod, start)
            uid = f"{number[:8]}-{number[8:12]}-{number[12:16]}-{number[16:20]}-{number[20:32]}"
            restarts = 0
        else:
            pod, owner, uid, restarts = before.pod, before.owner, before.uid, before.restarts + 1
        cpu, anon, cache = (stretch(one, count) for one in (cpu, anon, cache))
        reads, writes = stretch(reads, count), stretch(writes, count)
        last = self.steps + 1 if end is None else end
        life = Life(work, pod, owner, uid, start, last, cpu, anon, cache, reads, writes)
        life.bursts, life.awake, life.restarts = bursts, awake, restarts
        self.lives.append(life)
        return life

    # -- what they get --------------------------------------------------------------

    def settle(self) -> None:
        self._share_cpu()
        self._share_memory()
        self._share_disk()
        for name in ("cpu", "memory", "io"):
            # Somebody waits unless nobody does.
            alone = self._sum(
                (life, np.log1p(-np.minimum(life.got[f"wait_{name}"], 0.98))) for life in self.lives
            )
            self.pressure[name] = np.clip(1 - np.exp(alone), 0, 0.995)

    def _sum(self, parts: Iterable[tuple[Life, Floats]]) -> Floats:
        total = np.zeros(self.steps)
        for life, values in parts:
            total[life.start : life.start + len(values)] += values
        return total

    def _share_cpu(self) -> None:
        wish = {id(life): np.minimum(life.cpu, life.work.cpu_limit) for life in self.lives}
        capacity = 0.985 * self.cores
        level = self._find_level(wish, capacity)
        for life in self.lives:
            fair = level[life.start : life.start + len(life.cpu)] * life.work.weight
            life.got["cpu"] = np.minimum(wish[id(life)], fair)
        asked = self._sum((one, one.got["cpu"]) for one in self.lives if one.work.weight >= LEFTOVER_WEIGHT)
        every = self._sum((one, one.got["cpu"]) for one in self.lives)
        self.busy = np.minimum(every + 0.02 * self.cores, self.cores)
        for life in self.lives:
            self._wait_for_cpu(life, asked + 0.05 * (every - asked), every)

    def _find_level(self, wish: dict[int, Floats], capacity: float) -> Floats:
        """Cores that a weight of 1 gets where not all can have what they want."""
        total = self._sum((life, wish[id(life)]) for life in self.lives)
        short = total > capacity
        low, high = np.zeros(self.steps), np.full(self.steps, 1e6)
        if not short.any():
            return high
        for _ in range(HALVINGS * 2):
            middle = np.sqrt(np.maximum(low, 1e-4) * high)
            taken = self._sum(
                (
                    life,
                    np.minimum(
                        wish[id(life)], middle[life.start : life.start + len(life.cpu)] * life.work.weight
                    ),
                )
                for life in self.lives
            )
            over = taken > capacity
            high, low = np.where(over, middle, high), np.where(over, low, middle)
        return np.where(short, high, 1e6)

    def _wait_for_cpu(self, life: Life, asked: Floats, every: Floats) -> None:
        """The chance that all cores are busy (Sakasegawa's exponent), what it lacks, and its own quota."""
        span = slice(life.start, life.start + len(life.cpu))
        others = every if life.work.weight < LEFTOVER_WEIGHT else asked
        busy = np.clip(others[span] / self.cores, 0, 1)
        active = 1 - np.exp(-1.5 * life.cpu)
        got, wish = life.got["cpu"], np.minimum(life.cpu, life.work.cpu_limit)
        lacking = 1 - got / np.maximum(wish, 1e-6)
        wait = active * (0.004 + 0.5 * busy ** math.sqrt(2 * (self.cores + 1))) + 0.8 * lacking
        throttled = np.zeros(len(got))
        if math.isfinite(life.work.cpu_limit):
            throttled = throttle(self.random, life)
            wait = wait + throttled * life.awake * STILL_RATIO
        noise = np.exp(0.3 * self.random.normal(size=len(got)))
        life.got["throttled"] = throttled
        life.got["wait_cpu"] = np.clip(wait * noise, 0, 0.97)

    def _share_memory(self) -> None:
        for life in self.lives:
            limit = life.work.memory_limit
            life.got["anon"] = np.minimum(life.anon, 0.998 * limit)
            life.got["cache"] = np.minimum(life.cache, np.maximum(0.997 * limit - life.got["anon"], 0))
        anon = self._sum((life, life.got["anon"]) for life in self.lives)
        cache = self._sum((life, life.got["cache"]) for life in self.lives)
        room = np.maximum(0.97 * self.memory_bytes - KERNEL_BYTES - anon, 0)
        keep = np.clip(room / np.maximum(cache, 1), 0.03, 1)
        # Where anonymous memory alone nearly fills the node, giving back cache is hard work.
        hard = np.clip((anon + KERNEL_BYTES) / self.memory_bytes - 0.88, 0, 0.1) / 0.1
        self.available = np.maximum(self.memory_bytes - KERNEL_BYTES - anon - 0.1 * cache * keep, 0)
        for life in self.lives:
            span = slice(life.start, life.start + len(life.anon))
            self._wait_for_memory(life, keep[span], hard[span])

    def _wait_for_memory(self, life: Life, keep: Floats, hard: Floats) -> None:
        limit = life.work.memory_limit
        anon, wish = life.got["anon"], life.got["cache"]
        life.got["cache"] = wish * keep
        lost = 1 - keep
        full = anon + life.got["cache"] >= 0.99 * limit
        near = np.clip((anon / limit - 0.95) / 0.05, 0, 1) if math.isfinite(limit) else np.zeros(len(anon))
        busy = np.clip(wish / (64 * 2.0**20), 0.2, 1)
        noise = np.exp(0.4 * self.random.normal(size=len(anon)))
        # A cache that is full turns over; that takes time, but hardly any.
        wait = 0.0002 + 0.004 * full + 0.25 * near + 0.45 * hard * np.maximum(lost, 0.3) * busy
        life.got["wait_memory"] = np.clip(wait * noise, 0, 0.97)
        life.got["hits"] = np.where(full, np.rint(30 * noise), 0.0)
        life.got["refault"] = 3e6 * hard * lost * busy

    def _share_disk(self) -> None:
        total = self._sum((one, one.reads + one.got["refault"] + one.writes) for one in self.lives)
        load = total / self.disk_bytes_per_second
        share = 1 / np.maximum(load, 1)
        wait = 0.15 * np.minimum(load, 1) ** 4 + 0.9 * (1 - share)
        for life in self.lives:
            span = slice(life.start, life.start + len(life.reads))
            reads = life.reads + life.got["refault"]
            active = np.clip((reads + 0.5 * life.writes) / 1e6, 0.02, 1)
            noise = np.exp(0.4 * self.random.normal(size=len(reads)))
            life.got["reads"], life.got["writes"] = reads * share[span], life.writes * share[span]
            life.got["wait_io"] = np.clip((0.0005 + wait[span]) * active * noise, 0, 0.97)


def throttle(random: Random, life: Life) -> Floats:
    """
    Share of its periods in which the quota ran out.

    Work within a tenth of a second is log-normal around the mean while the container is
    awake; the tail above the quota is cut by the logistic form of the normal distribution.
    """
    mean = np.maximum(life.cpu / max(life.awake, 0.01), 1e-6)
    beyond = (np.log(life.work.cpu_limit / mean) + life.bursts**2 / 2) / max(life.bursts, 0.02)
    chance = 1 / (1 + np.exp(np.clip(1.702 * beyond, -40, 40)))
    chance = np.where(life.cpu >= life.work.cpu_limit, np.maximum(chance, 0.97), chance)
    return random.binomial(int(PERIODS), chance) / PERIODS
