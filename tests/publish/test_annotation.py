"""The annotation's pace: seldom, on what matters, and never over what an earlier run left."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import FixtureNode, TurnableClock

from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.fpga.node_load import NodeLoad
from nodescope.fpga.node_workloads import parse_workloads
from nodescope.fpga.state import KEY, STATE_BYTES
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker
from nodescope.publish.annotated_object import NodeObject
from nodescope.publish.annotation import AnnotationCounters, Annotator
from nodescope.publish.annotation_content import build_fpga_content, build_window_content, differs, read_load
from nodescope.publish.workload_content import build_workloads_content

SECOND = 1_000_000_000


class Node:
    """Stands in for the client of one node: keeps what was patched, fails when told to."""

    def __init__(self, annotations: Mapping[str, str] | None = None) -> None:
        self.annotations = dict(annotations or {})
        self.patches: list[str] = []
        self.fault: Exception | None = None

    def read(self, path: str) -> dict[str, Any]:
        if self.fault:
            raise self.fault
        return {"metadata": {"annotations": dict(self.annotations)}}

    def close(self) -> None: ...

    def patch(
        self, path: str, change: dict[str, Any], query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        if self.fault:
            raise self.fault
        if query == {"dryRun": "All"}:
            return {}
        assert list(change) == ["metadata"]
        assert list(change["metadata"]) == ["annotations"]
        self.annotations |= change["metadata"]["annotations"]
        self.patches.append(self.annotations.get(KEY, ""))
        return {}


class Scene:
    """An annotator whose time is turned by hand."""

    def __init__(self, node: Node, chance: float = 0.0) -> None:
        self.node = node
        self.clock = TurnableClock()
        self.tracker = FpgaTracker(self.clock)
        client: Any = node
        self.annotator = Annotator(
            NodeObject(client, "n"),
            [build_fpga_content(self.tracker)],
            self.clock,
            AnnotationCounters(),
            lambda: chance,
        )

    def use(self, usage_ms: float, bitstream: str = "") -> None:
        self.tracker.accept(FpgaEvent(self.tracker.now_ms(), usage_ms=usage_ms, bitstream=bitstream))

    def run(self, seconds: float) -> int:
        """How many writes there were."""
        before = len(self.node.patches)
        until = self.clock.mono_ns() + round(seconds * SECOND)
        while self.clock.mono_ns() < until:
            self.clock.advance(round(self.annotator.step() * SECOND))
        return len(self.node.patches) - before


def test_nothing_is_written_before_the_first_event() -> None:
    assert Scene(Node()).run(300) == 0


def test_the_first_event_is_written_at_once() -> None:
    scene = Scene(Node())
    scene.run(5)
    scene.use(100, "def")
    assert scene.run(2) == 1
    assert json.loads(scene.node.annotations[KEY])["recentBitstreamIdentifiers"] == {"def": {}}


def test_the_first_event_does_not_wait_for_the_other_note() -> None:
    """A window written a moment ago is no reason to keep a new node's FPGA from the scheduler."""
    scene = Scene(Node())
    scene.annotator.contents = [
        *scene.annotator.contents,
        build_window_content(lambda: load(mean_cpu_util=0.5)),
    ]
    assert scene.run(3) == 1
    scene.use(100, "def")
    assert scene.run(2) == 1
    assert "def" in scene.node.patches[-1]
    scene.use(100, "abc")
    assert scene.run(5) == 0


def test_any_rate_gives_at_most_seven_writes_a_minute_of_at_most_a_kib() -> None:
    """1,000 events/s for 60 s, each of another bitstream."""
    scene = Scene(Node())
    for second in range(60):
        for number in range(1000):
            scene.use(1, f"bitstream-{second}-{number}")
        scene.run(1)
    assert 6 <= len(scene.node.patches) <= 7
    assert max(len(text.encode()) for text in scene.node.patches) <= STATE_BYTES
    assert scene.tracker.read().totals.events == 60_000


def test_a_quiet_node_still_says_that_it_is_there() -> None:
    """Every 60 s or a little sooner, whatever chance says."""
    for chance in (0.0, 1.0):
        scene = Scene(Node(), chance)
        scene.use(1)
        scene.run(400)
        assert 5 <= scene.run(600) - 4 <= 8


def test_what_an_earlier_run_left_is_taken_over_before_the_first_write() -> None:
    """An agent that restarts with the server away must not begin with an empty window."""
    first = Scene(Node())
    first.use(5000, "a")
    first.run(2)
    node = Node({KEY: first.node.annotations[KEY], "human": "kept"})
    node.fault = KubernetesAway("no answer")
    second = Scene(node)
    second.use(10, "b")
    second.run(20)
    assert node.patches == []
    node.fault = None
    second.run(40)
    written = json.loads(node.patches[0])
    assert written["recentUsage"] == 5010
    assert set(written["recentBitstreamIdentifiers"]) == {"a", "b"}
    assert node.annotations["human"] == "kept"


