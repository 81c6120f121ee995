"""A machine through the agent's own path: frames into a ring, a watcher beside it, a store on disk."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Stop

from bench.judge_nodes.machine import Machine
from bench.judge_nodes.tables import Frames
from nodescope.base.findings import NodeFinding
from nodescope.collect.run.guard import run_guarded
from nodescope.hold.ring import Ring
from nodescope.watch.finding_store import FILE_NAME, FindingStore
from nodescope.watch.watcher import Watcher


@dataclass(slots=True)
class FrameClock:
    at_ns: int = 0
    passed_ns: int = 0

    def wall_ns(self) -> int:
        return self.at_ns

    def mono_ns(self) -> int:
        return self.passed_ns

    def wait_until(self, deadline_mono_ns: int, stop: Stop) -> bool:
        del deadline_mono_ns
        return stop.is_set()


@dataclass(frozen=True, slots=True)
class Told:
    step: int
    finding: NodeFinding


@dataclass
class Replay:
    machine: Machine
    looks: int = 0
    clock: FrameClock = field(default_factory=FrameClock)

    def run(self) -> Sequence[Told]:
        self.machine.settle()
        starts = {end for _, end in self.machine.gaps}
        told: list[Told] = []
        with tempfile.TemporaryDirectory() as folder:
            watcher = self._start(Path(folder))
            for step, frame in Frames(self.machine):
                if step in starts:
                    # The agent was stopped; another one reads what it kept.
                    watcher.stop()
                    self.looks += watcher.status.looks
                    watcher = self._start(Path(folder))
                self.clock.at_ns, self.clock.passed_ns = frame.at_ns, frame.mono_ns
                watcher.ring.accept(frame)
                before = watcher.store.revision
                watcher.step()
                if watcher.store.revision != before:
                    told += [Told(step, one) for one in watcher.store.changes(before)]
            watcher.stop()
            self.looks += watcher.status.looks
        return told

    def _start(self, folder: Path) -> Watcher:
        ring = Ring(60.0, 64 * 2**20, 1.0)
        store = FindingStore(self.machine.name, folder / FILE_NAME)
        watcher = Watcher(ring, store, self.clock, run_guarded, lambda _: None)
        watcher.load()
        return watcher
