"""
Notes: what this node says about itself in its annotations, one key each.

A note knows what it would say now, whether a scheduler would notice the
difference to what was written last, and what to make of what an earlier run
left. When and how it is written is the annotator's business.
"""

import math
from collections.abc import Callable
from typing import Protocol

from nodescope.base.clock import Clock
from nodescope.base.errors import ParseError, RequestRejected
from nodescope.base.log import Log
from nodescope.fpga import state as fpga_state
from nodescope.fpga.node_load import WINDOW_KEY, WINDOW_SECONDS, NodeLoad, render_load
from nodescope.fpga.tracker import FpgaReading, FpgaTracker
from nodescope.hold.ring import Ring
from nodescope.hold.window import take_node_window
from nodescope.publish.derived import EdgeDeriver

log = Log("note")

WINDOW_STATISTICS = ("mean", "p95")
# A share that moved by a tenth, or one point of health, is another node to a scheduler.
MATERIAL_SHARE = 0.1
MATERIAL_HEALTH = 1.0
# Features that are shares; the others (GB/s, watts) follow them.
SHARES = ("_util", "_pressure", "cache_miss", "c0_residency")


class AnnotationContent(Protocol):
    """One annotation of the node."""

    key: str

    def restore(self, text: str) -> bool:
        """Take over what an earlier run left; False when it could not be understood."""
        ...

    def look(self) -> str | None:
        """What to say now; None when there is nothing yet."""
        ...

    def is_material(self) -> bool:
        """Whether what was looked at last differs from what was written last."""
        ...

    def settle(self) -> None:
        """What was looked at last is written."""
        ...


class FpgaNote:
    """The FPGA state, from the first event on."""

    key = fpga_state.KEY

    def __init__(self, tracker: FpgaTracker) -> None:
        self._tracker = tracker
        self._seen: FpgaReading | None = None
        self._written: FpgaReading | None = None

    def restore(self, text: str) -> bool:
        now_ms = self._tracker.now_ms()
        try:
            state = fpga_state.parse_state(text, now_ms)
        except ParseError as error:
            log.warning("annotation not understood, starting empty", error=str(error))
            return False
        self._tracker.restore(fpga_state.derive_buckets(state, now_ms), state.bitstreams)
        log.info("annotation restored", version=state.version, usage_ms=state.usage_ms)
        return True

    def look(self) -> str | None:
        self._seen = self._tracker.read()
        return fpga_state.render_state(self._seen) if self._seen.heard else None

    def is_material(self) -> bool:
        return self._seen is not None and fpga_state.is_material(self._written, self._seen)

    def settle(self) -> None:
        self._written = self._seen


class WindowNote:
    """The node's last 20 s and its health, for schedulers that do not ask agents."""

    key = WINDOW_KEY

    def __init__(self, read_load: Callable[[], NodeLoad | None]) -> None:
        self._read_load = read_load
        self._seen: NodeLoad | None = None
        self._written: NodeLoad | None = None

    def restore(self, text: str) -> bool:
        """Twenty seconds are over by the time anybody restarts."""
        del text
        return False

    def look(self) -> str | None:
        self._seen = self._read_load()
        return render_load(self._seen) if self._seen else None

    def is_material(self) -> bool:
        return self._seen is not None and (self._written is None or differs(self._written, self._seen))

    def settle(self) -> None:
        self._written = self._seen


def read_load(ring: Ring, clock: Clock) -> NodeLoad | None:
    """None before the first samples."""
    try:
        window = take_node_window(ring, WINDOW_SECONDS, clock.mono_ns())
    except RequestRejected:
        return None
    block = EdgeDeriver(ring).derive(ring.latest())
    health = next((one.values[0, 1] for one in block if one.table.name == "derived.node"), None)
    kept = {key: value for key, value in window.metrics.items() if key.startswith(WINDOW_STATISTICS)}
    known = None if health is None or math.isnan(health) else float(health)
    return NodeLoad(clock.wall_ns() / 1e9, window.samples, known, kept)


def differs(before: NodeLoad, after: NodeLoad) -> bool:
    """Another set of features, a share that moved, or health that did."""
    if set(before.metrics) != set(after.metrics) or (before.health is None) != (after.health is None):
        return True
    if abs((before.health or 0) - (after.health or 0)) >= MATERIAL_HEALTH:
        return True
    return any(
        abs(before.metrics[key] - value) >= MATERIAL_SHARE
        for key, value in after.metrics.items()
        if key.startswith("mean_") and key.endswith(SHARES)
    )
