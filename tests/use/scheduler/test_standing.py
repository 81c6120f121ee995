"""Large clusters: the same scores from standing costs as from judging every node."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.use.scheduler.world import ENABLED, World, bind, loaded, used

from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.state import KEY
from nodescope.use.scheduler.cost import judge_cost
from nodescope.use.scheduler.placed_pods import ENTRIES
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.standing import (
    EXPLAINED,
    LEAST_NODES,
    LOOK_SECONDS,
    OLDEST_SECONDS,
    RENEW_SECONDS,
)
from nodescope.use.scheduler.wire import (
    parse_body,
    parse_call,
    render_filtered,
    render_level,
    render_scores,
)

NODES = LEAST_NODES + 30


def fill(world: World, seed: int, kinds: Sequence[str]) -> None:
    """Nodes of every kind: busy, idle, with bitstreams, broken, silent, loaded, and pods on their way."""
    chance = random.Random(seed)
    states = []
    for number in range(8):
        donor = World()
        donor.node("x", loaded(f"b{number % 4}", 50 * number), *[used(100 + 40 * number)] * number)
        node = donor.nodes.find("x")
        assert node is not None
        states.append(node.texts[0])
    for number in range(NODES):
        kind = chance.choice(kinds)
        annotations = {KEY: chance.choice(states)} if kind == "states" else {}
        if kind == "broken":
            annotations[KEY] = "{"
        if kind != "silent" and chance.random() < 0.7:
            metrics = {"mean_cpu_util": chance.random(), "mean_mem_pressure": chance.random() / 9}
            load = NodeLoad(world.clock.wall_ns() / 1e9, 20, chance.uniform(0, 10), metrics)
            annotations[WINDOW_KEY] = render_load(load)
        labels = {"fpga-scheduling.io/fpga-vendor": "amd"} if kind == "vendor" else {}
        world.annotate(f"n{number:03}", {key: text for key, text in annotations.items() if text}, labels)
    for number in range(12):
        bind(world, f"old{number}", f"n{chance.randrange(NODES):03}", f"b{chance.randrange(6)}")


@settings(max_examples=12)
@given(
    st.integers(0, 2**20),
    st.lists(st.sampled_from(["states", "broken", "silent", "vendor"]), min_size=1, max_size=4),
    st.sampled_from(["", "b1", "b5", "new"]),
)
def test_standing_costs_are_the_costs_of_every_node(seed: int, kinds: list[str], bitstream: str) -> None:
    """forall clusters, pods: both ways give every node the same cost and score."""
    world = World()
    fill(world, seed, kinds)
    pod = PodRequest("d", "p", "uid", "fpga", bitstream)
    names = [f"n{number:03}" for number in range(NODES)]
    random.Random(seed).shuffle(names)
    now_ms = world.clock.wall_ns() // 10**6
    rated = world.extender.standing.judge(pod, names, now_ms)
    assert sorted(rated.names) == sorted(names)
    slow = judge_cost(
        pod,
        [world.extender._find(name, None) for name in rated.names],
        world.placed,
        world.nodes.times,
        now_ms,
    )
    assert rated.costs == pytest.approx([one.cost_ms for one in slow])
    assert rated.scores == [one.score for one in slow]
    by_name = {one.node: one for one in slow}
    for one in rated.explained:
        twin = by_name[one.node]
        assert (one.reasons, one.confidence) == (twin.reasons, twin.confidence)
        assert one.all_terms() == pytest.approx(twin.all_terms())


def test_nodes_that_another_filter_took_out_change_nobody_s_cost() -> None:
    world = World()
    fill(world, 5, ["states"])
    now_ms, pod = world.clock.wall_ns() // 10**6, PodRequest("d", "p", "uid", "fpga", "b1")
    names = world.nodes.names()
    standing = world.extender.standing
    every, some = standing.judge(pod, names, now_ms), standing.judge(pod, names[3:], now_ms)
    assert list(some.names) == names[3:]
    assert some.costs == every.costs[3:]


def test_a_pod_is_answered_and_explained_in_a_large_cluster() -> None:
    world = World()
    fill(world, 1, ["states"])
    world.node("has", loaded("mine", 4000))
    found = world.scores(bitstream="mine")
    assert max(found, key=found.__getitem__) == "has"
    assert set(world.placed.arriving("fpga")) >= {"has"}
    decision = world.extender.decisions.find("d/p")
    assert decision is not None
    assert (decision.rated, len(decision.ratings)) == (NODES + 1, EXPLAINED)
    assert decision.ratings[0].node == "has"


def test_what_changed_is_known_after_some_seconds() -> None:
    """A node that came since then counts as one that the watch has not seen."""
    world = World()
    fill(world, 2, ["states"])
    world.scores("first", "b1")
    world.node("new", loaded("b1", 10), *[used(1)])
    world.clock.advance(round(RENEW_SECONDS * 1e9))
    world.extender.standing.step()
    found = world.scores("second", "b1")
    assert found["new"] > min(found.values())


def test_nodes_that_a_pod_does_not_change_are_not_judged_for_it() -> None:
    """A node that became busy since the last renewal costs what it did: this is what a pod is cheap by."""
    world = World()
    fill(world, 3, ["states"])
    world.node("calm", *[used(1)])

    def read_cost(pod: str) -> float:
        names = sorted(world.nodes.names())
        rated = world.extender.standing.judge(
            PodRequest("d", pod, pod, "fpga", "none has it"), names, world.clock.wall_ns() // 10**6
        )
        return rated.costs[rated.names.index("calm")]

    before = read_cost("first")
    world.node("calm", *[used(200)] * 300)
    assert read_cost("second") == before
    world.clock.advance(round(OLDEST_SECONDS * 1e9))
    assert read_cost("third") > before


def test_a_bitstream_s_loads_stand_and_pods_sent_since_count_at_once() -> None:
    """A node that got a pod with the bitstream has it from then on; what others did to a holder counts, too."""
    world = World()
    fill(world, 3, ["states"])
    for name in ("has-it", "gets-it", "loses-it"):
        world.node(name, loaded("mine" if name != "gets-it" else "other", 900))
    names = sorted(world.nodes.names())

    def read_terms(pod: str) -> dict[str, float]:
        now_ms = world.clock.wall_ns() // 10**6
        rated = world.extender.standing.judge(PodRequest("d", pod, pod, "fpga", "mine"), names, now_ms)
        return {name: rated.costs[rated.names.index(name)] for name in ("has-it", "gets-it", "loses-it")}

    before = read_terms("first")
    assert before["has-it"] == before["loses-it"] < before["gets-it"]
    for pod, node, bitstream in (("a", "gets-it", "mine"), ("b", "loses-it", "other")):
        item = bind(world, pod, node, bitstream)
        # It has ended, so that nothing is on its way there.
        world.placed.change({**item, "status": {"phase": "Succeeded"}})
    after = read_terms("second")
    assert after["has-it"] == before["has-it"]
    assert after["gets-it"] < before["gets-it"]
    assert after["loses-it"] > before["loses-it"]


OPERATIONS = st.tuples(
    st.sampled_from(["bind", "expect", "forget", "end"]),
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from(["b1", "new"]),
)


@settings(max_examples=15)
@given(st.integers(0, 2**20), st.lists(OPERATIONS, min_size=1, max_size=12))
def test_costs_that_were_kept_up_to_date_are_those_that_are_judged_anew(
    seed: int, operations: list[tuple[str, int, int, str]]
) -> None:
    """forall pods that come, wait and go: of what changed since the last pod, nothing is missed."""
    world = World()
    fill(world, seed, ["states", "vendor"])
    standing, names = world.extender.standing, world.nodes.names()
    now_ms = world.clock.wall_ns() // 10**6

    def judge() -> list[float]:
        return standing.judge(PodRequest("d", "p", "uid", "fpga", "b1"), names, now_ms).costs

    kept = judge()
    for what, pod, node, bitstream in operations:
        known = PodRequest("d", f"pod{pod}", f"uid-pod{pod}", "fpga", bitstream)
        if what == "bind":
            bind(world, f"pod{pod}", names[node], bitstream)
        elif what == "end":
            bind(world, f"pod{pod}", names[node], bitstream, "Succeeded")
        elif what == "expect":
            world.placed.change({"metadata": {"name": known.name, "uid": known.uid, "labels": ENABLED}})
            world.placed.note(known, names[node])
        else:
            world.placed.forget(known.uid)
        kept = judge()
    assert standing._standing is not None
    standing._standing.loads.clear()
    assert kept == pytest.approx(judge())


def test_nodes_whose_pods_changed_are_told_by_when() -> None:
    """forall marks: those that got a pod after it, each once."""
    world = World()
    for pod, node in (("a", "n1"), ("b", "n2"), ("c", "n1")):
        bind(world, pod, node, "x")
    assert [sorted(world.placed.touched_since(mark)) for mark in range(4)] == [
        ["n1", "n2"],
        ["n1", "n2"],
        ["n1"],
        [],
    ]


def test_of_nodes_that_come_and_go_those_that_got_a_pod_last_are_remembered() -> None:
    world = World()
    for number in (*range(ENTRIES), 0, ENTRIES, ENTRIES + 1):
        bind(world, f"p{number}-{world.placed.touches}", f"n{number}", "x")
    assert len(world.placed.sent_to("x")) == len(world.placed.touched_since(0)) == ENTRIES
    assert world.placed.sent("n0")
    assert not world.placed.sent("n2")
    assert world.placed.sent("n3")


def test_a_rare_pod_finds_costs_that_were_renewed_before_it_came() -> None:
    """Judged by the thread's step: what changed after it is not in the call's answer."""
    world = World()
    fill(world, 4, ["states"])
    world.node("calm", *[used(1)])
    standing = world.extender.standing
    assert standing.step() == RENEW_SECONDS
    world.node("calm", *[used(200)] * 300)
    world.clock.advance(round((OLDEST_SECONDS - 1) * 1e9))
    names, pod = sorted(world.nodes.names()), PodRequest("d", "p", "p", "fpga", "none has it")

    def read_cost() -> float:
        rated = standing.judge(pod, names, world.clock.wall_ns() // 10**6)
        return rated.costs[rated.names.index("calm")]

    stood = read_cost()
    standing.step()
    assert read_cost() > stood


def test_nothing_is_prepared_where_nobody_has_a_device() -> None:
    world = World()
    for number in range(NODES):
        world.load(f"n{number:03}", mean_cpu_util=0.5)
    assert world.extender.standing.step() == LOOK_SECONDS
    world.annotate("n000", {}, {"fpga-scheduling.io/fpga-vendor": "amd"})
    assert world.extender.standing.step() == RENEW_SECONDS


def test_nothing_is_prepared_in_a_small_cluster() -> None:
    world = World()
    world.node("calm", *[used(1)])
    assert world.extender.standing.step() == LOOK_SECONDS


@given(
    st.lists(st.text(max_size=6) | st.sampled_from(['a","b', "%d", "\\", '"', "n1"]), min_size=1, max_size=5),
    st.sampled_from([(",", ":"), (", ", ": ")]),
    st.booleans(),
)
def test_names_that_are_handed_on_as_they_came_are_what_came(
    names: list[str], separators: tuple[str, str], ascii_only: bool
) -> None:
    """forall names: both answers are as if each name had been written anew."""
    body = {"Pod": {"metadata": {"name": "p"}}, "Nodes": None, "NodeNames": names}
    text = json.dumps(body, separators=separators, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    call = parse_call(text)
    assert json.loads(render_filtered(call, {}))["NodeNames"] == names
    assert json.loads(render_level(call)) == [{"Host": name, "Score": 0} for name in names]
    assert json.loads(render_level(replace(call, text=b""))) == json.loads(render_level(call))
    scores = list(range(len(names)))
    assert [row["Score"] for row in json.loads(render_scores(call.names, scores))] == scores


def test_names_are_parsed_once_and_never_found_in_a_text() -> None:
    hidden = 'x"NodeNames":["evil"]}'
    pod = {"metadata": {"name": "p", "annotations": {"a": hidden}, "labels": ENABLED}}
    bodies: list[dict[str, Any]] = [
        {"Pod": pod, "Nodes": None, "NodeNames": ["a", "b"]},
        {"Pod": pod, "NodeNames": None, "Nodes": {"items": []}},
        {"Pod": {**pod, "spec": {"NodeNames": ["inner"]}}, "Nodes": None},
        {"NodeNames": ["a"], "Pod": pod},
        {"Pod": pod, "NodeNames": []},
    ]
    for body in bodies:
        for separators in ((",", ":"), (", ", ": ")):
            content, names = parse_body(json.dumps(body, separators=separators).encode())
            assert isinstance(content, dict)
            assert {**content, **({"NodeNames": json.loads(names)} if names else {})} == body
