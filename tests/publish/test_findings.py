"""The agent tells what is wrong: as JSON, as events, as metrics; and listens to what people say."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.support import FixtureNode, build_parts_at, request_all

from nodescope.publish.findings_json import (
    LISTENERS_MOST,
    FindingStream,
    StreamPlaces,
    StreamsFull,
    listen,
    parse_last_id,
    wants_stream,
)
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.sighting import FindingSubject, Sighting
from nodescope.watch.watcher import Watcher
from nodescope.wiring import build_agent_app

LEAK = Sighting(
    "memory_leak",
    "kill",
    FindingSubject("shop", "catalog", "catalog-1", 'app"\n', "4841cfc03d50"),
    900.0,
    "shop/catalog reaches its limit in 50 min.",
    is_sure=True,
    time_to_limit_seconds=3000.0,
)


@pytest.fixture
def node(tmp_path: Path) -> FixtureNode:
    made = FixtureNode("cgroup2-systemd", tmp_path)
    made.run()
    return made


def watcher_of(node: FixtureNode) -> Watcher:
    watcher = node.parts.watcher
    assert watcher is not None
    return watcher


def test_a_healthy_node_says_so_in_one_line(node: FixtureNode) -> None:
    """Before the first look there is no answer, which is not the same as a good one."""
    (early,) = request_all(node.parts, ["/findings"])
    assert early.status_code == 503
    watcher_of(node).step()
    (answer,) = request_all(node.parts, ["/findings"])
    content = answer.json()
    assert content["findings"] == []
    assert content["sentence"] == (
        f"Nothing is wrong on cgroup2-systemd ({content['containers']} containers)."
    )
    assert content["containers"] > 0


def test_a_finding_is_told_by_json_and_metrics(node: FixtureNode) -> None:
    """A name with a quote and a line break stays within its label; a suspicion is no series."""
    watcher = watcher_of(node)
    watcher.step()
    watcher.store.see(LEAK, 1000.0)
    watcher.store.see(replace(LEAK, kind="disk_full", is_sure=False), 1000.0)
    findings, metrics = request_all(node.parts, ["/findings", "/metrics"])
    assert [one["kind"] for one in findings.json()["findings"]] == ["memory_leak", "disk_full"]
    lines = [line for line in metrics.text.splitlines() if line.startswith("nodescope_finding_info")]
    labels = 'kind="memory_leak",namespace="shop",workload="catalog",container="app\\"\\n",device=""'
    assert lines == [f'nodescope_finding_info{{{labels},severity="kill",silenced="false"}} 1']
    assert f"nodescope_time_to_limit_seconds{{{labels}}} 3000" in metrics.text
    assert 'nodescope_findings{severity="kill"} 1' in metrics.text
    assert 'nodescope_findings{severity="hurt"} 0' in metrics.text


def test_nobody_is_asked_when_the_watcher_is_off(tmp_path: Path) -> None:
    node = FixtureNode("cgroup2-systemd", tmp_path)
    parts = build_parts_at(node.root, node.clock, watch=False)
    answer, metrics = request_all(parts, ["/findings", "/metrics"])
    assert answer.status_code == 404
    assert "watch = false" in answer.json()["detail"]
    assert "nodescope_findings" not in metrics.text


def post(node: FixtureNode, body: bytes) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=build_agent_app(node.parts))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/findings", content=body)

    return asyncio.run(ask())


def test_feedback_is_taken_and_what_is_none_is_refused(node: FixtureNode) -> None:
    watcher = watcher_of(node)
    seen = watcher.store.see(LEAK, 1000.0)
    assert seen is not None
    said = post(node, json.dumps({"id": seen.id, "verdict": "not_a_problem"}).encode())
    assert (said.status_code, said.json()["severity"]) == (200, "curious")
    for body, status in (
        (b"{", 400),
        (b"[" * 5000, 400),
        (b"[]", 400),
        (b'{"id": 3, "verdict": "x"}', 400),
        (json.dumps({"id": seen.id, "verdict": "fine"}).encode(), 400),
        (b'{"id": "nobody", "verdict": "a_problem"}', 404),
        (b"x" * 200_000, 413),
    ):
        assert post(node, body).status_code == status


def test_a_listener_hears_what_is_open_and_then_every_change() -> None:
    """With Last-Event-ID it goes on where it was, and hears nothing twice."""
    store = FindingStore("node-a")
    store.see(LEAK, 1000.0)

    async def hear(last: int, count: int) -> list[bytes]:
        heard = []
        events = listen(store, last)
        await anext(events)
        for _ in range(count):
            heard.append(await anext(events))
            if len(heard) == 1:
                store.resolve(LEAK.key, 1001.0)
        await events.aclose()
        return heard

    first, second = asyncio.run(hear(-1, 2))
    assert first.startswith(b"event: finding\nid: 1\ndata: {")
    assert b'"state":"resolved"' in second.replace(b" ", b"")
    assert asyncio.run(hear(1, 1)) == [second]
    assert [parse_last_id(text, 9) for text in ("", "x", "5", "12", "\u0663", "9" * 40)] == [
        -1,
        -1,
        5,
        9,
        -1,
        -1,
    ]


def test_listeners_are_bounded_and_take_no_turn() -> None:
    """The one too many is refused in words; a listener does not keep a scrape waiting."""
    store, places = FindingStore("node-a"), StreamPlaces()
    for _ in range(LISTENERS_MOST):
        FindingStream(store, "", places)
    with pytest.raises(StreamsFull, match="16 listen already"):
        FindingStream(store, "", places)
    scope = {"path": "/findings", "method": "GET", "headers": [(b"accept", b"text/event-stream")]}
    assert wants_stream(scope)
    assert not wants_stream({**scope, "headers": []})
    assert not wants_stream({**scope, "path": "/metrics"})


def test_what_is_silenced_is_shown_marked_and_pages_nobody(node: FixtureNode) -> None:
    """On /findings and /metrics; ended, it is as before."""
    watcher = watcher_of(node)
    watcher.step()
    watcher.store.see(LEAK, node.clock.wall_ns() / 1e9)
    wanted = {"labels": {"workload": "cat*", "kind": "memory_leak"}, "seconds": 3600, "comment": "load\ntest"}
    said = post(node, json.dumps({"silence": wanted}).encode())
    assert said.status_code == 200
    identity = said.json()["id"]
    findings, metrics = request_all(node.parts, ["/findings", "/metrics"])
    content = findings.json()
    assert [one["silenced"] for one in content["findings"]] == [identity]
    assert content["sentence"].startswith("Nothing is wrong on cgroup2-systemd")
    assert [one["comment"] for one in content["silences"]] == ["load test"]
    assert 'severity="kill",silenced="true"} 1' in metrics.text
    assert 'nodescope_findings{severity="kill"} 0' in metrics.text
    assert "nodescope_findings_silenced 1" in metrics.text
    assert post(node, json.dumps({"end_silence": "nobody"}).encode()).status_code == 404
    assert post(node, json.dumps({"end_silence": identity}).encode()).status_code == 200
    (findings,) = request_all(node.parts, ["/findings"])
    assert [one["silenced"] for one in findings.json()["findings"]] == [""]
    assert findings.json()["silences"] == []
