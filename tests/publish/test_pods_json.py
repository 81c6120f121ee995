"""GET /pods of an agent: every pod of the node, in both forms."""

from pathlib import Path

import pytest
from tests.nodes.pods import WEB
from tests.support import FixtureNode, request_all

from nodescope.use.adapter.reports import parse_report, pick_number


@pytest.fixture
def node(tmp_path: Path) -> FixtureNode:
    made = FixtureNode("cgroup2-systemd", tmp_path)
    made.run()
    return made


def test_both_forms_say_the_same_and_the_adapter_reads_the_shorter(node: FixtureNode) -> None:
    whole, lines = request_all(node.parts, ["/pods", "/pods?seconds=20&form=lines"])
    pods = {pod["uid"]: pod for pod in whole.json()["pods"]}
    assert (pods[WEB.uid]["namespace"], pods[WEB.uid]["pod"]) == ("shop", WEB.name)
    report = parse_report(lines.content, node.clock)
    for uid, pod in pods.items():
        for name, values in pod["metrics"].items():
            assert [pick_number(report.read_pod(uid), name, place) for place in range(3)] == values
    assert set(report.metrics) == set(whole.json()["metrics"])


def test_a_pod_s_window_is_that_of_its_containers(node: FixtureNode) -> None:
    """The same numbers as /window tells of containers, added up."""
    pods, containers = request_all(node.parts, ["/pods", "/window?scope=container&stats=max&metrics=memory"])
    (mine,) = [pod for pod in pods.json()["pods"] if pod["uid"] == WEB.uid]
    parts = [
        one["metrics"]["max_memory"]
        for one in containers.json()["entities"]
        if one["labels"]["pod_uid"] == WEB.uid and "max_memory" in one["metrics"]
    ]
    assert mine["metrics"]["memory"][2] == pytest.approx(sum(parts), rel=1e-3)


@pytest.mark.parametrize(("query", "said"), [("form=xml", "json, lines"), ("seconds=0", "more than 0")])
def test_what_cannot_be_is_refused_with_what_is_accepted(node: FixtureNode, query: str, said: str) -> None:
    (refused,) = request_all(node.parts, [f"/pods?{query}"])
    assert refused.status_code == 400
    assert said in refused.json()["detail"]
