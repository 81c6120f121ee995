"""
What this node says about itself in its annotations, one key each.

When and how it is written is the annotator's business.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from nodescope.base.clock import Clock
from nodescope.base.errors import ParseError, RequestRejected
from nodescope.base.log import Log
from nodescope.fpga.node_load import WINDOW_KEY, WINDOW_SECONDS, NodeLoad, render_load
from nodescope.fpga.state import KEY, derive_buckets, is_material, parse_state, render_state
from nodescope.fpga.tracker import FpgaReading, FpgaTracker
from nodescope.hold.feature import CPU_UTIL
from nodescope.hold.pods.node_contention import take_node_contention
from nodescope.hold.pods.pod_window import PodLook
from nodescope.hold.ring import Ring
from nodescope.hold.window import take_node_window
from nodescope.publish.derived import derive_node

log = Log("note")
Reading = TypeVar("Reading")

WINDOW_STATISTICS = ("mean", "p95")
# A share that moved by a tenth, or one point of health, is another node to a scheduler.
MATERIAL_SHARE = 0.1
MATERIAL_HEALTH = 1.0
# Features that are shares; the others (GB/s, watts) follow them.
SHARES = ("_util", "_pressure", "_contention", "cache_miss", "c0_residency")


@dataclass(slots=True)
class AnnotationContent(Generic[Reading]):
    """One annotation of the node: what it says now, and what it said last."""

    key: str
    read: Callable[[], Reading | None]
    """What there is to say now; None before there is anything."""
    render: Callable[[Reading], str]
    differs: Callable[[Reading | None, Reading], bool]
    """Whether a scheduler would notice the difference to what was written last."""
    restore: Callable[[str], bool]
    """Takes over what an earlier run left; False when nothing could be made of it."""
    _newest: Reading | None = None
    _written: Reading | None = None

    def look(self) -> str | None:
        self._newest = self.read()
        return None if self._newest is None else self.render(self._newest)

    def is_material(self) -> bool:
        """Whether what was looked at last is worth a write."""
        return self._newest is not None and self.differs(self._written, self._newest)

    def settle(self) -> None:
        """What was looked at last is written."""
        self._written = self._newest


def build_fpga_content(tracker: FpgaTracker) -> AnnotationContent[FpgaReading]:
    """The FPGA state, from the first event on."""

    def read() -> FpgaReading | None:
        reading = tracker.read()
        return reading if reading.heard else None

    return AnnotationContent(KEY, read, render_state, is_material, partial(restore_fpga, tracker))


def restore_fpga(tracker: FpgaTracker, text: str) -> bool:
    now_ms = tracker.now_ms()
    try:
        state = parse_state(text, now_ms)
    except ParseError as error:
        log.warning("annotation not understood, starting empty", error=str(error))
        return False
    tracker.restore(derive_buckets(state, now_ms), state.bitstreams)
    log.info("annotation restored", version=state.version, usage_ms=state.usage_ms)
    return True


def build_window_content(read: Callable[[], NodeLoad | None]) -> AnnotationContent[NodeLoad]:
    """The node's last 20 s and its health, for schedulers that do not ask agents."""
    # Twenty seconds are over by the time anybody restarts: nothing is restored.
    return AnnotationContent(WINDOW_KEY, read, render_load, differs, lambda _: False)


def read_load(ring: Ring, clock: Clock) -> NodeLoad | None:
    """None before the first samples."""
    try:
        window = take_node_window(ring, WINDOW_SECONDS, clock.mono_ns())
    except RequestRejected:
        return None
    block = derive_node(ring, ring.latest())
    health = None if block is None else float(block.values[0, 1])
    kept = {key: value for key, value in window.metrics.items() if key.startswith(WINDOW_STATISTICS)}
    if waited := take_node_contention(PodLook.back(ring, WINDOW_SECONDS, clock.mono_ns())):
        kept |= {"mean_cpu_contention": waited.mean, "p95_cpu_contention": waited.p95}
    if cpus := count_cpus(ring):
        kept["cpus"] = float(cpus)
    known = None if health is None or math.isnan(health) else health
    return NodeLoad(clock.wall_ns() / 1e9, window.samples, known, kept)


def count_cpus(ring: Ring) -> int:
    """Those that are online; 0 before the first sample."""
    (way,) = CPU_UTIL.ways
    newest = ring.latest().get(way.table)
    return len(newest.block.entities) if newest else 0


def differs(before: NodeLoad | None, after: NodeLoad) -> bool:
    """Another set of features, a share that moved, or health that did."""
    if before is None:
        return True
    if set(before.metrics) != set(after.metrics) or (before.health is None) != (after.health is None):
        return True
    if abs((before.health or 0) - (after.health or 0)) >= MATERIAL_HEALTH:
        return True
    return any(
        abs(before.metrics[key] - value) >= MATERIAL_SHARE
        for key, value in after.metrics.items()
        if key.startswith("mean_") and key.endswith(SHARES)
    )
