"""
The memory of the whole process, held below a budget.

Looked at every few ticks. Over the budget, this is given up, in this order:

    1. what the allocator keeps for later is given back to the kernel
    2. the ring is shortened, down to RING_LEAST: windows reach less far back
    3. containers are left out: the node's own and the longest known stay

Below COMFORT_RATIO of the budget it comes back, in the reverse order. What is given
up is on /status and /metrics.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nodescope.base.frame import Frame
from nodescope.base.log import Log
from nodescope.base.status import MemoryStatus
from nodescope.hold.ring import Ring

log = Log("memory")

CHECK_TICKS = 5
# A few frames of a large node, and the last minutes of the node's own tables.
RING_LEAST = 4 * 2**20
CONTAINERS_LEAST = 50
# Coming back must leave this much free, so that nothing flaps.
COMFORT_RATIO = 0.75
# Freed memory goes back to the kernel at least so often, in looks: malloc_trim takes some ms.
TRIM_CHECKS = 6
# At once when the ring has lost so much.
FREED_BYTES = 4 * 2**20


@dataclass(slots=True)
class MemoryBudget:
    """A sink: looks at the process, and turns the ring and the number of containers."""

    ring: Ring
    budget_bytes: int
    read_resident: Callable[[], float]
    give_back: Callable[[], None]
    """Free memory of the allocator to the kernel."""
    count_containers: Callable[[], int]
    limit_containers: Callable[[int | None], None]
    ring_bytes: int = 0
    """What settings allow."""
    resident_bytes: float = 0.0
    containers_most: int | None = None
    checks: int = 0
    used_bytes: int = 0
    """Of the ring, at the last look."""

    def __post_init__(self) -> None:
        self.ring_bytes = self.ring.ring_bytes

    def accept(self, frame: Frame) -> None:
        if frame.sequence % CHECK_TICKS == 0:
            self.check()

    def check(self) -> None:
        self.checks += 1
        self.resident_bytes = self.read_resident()
        before, self.used_bytes = self.used_bytes, self.ring.used_bytes
        is_due = self.checks % TRIM_CHECKS == 0 or before - self.used_bytes >= FREED_BYTES
        if is_due or self.resident_bytes > self.budget_bytes:
            self.give_back()
            self.resident_bytes = self.read_resident()
        excess_bytes = self.resident_bytes - self.budget_bytes
        if excess_bytes > 0:
            self._give_up(excess_bytes)
        elif self.resident_bytes < COMFORT_RATIO * self.budget_bytes:
            self._take_back(COMFORT_RATIO * self.budget_bytes - self.resident_bytes)

    def _give_up(self, excess_bytes: float) -> None:
        held = min(self.ring.used_bytes, self.ring.ring_bytes)
        # What it may still grow to counts, too: a young ring holds little.
        if self.ring.ring_bytes > RING_LEAST:
            self.ring.allow(max(RING_LEAST, int(held - excess_bytes)))
            log.warning("ring shortened", resident_bytes=self.resident_bytes, ring_bytes=self.ring.ring_bytes)
            return
        count = self.count_containers()
        if count > CONTAINERS_LEAST:
            self._limit(max(CONTAINERS_LEAST, count * 9 // 10))

    def _take_back(self, room_bytes: float) -> None:
        if self.containers_most is not None:
            more = max(self.containers_most * 11 // 10, self.containers_most + 1)
            # Once fewer are there than may be, nobody is left out.
            self._limit(more if self.count_containers() >= self.containers_most else None)
        elif self.ring.ring_bytes < self.ring_bytes:
            self.ring.allow(min(self.ring_bytes, self.ring.ring_bytes + int(room_bytes)))

    def _limit(self, most: int | None) -> None:
        log.warning("containers limited", resident_bytes=self.resident_bytes, most=most or "no limit")
        self.containers_most = most
        self.limit_containers(most)

    def status(self) -> MemoryStatus:
        return MemoryStatus(
            self.budget_bytes,
            int(self.resident_bytes),
            self.ring.ring_bytes < self.ring_bytes,
            self.containers_most,
        )
