"""
Reads an agent at its pace, and pushes at another: the loop of `nodescope push`.

Every table is pushed as it was read last, with the time of its reading, and
only when it was read since the last push. While the agent does not answer
nothing is pushed: the gap is a gap. The queue, the requests under way and what
was lost are pushed as series of their own.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event

from nodescope.base.block import Table, make_block
from nodescope.base.clock import Clock
from nodescope.base.entity import Entity
from nodescope.base.errors import HttpFailed
from nodescope.base.frame import Frame
from nodescope.base.log import Log
from nodescope.base.metric import Kind, Metric
from nodescope.use.push.agent_frames import AgentFrames
from nodescope.use.push.push_queue import PushCounters, PushQueue
from nodescope.use.push.request import RequestEncoder, Timed

log = Log("push")
LOSSES = ("queue_full", "refused", "rejected")
# The fastest level: a second's blocks are compressed in milliseconds, to a tenth.
GZIP_LEVEL = 1


def own_row(name: str, kind: Kind, sentence: str, **labels: str) -> Metric:
    published = f"nodescope_push_{name.partition('.')[0]}" + ("_total" if kind == "counter" else "")
    return Metric(f"push.{name}", kind, sentence, published, labels=tuple(labels.items()))


OWN = Table(
    "push",
    "push",
    ("process",),
    (
        own_row("points", "counter", "Points that the collector took."),
        own_row("retries", "counter", "Requests that had to be sent again."),
        own_row("missed_ticks", "counter", "Ticks that left the agent's ring before they were read."),
        own_row("queue_bytes", "gauge", "Bytes that wait to be sent."),
        *(
            own_row(f"lost_points.{reason}", "counter", "Points that were given up.", reason=reason)
            for reason in LOSSES
        ),
    ),
)
# No series of the machine: its counters begin with this process.
OWN_ENTITY = Entity("process", ("push",))


@dataclass(slots=True)
class Pusher:
    frames: AgentFrames
    queue: PushQueue
    make_encoder: Callable[[str], RequestEncoder]
    """From the node's name, which the agent tells."""
    clock: Clock
    interval_seconds: float
    reason: str = ""
    """Why the agent was not read; empty when it was."""
    _encoder: RequestEncoder | None = None
    _newest: dict[str, Timed] = field(default_factory=dict)

    def run(self, stop: Event) -> None:
        """A push every interval, counted from the first."""
        due_ns = self.clock.mono_ns()
        while not stop.is_set():
            self.read()
            self.push()
            step_ns = round(self.interval_seconds * 1e9)
            # After a pause of the machine the missed ones are not made up for.
            due_ns = max(due_ns + step_ns, self.clock.mono_ns())
            self.clock.wait_until(due_ns, stop)

    def read(self) -> None:
        """Everything the agent has since the last time; of each table the newest is kept."""
        try:
            for frame in self.frames.poll():
                self._keep(frame)
        except HttpFailed as error:
            if not self.reason:
                log.warning(
                    "the agent is not read; nothing new is pushed", agent=error.address, reason=error.reason
                )
            self.reason = error.reason
            return
        if self.reason:
            log.info("the agent is read again")
        self.reason = ""
        self.queue.counters.missed_ticks = self.frames.missed

    def _keep(self, frame: Frame) -> None:
        for block in frame.blocks:
            self._newest[block.table.name] = Timed(block, frame.at_ns + block.mono_ns - frame.mono_ns)

    def push(self) -> None:
        """Encodes what was read, and hands it to the queue."""
        if not self._newest:
            return
        blocks, self._newest = [*self._newest.values(), self._describe()], {}
        if self._encoder is None:
            self._encoder = self.make_encoder(self.frames.node)
        for request in self._encoder.encode(blocks):
            packed = gzip.compress(request.body, GZIP_LEVEL, mtime=0)
            if lost := self.queue.put(replace(request, body=packed)):
                log.warning("the queue is full; the oldest points were given up", points=lost)

    def _describe(self) -> Timed:
        block = make_block(OWN, {OWN_ENTITY: list_counts(self.queue)}, self.clock.mono_ns())
        return Timed(block, self.clock.wall_ns())


def list_counts(queue: PushQueue) -> list[float]:
    counters: PushCounters = queue.counters
    losses = [counters.lost[reason] for reason in LOSSES]
    return [counters.sent, counters.retries, counters.missed_ticks, queue.waiting_bytes, *losses]
