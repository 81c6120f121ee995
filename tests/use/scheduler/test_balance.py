"""Balance: what was not measured is the others' median, quotas are nobody else's doing, a pod counts by its size."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples
from tests.use.scheduler.world import World

from nodescope.use.scheduler.pod_request import BALANCE, parse_pod_request

IDLE = {"mean_cpu_util": 0.2, "mean_cpu_pressure": 0.0}


def ask(world: World, pod: str = "p", cpu: str = "") -> dict[str, int]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return world.scores_of(world.call(pod, {BALANCE: "true"}, containers=[{"resources": resources}]))


def bind(world: World, pod: str, node: str, cpu: str) -> None:
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    about = {"name": pod, "namespace": "d", "uid": f"uid-{pod}", "labels": {BALANCE: "true"}}
    world.placed.change({"metadata": about, "spec": spec, "status": {"phase": "Pending"}})


@examples(100)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=9))
def test_a_node_without_pcm_is_in_the_middle_of_those_with_it(shares: list[float]) -> None:
    """forall bandwidths: it counted as 0 before, and was the best of all."""
    world = World()
    for number, share in enumerate(shares):
        world.load(f"n{number}", **IDLE, mean_mem_bw_util=share)
    world.load("unknown", **IDLE)
    scores = ask(world)
    own = scores.pop("unknown")
    assert min(scores.values()) <= own <= max(scores.values())
    better = sum(score > own for score in scores.values())
    worse = sum(score < own for score in scores.values())
    assert abs(better - worse) <= 1 or own in scores.values()
    assert "mem_bw_util: not measured" in world.explain()["unknown"]["why"]


def test_a_cause_that_nobody_measures_costs_nobody() -> None:
    world = World()
    world.load("a", **IDLE)
    world.load("b", **IDLE)
    assert set(ask(world).values()) == {1000}
    assert "not measured" not in world.explain()["a"]["why"]


def test_a_throttled_pod_does_not_make_its_node_look_crowded() -> None:
    """60 % pressure, all of it by a quota, beside 20 % that are real."""
    world = World()
    world.load("throttled", mean_cpu_util=0.2, mean_cpu_pressure=0.6, mean_cpu_contention=0.0)
    world.load("crowded", mean_cpu_util=0.2, mean_cpu_pressure=0.2, mean_cpu_contention=0.2)
    scores = ask(world)
    assert scores["throttled"] > scores["crowded"]


def test_a_large_pod_goes_where_it_is_a_small_part() -> None:
    world = World()
    world.load("small", **IDLE, cpus=8)
    world.load("large", **IDLE, cpus=64)
    assert ask(world, cpu="100m")["small"] > 950
    scores = ask(world, cpu="4")
    assert scores["large"] > scores["small"]
    assert world.explain()["small"]["terms_ms"]["own"] > 0


def test_pods_on_their_way_count_by_what_they_request() -> None:
    """One of four cores is more than three of a tenth; without requests three were more than one."""
    world = World()
    for node in ("a", "b"):
        world.load(node, **IDLE, cpus=8)
    bind(world, "big", "a", "4")
    for number in range(3):
        bind(world, f"tiny-{number}", "b", "100m")
    scores = ask(world, cpu="1")
    assert scores["b"] > scores["a"]


def test_on_a_node_of_unknown_size_pods_count_alike() -> None:
    world = World()
    for node in ("a", "b"):
        world.load(node, **IDLE)
    bind(world, "big", "a", "4")
    for number in range(3):
        bind(world, f"tiny-{number}", "b", "100m")
    scores = ask(world, cpu="1")
    assert scores["a"] > scores["b"]


@pytest.mark.parametrize(
    ("containers", "cores"),
    [
        ([{"resources": {"requests": {"cpu": "250m"}}}, {"resources": {"limits": {"cpu": "2"}}}], 2.25),
        ([{"resources": {"requests": {"cpu": "x"}}}], 0.0),
        ([{}, "x", None], 0.0),
        ("x", 0.0),
        ([{"resources": {"requests": {"cpu": "1e300"}}}], 10_000.0),
    ],
)
def test_a_pod_s_size_is_what_its_containers_request(containers: Any, cores: float) -> None:
    about = {"name": "p", "labels": {BALANCE: "true"}}
    assert parse_pod_request({"metadata": about, "spec": {"containers": containers}}).cores == cores
