"""What a pod will use is what its workload used, by medians over nodes; the rest is unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples
from tests.support import WALL_NS
from tests.use.scheduler.world import World

from nodescope.base.workload.pod_use import NEVER, NodeWorkloads, PodUse, encode_hours
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.node_workloads import WORKLOADS_KEY, render_workloads
from nodescope.use.scheduler.pod_request import BALANCE, parse_pod_request
from nodescope.use.scheduler.profile.workload_profiles import VOTES, WITNESSES, WorkloadProfiles

HOUR = WALL_NS // 3_600_000_000_000 % 24
HASH = "66b6c48dd5"


def tell(
    world: World, node: str, uses: dict[str, PodUse], age_seconds: float = 0.0, **metrics: float
) -> None:
    now_seconds = world.clock.wall_ns() / 1e9
    load = NodeLoad(now_seconds, 20, None, {"mean_cpu_util": 0.4, "cpus": 32.0, **metrics})
    told = NodeWorkloads(now_seconds - age_seconds, uses)
    world.annotate(node, {WINDOW_KEY: render_load(load), WORKLOADS_KEY: render_workloads(told)})


def describe(workload: str, pod: str, cpu: str = "1") -> dict[str, Any]:
    owner = {"kind": "ReplicaSet", "name": f"{workload}-{HASH}", "controller": True}
    labels = {BALANCE: "true", "pod-template-hash": HASH}
    about = {"name": pod, "namespace": "d", "uid": pod, "labels": labels, "ownerReferences": [owner]}
    return {"metadata": about, "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}}


def ask(world: World, workload: str, pod: str = "p") -> dict[str, int]:
    from nodescope.use.scheduler.wire import ExtenderCall

    item = describe(workload, pod)
    world.placed.change(item)
    return world.scores_of(ExtenderCall(parse_pod_request(item), tuple(sorted(world.nodes._nodes))))


def bind(world: World, workload: str, pod: str, node: str) -> None:
    item = describe(workload, pod)
    item["spec"]["nodeName"] = node
    world.placed.change({**item, "status": {"phase": "Pending"}})


def test_a_pod_is_named_as_its_agent_names_it() -> None:
    assert parse_pod_request(describe("web", f"web-{HASH}-x2k4p")).workload == "d/web"
    bare = {"metadata": {"name": f"web-{HASH}-x2k4p", "namespace": "d", "labels": {BALANCE: "true"}}}
    assert parse_pod_request(bare).workload == "d/web"
    for owners in ("x", [None], [{"controller": True}], [{"kind": 1, "name": [], "controller": True}]):
        broken = {"metadata": {**bare["metadata"], "ownerReferences": owners}}
        assert parse_pod_request(broken).workload.startswith("d/")


def test_a_workload_that_moves_much_memory_avoids_a_full_bus() -> None:
    """Both request the same; only what their workloads used elsewhere tells them apart."""
    world = World()
    seen = {
        "d/heavy": PodUse(1, 4.0, NEVER, 10.0),
        "d/light": PodUse(1, 4.0, NEVER, 0.1),
    }
    tell(world, "witness", seen, mean_mem_bw=60.0, mean_mem_bw_util=0.5)
    tell(world, "idle-bus", {}, mean_cpu_util=0.62, mean_mem_bw=12.0, mean_mem_bw_util=0.1)
    tell(world, "full-bus", {}, mean_cpu_util=0.3, mean_mem_bw=66.0, mean_mem_bw_util=0.55)
    heavy, light = ask(world, "heavy"), ask(world, "light", "q")
    assert heavy["idle-bus"] > heavy["full-bus"]
    assert light["full-bus"] > light["idle-bus"]


def test_bandwidth_on_its_way_counts() -> None:
    """Both nodes have one pod coming that requests the same."""
    world = World()
    seen = {"d/heavy": PodUse(1, 4.0, NEVER, 10.0), "d/light": PodUse(1, 4.0, NEVER, 0.1)}
    for node in ("a", "b", "witness"):
        tell(
            world,
            node,
            seen if node == "witness" else {},
            mean_mem_bw=30.0,
            mean_mem_bw_util=0.25,
            mean_cpu_util=0.8 if node == "witness" else 0.4,
        )
    bind(world, "heavy", "h", "a")
    bind(world, "light", "l", "b")
    scores = ask(world, "light", "q")
    assert scores["b"] > scores["a"]
    terms = world.explain("q")
    assert terms["a"]["terms_ms"]["arriving"] > terms["b"]["terms_ms"]["arriving"]


def test_a_node_without_pcm_is_judged_by_its_pods() -> None:
    """The others' median was all that counted before."""
    world = World()
    seen = {"d/heavy": PodUse(1, 4.0, NEVER, 10.0), "d/light": PodUse(1, 4.0, NEVER, 0.1)}
    for number in range(3):
        tell(world, f"witness-{number}", seen, mean_mem_bw=60.0, mean_mem_bw_util=0.5)
    tell(world, "crowded", {"d/heavy": PodUse(2, 4.0)})
    tell(world, "calm", {"d/light": PodUse(2, 4.0)})
    scores = ask(world, "unknown")
    assert scores["calm"] > scores["crowded"]
    assert "mem_bw_util: not measured, estimated from what its pods use" in world.explain()["calm"]["why"]


