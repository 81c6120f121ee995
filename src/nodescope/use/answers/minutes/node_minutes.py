"""
A node in cells of a minute, ten minutes or an hour: how busy, how full, who waited, what happened.

Cells are read from rollups where there are some, so that a day of a node
costs what its minutes cost, not its seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.base.errors import RequestRejected
from nodescope.base.findings.node_finding import NodeFinding
from nodescope.base.text import clean_text
from nodescope.base.time_range import TimeRange
from nodescope.read.files.told_findings import read_open_findings
from nodescope.read.query.engine import QueryLine
from nodescope.read.series_name import scope_of
from nodescope.use.answers.axis import Floats
from nodescope.use.answers.events import ContainerEvent, list_events
from nodescope.use.answers.overview import choose_adding, count_cores
from nodescope.use.answers.snapshots import ServedNode, View

# The widths that cells may have; each is read from rollups of a minute.
STEPS_MS = (60_000, 600_000, 3_600_000)
# A day and nine hours of minutes, two weeks of ten minutes, twelve weeks of hours.
CELLS_MOST = 2016
EVENTS_SHOWN = 100
FINDINGS_SHOWN = 50
# A container whose last sample is so near the newest one is there.
THERE_MS = 30_000


@dataclass(frozen=True, slots=True)
class SeenFinding:
    """A finding of the node's watcher, as a list of many nodes needs it."""

    id: str
    kind: str
    severity: str
    onset_ms: int
    ended_ms: int
    """0 while it is open."""
    who: str
    sentence: str


@dataclass(frozen=True, slots=True)
class NodeMinutes:
    """Cells of one node; NaN is a cell in which nothing was measured."""

    node: str
    from_ms: int
    to_ms: int
    step_ms: int
    first_ms: int
    """The node's oldest sample, and its newest; 0 where it has none."""
    newest_ms: int
    containers: int
    """There at its newest sample."""
    cores: float | None
    memory_bytes: float | None
    cpu: Floats
    """Cores in use; of its containers where the node's own CPU time was not read."""
    memory: Floats
    """Bytes in use."""
    pressure_cpu: Floats
    """Shares of time that tasks waited; of the container that waited most where the node's own was not read."""
    pressure_memory: Floats
    pressure_io: Floats
    throttled: Floats
    """Of the container that was throttled most: the share of its periods."""
    gpu: Floats
    """The mean of all GPUs, as a share."""
    events: tuple[ContainerEvent, ...]
    """Restarts and OOM kills, the newest EVENTS_SHOWN."""
    findings: tuple[SeenFinding, ...]


@dataclass(frozen=True, slots=True)
class CellRequest:
    """Whole cells of one width: the first begins at from_ms, the last ends before to_ms."""

    from_ms: int
    to_ms: int
    step_ms: int

    @property
    def number(self) -> int:
        return (self.to_ms - self.from_ms) // self.step_ms

    @property
    def span(self) -> TimeRange:
        return TimeRange(self.from_ms, self.to_ms - 1)


