"""
The annotation `nodescope.io/workloads`: what one pod of each workload of this node uses.

A look every 20 s, a new text every five minutes, or after one when other workloads run than were
written: a scheduler that has read a text does not parse the same again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodescope.base.clock import Clock
from nodescope.base.errors import ParseError
from nodescope.base.log import Log
from nodescope.base.workload.pod_use import NodeWorkloads
from nodescope.fpga.node_workloads import WORKLOADS_KEY, parse_workloads, render_workloads
from nodescope.hold.pods.workload_samples import take_node_sample, take_workload_samples
from nodescope.hold.pods.workload_tracker import SAMPLE_SECONDS, WorkloadTracker
from nodescope.hold.ring import Ring
from nodescope.publish.annotation_content import AnnotationContent, count_cpus

log = Log("note")

RENEW_SECONDS = 300.0
CHANGED_SECONDS = 60.0


@dataclass(slots=True)
class RenewedWorkloads:
    """What was written last, and whether it is time for more."""

    tracker: WorkloadTracker
    _told: NodeWorkloads | None = None
    _running: frozenset[str] = frozenset()

    def renew(self) -> NodeWorkloads | None:
        """The same object until there is something new to say."""
        is_due = self._told is None or self.tracker.at_seconds - self._told.at_seconds >= self._spacing()
        if is_due and (found := self.tracker.read()):
            self._told, self._running = found, self.tracker.running()
        return self._told

    def _spacing(self) -> float:
        return RENEW_SECONDS if self.tracker.running() == self._running else CHANGED_SECONDS


@dataclass(slots=True)
class WorkloadLook:
    """Feeds the tracker from the ring."""

    ring: Ring
    clock: Clock
    tracker: WorkloadTracker = field(default_factory=WorkloadTracker)
    _looked_mono_ns: int | None = None

    def look(self) -> None:
        now_mono_ns = self.clock.mono_ns()
        if self._looked_mono_ns is not None and now_mono_ns - self._looked_mono_ns < SAMPLE_SECONDS * 1e9:
            return
        self._looked_mono_ns = now_mono_ns
        at_seconds = self.clock.wall_ns() / 1e9
        node = take_node_sample(self.ring, SAMPLE_SECONDS, now_mono_ns, at_seconds, count_cpus(self.ring))
        if node is not None:
            self.tracker.observe(node, take_workload_samples(self.ring, SAMPLE_SECONDS, now_mono_ns))

    def restore(self, text: str) -> bool:
        try:
            self.tracker.restore(parse_workloads(text))
        except ParseError as error:
            log.warning("annotation not understood, starting empty", error=str(error))
            return False
        return True


def build_workloads_content(ring: Ring, clock: Clock) -> AnnotationContent[NodeWorkloads]:
    watched = WorkloadLook(ring, clock)
    renewed = RenewedWorkloads(watched.tracker)

    def read() -> NodeWorkloads | None:
        watched.look()
        return renewed.renew()

    return AnnotationContent(WORKLOADS_KEY, read, render_once(render_workloads), differ, watched.restore)


def render_once(render: Callable[[NodeWorkloads], str]) -> Callable[[NodeWorkloads], str]:
    """The annotator looks every second."""
    last: list[tuple[NodeWorkloads, str]] = []

    def answer(found: NodeWorkloads) -> str:
        if not last or last[0][0] is not found:
            last[:] = [(found, render(found))]
        return last[0][1]

    return answer


def differ(before: NodeWorkloads | None, after: NodeWorkloads) -> bool:
    """Every text of another time is worth a write: they are made seldom."""
    return before is None or before.at_seconds != after.at_seconds
