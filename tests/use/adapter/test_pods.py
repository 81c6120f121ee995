"""Which pods match, where they are, and whose agent answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.errors import RequestRejected
from nodescope.use.adapter.label_selector import parse_selector
from nodescope.use.adapter.metric_table import list_names, parse_metric, render_quantity
from nodescope.use.adapter.pod_index import PodIndex

AGENTS = "app=agent"


def make_pod(
    name: str, node: str = "n1", ip: str = "", phase: str = "Running", **labels: str
) -> dict[str, Any]:
    about = {
        "namespace": "shop",
        "name": name,
        "uid": f"uid-{name}",
        "labels": labels,
        "creationTimestamp": name,
    }
    return {"metadata": about, "spec": {"nodeName": node}, "status": {"phase": phase, "podIP": ip}}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier!=back", True),
        ("app in (web, api)", True),
        ("app notin (web)", False),
        ("app", True),
        ("!app", False),
        ("!example.com/gone", True),
        ("app=web,tier in (a,b)", False),
        ("app!=web", False),
        ("tier notin (a,b)", True),
        ("empty=", True),
    ],
)
def test_a_selector_means_what_kubernetes_says(selector: str, matches: bool) -> None:
    assert parse_selector(selector)({"app": "web", "empty": ""}) is matches


@pytest.mark.parametrize("selector", ["app=we b", "=x", "a in b", "a in (b", "a;b", "a=(b)", "x" * 400])
def test_what_is_no_selector_is_refused_with_what_is_accepted(selector: str) -> None:
    with pytest.raises(RequestRejected, match="accepted: a=b"):
        parse_selector(selector)


@examples(200)
@given(st.text(max_size=60))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    """forall texts: no other error."""
    try:
        parse_selector(text)({"a": "b"})
    except RequestRejected:
        return


@examples(100)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz"), st.booleans()), max_size=40))
def test_the_index_is_what_was_told_last(steps: list[tuple[str, str, bool]]) -> None:
    """forall sequences of changes and removals: exactly the pods that are left, with their last labels."""
    index, truth = PodIndex(AGENTS), {}
    for name, label, is_there in steps:
        item = make_pod(name, app=label)
        if is_there:
            index.change(item)
            truth[name] = label
        else:
            index.remove(item)
            truth.pop(name, None)
    for label in "xyz":
        found = {pod.name for pod in index.select("shop", f"app={label}")}
        assert found == {name for name, mine in truth.items() if mine == label}
    assert len(index) == len(truth)


def test_a_new_list_replaces_everything_and_one_that_breaks_off_nothing() -> None:
    index = PodIndex(AGENTS)
    index.replace([make_pod("a", app="web"), make_pod("b", app="web")])

    def broken() -> Any:
        yield make_pod("c", app="web")
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        index.replace(broken())
    assert {pod.name for pod in index.select("shop", "")} == {"a", "b"}
    index.replace([make_pod("c", app="web")])
    assert {pod.name for pod in index.select("shop", "")} == {"c"}
    assert index.find("shop", "a") is None


def test_the_newer_of_two_agents_of_a_node_is_asked() -> None:
    """During a rollout; the older goes on answering until it is gone."""
    index = PodIndex(AGENTS)
    index.change(make_pod("agent-1", ip="10.0.0.1", app="agent"))
    index.change(make_pod("agent-2", ip="", app="agent"))
    assert index.find_agent("n1").address == "10.0.0.1"  # type: ignore[union-attr]
    index.change(make_pod("agent-2", ip="10.0.0.2", app="agent"))
    assert index.find_agent("n1").address == "10.0.0.2"  # type: ignore[union-attr]
    index.remove(make_pod("agent-2"))
    index.remove(make_pod("agent-1"))
    assert index.find_agent("n1") is None
    assert index.list_nodes() == []


def test_a_pod_of_another_namespace_is_no_agent() -> None:
    """Whoever may create pods somewhere must not be able to answer for a node."""
    index = PodIndex(AGENTS, "nodescope")
    index.change(make_pod("agent-1", ip="10.0.0.1", app="agent"))
    assert index.find_agent("n1") is None


def test_a_metric_has_a_number_and_a_statistic() -> None:
    asked = parse_metric("cpu_p95", "pods")
    assert (asked.number, asked.place, asked.of_node) == ("cpu", 1, False)
    assert parse_metric("node_mem_bw", "pods").of_node
    assert parse_metric("mem_bw_max", "nodes").factor == 1e9
    with pytest.raises(RequestRejected, match="cpu_contention"):
        parse_metric("cpu_contentoin", "pods")


@pytest.mark.parametrize("resource", ["pods", "nodes"])
def test_every_name_that_is_listed_can_be_asked_for(resource: str) -> None:
    assert all(parse_metric(name, resource).name == name for name in list_names(resource))


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.1234, "123m"), (2.0, "2"), (1234567.8, "1234568"), (0.0004, "0m")]
)
def test_a_value_is_a_quantity(value: float, text: str) -> None:
    assert render_quantity(value) == text