def cover(span: TimeRange, step_ms: int) -> CellRequest:
    """The cells that a span touches; refused where there are too many."""
    if step_ms not in STEPS_MS:
        steps = ", ".join(str(one // 1000) for one in STEPS_MS)
        raise RequestRejected(f"step={step_ms / 1000:g} is not accepted; accepted: {steps}")
    from_ms = span.from_ms // step_ms * step_ms
    request = CellRequest(from_ms, span.to_ms // step_ms * step_ms + step_ms, step_ms)
    if request.number > CELLS_MOST:
        raise RequestRejected(f"{request.number} cells; accepted: up to {CELLS_MOST}, or a larger step")
    return request


def read_minutes(view: View, span: TimeRange, step_ms: int) -> list[NodeMinutes]:
    cells = cover(span, step_ms)
    return [read_node(View(view.engine, view.snapshot, (node,)), node, cells) for node in view.nodes]


def read_node(view: View, node: ServedNode, cells: CellRequest) -> NodeMinutes:
    read = CellReader(view, node, cells)
    used, total = (sum_lines(read.lines(name, "node"), cells) for name in ("memory", "memory_limit"))
    events = [one for one in list_events(view, cells.span).events if one.kind in ("oom", "restart")]
    found = read_open_findings(node.catalog, cells.from_ms, cells.to_ms, node.tail)
    newest_ms = node.to_ms or 0
    listed = node.listed
    return NodeMinutes(
        node.name,
        cells.from_ms,
        cells.to_ms,
        cells.step_ms,
        node.from_ms or 0,
        newest_ms,
        sum(1 for one in listed if one.last_ms >= newest_ms - THERE_MS),
        float(cores) if (cores := count_cores(node)) else None,
        float(np.nanmax(total)) if np.isfinite(total).any() else None,
        read_cpu(read, cores),
        used if np.isfinite(used).any() else sum_lines(choose_adding(read.lines("memory")), cells),
        read_pressure(read, "cpu"),
        read_pressure(read, "memory"),
        read_pressure(read, "io"),
        most_of(read.of_containers("cpu_throttled"), cells),
        np.clip(most_of(read.lines("gpu_utilization", "node"), cells), 0, 1),
        tuple(events[-EVENTS_SHOWN:]),
        tuple(describe(one) for one in found[-FINDINGS_SHOWN:]),
    )


def describe(one: NodeFinding) -> SeenFinding:
    ended_ms = round((one.ended or 0.0) * 1000)
    sentence = clean_text(one.sentence, 400)
    return SeenFinding(
        one.id, one.kind, one.severity, round(one.onset * 1000), ended_ms, clean_text(one.who), sentence
    )


@dataclass(frozen=True, slots=True)
class CellReader:
    """Reads metrics of one node in these cells."""

    view: View
    node: ServedNode
    cells: CellRequest

    def lines(self, metric: str, scope: str = "") -> list[QueryLine]:
        """Nothing where the node does not have it."""
        cells = self.cells
        try:
            return self.view.query(
                self.node, metric, None, cells.span, max(cells.number, 1), scope=scope
            ).lines
        except RequestRejected:
            return []

    def of_containers(self, metric: str) -> list[QueryLine]:
        """Of containers, or of services where the node has none."""
        lines = self.lines(metric)
        return [one for one in lines if scope_of(one.subject) == "container"] or lines


def read_cpu(read: CellReader, cores: int | None) -> Floats:
    whole = sum_lines(read.lines("cpu", "node"), read.cells) if cores else np.full(read.cells.number, np.nan)
    if cores and np.isfinite(whole).any():
        return np.clip(whole, 0, cores)
    return sum_lines(choose_adding(read.lines("cpu")), read.cells)


def read_pressure(read: CellReader, resource: str) -> Floats:
    """A tick read a little late has a little more than its time."""
    lines = read.lines(f"pressure_{resource}", "node") or read.of_containers(f"pressure_{resource}")
    return np.clip(most_of(lines, read.cells), 0, 1)


def place_line(line: QueryLine, cells: CellRequest) -> tuple[Floats, Floats]:
    """The mean of each cell and its samples: an answer may be finer than the cells where there is little of it."""
    total, count = np.zeros(cells.number), np.zeros(cells.number)
    points = line.points
    places = (points.time_ms - cells.from_ms) // cells.step_ms
    good = np.isfinite(points.mean) & (places >= 0) & (places < cells.number)
    weight = np.maximum(points.count[good], 1).astype(float)
    np.add.at(total, places[good], points.mean[good] * weight)
    np.add.at(count, places[good], weight)
    mean: Floats = np.divide(total, count, out=np.full(cells.number, np.nan), where=count > 0)
    return mean, count


def sum_lines(lines: Sequence[QueryLine], cells: CellRequest) -> Floats:
    """All series together; one counts by its share of the cell's samples, as a job of five seconds is a twelfth of a minute."""
    total, most = np.zeros(cells.number), np.zeros(cells.number)
    for line in lines:
        mean, count = place_line(line, cells)
        total += np.where(count > 0, np.nan_to_num(mean) * count, 0.0)
        most = np.maximum(most, count)
    found: Floats = np.divide(total, most, out=np.full(cells.number, np.nan), where=most > 0)
    return found


def most_of(lines: Sequence[QueryLine], cells: CellRequest) -> Floats:
    """The largest of all series in each cell."""
    found = np.full(cells.number, np.nan)
    for line in lines:
        found = np.fmax(found, place_line(line, cells)[0])
    return found
