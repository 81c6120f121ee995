"""
A generated node through the agent's own path: frames into the real ring, the real watcher beside it.

The clock is the frames' own, so a day takes as long as its looks cost. Every
tenth second is a frame: what a look sees lies that far apart anyway. Events
come with the frame of their second, as the container source gives them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event as Stop

import numpy as np
from tests.stories.generate.archive import build_clocks, events_of
from tests.stories.generate.machine import StoryNode
from tests.stories.generate.metrics import Table as StoryTable
from tests.stories.generate.metrics import list_tables

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.findings import NodeFinding
from nodescope.base.frame import OK, Event, Frame, Outcome
from nodescope.base.metric import Metric
from nodescope.collect.run.guard import run_guarded
from nodescope.hold.ring import Ring
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.watcher import LOOK_SECONDS, Watcher

LIMITS = (
    "cgroup.v2.memory.max",
    "cgroup.v2.memory.peak",
    "cgroup.v2.cpu.max.quota",
    "cgroup.v2.cpu.max.period",
)
# Table of the agent -> how its metrics begin.
NODE_TABLES = {"pressure": "pressure.", "memory": "memory.", "filesystem": "filesystem.", "cpu.cpu": "cpu."}
SOURCES = ("container", "pressure", "memory", "filesystem", "cpu", "nvidia")
GPUS = Table("nvidia", "nvidia", ("gpu",), (Metric("gpu.utilization", "gauge", "Utilisation."),))


@dataclass(slots=True)
class FrameClock:
    """Stands at the newest frame."""

    at_ns: int = 0
    passed_ns: int = 0

    def wall_ns(self) -> int:
        return self.at_ns

    def mono_ns(self) -> int:
        return self.passed_ns

    def wait_until(self, deadline_mono_ns: int, stop: Stop) -> bool:
        del deadline_mono_ns
        return stop.is_set()


def table_of(name: str, scope: str) -> str:
    """In which of the agent's tables a metric stands."""
    if scope == "container":
        if name in LIMITS:
            return "container.limits"
        return "container.memory_stat" if ".memory.stat." in name else "container"
    for table, start in NODE_TABLES.items():
        if name.startswith(start) and (table == "cpu.cpu") == (scope == "cpu"):
            return table
    return ""


@dataclass
class Replay:
    """One node, its watcher, and what was told when."""

    node: StoryNode
    gpus: tuple[str, ...] = ()
    gpu_gone: int | None = None
    """From this second on the first GPU is no longer there."""
    step: int = int(LOOK_SECONDS)
    store: FindingStore = field(init=False)
    watcher: Watcher = field(init=False)
    ring: Ring = field(init=False)
    clock: FrameClock = field(default_factory=FrameClock)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.node.totals:
            self.node.settle()
        self.ring = Ring(60.0, 64 * 2**20, 1.0)
        self.store = FindingStore(self.node.name)
        self.watcher = Watcher(self.ring, self.store, self.clock, run_guarded, self.events.append)
        self._clocks = build_clocks(self.node)
        self._columns = list(self._arrange())
        self._happened = self._list_events()

    def _list_events(self) -> dict[int, list[Event]]:
        found: dict[int, list[Event]] = {}
        for life in self.node.lives:
            if life.end <= life.start:
                continue
            for row in events_of(self.node, self._clocks, life):
                second = int(np.searchsorted(self._clocks.time_ms, row["at_ms"]))
                labels = tuple(row["labels"].items())
                event = Event(
                    row["kind"], row["at_ms"] * 10**6, "container", tuple(row["ids"]), labels, row["facts"]
                )
                found.setdefault(second, []).append(event)
        return found

    def _arrange(self) -> Iterator[tuple[Table, list[tuple[Entity, StoryTable, tuple[str, ...]]]]]:
        """By table of the agent: its rows, each with the names of its columns."""
        rows: dict[str, list[tuple[Entity, StoryTable]]] = {}
        metrics: dict[str, dict[str, Metric]] = {}
        for story in list_tables(self.node):
            for name, (metric, _) in story.values.items():
                table = table_of(name, story.entity.scope)
                if table:
                    metrics.setdefault(table, {})[name] = metric
                    kept = rows.setdefault(table, [])
                    if not kept or kept[-1][1] is not story:
                        kept.append((story.entity, story))
        for table, named in metrics.items():
            scope = rows[table][0][0].scope
            schema = Table(table, table.split(".")[0], (scope,), tuple(named.values()))
            yield schema, [(entity, story, tuple(named)) for entity, story in rows[table]]

    def _blocks(self, second: int, mono_ns: int) -> Iterator[Block]:
        for schema, rows in self._columns:
            there: dict[Entity, list[float]] = {}
            for entity, story, names in rows:
                if story.start <= second < story.end:
                    cells = there.setdefault(entity, [float("nan")] * len(names))
                    for place, name in enumerate(names):
                        pair = story.values.get(name)
                        if pair is not None:
                            cells[place] = float(pair[1][second - story.start])
            values = np.array(list(there.values()), dtype=np.float64).reshape(len(there), len(schema.metrics))
            yield Block(schema, self._same(schema.name, tuple(there)), values, mono_ns)
        if self.gpus:
            gone = self.gpu_gone is not None and second >= self.gpu_gone
            left = self.gpus[1:] if gone else self.gpus
            entities = self._same("nvidia", tuple(Entity("gpu", (one,)) for one in left))
            yield Block(GPUS, entities, np.full((len(left), 1), 50.0), mono_ns)

    _sets: dict[str, tuple[Entity, ...]] = field(default_factory=dict)

    def _same(self, table: str, entities: tuple[Entity, ...]) -> tuple[Entity, ...]:
        """The same object while the set is unchanged, as the agent has it."""
        if self._sets.get(table) != entities:
            self._sets[table] = entities
        return self._sets[table]

    def frames(self) -> Iterator[Frame]:
        outcomes: dict[str, Outcome] = dict.fromkeys(SOURCES, OK)
        for number, second in enumerate(range(0, self.node.seconds, self.step)):
            if not self._clocks.is_seen[second]:
                continue
            at_ns = int(self._clocks.time_ms[second]) * 10**6
            mono_ns = int(self._clocks.mono_ns[second])
            first = max(0, second - self.step + 1)
            happened = [one for at in range(first, second + 1) for one in self._happened.get(at, ())]
            blocks = tuple(self._blocks(second, mono_ns))
            yield Frame(number, at_ns, mono_ns, blocks, outcomes, tuple(happened))

    def run(self) -> Sequence[NodeFinding]:
        """Every change of every finding, in order."""
        told: list[NodeFinding] = []
        for frame in self.frames():
            self.ring.accept(frame)
            self.clock.at_ns, self.clock.passed_ns = frame.at_ns, frame.mono_ns
            before = self.store.revision
            self.watcher.step()
            told += self.store.changes(before)
        return told
