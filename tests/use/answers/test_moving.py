"""Advice about moving pods: whom it relieves, what it leaves alone, and what it says that it does not know."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.use.answers.moving.advice import (
    MOST_MOVES,
    TARGET_BUSY,
    TARGET_FILLED,
    advise,
    derive_lost,
    find_shortage,
)
from nodescope.use.answers.moving.node_state import NodeState, RunningPod
from nodescope.use.answers.moving.sentence import render_headline, render_move

GIB = 2.0**30


def pod(name: str, cores: float | None = 2.0, kind: str = "Deployment", **more: object) -> RunningPod:
    made = RunningPod("shop", name, kind, f"{name}-1", cores, 1 * GIB)
    return replace(made, **more)  # type: ignore[arg-type]


def node(name: str, used: float | None, contention: float | None, *pods: RunningPod) -> NodeState:
    return NodeState(name, 16.0, used, contention, 0.0, 64 * GIB, 16 * GIB, 0.0, 0.0, pods=pods)


CROWDED = node("full", 15.5, 0.4, pod("web", 4.0), pod("log", 0.1), pod("agent", 3.0, "DaemonSet"))
IDLE = node("idle", 2.0, 0.0)


def test_a_pod_of_a_crowded_node_goes_where_there_is_room() -> None:
    advice = advise([CROWDED, IDLE, node("half", 10.0, 0.02)])
    (move, *_) = advice.moves
    assert (move.pod.workload, move.source, move.target) == ("web", "full", "idle")
    assert move.source_before == 15.5 / 16
    assert move.source_after == 11.5 / 16
    words = render_move(move)
    assert "Move shop/web (web-1) from full to idle: it uses 4 cores" in words
    assert "tasks wait for a CPU in 40% of the time" in words
    assert render_headline(advice) == "1 pod should run elsewhere, to relieve 1 node."


def test_what_belongs_to_its_node_stays() -> None:
    kinds = ("DaemonSet", "Job", "CronJob", "Node", "")
    full = node("full", 15.5, 0.4, *(pod(f"p{number}", 3.0, kind) for number, kind in enumerate(kinds)))
    advice = advise([full, IDLE])
    assert advice.moves == ()
    (why,) = advice.stays
    assert "a DaemonSet has one pod on every node" in why
    assert "nobody is known to start it anew" in why


def test_waiting_although_cores_are_free_is_no_reason_to_move() -> None:
    """A quota that is too small is too small everywhere."""
    held = replace(node("held", 4.0, 0.6, pod("web")), throttled=0.6)
    advice = advise([held, IDLE])
    assert (advice.moves, advice.crowded) == ((), ())
    assert "75% of its cores are free: a quota holds containers back" in advice.stays[0]


def test_busy_without_waiting_is_no_reason_to_move() -> None:
    assert advise([node("busy", 15.0, 0.02, pod("web")), IDLE]).moves == ()


def test_what_is_not_known_is_neither_left_nor_chosen() -> None:
    unknown = NodeState("dark", unknown=("its agent writes no window (--annotate window)",))
    advice = advise([CROWDED, unknown])
    assert advice.moves == ()
    assert any("dark: its CPU use, how long tasks wait" in line for line in advice.unknown)
    assert any("--annotate window" in line for line in advice.unknown)
    assert "no other node has room" in advice.stays[0]


def test_what_is_the_same_of_many_nodes_is_one_line() -> None:
    dark = [NodeState(f"n{number}", unknown=("its agent is away",)) for number in range(9)]
    told = [line for line in advise(dark).unknown if "its agent is away" in line]
    assert told == ["n0, n1, n2, n3, n4 and 4 more: its agent is away"]


def test_pods_of_unknown_use_are_not_moved_and_are_counted() -> None:
    full = node("full", 15.5, 0.4, pod("a", None), pod("b", None))
    advice = advise([full, IDLE])
    assert advice.moves == ()
    assert "full: what 2 of its 2 pods use is not known" in advice.unknown
    assert advice.stays == ("full: what its pods use is not known",)


def test_memory_pressure_moves_the_pod_that_frees_most() -> None:
    full = replace(
        node("full", 4.0, 0.0, pod("big", 0.5, memory_bytes=24 * GIB), pod("small", 0.5)),
        used_bytes=62 * GIB,
        memory_pressure=0.3,
    )
    (move,) = advise([full, IDLE]).moves
    assert (move.pod.workload, move.resource) == ("big", "memory")
    assert "wait for memory in 30% of the time" in render_move(move)


def test_a_full_bus_moves_who_fills_it() -> None:
    full = replace(
        node("full", 4.0, 0.0, pod("streams", 2.0, bandwidth=30.0), pod("calm", 2.0, bandwidth=20.0)), bus=0.9
    )
    (move,) = advise([full, replace(IDLE, bus=0.1)]).moves
    assert (move.pod.workload, move.resource) == ("streams", "bus")


@pytest.mark.parametrize(
    "target",
    [
        replace(IDLE, refuses="it is cordoned"),
        replace(IDLE, used_bytes=63.5 * GIB),
        replace(IDLE, unrequested=1.0),
        replace(IDLE, labels={"disk": "hdd"}),
        node("idle", 9.0, 0.0),
    ],
)
def test_a_pod_goes_only_where_it_may_and_fits(target: NodeState) -> None:
    """Cordoned, no memory, requested by others, another label, no cores left."""
    wants = pod("web", 4.0, requested=3.0, selector=(("disk", "ssd"),) if target.labels else ())
    assert advise([node("full", 15.5, 0.4, wants), target]).moves == ()


def test_i_o_pressure_is_told_and_left_to_others() -> None:
    slow = replace(node("slow", 2.0, 0.0, pod("web")), io_pressure=0.5)
    advice = advise([slow, IDLE])
    assert advice.moves == ()
    assert "wait for I/O in 50% of the time" in advice.stays[0]
    assert render_headline(advice) == "No node is crowded by its pods; tasks wait for other reasons."


def test_nothing_to_do_is_said_plainly() -> None:
    assert render_headline(advise([IDLE])) == "No node is crowded: nothing to move."
    assert render_headline(advise([node("full", 15.5, 0.4)])) == "1 node crowded, and no move would help."


NODES = st.lists(
    st.builds(
        lambda used, wait, sizes: (used, wait, sizes),
        st.floats(0, 16) | st.none(),
        st.floats(0, 1) | st.none(),
        st.lists(st.floats(0.01, 8) | st.none(), max_size=6),
    ),
    min_size=1,
    max_size=6,
)


@examples(200)
@given(NODES)
def test_no_advice_makes_another_node_crowded_or_moves_in_circles(
    given_nodes: list[tuple[float | None, float | None, list[float | None]]],
) -> None:
    """
    forall clusters: targets stay below their limits and sources were crowded; no node is both; the sum that is lost falls.
    """
    nodes = [
        node(f"n{number}", used, wait, *(pod(f"p{number}-{one}", size) for one, size in enumerate(sizes)))
        for number, (used, wait, sizes) in enumerate(given_nodes)
    ]
    advice = advise(nodes)
    by_name = {one.name: one for one in nodes}
    assert len(advice.moves) <= MOST_MOVES
    assert not {move.source for move in advice.moves} & {move.target for move in advice.moves}
    used = {one.name: one.used_cores for one in nodes}
    for move in advice.moves:
        assert find_shortage(by_name[move.source])[0]
        assert move.target_after <= TARGET_BUSY + 1e-9
        before = sum(derive_lost(one or 0.0, 16) for one in used.values())
        cores = move.pod.cores or 0.0
        used[move.source] = max(0.0, (used[move.source] or 0.0) - cores)
        used[move.target] = (used[move.target] or 0.0) + cores
        assert sum(derive_lost(one or 0.0, 16) for one in used.values()) < before + 1e-9
    assert TARGET_FILLED < 1
