"""Leases of nodes beside their annotations: the newer counts, and each alone is enough."""

from typing import Any

from tests.use.scheduler.test_balance import ask
from tests.use.scheduler.world import World

from nodescope.base.workload.pod_use import NodeWorkloads
from nodescope.fpga.node_lease import name_lease
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.node_workloads import WORKLOADS_KEY, render_workloads
from nodescope.fpga.state import KEY


def build_lease(world: World, node: str, age_seconds: float = 0.0, **metrics: float) -> dict[str, Any]:
    load = NodeLoad(world.clock.wall_ns() / 1e9 - age_seconds, 20, None, metrics)
    return {"metadata": {"name": name_lease(node), "annotations": {WINDOW_KEY: render_load(load)}}}


def find_util(world: World, node: str) -> float | None:
    found = world.nodes.find(node)
    assert found is not None
    return found.load.metrics["mean_cpu_util"] if found.load else None


def test_a_window_in_the_lease_counts_as_one_at_the_node_does() -> None:
    world = World()
    for name in ("busy", "idle"):
        world.annotate(name, {})
    world.nodes.leases.change(build_lease(world, "busy", mean_cpu_util=0.9))
    world.nodes.leases.change(build_lease(world, "idle", mean_cpu_util=0.1))
    scores = ask(world)
    assert scores["idle"] > scores["busy"]


def test_the_newer_of_the_two_counts_whichever_comes_last() -> None:
    """An agent that was updated, one that was rolled back, and one that lost its right for a while."""
    world = World()
    world.load("n", mean_cpu_util=0.2)
    world.nodes.leases.change(build_lease(world, "n", age_seconds=60, mean_cpu_util=0.8))
    assert find_util(world, "n") == 0.2
    world.clock.advance(10**9)
    world.nodes.leases.change(build_lease(world, "n", mean_cpu_util=0.8))
    assert find_util(world, "n") == 0.8
    world.clock.advance(10**9)
    world.load("n", mean_cpu_util=0.3)
    assert find_util(world, "n") == 0.3


def test_a_lease_that_goes_leaves_what_the_node_says() -> None:
    world = World()
    world.annotate("n", {})
    lease = build_lease(world, "n", mean_cpu_util=0.8)
    world.nodes.leases.change(lease)
    world.nodes.leases.remove(lease)
    assert find_util(world, "n") is None
    world.nodes.leases.replace([lease, {"metadata": {"name": "somebody-else"}}])
    assert find_util(world, "n") == 0.8
    world.nodes.leases.replace([])
    assert find_util(world, "n") is None


def test_a_lease_may_come_before_its_node() -> None:
    world = World()
    world.nodes.leases.change(build_lease(world, "n", mean_cpu_util=0.8))
    assert len(world.nodes) == 0
    world.nodes.replace([{"metadata": {"name": "n"}}])
    assert find_util(world, "n") == 0.8


def test_a_lease_says_nothing_of_fpgas_and_labels() -> None:
    """Whoever may write a Lease may not claim what belongs to the Node."""
    world = World()
    world.annotate("n", {})
    lease = build_lease(world, "n", mean_cpu_util=0.8)
    lease["metadata"]["labels"] = {"fpga-scheduling.io/fpga-vendor": "amd"}
    lease["metadata"]["annotations"][KEY] = '{"version": 2}'
    world.nodes.leases.change(lease)
    found = world.nodes.find("n")
    assert found is not None
    assert (found.vendor, found.fpga) == ("", None)
    assert "no FPGA event" in found.fpga_reason


def test_garbage_in_a_lease_leaves_the_node_s_window() -> None:
    world = World()
    world.load("n", mean_cpu_util=0.2)
    world.nodes.leases.change({"metadata": {"name": name_lease("n"), "annotations": {WINDOW_KEY: "{"}}})
    assert find_util(world, "n") == 0.2


def test_workloads_are_learned_from_a_lease() -> None:
    world = World()
    world.annotate("n", {})
    told = render_workloads(NodeWorkloads(world.clock.wall_ns() / 1e9, {}))
    notes = {WORKLOADS_KEY: told}
    world.nodes.leases.change({"metadata": {"name": name_lease("n"), "annotations": notes}})
    found = world.nodes.find("n")
    assert found is not None
    assert found.outlook is not None
