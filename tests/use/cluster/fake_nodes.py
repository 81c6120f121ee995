"""Nodes that answer as they are told, and executors that run at once or when a test says so."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.integration.agents import TurnableClock

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.minutes.node_minutes import NodeMinutes, SeenFinding, cover
from nodescope.use.cluster.asked_node import AskedNode, CellsWanted, WorkloadOnNode
from nodescope.use.cluster.gatherer import Gatherer
from nodescope.use.nodes.directory import NodeDirectory, NodeEntry
from nodescope.use.nodes.viewer_client import NodeAway

# A whole hour, so that cells of every width begin at it.
END_MS = 1_772_366_400_000
MINUTE_MS = 60_000


class AtOnce(Executor):
    def submit(self, work: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*words, **named))
        except BaseException as error:  # noqa: BLE001 - as a real executor keeps it
            future.set_exception(error)
        return future


@dataclass
class Later(Executor):
    """Runs what was submitted when `run` is called."""

    waiting: list[Callable[[], Any]] = field(default_factory=list)

    def submit(self, work: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        self.waiting.append(lambda: work(*words, **named))
        return Future()

    def run(self) -> None:
        works, self.waiting = self.waiting, []
        for work in works:
            work()


@dataclass
class FakeNode:
    """Each cell has the value that its measure is given."""

    levels: Mapping[str, float] = field(default_factory=dict)
    levels_at_end: Mapping[str, float] = field(default_factory=dict)
    """In the twenty minutes before END_MS."""
    newest_ms: int = END_MS - 1
    cores: float | None = 8.0
    memory_bytes: float | None = 100.0
    events: tuple[ContainerEvent, ...] = ()
    findings: tuple[SeenFinding, ...] = ()
    workloads: tuple[WorkloadOnNode, ...] = ()
    away: str = ""
    is_local: bool = False
    asked: list[CellsWanted] = field(default_factory=list)
    ranked: list[tuple[str, TimeRange]] = field(default_factory=list)

    def read_minutes(self, wanted: CellsWanted) -> NodeMinutes:
        self.asked.append(wanted)
        if self.away:
            raise NodeAway(self.away)
        span = wanted.span or TimeRange(self.newest_ms - round(wanted.seconds * 1000), self.newest_ms)
        cells = cover(span, wanted.step_ms)
        starts = cells.from_ms + np.arange(cells.number) * cells.step_ms

        def row(name: str) -> Any:
            level = self.levels.get(name, float("nan"))
            late = np.where(starts >= END_MS - 20 * MINUTE_MS, self.levels_at_end.get(name, level), level)
            return np.where(starts <= self.newest_ms, late, np.nan)

        events = tuple(one for one in self.events if cells.from_ms <= one.at_ms < cells.to_ms)
        return NodeMinutes(
            "as its viewer calls it",
            cells.from_ms,
            cells.to_ms,
            cells.step_ms,
            END_MS - 86_400_000,
            self.newest_ms,
            12,
            self.cores,
            self.memory_bytes,
            row("cpu"),
            row("memory"),
            row("pressure_cpu"),
            row("pressure_memory"),
            row("pressure_io"),
            row("throttled"),
            row("gpu"),
            events,
            self.findings,
        )

    def rank(self, metric: str, span: TimeRange) -> list[WorkloadOnNode]:
        self.ranked.append((metric, span))
        if self.away:
            raise NodeAway(self.away)
        return list(self.workloads)

    def close(self) -> None: ...


@dataclass
class FakeDirectory(NodeDirectory[AskedNode]):
    nodes: dict[str, FakeNode]
    reasons: dict[str, str] = field(default_factory=dict)

    def entries(self) -> Mapping[str, NodeEntry[AskedNode]]:
        return {
            name: NodeEntry[AskedNode](name, node, f"http://{name}", self.reasons.get(name, ""))
            for name, node in self.nodes.items()
        }


@dataclass
class FakeCluster:
    """A gatherer over such nodes, its clock, and what it waits for."""

    directory: FakeDirectory
    clock: TurnableClock
    executor: AtOnce | Later
    gatherer: Gatherer


def make_cluster(executor: AtOnce | Later | None = None, **nodes: FakeNode) -> FakeCluster:
    """The clock stands at END_MS."""
    clock = TurnableClock(wall=END_MS * 1_000_000)
    runs = executor or AtOnce()
    directory = FakeDirectory({name.replace("_", "-"): node for name, node in nodes.items()})
    return FakeCluster(directory, clock, runs, Gatherer(directory, clock, 5.0, runs, runs))


def make_event(kind: str, minutes_ago: float, name: str = "cache-5ab43138c-8880a/cache") -> ContainerEvent:
    at_ms = round(END_MS - minutes_ago * MINUTE_MS)
    return ContainerEvent(at_ms, kind, f"id-{kind}-{at_ms}", name, "n", "")
