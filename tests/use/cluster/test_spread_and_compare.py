"""Workloads over nodes with their spread; two nodes or two ranges beside each other."""

import pytest
from tests.use.cluster.fake_nodes import END_MS, FakeNode, Later, make_cluster

from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.use.cluster.asked_node import WorkloadOnNode
from nodescope.use.cluster.comparison import ComparedSide, compare
from nodescope.use.cluster.spread import join_workloads, matches

HOUR = TimeRange(END_MS - 3_600_000, END_MS - 1)
EARLIER = TimeRange(END_MS - 7_200_000, END_MS - 3_600_001)


def on_node(name: str, used: float, unit: str = "cores", pods: int = 1) -> WorkloadOnNode:
    return WorkloadOnNode("shop", name, "Deployment", pods, 0, used, unit)


def test_a_workload_has_the_least_median_and_most_of_its_nodes() -> None:
    replies = {
        "a": [on_node("api", 1.0), on_node("web", 9.0)],
        "b": [on_node("api", 3.0)],
        "c": [on_node("api", 2.0)],
    }
    web, api = join_workloads(replies)
    assert (web.name, web.size) == ("web", 9.0)
    assert (api.least, api.middle, api.most, api.total, api.pods) == (1.0, 2.0, 3.0, 6.0, 3)
    assert api.on_nodes == (("b", 3.0), ("c", 2.0), ("a", 1.0))
    assert api.sentence == '"shop/api" on 3 nodes: 1 cores to 3 cores, median 2 cores; most on b.'


def test_shares_of_time_do_not_add_up() -> None:
    [one] = join_workloads({"a": [on_node("api", 0.2, "ratio")], "b": [on_node("api", 0.4, "ratio")]})
    assert one.total is None
    assert one.size == 0.4


def test_a_filter_takes_words_in_any_order() -> None:
    [one] = join_workloads({"a": [on_node("checkout-api", 1.0)]})
    assert matches(one, "api shop")
    assert not matches(one, "api media")


def test_two_nodes_in_one_range() -> None:
    cluster = make_cluster(
        a=FakeNode({"cpu": 2.0, "memory": 50.0}, workloads=(on_node("api", 1.0), on_node("web", 0.5))),
        b=FakeNode({"cpu": 6.0, "memory": 51.0}, workloads=(on_node("api", 4.0),)),
    )
    compare(cluster.gatherer, ComparedSide("a", HOUR), ComparedSide("b", HOUR), "cpu", "cpu")
    found = compare(cluster.gatherer, ComparedSide("a", HOUR), ComparedSide("b", HOUR), "cpu", "cpu")
    levels = {row.what: (row.left, row.right) for row in found.measures}
    assert levels["cpu"] == (0.25, 0.75)
    assert levels["gpu"] == (None, None)
    assert [(row.what, row.left, row.right) for row in found.rows] == [
        ("shop/api", 1.0, 4.0),
        ("shop/web", 0.5, None),
    ]
    assert found.sentence.startswith("CPU differs most: 25 % and 75 %. Of workloads, shop/api: ")


def test_two_nodes_are_compared_without_asking_others_for_their_workloads() -> None:
    """And what is said of the questions is how many nodes have not answered, never more than there are."""
    nodes = {name: FakeNode({"cpu": 1.0}) for name in ("a", "b", "c")}
    cluster = make_cluster(Later(), **nodes)
    found = compare(cluster.gatherer, ComparedSide("a", HOUR), ComparedSide("b", HOUR), "cpu", "cpu")
    assert found.asking == 3
    assert isinstance(cluster.executor, Later)
    cluster.executor.run()
    assert [len(one.ranked) for one in nodes.values()] == [1, 1, 0]


def test_two_ranges_of_all_nodes() -> None:
    """Counts are sums, shares are means; nodes are listed by what changed."""
    cluster = make_cluster(a=FakeNode({"cpu": 2.0}), b=FakeNode({"cpu": 4.0}))
    for _ in range(2):
        found = compare(cluster.gatherer, ComparedSide("", EARLIER), ComparedSide("", HOUR), "cpu", "cpu")
    assert found.kind == "nodes"
    assert {row.what: (row.left, row.right) for row in found.measures}["cpu"] == (0.375, 0.375)
    assert [row.what for row in found.rows] == ["a", "b"]


def test_a_node_that_is_not_there_is_answered_with_the_nearest() -> None:
    cluster = make_cluster(worker_1=FakeNode())
    with pytest.raises(RequestRejected, match='no node "worker-2"; did you mean "worker-1"'):
        compare(cluster.gatherer, ComparedSide("worker-2", HOUR), ComparedSide("", HOUR), "cpu", "cpu")
