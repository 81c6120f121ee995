"""Where no watcher ran, a leak that ends at a limit soon is told first; what only looks like one is not."""

from pathlib import Path

import numpy as np
import pytest
from tests.stories.generate.archive import write_archive
from tests.stories.generate.cluster import MIB, Workload
from tests.stories.generate.machine import StoryNode
from tests.stories.story import END_MS
from tests.use.mcp.asking import asking

from nodescope.base.block import Floats
from nodescope.base.clock import SystemClock
from nodescope.use.answers.node_summary.nearing import seconds_left
from nodescope.use.answers.node_summary.wrongs import NodeWrongs, parse_wrongs, read_wrongs, render_wrongs
from nodescope.use.answers.snapshots import NodeFolders

SECONDS = 3600


def rise(start: float, per_hour: float, begins: int = 0) -> Floats:
    noise = np.random.default_rng(5).normal(0, MIB / 4, SECONDS)
    return start * MIB + np.maximum(np.arange(SECONDS) - begins, 0) * per_hour * MIB / 3600 + noise


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two leaks, of which one reaches its limit in days; a start that levels off; one that has gone; one without a limit."""
    node = StoryNode("node-a", 11, SECONDS, END_MS, cores=8)
    limit = 512 * MIB
    warm = 300 * MIB * (1 - np.exp(-np.arange(SECONDS) / 500)) + 100 * MIB
    node.run(Workload("billing", namespace="pay", memory_limit=limit), anon=rise(150, 120))
    node.run(Workload("slow", namespace="pay", memory_limit=limit), anon=rise(150, 6))
    node.run(Workload("warm", namespace="pay", memory_limit=limit), anon=warm)
    node.run(Workload("gone", namespace="pay", memory_limit=limit), end=SECONDS - 300, anon=rise(150, 120))
    node.run(Workload("free", namespace="pay"), anon=rise(150, 120))
    made = tmp_path_factory.mktemp("nearing") / "node-a"
    write_archive(made, node, is_short=True)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> NodeWrongs:
    (one,) = read_wrongs(NodeFolders([folder], SystemClock()).view())
    return one


def test_the_leak_that_ends_soon_is_told_and_no_other(found: NodeWrongs) -> None:
    (leak,) = found.findings
    assert (leak.namespace, leak.workload, leak.kind, leak.severity) == (
        "pay",
        "billing",
        "memory_leak",
        "kill",
    )
    # 150 + 30 MiB of page cache + 120 of 512 MiB are used, at 120 MiB an hour.
    assert leak.time_to_limit_seconds == pytest.approx((512 - 300) / 120 * 3600, rel=0.1)
    assert not found.is_watched
    assert not found.is_healthy


def test_it_is_the_headline_and_the_next_call_is_about_it(folder: Path) -> None:
    with asking(folder) as asker:
        answer = asker.ask("what_is_wrong")
    assert answer["status"] == "found"
    assert answer["headline"].startswith('1 thing is wrong on node-a: "pay/billing": Memory rises steadily')
    assert answer["findings"][0]["evidence"]["severity"] == "kill"
    assert answer["next"]["arguments"]["container"] == "billing"
    assert "memory that nears its limit on node-a" in answer["looked_at"]


def test_a_viewer_says_the_same(found: NodeWrongs) -> None:
    parsed = parse_wrongs(render_wrongs([found]), "node-a")
    assert parsed is not None
    assert (parsed.findings, parsed.sentence) == (found.findings, found.sentence)


@pytest.mark.parametrize(
    ("share", "left"),
    [
        (np.linspace(0.2, 0.4, 240), 3 * 240.0),
        (np.linspace(0.4, 0.2, 240), np.inf),
        (np.full(240, 0.99), np.inf),
        (np.full(240, np.nan), np.inf),
        (np.linspace(0.2, 0.4, 5), np.inf),
        # Its last fifth alone rises: a late leak.
        (np.concatenate([np.full(192, 0.5), np.linspace(0.5, 0.6, 48)]), 4 * 48.0),
    ],
)
def test_the_time_that_is_left_by_means(share: Floats, left: float) -> None:
    """Steps of one second."""
    assert seconds_left(share, 1.0) == pytest.approx(left, rel=0.05)
