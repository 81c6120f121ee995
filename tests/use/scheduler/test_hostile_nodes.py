"""What one node says moves the others by its share and no further; what callers say of pods and nodes counts only if the watches say so, too."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import WALL_NS
from tests.use.scheduler.world import ENABLED, World, bind, loaded, used

from nodescope.fpga.node_load import WINDOW_KEY
from nodescope.fpga.state import KEY
from nodescope.use.scheduler.load_times import BITSTREAMS, LEAST_LOAD_MS
from nodescope.use.scheduler.placed_pods import UNSEEN
from nodescope.use.scheduler.pod_request import BALANCE
from nodescope.use.scheduler.rating import BEST
from nodescope.use.scheduler.wire import ExtenderCall, parse_call

NOW_SECONDS = WALL_NS / 1e9
LARGE = st.sampled_from([0, 1e-9, 1, 1e3, 1e6, 1e12, 9e17, -5, 1e300, None, "x", True])
NUMBERS = LARGE | st.floats(0, 1e18) | st.integers(0, 10**18)
NAMES = st.sampled_from(["abc", "def", "", "x" * 300]) | st.text(max_size=4)
STATES = st.fixed_dictionaries(
    {
        "version": st.sampled_from([2, 2, 2, 1, 3]),
        "recentUsage": NUMBERS,
        "recentReconfigurationTime": NUMBERS,
        "recentBitstreamIdentifiers": st.dictionaries(NAMES, st.just({}), max_size=4),
        "updatedAt": st.sampled_from([NOW_SECONDS, NOW_SECONDS, NOW_SECONDS - 200, NOW_SECONDS + 1e5]),
        "state": st.fixed_dictionaries(
            {
                "window": st.sampled_from([300, 300, 1e-9, 0, 1, 1e5, 1e9]),
                "usage": st.lists(st.integers(0, 999), min_size=30, max_size=30) | st.just([]),
                "reconfiguration": st.just([]),
                "sessions": NUMBERS,
                "bitstreams": st.lists(st.tuples(NUMBERS, NUMBERS).map(list), max_size=4),
            }
        ),
    }
).map(json.dumps)
LOADS = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "updatedAt": st.just(NOW_SECONDS),
        "health": NUMBERS,
        "metrics": st.dictionaries(
            st.sampled_from(["mean_cpu_util", "mean_mem_pressure", "mean_gpu_util", "mean_mem_bw_util"]),
            NUMBERS,
        ),
    }
).map(json.dumps)


def honest(world: World) -> None:
    """`good` has the bitstream and is idle; the others are worse, each for one clear reason."""
    world.node("good", loaded("abc", 400), *[used(500)] * 4)
    world.node("cold", loaded("def", 700), *[used(500)] * 4)
    world.node("cold-and-busy", loaded("def", 700), *[used(500)] * 480)
    world.node("fourth", loaded("def", 600), *[used(600)] * 5)


def judge_order(world: World) -> list[str]:
    found = world.scores("p", "abc")
    return sorted((name for name in found if name != "evil"), key=lambda name: (-found[name], name))


@given(STATES | st.text(max_size=20), LOADS | st.none())
def test_no_node_changes_the_order_of_the_others(state: str, load: str | None) -> None:
    """forall annotations of one node: every node is scored, and clear differences between the others stay."""
    world = World()
    honest(world)
    before = judge_order(world)
    world.annotate("evil", {KEY: state, **({WINDOW_KEY: load} if load else {})})
    assert judge_order(world) == before == ["good", "cold", "fourth", "cold-and-busy"]
    assert all(0 <= score <= BEST for score in world.scores("q").values())
    for kind in ({"nodescope.io/balance": "true"}, {}):
        containers = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
        world.scores_of(world.call("r", kind, containers=containers))


@pytest.mark.parametrize("took_ms", [0, 0.001, 1, 10, 200, 10_000, 600_000, 1e9, 1e12])
@pytest.mark.parametrize("other_ms", [0, 10, 10_000, 1e12])
def test_the_node_that_has_the_bitstream_is_best_whatever_times_are_reported(
    took_ms: float, other_ms: float
) -> None:
    """And by more than kube-scheduler's other plugins differ between idle nodes: 30 points are 600 of theirs."""
    world = World()
    world.node("first", loaded("def", other_ms))
    world.node("second", loaded("abc", took_ms))
    world.annotate("third", {})
    found = world.scores(bitstream="abc")
    assert found["second"] == BEST
    assert max(found["first"], found["third"]) <= BEST - 30


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("share", [1, 0.0011, 1e299, -1])
@pytest.mark.parametrize("moved", [5e-324, 1e-30, 1, 1e299, -1e299])
def test_what_one_node_says_of_its_memory_moves_nobody_else(
    moved: float, share: float, *, measured: bool
) -> None:
    """Where it is the only node that measures its bus, and beside others that do; with pods on their way to three of them."""
    world = World()
    spec = {"containers": [{"resources": {"requests": {"cpu": "4"}}}]}
    bus = {"mean_mem_bw": 10.0, "mean_mem_bw_util": 0.1} if measured else {}
    for name, busy in (("a", 0.1), ("b", 0.5), ("c", 0.9)):
        world.load(name, 9.0, mean_cpu_util=busy, cpus=32, **bus)
    world.load("evil", 9.0, mean_cpu_util=0.2, cpus=8, mean_mem_bw=moved, mean_mem_bw_util=share)
    for node in ("evil", "a", "b"):
        about = {"name": f"to-{node}", "namespace": "d", "uid": node, "labels": {BALANCE: "true"}}
        world.placed.change({"metadata": about, "spec": {**spec, "nodeName": node}})
    found = world.scores_of(world.call("p", {BALANCE: "true"}, **spec))
    assert found["a"] == BEST
    assert found["a"] > found["b"] + 30 > found["c"] + 60
    json.dumps(world.explain(), allow_nan=False)


