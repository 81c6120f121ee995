"""Events of pods: one for each finding and state, never twice, whatever becomes of the server and of us."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import FixtureNode, TurnableClock, build_parts_at, request_all

from nodescope.base.errors import KubernetesAway, KubernetesRefused, SettingsRejected
from nodescope.publish.tell.pace import SendPace
from nodescope.publish.tell.pod_event import MESSAGE_BYTES, build_event
from nodescope.publish.tell.pod_event_sender import (
    BURST,
    EVENT_SECONDS,
    EVERY_SECONDS,
    PodEventCounters,
    PodEventSender,
)
from nodescope.watch.finding_store import CHANGES_MOST, UPDATE_SECONDS, FindingStore
from nodescope.watch.sighting import FindingSubject, Sighting
from nodescope.watch.told_ledger import ToldLedger

SECOND = 1_000_000_000
UID = "3b1f0a5c-0000-4000-8000-000000000001"
LEAK = Sighting(
    "memory_leak",
    "kill",
    FindingSubject("shop", "catalog", "catalog-1", "app", "4841cfc03d50", pod_uid=UID),
    900.0,
    "shop/catalog reaches its limit in 50 min.",
    is_sure=True,
    advice="its heap",
    time_to_limit_seconds=3000.0,
)


class Server:
    """Stands in for the client: keeps Events by name as the API server does, fails when told to."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.fault: Exception | None = None
        self.refuse: Mapping[str, KubernetesRefused] = {}

    def interrupt(self) -> None: ...

    def close(self) -> None: ...

    def create(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        name = content["metadata"]["name"]
        self._meet(content["involvedObject"]["name"])
        if name in self.events:
            raise KubernetesRefused(f'409 events "{name}" already exists', 409)
        self.events[name] = dict(content)
        self.writes += 1
        return content

    def patch(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        if name not in self.events:
            raise KubernetesRefused(f'404 events "{name}" not found', 404)
        self._meet(self.events[name]["involvedObject"]["name"])
        self.events[name] |= change
        self.writes += 1
        return self.events[name]

    def _meet(self, pod: str) -> None:
        if self.fault:
            raise self.fault
        if pod in self.refuse:
            raise self.refuse[pod]


class Scene:
    """A store and a sender whose time is turned by hand."""

    def __init__(self, folder: Path | None = None, server: Server | None = None) -> None:
        self.server = server or Server()
        self.clock = TurnableClock()
        self.folder = folder
        self.store = FindingStore("node-a", folder / "findings.json" if folder else None)
        self.open_sender()

    def open_sender(self) -> None:
        client: Any = self.server
        path = self.folder / "events.json" if self.folder else None
        self.counters = PodEventCounters()
        self.sender = PodEventSender(
            client, self.store, self.clock, self.counters, ToldLedger(path), lambda: 0.0
        )
        self.sender.ledger.load(self.now)

    @property
    def now(self) -> float:
        return self.clock.wall_ns() / 1e9

    def see(self, sighting: Sighting) -> None:
        self.store.see(sighting, self.now)

    def run(self, seconds: float) -> None:
        until = self.clock.mono_ns() + round(seconds * SECOND)
        while self.clock.mono_ns() < until:
            self.clock.advance(max(1, round(self.sender.step() * SECOND)))


def test_a_finding_is_one_event_for_each_state() -> None:
    """About the pod, by its uid, in the kubelet's manner; an update again is the same Event with a count."""
    scene = Scene()
    scene.see(LEAK)
    scene.run(5)
    for left in (1500.0, 600.0):
        scene.run(UPDATE_SECONDS)
        scene.see(replace(LEAK, time_to_limit_seconds=left))
    scene.run(5)
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(5)
    (identity,) = {one.id for one in scene.store.recent()}
    states = {name.rpartition("-")[2]: event for name, event in scene.server.events.items()}
    assert list(scene.server.events) == [
        f"nodescope-{identity}-{state}" for state in ("confirmed", "updated", "resolved")
    ]
    first = states["confirmed"]
    assert first["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "catalog-1",
        "uid": UID,
        "fieldPath": "spec.containers{app}",
    }
    assert (first["reason"], first["type"], first["count"]) == ("MemoryLeak", "Warning", 1)
    assert first["message"] == "shop/catalog reaches its limit in 50 min. Look at: its heap"
    assert (first["reportingComponent"], first["reportingInstance"]) == ("nodescope", "node-a")
    assert states["updated"]["count"] == 2
    assert (states["resolved"]["reason"], states["resolved"]["type"]) == ("MemoryLeakResolved", "Normal")
    assert scene.server.writes == scene.counters.written == 4


def test_the_same_state_again_counts_up() -> None:
    scene = Scene()
    scene.see(LEAK)
    for left in (1500.0, 500.0, 2000.0):
        scene.run(UPDATE_SECONDS)
        scene.see(replace(LEAK, time_to_limit_seconds=left))
        scene.run(2)
    (updated,) = [event for name, event in scene.server.events.items() if name.endswith("updated")]
    assert updated["count"] == 3
    assert updated["lastTimestamp"] > updated["firstTimestamp"]


def test_a_server_that_is_away_for_ten_minutes_loses_and_doubles_nothing() -> None:
    """What began, changed and ended meanwhile is told when it is back, in order; many updates are one."""
    scene = Scene()
    scene.server.fault = KubernetesAway("does not answer")
    scene.see(LEAK)
    for left in (1500.0, 600.0):
        scene.run(UPDATE_SECONDS)
        scene.see(replace(LEAK, time_to_limit_seconds=left))
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(10)
    assert scene.counters.failed > 10
    assert "does not answer" in scene.counters.reason
    scene.server.fault = None
    scene.run(60)
    assert [name.rpartition("-")[2] for name in scene.server.events] == ["confirmed", "updated", "resolved"]
    assert [event["count"] for event in scene.server.events.values()] == [1, 2, 1]
    scene.run(1200)
    assert scene.server.writes == 3
    assert scene.counters.reason == ""


def test_more_changes_than_are_kept_lose_no_finding() -> None:
    """The newest state of each is still known."""
    scene = Scene()
    scene.server.fault = KubernetesAway("does not answer")
    scene.see(LEAK)
    other = replace(LEAK, kind="oom_kill", subject=replace(LEAK.subject, workload="b", pod="b-1"))
    for count in range(CHANGES_MOST + 10):
        scene.see(replace(other, count=count))
    assert not [one for one in list(scene.store._changes) if one.kind == "memory_leak"]
    scene.run(30)
    scene.server.fault = None
    scene.run(60)
    assert {event["involvedObject"]["name"] for event in scene.server.events.values()} == {"catalog-1", "b-1"}


@pytest.mark.parametrize("is_ledger_kept", [True, False])
def test_a_restart_tells_nothing_twice(tmp_path: Path, is_ledger_kept: bool) -> None:
    """Also when the file was lost between the write and its note: the name is the same, and so is the count."""
    scene = Scene(tmp_path)
    scene.see(LEAK)
    scene.run(5)
    scene.store.save(scene.now)
    before = {name: dict(event) for name, event in scene.server.events.items()}
    if not is_ledger_kept:
        (tmp_path / "events.json").unlink()
    later = Scene(tmp_path, scene.server)
    later.store.load()
    later.run(60)
    assert scene.server.events == before
    assert scene.server.writes == (1 if is_ledger_kept else 2)


def test_what_the_server_will_not_have_keeps_no_other_waiting() -> None:
    """A pod of another node, a namespace that is gone: refused once, and told in the log."""
    scene = Scene()
    policy = "403 ValidatingAdmissionPolicy 'nodescope-agent-events' denied request: its own node only"
    scene.server.refuse = {"catalog-1": KubernetesRefused(policy, 403)}
    scene.see(LEAK)
    scene.see(replace(LEAK, subject=replace(LEAK.subject, workload="b", pod="b-1")))
    scene.run(120)
    assert [event["involvedObject"]["name"] for event in scene.server.events.values()] == ["b-1"]
    assert (scene.counters.refused, scene.counters.written) == (1, 1)


def test_a_right_that_is_missing_is_waited_for() -> None:
    scene = Scene()
    scene.server.fault = KubernetesRefused("403 events is forbidden: cannot create resource", 403)
    scene.see(LEAK)
    scene.run(300)
    assert scene.counters.reason.endswith("the account needs create and patch on events")
    scene.server.fault = None
    scene.run(61)
    assert len(scene.server.events) == 1
    assert scene.counters.refused == 0


def test_an_event_that_would_have_expired_is_not_told() -> None:
    """The API server keeps them for an hour; what is still so is told."""
    scene = Scene()
    scene.server.fault = KubernetesAway("does not answer")
    scene.see(LEAK)
    scene.see(replace(LEAK, subject=replace(LEAK.subject, workload="b", pod="b-1")))
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(EVENT_SECONDS + 60)
    scene.server.fault = None
    scene.run(60)
    told = {(event["involvedObject"]["name"], event["reason"]) for event in scene.server.events.values()}
    assert ("b-1", "MemoryLeak") in told
    assert ("catalog-1", "MemoryLeakResolved") not in told


def test_suspicions_and_what_is_not_about_a_pod_are_no_events() -> None:
    scene = Scene()
    scene.see(replace(LEAK, is_sure=False))
    scene.see(replace(LEAK, kind="disk_full", subject=FindingSubject(device="/var")))
    scene.see(replace(LEAK, kind="cpu_throttling", severity="curious"))
    scene.run(60)
    assert scene.server.events == {}


def test_many_at_once_are_a_burst_and_then_few() -> None:
    scene = Scene()
    for number in range(BURST + 20):
        scene.see(replace(LEAK, subject=replace(LEAK.subject, workload=f"w{number}", pod=f"w{number}-1")))
    scene.run(1)
    assert scene.server.writes == BURST
    assert scene.counters.waiting == 20
    scene.run(5 * EVERY_SECONDS)
    assert BURST + 4 <= scene.server.writes <= BURST + 5
    scene.run(30 * EVERY_SECONDS)
    assert len(scene.server.events) == BURST + 20


def test_a_burst_is_earned_back_no_further_than_it_was() -> None:
    clock = TurnableClock()
    pace = SendPace(clock, 2, 10.0)
    assert [pace.take() for _ in range(3)] == [True, True, False]
    clock.advance(3600 * SECOND)
    assert [pace.take() for _ in range(3)] == [True, True, False]


def test_a_message_fits_and_has_no_line_of_its_own() -> None:
    """A tenant's name of any length and kind ends in 1,000 bytes of one line."""
    store = FindingStore("node-a")
    finding = store.see(replace(LEAK, sentence="\u00e9\n" * 2000), 1000.0)
    assert finding is not None
    message = build_event(finding, 1)["message"]
    assert len(message.encode()) <= MESSAGE_BYTES
    assert "\n" not in message


def test_a_static_pod_is_named_without_a_uid() -> None:
    """Its cgroup has the hash of a manifest, which is nobody's uid."""
    store = FindingStore("node-a")
    finding = store.see(replace(LEAK, subject=replace(LEAK.subject, pod_uid="9f" * 16)), 1000.0)
    assert finding is not None
    assert "uid" not in build_event(finding, 1)["involvedObject"]


def test_events_without_a_watcher_are_refused_and_without_an_account_explained(tmp_path: Path) -> None:
    node = FixtureNode("cgroup2-systemd", tmp_path)
    with pytest.raises(SettingsRejected, match="needs watch = true"):
        build_parts_at(node.root, node.clock, watch=False, kubernetes_events=True)
    parts = build_parts_at(node.root, node.clock, kubernetes_events=True)
    assert parts.events is None
    (status,) = request_all(parts, ["/status"])
    assert "no account" in status.json()["kubernetes_events"]["reason"]


def test_what_is_silenced_is_no_event_until_the_silence_is_over() -> None:
    scene = Scene()
    scene.store.silence({"labels": {"workload": "catalog"}, "seconds": 600}, scene.now)
    scene.see(LEAK)
    scene.run(60)
    assert scene.server.events == {}
    scene.run(600)
    scene.store.apply_silences(scene.now)
    scene.run(5)
    assert len(scene.server.events) == 1
