"""Memory that is given back: what cycles hold is collected when containers changed, and from time to time."""

import gc
import weakref

import pytest
from tests.support import NODES, TurnableClock, build_parts_at

from nodescope.hold.memory_budget import MemoryBudget
from nodescope.wiring import COLLECT_TURNS, Parts, build_memory_budget


class Loop:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


def build_budget(parts: Parts) -> MemoryBudget:
    return build_memory_budget(parts.loaded.settings, parts.ring, parts.scrape, parts.context)


@pytest.fixture
def parts() -> Parts:
    return build_parts_at(NODES / "cgroup2-systemd" / "t0", TurnableClock(), node="n")


def test_cycles_go_when_containers_came_or_went(parts: Parts) -> None:
    budget = build_budget(parts)
    left = weakref.ref(Loop())
    parts.sampler.tick()
    assert parts.context.live_containers.version > 0
    budget.give_back()
    assert left() is None


def test_cycles_go_from_time_to_time_where_nothing_changes(parts: Parts) -> None:
    parts.sampler.tick()
    budget = build_budget(parts)
    gc.disable()
    try:
        left = weakref.ref(Loop())
        for _ in range(COLLECT_TURNS - 1):
            budget.give_back()
            assert left() is not None
        budget.give_back()
        assert left() is None
    finally:
        gc.enable()
