"""From an agent's /live to the queue: each table once, and gaps stay gaps."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPMessage
from pathlib import Path
from typing import Any, cast

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from tests.support import FixtureNode, TurnableClock

from nodescope.base.errors import HttpFailed, SettingsRejected
from nodescope.commands.peers.push import describe, find_endpoint, parse_headers, read_headers
from nodescope.publish.live import Live
from nodescope.serve.http_client import HttpAnswer, HttpClient, parse_endpoint
from nodescope.use.push.agent_frames import AgentFrames
from nodescope.use.push.push_queue import PushCounters, PushQueue
from nodescope.use.push.pusher import Pusher
from nodescope.use.push.request import RequestEncoder
from nodescope.use.push.resource import describe_node


@dataclass
class AgentAnswers:
    """An agent's own /live, asked without a socket; away while `is_away`."""

    live: Live
    is_away: bool = False
    body: bytes | None = None
    endpoint: Any = field(default_factory=lambda: parse_endpoint("http://agent:9100"))

    def read(self, target: str, headers: Mapping[str, str]) -> HttpAnswer:
        if self.is_away:
            raise HttpFailed("http://agent:9100", "Connection refused")
        tail = self.live.read(target.partition("since=")[2])
        head = Message()
        head["Nodescope-Cursor"] = tail.cursor
        head["Nodescope-More"] = "true" if tail.more else "false"
        head["Authorization"] = headers.get("Authorization", "")
        return HttpAnswer(200, "", cast(HTTPMessage, head), tail.body if self.body is None else self.body)


@dataclass
class Scene:
    node: FixtureNode
    answers: AgentAnswers
    pusher: Pusher

    def tick(self, seconds: float = 1.0) -> None:
        self.node.clock.advance(round(seconds * 1e9))
        self.node.tick()

    def push(self) -> dict[str, list[int]]:
        """Times by name, of everything that was queued by one push."""
        self.pusher.read()
        self.pusher.push()
        times: dict[str, list[int]] = {}
        while request := self.pusher.queue.take(0):
            parsed = ExportMetricsServiceRequest.FromString(gzip.decompress(request.body))
            for group in parsed.resource_metrics:
                for metric in group.scope_metrics[0].metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    times.setdefault(metric.name, []).extend(point.time_unix_nano for point in points)
        return times


@pytest.fixture
def scene(tmp_path: Path) -> Any:
    node = FixtureNode("cgroup2-systemd", tmp_path)
    answers = AgentAnswers(Live(node.parts.ring, "run1", "n1"))
    frames = AgentFrames(cast(HttpClient, answers))
    pusher = Pusher(
        frames, PushQueue(2**24), lambda name: RequestEncoder(describe_node(name, "")), TurnableClock(), 10.0
    )
    yield Scene(node, answers, pusher)
    node.close()


def test_of_each_table_the_newest_is_pushed_with_its_own_time(scene: Scene) -> None:
    for _ in range(3):
        scene.tick()
    newest = scene.node.parts.ring.newest()
    assert newest is not None
    times = scene.push()
    assert times["node_load1"] == [newest.at_ns]
    assert times["nodescope_push_points_total"]
    assert scene.pusher.frames.node == "n1"


def test_what_was_not_read_again_is_not_pushed_again(scene: Scene) -> None:
    scene.tick()
    assert "system.cpu.time" in scene.push()
    assert scene.push() == {}


def test_an_agent_that_is_away_leaves_a_gap(scene: Scene) -> None:
    scene.tick()
    before = scene.push()
    scene.answers.is_away = True
    assert scene.push() == {}
    assert scene.pusher.reason == "Connection refused"
    scene.answers.is_away = False
    scene.tick(30)
    after = scene.push()
    assert scene.pusher.reason == ""
    assert after["node_load1"][0] - before["node_load1"][0] == 30 * 10**9


def test_ticks_that_left_the_ring_are_counted(scene: Scene) -> None:
    scene.tick()
    scene.push()
    for _ in range(200):
        scene.tick()
    scene.push()
    held = scene.node.parts.ring.since(-1)[1]
    assert scene.pusher.queue.counters.missed_ticks == 200 - len(held) > 0


def test_an_answer_that_is_none_of_ours_is_said(scene: Scene) -> None:
    scene.answers.body = b"<html>this is a proxy, and it is long enough for a head</html>"
    assert scene.push() == {}
    scene.answers.body = b"\x00"
    assert scene.push() == {}


def test_what_is_lost_is_said_at_the_end() -> None:
    counters = PushCounters(sent=1200, requests=3, missed_ticks=2)
    counters.lost["queue_full"] = 40
    counters.lost["refused"] = 0
    assert (
        describe(counters)
        == "1,200 points sent in 3 requests; 40 lost (queue full); 2 ticks of the agent missed"
    )


@pytest.mark.parametrize(
    "url", ["collector:4318", "ftp://x", "http://u:p@x", "http://x/?key=1", "http://[", "http://x:999999"]
)
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(SettingsRejected, match="--to"):
        find_endpoint(url, "--to", None, 4318)


def test_the_port_is_otlp_s_own_unless_given() -> None:
    assert find_endpoint("http://x", "--to", None, 4318).port == 4318
    assert find_endpoint("https://x/v1/metrics", "--to", None, 4318).port == 443


def test_headers_hold_while_their_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("Authorization: Bearer a:b\n\nX-Scope-OrgID: t\n")
    read = read_headers(file)
    assert read() == {"Authorization": "Bearer a:b", "X-Scope-OrgID": "t"}
    file.unlink()
    assert read()["X-Scope-OrgID"] == "t"
    file.write_text("X-Scope-OrgID: u\n")
    assert read() == {"X-Scope-OrgID": "u"}


@pytest.mark.parametrize("text", ["secret-without-a-name", "a b: c", ": x", ""])
def test_a_wrong_line_is_told_by_its_number_alone(text: str) -> None:
    with pytest.raises(SettingsRejected) as caught:
        parse_headers(text)
    assert "secret" not in str(caught.value)