def test_a_node_that_will_be_busy_is_left_for_one_that_will_not() -> None:
    world = World()
    rising = [1.0 if hour == HOUR else 8.0 for hour in range(24)]
    falling = [8.0 if hour == HOUR else 1.0 for hour in range(24)]
    tell(world, "rising", {"d/day": PodUse(2, 1.0, encode_hours(rising))})
    tell(world, "falling", {"d/night": PodUse(2, 8.0, encode_hours(falling))})
    scores = ask(world, "any")
    assert scores["falling"] > scores["rising"]
    assert (
        world.explain()["rising"]["terms_ms"]["later"] > 0 > world.explain()["falling"]["terms_ms"]["later"]
    )


def test_a_patient_workload_goes_where_others_wait() -> None:
    """Where cores are contended and where the bus is: who hardly waits prefers the first."""
    world = World()
    seen = {
        "d/patient": PodUse(1, 1.0, NEVER, 1.0, 0.0),
        "d/hasty": PodUse(1, 1.0, NEVER, 1.0, 1.0),
    }
    for number in range(3):
        tell(world, f"far-{number}", seen, mean_cpu_util=0.9, mean_mem_bw=60.0, mean_mem_bw_util=0.9)
    tell(world, "waits", {}, mean_cpu_contention=0.12, mean_mem_bw=7.0, mean_mem_bw_util=0.1)
    tell(world, "moves", {}, mean_cpu_contention=0.0, mean_mem_bw=20.0, mean_mem_bw_util=0.3)
    patient, hasty = ask(world, "patient"), ask(world, "hasty", "q")
    assert patient["waits"] - patient["moves"] > hasty["waits"] - hasty["moves"]
    assert patient["waits"] > patient["moves"]
    assert hasty["waits"] < hasty["moves"]


def test_what_is_too_old_or_from_the_future_teaches_nothing() -> None:
    world = World()
    tell(world, "old", {"d/x": PodUse(1, 9.0)}, age_seconds=2000)
    tell(world, "ahead", {"d/x": PodUse(1, 9.0)}, age_seconds=-2000)
    assert world.nodes.profiles.find("d/x") is None
    assert world.nodes.find("old").outlook is None  # type: ignore[union-attr]


def test_a_node_that_a_caller_sends_teaches_nothing() -> None:
    world = World()
    told = NodeWorkloads(world.clock.wall_ns() / 1e9, {"d/x": PodUse(1, 9.0)})
    world.nodes.parse({"metadata": {"name": "n", "annotations": {WORKLOADS_KEY: render_workloads(told)}}})
    assert world.nodes.profiles.find("d/x") is None


def test_a_node_that_is_gone_has_no_vote() -> None:
    world = World()
    tell(world, "a", {"d/x": PodUse(1, 1.0)})
    tell(world, "b", {"d/x": PodUse(1, 9.0)})
    world.nodes.remove({"metadata": {"name": "b"}})
    assert world.nodes.profiles.find("d/x").cores == 1.0  # type: ignore[union-attr]
    world.nodes.replace([])
    assert len(world.nodes.profiles) == 0


@examples(100)
@given(st.lists(st.floats(0.1, 2.0), min_size=3, max_size=9), st.floats(0, 1e4, exclude_max=True))
def test_one_liar_moves_a_profile_by_one_place(honest: list[float], lie: float) -> None:
    """forall reports: it stays within what honest nodes said."""
    profiles = WorkloadProfiles()
    for number, cores in enumerate(honest):
        profiles.learn(f"n{number}", {"d/x": PodUse(1, cores, NEVER, cores, 0.5, 0.5)})
    profiles.learn("evil", {"d/x": PodUse(9999, lie, NEVER, lie, 1.0, 0.0)})
    found = profiles.find("d/x")
    assert found is not None
    assert min(honest) <= found.cores <= max(honest)
    assert min(honest) <= found.bandwidth <= max(honest)  # type: ignore[operator]


def test_a_node_that_names_thousands_crowds_out_nobody() -> None:
    profiles = WorkloadProfiles()
    profiles.learn("honest", {"d/x": PodUse(1, 1.0)})
    for turn in range(50):
        profiles.learn("evil", {f"d/{turn}-{number}": PodUse(1, 9.0) for number in range(128)})
    assert profiles.find("d/x") is not None
    assert profiles.count_votes() == 129


def test_votes_are_bounded_in_a_large_cluster() -> None:
    """2,000 nodes with 40 workloads each: 31 votes for a common one, some dozen of its own for a node."""
    profiles = WorkloadProfiles()
    for node in range(2000):
        uses = {f"d/own-{node}-{number}": PodUse(1, 1.0) for number in range(39)}
        profiles.learn(f"n{node}", {"d/common": PodUse(1, 50.0), **uses})
    for node in range(2000):
        uses = {f"d/own-{node}-{number}": PodUse(1, 1.0) for number in range(39)}
        profiles.learn(f"n{node}", {"d/common": PodUse(1, 50.0), **uses})
    assert profiles.count_votes() <= VOTES
    assert profiles.find("d/common").nodes == WITNESSES  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ["", "x", "[]", '{"version":1}', "9" * 100_000, '{"version":1,"workloads":{"a":1}}']
)
def test_an_annotation_that_makes_no_sense_is_as_none(text: str) -> None:
    world = World()
    world.load("plain", mean_cpu_util=0.4, cpus=32.0)
    load = NodeLoad(world.clock.wall_ns() / 1e9, 20, None, {"mean_cpu_util": 0.4, "cpus": 32.0})
    world.annotate("odd", {WINDOW_KEY: render_load(load), WORKLOADS_KEY: text})
    assert len(set(ask(world, "x").values())) == 1
