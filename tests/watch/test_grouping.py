"""Who waits because of a leak is told under it: one thing that is wrong wakes somebody once."""

from math import inf

import pytest
from tests.stories.generate.cluster import GIB
from tests.watch.replay import FrameClock

from nodescope.base.entity import Entity
from nodescope.base.findings import NodeFinding
from nodescope.collect.run.guard import run_guarded
from nodescope.hold.ring import Ring
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.look import ContainerLook, NodeLook
from nodescope.watch.watcher import Watcher

STEP = 10.0
CALM = 360


def container(name: str, held: float, wait: float = 0.0) -> ContainerLook:
    known = (("workload", name), ("qos", "Burstable"), ("workload_kind", "Deployment"))
    labels = (("namespace", "shop"), ("pod", name), ("container", name))
    entity = Entity("container", (name,), labels, known)
    return ContainerLook(entity.key, entity, 0.1, 0.0, 0.0, 0.0, wait, 0.0, 0.0, held, inf, inf)


def look_at(number: int) -> NodeLook:
    """One leaks for two hours; from the last half hour on two others wait, and a job takes what was left."""
    grown = max(0, number - CALM) / 720 * 10 * GIB
    is_short = number >= CALM + 540
    job = 3 * GIB if is_short else 0.0
    containers = [
        container("leaks", GIB + grown),
        container("job", job),
        *(container(name, GIB, 0.4 if is_short else 0.0) for name in ("web", "api")),
    ]
    return NodeLook(STEP * number, STEP, containers, {}, 8, 64 * GIB, 14 * GIB - grown - job)


@pytest.fixture
def watcher() -> Watcher:
    ring = Ring(60.0, 2**20, 1.0)
    return Watcher(ring, FindingStore("n"), FrameClock(), run_guarded, lambda event: None)


def run(watcher: Watcher, first: int = 0) -> dict[str, NodeFinding]:
    for number in range(first, CALM + 720):
        watcher.take(look_at(number))
    return {one.kind: one for one in watcher.store.current()}


def test_who_waits_because_of_a_leak_is_named_by_it_and_pages_nobody(watcher: Watcher) -> None:
    found = run(watcher)
    leak, waiting = found["memory_leak"], found["noisy_neighbour"]
    assert leak.is_page_worthy
    assert (leak.workload, leak.victims) == ("leaks", ("shop/web", "shop/api"))
    assert leak.sentence.endswith("shop/web and 1 more wait for memory already.")
    assert waiting.is_confirmed
    assert not any(one.is_page_worthy for one in watcher.store.changes(0) if one.kind == "noisy_neighbour")
    assert "It follows from the memory of shop/leaks" in waiting.sentence


def test_a_leak_that_nobody_is_told_of_hides_nothing(watcher: Watcher) -> None:
    """Somebody said that it is no problem: those who wait are one."""
    for number in range(CALM + 540):
        watcher.take(look_at(number))
    (leak,) = (one for one in watcher.store.current() if one.kind == "memory_leak")
    watcher.store.judge(leak.id, "not_a_problem", STEP * (CALM + 540))
    assert run(watcher, CALM + 540)["noisy_neighbour"].is_page_worthy
