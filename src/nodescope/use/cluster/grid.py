"""
The cells of one node as they are kept: one window of time for each width of cell.

A window grows by what is asked beside it, so that it never has a hole that
nobody asked for. When a question lies elsewhere, or the window would become
too long, it is begun anew: memory stays within CELLS_MOST cells a width.

    forall windows: cells before `settled_ms` are final, and are not asked again
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.events import ContainerEvent
from nodescope.use.answers.minutes.node_minutes import CELLS_MOST, CellRequest, NodeMinutes, SeenFinding

# The fields of a node's cells, in the order of the rows that are kept.
MEASURED = ("cpu", "memory", "pressure_cpu", "pressure_memory", "pressure_io", "throttled", "gpu")
# Of one node.
EVENTS_KEPT = 300
FINDINGS_KEPT = 100

Cells = NDArray[np.float32]


def no_cells(number: int) -> Cells:
    return np.full((len(MEASURED), number), np.nan, np.float32)


@dataclass(frozen=True, slots=True)
class CellWindow:
    """Neighbouring cells of one width; another one takes its place when there are more, so that readers need no lock."""

    step_ms: int
    from_ms: int = 0
    settled_ms: int = 0
    values: Cells = field(default_factory=lambda: no_cells(0))

    @property
    def to_ms(self) -> int:
        return self.from_ms + int(self.values.shape[1]) * self.step_ms

    def plan(self, wanted: CellRequest) -> list[TimeRange]:
        """What has to be asked so that the window has these cells."""
        if not self._can_grow(wanted):
            return [wanted.span]
        pieces = []
        if wanted.from_ms < self.from_ms:
            pieces.append(TimeRange(wanted.from_ms, self.from_ms - 1))
        if wanted.to_ms > self.settled_ms:
            pieces.append(TimeRange(self.settled_ms, wanted.to_ms - 1))
        return pieces

    def _can_grow(self, wanted: CellRequest) -> bool:
        if not self.values.shape[1]:
            return False
        from_ms, to_ms = min(self.from_ms, wanted.from_ms), max(self.to_ms, wanted.to_ms)
        return (to_ms - from_ms) // self.step_ms <= CELLS_MOST

    def add(self, found: NodeMinutes) -> "CellWindow":
        """Beside or over what is there; alone where it lies elsewhere."""
        given = np.stack([getattr(found, name) for name in MEASURED]).astype(np.float32)
        cells = CellRequest(found.from_ms, found.to_ms, self.step_ms)
        touches = self.from_ms <= found.to_ms and found.from_ms <= self.to_ms
        if not (touches and self._can_grow(cells)):
            return self._settle(found.from_ms, given, found.newest_ms)
        from_ms, to_ms = min(self.from_ms, found.from_ms), max(self.to_ms, found.to_ms)
        values = no_cells((to_ms - from_ms) // self.step_ms)
        for start_ms, part in ((self.from_ms, self.values), (found.from_ms, given)):
            place = (start_ms - from_ms) // self.step_ms
            values[:, place : place + part.shape[1]] = part
        return self._settle(from_ms, values, found.newest_ms)

    def _settle(self, from_ms: int, values: Cells, newest_ms: int) -> "CellWindow":
        """The cell of the newest sample may still change, and the one before it while a file is written."""
        to_ms = from_ms + values.shape[1] * self.step_ms
        last_ms = newest_ms // self.step_ms * self.step_ms - self.step_ms
        return CellWindow(self.step_ms, from_ms, max(from_ms, min(to_ms, last_ms)), values)

    def cut(self, wanted: CellRequest) -> Cells:
        """These cells; NaN where there are none."""
        values = no_cells(wanted.number)
        first = max(self.from_ms, wanted.from_ms)
        last = min(self.to_ms, wanted.to_ms)
        if first < last:
            source, target = (first - self.from_ms) // self.step_ms, (first - wanted.from_ms) // self.step_ms
            number = (last - first) // self.step_ms
            values[:, target : target + number] = self.values[:, source : source + number]
        return values


@dataclass(slots=True)
class NodeCells:
    """All that is kept of one node."""

    windows: dict[int, CellWindow] = field(default_factory=dict)
    newest_ms: int = 0
    first_ms: int = 0
    containers: int = 0
    cores: float | None = None
    memory_bytes: float | None = None
    events: dict[tuple[int, str, str], ContainerEvent] = field(default_factory=dict)
    findings: dict[str, SeenFinding] = field(default_factory=dict)

    def window(self, step_ms: int) -> CellWindow:
        return self.windows.get(step_ms) or CellWindow(step_ms)

    def add(self, found: NodeMinutes) -> None:
        self.windows[found.step_ms] = self.window(found.step_ms).add(found)
        if found.newest_ms >= self.newest_ms:
            self.newest_ms, self.containers = found.newest_ms, found.containers
        self.first_ms = found.first_ms
        self.cores = found.cores or self.cores
        self.memory_bytes = found.memory_bytes or self.memory_bytes
        # New ones in place of the old: somebody may be reading them.
        events = {**self.events, **{(one.at_ms, one.kind, one.id): one for one in found.events}}
        self.events = {key: events[key] for key in sorted(events)[-EVENTS_KEPT:]}
        findings = {**self.findings, **{one.id: one for one in found.findings}}
        kept = sorted(findings.values(), key=lambda one: (one.ended_ms == 0, one.onset_ms))[-FINDINGS_KEPT:]
        self.findings = {one.id: one for one in kept}

    def events_in(self, span: TimeRange) -> list[ContainerEvent]:
        return [one for key, one in self.events.items() if span.from_ms <= key[0] <= span.to_ms]

    def findings_in(self, span: TimeRange) -> list[SeenFinding]:
        """Open at some moment of the span."""
        return [
            one
            for one in self.findings.values()
            if one.onset_ms <= span.to_ms and (not one.ended_ms or one.ended_ms >= span.from_ms)
        ]
