"""A settled machine as the agent's frames: its own tables, counters since each start, events."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bench.judge_nodes.machine import PERIODS, STILL_RATIO, Machine
from bench.judge_nodes.shapes import DAY
from bench.judge_nodes.workload import Life
from nodescope.base.block import Block, Floats, Table
from nodescope.base.entity import NODE, Entity
from nodescope.base.frame import EXIT, OK, OOM_EXIT, START, Event, Frame, Outcome
from nodescope.collect.sources import cpu, filesystem, memory, pressure
from nodescope.collect.sources.container.metrics import choose_files, make_table
from nodescope.collect.sources.gpu.metrics import GpuFamily

MICRO = 1e6
STEP = 10.0
# As the agent reads them: limits and file systems every half minute.
SLOW_STEPS = 3
SOURCES = ("container", "pressure", "memory", "filesystem", "cpu")
TABLES = {name: make_table(name, files) for name, files in choose_files(frozenset({"v2"}), 100).items()}
MEMORY = Table(
    "memory",
    "memory",
    ("node",),
    (memory.row("MemTotal", has_unit=True), memory.row("MemAvailable", has_unit=True)),
)
PRESSURE = Table(
    "pressure",
    "pressure",
    ("node",),
    tuple(
        pressure.stalled(what, share, word)
        for what in ("cpu", "io", "memory")
        for share, word in (("some", "waiting"), ("full", "stalled"))
    ),
)
GPU = GpuFamily("nvidia").gpus
CORES = Table("cpu.cpu", "cpu", ("cpu",), tuple(cpu.time_in(mode, 100) for mode in cpu.MODES))


def column(table: Table, name: str) -> int:
    return table.columns[f"cgroup.v2.{name}"]


@dataclass(slots=True)
class Rows:
    """One life's values of one table over a part of the node's span."""

    start: int
    values: Floats


@dataclass
class Frames:
    """Made a day at a time: a week of a hundred containers does not fit into memory at once."""

    machine: Machine
    _carry: dict[int, dict[str, float]] = field(default_factory=dict)
    _entities: dict[int, Entity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        machine = self.machine
        self._gap_starts = [start for start, _ in machine.gaps]
        offset = np.zeros(machine.steps)
        for step, seconds in machine.clock_steps:
            offset[step:] += seconds
        late = machine.random.integers(0, 8, machine.steps) * 10**6
        self.at_ns = ((machine.at + offset) * 1e9).astype(np.int64) + late
        self.mono_ns = (np.arange(machine.steps) * 10**10).astype(np.int64) + 40 * 86_400 * 10**9 + late
        self._events = self._list_events()
        waits = [self.machine.pressure[what] for what in ("cpu", "io", "memory")]
        both = [part for wait in waits for part in (wait, wait**2 * 0.3)]
        names = [str(number) for number in range(machine.cores)]
        self._cores = tuple(Entity("cpu", (name,), (("cpu", name),)) for name in names)
        busy = np.cumsum(np.clip(machine.busy / machine.cores, 0, 1)) * STEP * 100
        idle = np.arange(1, machine.steps + 1) * STEP * 100 - busy
        modes = {"user": 0.8 * busy, "system": 0.2 * busy, "idle": idle}
        zero = np.zeros(machine.steps)
        self._modes = np.floor(np.stack([modes.get(mode, zero) for mode in cpu.MODES], axis=1))
        self._pressure = np.floor(np.cumsum(np.stack(both, axis=1) * STEP * MICRO, axis=0)) + 1e9

    def is_seen(self, step: int) -> bool:
        place = bisect_right(self._gap_starts, step) - 1
        return place < 0 or step >= self.machine.gaps[place][1]

    # -- events ---------------------------------------------------------------------

    def _list_events(self) -> dict[int, list[Event]]:
        """As the container source tells them: all that run are new to an agent that starts."""
        found: dict[int, list[Event]] = {}
        machine = self.machine
        starts = [0, *(end for _, end in machine.gaps)]
        for life in machine.lives:
            if life.start < machine.steps and self.is_seen(life.start):
                found.setdefault(life.start, []).append(self._event(life, START, life.start))
            for begin in starts:
                if life.start < begin < life.end and begin < machine.steps:
                    found.setdefault(begin, []).append(self._event(life, START, begin))
            end = max(life.end, life.start)
            if end < machine.steps and self.is_seen(end) and self.is_seen(max(0, end - 1)):
                kind = OOM_EXIT if life.is_killed else EXIT
                found.setdefault(end, []).append(self._event(life, kind, end))
        return found

    def _event(self, life: Life, kind: str, step: int) -> Event:
        entity = self.entity(life)
        facts = {} if kind == START else self._facts(life)
        labels = (*entity.labels, *entity.details)
        return Event(kind, int(self.at_ns[step]), "container", entity.ids, labels, facts)

    def _facts(self, life: Life) -> dict[str, float | str]:
        facts: dict[str, float | str] = {
            "lifetime_seconds": max(life.seconds_alive, 4.0),
            "started_at": float(self.at_ns[life.start]) / 1e9,
            "last_look": "last tick",
            "oom_kills": float(life.is_killed) + len(life.child_killed),
        }
        if len(life.anon):
            size = life.got["anon"] + life.got["cache"]
            facts["cpu_seconds"] = float(life.got["cpu"].sum() * STEP)
            facts["memory_bytes"], facts["memory_peak_bytes"] = float(size[-1]), float(size.max())
        else:
            facts["unmeasured"] = "too short to measure: it came and went between two ticks"
        if math.isfinite(life.work.memory_limit):
            facts["memory_limit_bytes"] = life.work.memory_limit
        return facts

    def entity(self, life: Life) -> Entity:
        if id(life) not in self._entities:
            self._entities[id(life)] = life.entity(self.machine.name, has_api=self.machine.has_api)
        return self._entities[id(life)]

    # -- containers -----------------------------------------------------------------

    def _count(self, life: Life, name: str, growth: Floats) -> Floats:
        """A counter that goes on where the last part of the life ended."""
        kept = self._carry.setdefault(id(life), {})
        total = kept.get(name, 0.0) + np.cumsum(growth)
        kept[name] = float(total[-1])
        return np.floor(total)

    def _main(self, life: Life, span: slice) -> Floats:
        got = {name: values[span] for name, values in life.got.items()}
        many, table = len(got["cpu"]), TABLES["container"]
        cells = np.full((many, len(table.metrics)), math.nan)

        def put(name: str, values: Floats) -> None:
            cells[:, column(table, name)] = values

        def count(name: str, growth: Floats) -> None:
            put(name, self._count(life, name, growth))

        count("cpu.stat.user_usec", got["cpu"] * 0.8 * STEP * MICRO)
        count("cpu.stat.system_usec", got["cpu"] * 0.2 * STEP * MICRO)
        count("cpu.stat.usage_usec", got["cpu"] * STEP * MICRO)
        has_quota = math.isfinite(life.work.cpu_limit)
        periods = np.full(many, PERIODS * life.awake if has_quota else 0.0)
        count("cpu.stat.nr_periods", periods)
        count("cpu.stat.nr_throttled", got["throttled"] * periods)
        count("cpu.stat.throttled_usec", got["throttled"] * periods * STILL_RATIO * 0.1 * MICRO)
        for what in ("cpu", "memory", "io"):
            wait = got[f"wait_{what}"]
            count(f"{what}.pressure.some.total", wait * STEP * MICRO)
            count(f"{what}.pressure.full.total", wait**2 * 0.5 * STEP * MICRO)
        put("memory.current", np.rint((got["anon"] + got["cache"]) / 4096 * 1.01) * 4096)
        count("memory.events.max", got["hits"])
        killed = np.zeros(many)
        for step in life.child_killed:
            if span.start <= step < span.stop:
                killed[step - span.start] += 1
        count("memory.events.oom_kill", killed)
        for what, name in (("rbytes", "reads"), ("wbytes", "writes")):
            count(f"io.stat.{what}", got[name] * STEP)
            count(f"io.stat.{what[0]}ios", got[name] * STEP / 32768)
        return cells

    def _stat(self, life: Life, span: slice) -> Floats:
        anon, cache = life.got["anon"][span], life.got["cache"][span]
        table = TABLES["container.memory_stat"]
        cells = np.full((len(anon), len(table.metrics)), math.nan)
        shares = {
            "file": 1.0,
            "inactive_file": 0.6,
            "active_file": 0.4,
            "file_mapped": 0.2,
            "file_dirty": 0.01,
        }
        for name, share in shares.items():
            cells[:, column(table, f"memory.stat.{name}")] = np.rint(cache * share / 4096) * 4096
        cells[:, column(table, "memory.stat.anon")] = np.rint(anon / 4096) * 4096
        cells[:, column(table, "memory.stat.shmem")] = 0.0
        kernel = np.rint((anon + cache) * 0.01 / 4096) * 4096
        cells[:, column(table, "memory.stat.kernel")] = kernel
        cells[:, column(table, "memory.stat.slab")] = kernel * 0.6
        cells[:, column(table, "memory.stat.pgfault")] = self._count(
            life, "pgfault", 300 * life.got["cpu"][span] * STEP
        )
        majors = life.got["refault"][span] / 4096 * STEP * 0.1
        cells[:, column(table, "memory.stat.pgmajfault")] = self._count(life, "pgmajfault", majors)
        return cells

    def _limits(self, life: Life, many: int) -> Floats:
        table, work = TABLES["container.limits"], life.work
        cells = np.zeros((many, len(table.metrics)))
        cells[:, column(table, "memory.max")] = work.memory_limit
        cells[:, column(table, "memory.peak")] = math.nan
        cells[:, column(table, "cpu.max.quota")] = work.cpu_limit * 100_000
        cells[:, column(table, "cpu.max.period")] = 100_000
        cells[:, column(table, "pids.current")] = 12
        cells[:, column(table, "pids.max")] = math.inf
        return cells

    # -- frames ---------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[int, Frame]]:
        for start in range(0, self.machine.steps, DAY):
            yield from self._day(start, min(start + DAY, self.machine.steps))

    def _day(self, start: int, end: int) -> Iterator[tuple[int, Frame]]:
        """From one change of who lives to the next the rows are the same."""
        measured = [one for one in self.machine.lives if len(one.cpu)]
        lives = [one for one in measured if one.start < end and one.start + len(one.cpu) > start]
        rows = {id(life): self._part(life, start, end) for life in lives}
        bounds = {start, end}
        for life in lives:
            bounds |= {max(start, life.start), min(end, life.start + len(life.cpu))}
        ordered = sorted(bounds)
        waiting = sorted(lives, key=lambda life: life.start, reverse=True)
        there: list[Life] = []
        for first, last in pairwise(ordered):
            there = [life for life in there if life.start + len(life.cpu) >= last]
            while waiting and waiting[-1].start <= first:
                there.append(waiting.pop())
            yield from self._stretch(there, rows, first, last)

    def _part(self, life: Life, start: int, end: int) -> dict[str, Rows]:
        first, last = max(start, life.start), min(end, life.start + len(life.cpu))
        span = slice(first - life.start, last - life.start)
        return {
            "container": Rows(first, self._main(life, span)),
            "container.memory_stat": Rows(first, self._stat(life, span)),
            "container.limits": Rows(first, self._limits(life, last - first)),
        }

    def _stretch(
        self, there: Sequence[Life], rows: dict[int, dict[str, Rows]], first: int, last: int
    ) -> Iterator[tuple[int, Frame]]:
        entities = tuple(self.entity(life) for life in there)
        stacked = {}
        for name, table in TABLES.items():
            parts = [rows[id(life)][name] for life in there]
            cut = [part.values[first - part.start : last - part.start] for part in parts]
            empty = np.zeros((last - first, 0, len(table.metrics)))
            stacked[name] = np.stack(cut, axis=1) if cut else empty
        for step in range(first, last):
            if self.is_seen(step):
                yield (
                    step,
                    self._frame(step, entities, {name: one[step - first] for name, one in stacked.items()}),
                )

    def _frame(self, step: int, entities: tuple[Entity, ...], values: dict[str, Floats]) -> Frame:
        mono_ns = int(self.mono_ns[step])
        is_slow = step % SLOW_STEPS == 0 or not self.is_seen(step - 1)
        names = [name for name in TABLES if is_slow or name != "container.limits"]
        blocks = [Block(TABLES[name], entities, values[name].copy(), mono_ns) for name in names]
        blocks.append(Block(PRESSURE, (NODE,), self._pressure[step][None, :].copy(), mono_ns))
        total, free = self.machine.memory_bytes / 1024, self.machine.available[step] / 1024
        blocks.append(Block(MEMORY, (NODE,), np.array([[total, np.floor(free)]]), mono_ns))
        blocks.append(Block(CORES, self._cores, np.tile(self._modes[step], (len(self._cores), 1)), mono_ns))
        if is_slow:
            blocks.append(self._mounts(step, mono_ns))
        outcomes: dict[str, Outcome] = dict.fromkeys(SOURCES, OK)
        gpus = self._gpus(step, mono_ns, outcomes)
        blocks += [gpus] if gpus else []
        events = tuple(self._events.get(step, ()))
        return Frame(step, int(self.at_ns[step]), mono_ns, tuple(blocks), outcomes, events)

    def _mounts(self, step: int, mono_ns: int) -> Block:
        entities, cells = [], []
        for mount in self.machine.mounts:
            labels = (("device", mount.device), ("fstype", mount.kind), ("mountpoint", mount.point))
            entities.append(Entity("filesystem", (mount.point,), labels))
            # ext4 keeps a twentieth for root; shares are as df tells them.
            spare = 0.05 * mount.size if mount.kind == "ext4" else 0.0
            left = np.rint((mount.size - spare) * (1 - mount.used[step]) / 4096) * 4096
            cells.append([mount.size, left + spare, left, 1e7, 8e6, float(mount.is_readonly), 0.0])
        return Block(filesystem.TABLE, tuple(entities), np.array(cells).reshape(-1, 7), mono_ns)

    def _gpus(self, step: int, mono_ns: int, outcomes: dict[str, Outcome]) -> Block | None:
        gpus = self.machine.gpus
        if not gpus.names:
            return None
        if any(start <= step < end for start, end in gpus.failed):
            outcomes["nvidia"] = Outcome("failed", "nvidia: the driver does not answer (GPU is lost)")
            return None
        outcomes["nvidia"] = OK
        left = [name for name in gpus.names if step < gpus.gone.get(name, self.machine.steps + 1)]
        entities = tuple(Entity("gpu", (name,), (("gpu", name),)) for name in left)
        cells = np.full((len(left), len(GPU.metrics)), math.nan)
        cells[:, GPU.columns["gpu.utilization"]] = 40.0
        return Block(GPU, entities, cells, mono_ns)
