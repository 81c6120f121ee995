"""The process' memory: what is given up over the budget, in which order, and how it comes back."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from nodescope.base.frame import Frame
from nodescope.hold.memory_budget import CHECK_TICKS, CONTAINERS_LEAST, FREED_BYTES, RING_LEAST, MemoryBudget
from nodescope.hold.ring import Ring
from nodescope.publish.self_metrics import read_resident_bytes
from nodescope.serve.allocator import give_back_memory, settle_allocator

MIB = 2**20


class FullRing(Ring):
    """A ring whose samples take what a test says, as far as they may."""

    filled_bytes = 0

    @property
    def used_bytes(self) -> int:
        return min(self.filled_bytes, self.ring_bytes)


@dataclass
class Process:
    """A process with a base, a ring and containers."""

    base_bytes: int = 100 * MIB
    container_bytes: int = 20 * 1024
    containers: int = 0
    most: int | None = None
    leftover_bytes: int = 0
    """Kept by the allocator until it is told to give it back."""
    given_back: int = 0
    ring: FullRing = field(default_factory=lambda: FullRing(120, 64 * MIB, 1.0))

    def count(self) -> int:
        return self.containers if self.most is None else min(self.containers, self.most)

    def resident(self) -> float:
        return (
            self.base_bytes + self.ring.used_bytes + self.count() * self.container_bytes + self.leftover_bytes
        )

    def give_back(self) -> None:
        self.given_back += 1
        self.leftover_bytes = 0

    def limit(self, most: int | None) -> None:
        self.most = most

    def budget(self, budget_bytes: int) -> MemoryBudget:
        return MemoryBudget(self.ring, budget_bytes, self.resident, self.give_back, self.count, self.limit)


def test_what_the_allocator_keeps_is_given_back_before_anything_else() -> None:
    process = Process(leftover_bytes=300 * MIB)
    process.ring.filled_bytes = 64 * MIB
    budget = process.budget(224 * MIB)
    budget.check()
    assert process.given_back == 1
    assert not budget.status().is_ring_shortened
    assert budget.status().resident_bytes == 164 * MIB


def test_what_the_ring_has_lost_goes_back_at_the_next_look() -> None:
    process = Process()
    process.ring.filled_bytes = 64 * MIB
    budget = process.budget(1000 * MIB)
    budget.check()
    process.ring.filled_bytes -= FREED_BYTES - 1
    budget.check()
    assert process.given_back == 0
    process.ring.filled_bytes -= FREED_BYTES
    budget.check()
    assert process.given_back == 1


def test_a_young_ring_gives_way_before_a_container_does() -> None:
    """It holds little yet, and may grow no further."""
    process = Process(containers=5000)
    process.ring.filled_bytes = 1 * MIB
    budget = process.budget(150 * MIB)
    budget.check()
    assert budget.status().is_ring_shortened
    assert process.most is None
    budget.check()
    assert process.most is not None


def test_the_ring_gives_way_before_a_container_does() -> None:
    process = Process(containers=5000)
    process.ring.filled_bytes = 64 * MIB
    budget = process.budget(224 * MIB)
    budget.check()
    assert process.resident() <= 224 * MIB
    assert process.most is None
    assert budget.status().is_ring_shortened
    assert process.ring.ring_bytes >= RING_LEAST


def test_containers_are_left_out_when_the_ring_has_nothing_more_to_give() -> None:
    """forall starts: after enough looks the process is within its budget, or has the least of everything."""
    process = Process(containers=5000)
    process.ring.filled_bytes = 64 * MIB
    budget = process.budget(150 * MIB)
    for _ in range(40):
        budget.check()
    assert process.resident() <= 150 * MIB
    assert process.ring.ring_bytes == RING_LEAST
    assert CONTAINERS_LEAST <= process.count() < 5000
    assert budget.status().containers_most == process.most


def test_everything_comes_back_when_there_is_room() -> None:
    process = Process(containers=5000)
    process.ring.filled_bytes = 64 * MIB
    budget = process.budget(150 * MIB)
    for _ in range(40):
        budget.check()
    process.containers = 10
    process.base_bytes = 30 * MIB
    for _ in range(40):
        budget.check()
    assert process.most is None
    assert process.ring.ring_bytes == 64 * MIB
    assert not budget.status().is_ring_shortened


def test_a_budget_that_cannot_be_kept_leaves_a_ring_and_some_containers() -> None:
    process = Process(base_bytes=500 * MIB, containers=200)
    process.ring.filled_bytes = 64 * MIB
    budget = process.budget(150 * MIB)
    for _ in range(100):
        budget.check()
    assert process.ring.ring_bytes == RING_LEAST
    assert process.count() == CONTAINERS_LEAST


def test_only_every_fifth_tick_looks() -> None:
    process = Process()
    budget = process.budget(224 * MIB)
    for number in range(2 * CHECK_TICKS):
        budget.accept(Frame(number, number, number, (), {}))
    assert budget.checks == 2


@pytest.mark.real
def test_freed_memory_below_what_is_still_used_goes_back_to_the_kernel() -> None:
    """100 MiB in pieces too small to be mapped, all freed but the last."""
    settle_allocator()
    give_back_memory()
    pieces = [np.ones(12_000) for _ in range(1100)]
    full = read_resident_bytes()
    del pieces[:-1]
    give_back_memory()
    assert read_resident_bytes() < full - 70 * MIB
