"""Counters of a container are asked for with its window."""

from pathlib import Path

import pytest
from tests.support import FixtureNode, request_all


@pytest.fixture
def node(tmp_path: Path) -> FixtureNode:
    made = FixtureNode("cgroup2-systemd", tmp_path)
    made.run()
    return made


def test_a_window_with_perf_is_a_wish(node: FixtureNode) -> None:
    """The answer comes at once, with what there is; perf is no label to filter by."""
    plain, wished = request_all(
        node.parts, ["/window?scope=container", "/window?scope=container&perf=web&perf=shop/*"]
    )
    assert plain.json()["entities"] == wished.json()["entities"]
    assert node.parts.context.perf_requests.current() == ("web", "shop/*")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("scope=node&perf=web", "scope=container"),
        ("perf=web", "scope=container"),
        ("scope=container&perf=", "namespace/pod/container"),
        (f"scope=container&perf={'x' * 700}", "namespace/pod/container"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_by_name(node: FixtureNode, query: str, said: str) -> None:
    (refused,) = request_all(node.parts, [f"/window?{query}"])
    assert refused.status_code == 400
    assert said in refused.json()["detail"]
    assert node.parts.context.perf_requests.current() == ()