def test_a_broken_annotation_is_replaced_not_fatal() -> None:
    scene = Scene(Node({KEY: "{garbage"}))
    scene.use(7)
    scene.run(2)
    assert json.loads(scene.node.annotations[KEY])["recentUsage"] == 7


def test_without_the_right_it_says_what_is_needed_and_asks_seldom() -> None:
    node = Node()
    node.fault = KubernetesRefused("403 nodes is forbidden", 403)
    scene = Scene(node)
    scene.use(1)
    pauses = [scene.annotator.step() for _ in range(8)]
    assert pauses[0] <= 1
    assert pauses[-1] >= 30
    assert "get and patch on nodes" in scene.annotator.counters.reason


def load(at_seconds: float = 1.0, health: float | None = 8.0, **metrics: float) -> NodeLoad:
    return NodeLoad(at_seconds, 20, health, metrics)


def test_a_write_can_be_rehearsed() -> None:
    """Empty when it would be taken; the server's word and the remedy when not; nothing is written either way."""
    node = Node()
    scene = Scene(node)
    assert scene.annotator.rehearse() == ""
    node.fault = KubernetesRefused("403 nodes is forbidden", 403)
    assert scene.annotator.rehearse().startswith("403 nodes is forbidden; the account needs get and patch")
    node.fault = KubernetesRefused("401 Unauthorized: its token has expired", 401)
    assert scene.annotator.rehearse() == "401 Unauthorized: its token has expired"
    node.fault = KubernetesAway("no answer")
    assert scene.annotator.rehearse() == "no answer"
    assert node.patches == []


def test_a_node_s_load_is_written_when_it_moved() -> None:
    """Shares by a tenth, health by a point, or another set of features; gigabytes follow."""
    assert not differs(load(mean_cpu_util=0.50), load(mean_cpu_util=0.58))
    assert differs(load(mean_cpu_util=0.50), load(mean_cpu_util=0.61))
    assert differs(load(health=8), load(health=6.9))
    assert differs(load(health=None), load(health=6.9))
    assert differs(load(mean_cpu_util=0.5), load())
    assert not differs(load(mean_mem_bw=10), load(mean_mem_bw=30))


def test_a_window_s_note_says_when_and_over_what() -> None:
    note = build_window_content(lambda: load(1690000000.1234, mean_cpu_util=0.123456, p95_cpu_util=1 / 3))
    content = json.loads(note.look() or "")
    assert (content["version"], content["updatedAt"], content["windowSeconds"]) == (1, 1690000000.123, 20)
    assert (content["health"], content["metrics"]) == (8.0, {"mean_cpu_util": 0.1235, "p95_cpu_util": 0.3333})
    assert note.is_material()
    note.settle()
    note.look()
    assert not note.is_material()


def test_both_notes_go_out_in_one_write() -> None:
    """A write of a Node is told to every watcher of nodes: one is better than two."""
    scene = Scene(Node())
    scene.annotator.contents = [
        *scene.annotator.contents,
        build_window_content(lambda: load(mean_cpu_util=0.5)),
    ]
    scene.run(3)
    assert list(scene.node.annotations) == ["nodescope.io/window"]
    scene.use(5)
    scene.run(15)
    assert set(scene.node.annotations) == {KEY, "nodescope.io/window"}
    assert scene.annotator.counters.written == 2


def test_the_window_says_how_many_cpus_there_are_and_what_is_left_of_pressure(tmp_path: Path) -> None:
    """From a fixture node, through the agent's own ring."""
    node = FixtureNode("cgroup2-systemd", tmp_path)
    node.run()
    found = read_load(node.parts.ring, node.clock)
    assert found is not None
    assert found.metrics["cpus"] >= 1
    assert found.metrics["mean_cpu_contention"] <= found.metrics["mean_cpu_pressure"] + 1e-9


def test_workloads_are_learned_from_the_ring_and_written_seldom(tmp_path: Path) -> None:
    """From a fixture node, through the agent's own ring and the content's own pace."""
    node = FixtureNode("cgroup2-systemd", tmp_path)
    node.run()
    content = build_workloads_content(node.parts.ring, node.clock)
    text = content.look()
    assert text is not None
    found = parse_workloads(text).uses
    assert found
    assert all(use.pods >= 1 and use.cores >= 0 and use.bandwidth is None for use in found.values())
    assert content.is_material()
    content.settle()
    assert content.look() == text
    assert not content.is_material()
