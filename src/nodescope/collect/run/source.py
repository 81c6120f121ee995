"""
Sources: what the sampler asks, once a tick or at their own pace.

Two kinds. A *file source* declares what it reads and has no code in the tick:
its segments are filled by the batch call. A *call source* asks the outside
world on a thread of its own (`read`, returning plain answers that could be
saved to a file) and makes blocks from the answer (`parse`, pure).

What `collect.sources` lists makes a source: its name is known at once, and
called with a context it gives a source that is ready, or raises SourceAbsent when
this node does not offer the data, SourceFailed when it does and it cannot be had.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from nodescope.base.block import Block, Info, Table
from nodescope.base.clock import Clock, SystemClock
from nodescope.base.entity import LIMITS, NODE, Entity
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.frame import Event
from nodescope.base.perf_requests import PerfRequests
from nodescope.base.self_counters import ContainerCounters
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.batch import DeviceTable, FileGrid, ReadSegment, describe_fault
from nodescope.collect.files.layout import DeviceRows, GridLayout
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.fpga.tracker import FpgaTracker
from nodescope.kube.account import Access

# How often a table is read, in ticks: every one, every fifth, every thirtieth. Where a tick is shorter than
# a second, the slow ones are 5 and 30 s all the same (budget.py).
TIERS = (1, 5, 30)


@dataclass(frozen=True, slots=True)
class Context:
    """What a source is made with."""

    root: NodeRoot
    descriptors: Descriptors
    settings: Settings
    names: ContainerNames
    live_containers: LiveContainers
    page_bytes: int = 4096
    ticks_per_second: int = 100
    """USER_HZ, in which the kernel writes CPU time into /proc."""
    fpga: FpgaTracker | None = None
    """What senders posted about FPGAs; filled by the intake."""
    node: str = ""
    """This node's name, as the API server knows it."""
    clock: Clock = field(default_factory=SystemClock)
    kubernetes: Access = field(default_factory=Access)
    perf_requests: PerfRequests = field(default_factory=PerfRequests)
    """Containers whose hardware counters somebody asked for."""
    container_counters: ContainerCounters = field(default_factory=ContainerCounters)

    def limit(self, scope: str) -> int:
        """How many live series of a scope are kept."""
        ours = self.settings.series_limit
        return min(LIMITS[scope], ours) if ours else LIMITS[scope]


@dataclass(slots=True)
class Tick:
    """The moment a source is refreshed at."""

    number: int
    at_ns: int
    mono_ns: int


class BatchSource(Protocol):
    """A source whose files are read by the batch call."""

    def refresh(self, tick: Tick) -> Iterable[Event]:
        """Bring the set of entities up to date, before the batch call."""
        ...

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        """Its segments, each with the tier it starts in; the same until it is closed."""
        ...

    def dropped(self) -> dict[str, int]:
        """Series over their scope's limit, by scope."""
        ...

    def close(self) -> None: ...


class MakeBatchSource(Protocol):
    """A batch source that is not made yet."""

    @property
    def name(self) -> str: ...

    def __call__(self, context: Context) -> BatchSource: ...


class CallSource(Protocol):
    """A source that asks something slower than a file, at its own pace, which may change while it runs."""

    pace_seconds: float
    deadline_seconds: float
    """An answer that takes longer makes the source failed until it comes."""

    def read(self) -> Any:
        """Ask; plain data that could be saved to a file. What says SourceAbsent here is asked again later."""
        ...

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        """Pure: blocks from an answer."""
        ...

    def close(self) -> None: ...


class CallDefaults:
    """What most call sources have in common; a class that differs says so itself."""

    pace_seconds = 1.0
    deadline_seconds = 10.0

    def close(self) -> None:
        """Nothing is kept open."""


class MakeCallSource(Protocol):
    """A call source that is not made yet."""

    @property
    def name(self) -> str: ...

    @property
    def pace_seconds(self) -> float: ...

    @property
    def deadline_seconds(self) -> float: ...

    def __call__(self, context: Context) -> CallSource: ...