def test_long_sessions_keep_milliseconds_and_seconds_apart() -> None:
    """Sessions of 200 s, and bitstreams that load in 10 ms and in 6.9 s: neither loss is none, nor are they alike."""
    lost = []
    for took_ms in (10, 6900):
        one = World()
        one.node("has", loaded("abc", took_ms), used(200_000))
        one.node("other", used(200_000))
        lost.append(BEST - one.scores(bitstream="abc")["other"])
    assert lost[0] >= 20
    assert lost[1] >= lost[0] + 200


def test_a_window_of_no_length_is_refused_and_nobody_is_troubled(world: World) -> None:
    honest(world)
    state = {
        "version": 2,
        "updatedAt": NOW_SECONDS,
        "state": {"window": 1e-9, "sessions": 1},
        "recentUsage": 5,
    }
    world.annotate("evil", {KEY: json.dumps(state)})
    assert world.scores(bitstream="abc")["good"] == BEST
    assert "window '1e-09' is no length" in world.explain()["evil"]["why"]


def test_a_node_that_names_thousands_of_bitstreams_evicts_its_own(world: World) -> None:
    world.node("good", loaded("abc", 4000))
    names: dict[str, Any] = {f"b{number}": {} for number in range(4000)}
    state = {"window": 300, "sessions": 0, "bitstreams": [[0, 5]] * 4000}
    content = {"version": 2, "updatedAt": NOW_SECONDS, "recentBitstreamIdentifiers": names, "state": state}
    world.annotate("evil", {KEY: json.dumps(content)})
    assert world.nodes.times.find("abc") == 4000
    assert sum(world.nodes.times.find(name) is not None for name in names) <= BITSTREAMS


def test_one_session_in_wrong_units_does_not_lengthen_everybody_s(world: World) -> None:
    for name in ("a", "b", "c"):
        world.node(name, *[used(500)] * 4)
    world.node("evil", used(500_000_000))
    world.scores()
    waits = {name: one["terms_ms"]["wait"] for name, one in world.explain().items()}
    assert max(waits[name] for name in "abc") < 10


def test_load_times_are_medians_and_learned_from_believed_nodes_only(world: World) -> None:
    for name, took_ms in (("a", 300), ("b", 310), ("evil", 1e9)):
        world.node(name, loaded("abc", took_ms))
    assert world.nodes.times.find("abc") == 310
    old = World()
    old.node("stale", loaded("abc", 300))
    text = json.loads(old.nodes.find("stale").texts[0])  # type: ignore[union-attr, arg-type]
    late = World()
    late.annotate("stale", {KEY: json.dumps({**text, "updatedAt": NOW_SECONDS - 3600})})
    assert late.nodes.times.find("abc") is None
    world.node("quick", loaded("xyz", 0))
    assert world.nodes.times.find("xyz") == LEAST_LOAD_MS


def test_what_a_removed_node_measured_is_forgotten(world: World) -> None:
    world.node("a", loaded("abc", 300))
    world.nodes.remove({"metadata": {"name": "a"}})
    assert world.nodes.times.find("abc") is None
    world.node("b", loaded("abc", 300))
    world.nodes.replace([])
    assert world.nodes.times.find("abc") is None
    assert world.nodes.times.typical() is None


def invented(world: World, number: int) -> ExtenderCall:
    """A call about a pod that no watch has shown."""
    about = {"name": f"fake{number}", "namespace": "d", "uid": f"fake-{number}", "labels": ENABLED}
    body: dict[str, Any] = {"Pod": {"metadata": about}, "NodeNames": sorted(world.nodes._nodes)}
    return parse_call(json.dumps(body).encode())


def test_calls_about_pods_that_do_not_exist_move_nobody(world: World) -> None:
    world.node("a", used(1))
    world.node("b", used(1))
    quiet = world.scores("before")
    bind(world, "before", "a", phase="Succeeded")
    for number in range(UNSEEN + 200):
        world.extender.filter(invented(world, number))
        world.extender.prioritize(invented(world, number))
    assert world.placed.arriving("fpga") == {}
    assert world.scores("after") == quiet


def test_an_answer_that_was_faster_than_the_watch_counts_when_the_watch_shows_the_pod(world: World) -> None:
    world.node("a", used(1))
    call = invented(world, 1)
    world.extender.prioritize(call)
    assert world.placed.arriving("fpga") == {}
    about = {"name": "fake1", "namespace": "d", "uid": "fake-1", "labels": ENABLED}
    world.placed.change({"metadata": about})
    assert set(world.placed.arriving("fpga")) == {"a"}
    world.placed.replace([{"metadata": about}])
    assert set(world.placed.arriving("fpga")) == {"a"}
    world.placed.change({"metadata": about, "spec": {"nodeName": "b"}})
    assert set(world.placed.arriving("fpga")) == {"b"}


def test_nodes_that_a_caller_sends_teach_nothing(world: World) -> None:
    other = World()
    other.node("x", loaded("abc", 5))
    node = {"metadata": {"name": "x", "annotations": {KEY: other.nodes.find("x").texts[0]}}}  # type: ignore[union-attr]
    about = {"name": "p", "namespace": "d", "uid": "1", "labels": ENABLED}
    body = {"Pod": {"metadata": about}, "Nodes": {"items": [node]}}
    world.extender.prioritize(parse_call(json.dumps(body).encode()))
    assert world.nodes.times.find("abc") is None
    assert world.nodes.find("x") is None