@runtime_checkable
class Streaming(Protocol):
    """
    A call source that waits for what comes by itself, each piece of which is kept.

    Has something to tidy up, such as a child process: it is waited for at the end.
    """

    def interrupt(self) -> None:
        """From another thread: make a `read` that waits return at once."""
        ...


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A file that describes the node as a whole."""

    path: str
    layout: GridLayout


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """A file with one row per device."""

    path: str
    layout: DeviceRows
    scope: str
    name_entity: Callable[[str], Entity]


Declared = NodeFile | DeviceFile


def read_offered(context: Context, path: str) -> str:
    """A file that says itself what it offers; empty where the node has none."""
    try:
        return os.fsdecode(context.root.read(path))
    except OSError as error:
        fault = describe_fault(path, error)
        if fault.status == "not_offered":
            return ""
        raise SourceFailed(str(fault)) from error


@dataclass(frozen=True, slots=True)
class FileSource:
    """A whole source by declaration: which files, how laid out, why absent."""

    name: str
    declare: Callable[[Context], Iterable[Declared]]
    absent: str
    tier: int = 1
    info: Callable[[Context], tuple[Info, Entity]] | None = None
    """An info metric of the node, read once, such as uname."""

    def __call__(self, context: Context) -> "OpenFiles":
        with ExitStack() as stack:
            opened: list[ReadSegment] = []
            for segment in self._open(context):
                stack.callback(segment.close)
                opened.append(segment)
            if not opened:
                raise SourceAbsent(self.absent)
            # Nothing went wrong: the files stay open.
            stack.pop_all()
        return OpenFiles(opened, self.tier)

    def _open(self, context: Context) -> Iterator[ReadSegment]:
        declared = list(self.declare(context))
        yield from self._open_node_files([item for item in declared if isinstance(item, NodeFile)], context)
        for item in declared:
            if isinstance(item, DeviceFile):
                yield from self._open_device_file(item, context)

    def _open_node_files(self, files: list[NodeFile], context: Context) -> Iterator[ReadSegment]:
        """All of them are one row of one table."""
        offered = [item for item in files if context.root.exists(item.path)]
        if not offered:
            return
        info, entity = self.info(context) if self.info else (None, NODE)
        metrics = tuple(metric for item in offered for metric in item.layout.metrics)
        table = Table(self.name, self.name, ("node",), metrics, info)
        grid = FileGrid(table, tuple(item.layout for item in offered), context.root, context.descriptors)
        faults = grid.add(entity, [(item.path, item.layout) for item in offered])
        if faults and len(faults) == len(offered):
            raise SourceFailed(str(faults[0]))
        grid.arrange((entity,))
        yield grid

    def _open_device_file(self, item: DeviceFile, context: Context) -> Iterator[ReadSegment]:
        table = Table(f"{self.name}.{item.scope}", self.name, (item.scope,), item.layout.metrics)
        rows = DeviceTable(
            table, item.path, item.layout, item.name_entity, context.root, context.limit(item.scope)
        )
        try:
            rows.open()
        except OSError as error:
            fault = describe_fault(item.path, error)
            if fault.status == "not_offered":
                return
            raise SourceFailed(str(fault)) from error
        yield rows


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """A file source, made: its files, open."""

    opened: list[ReadSegment]
    tier: int

    def refresh(self, tick: Tick) -> Iterable[Event]:
        del tick
        return ()

    def segments(self) -> Iterable[tuple[ReadSegment, int]]:
        return [(segment, self.tier) for segment in self.opened]

    def dropped(self) -> dict[str, int]:
        return {rows.table.scopes[0]: rows.dropped for rows in self.opened if isinstance(rows, DeviceTable)}

    def close(self) -> None:
        for segment in self.opened:
            segment.close()
