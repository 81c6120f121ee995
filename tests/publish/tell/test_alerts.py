"""Alerts for an Alertmanager: told once, renewed, ended, and nothing lost while it is away."""

import base64
import json
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import HttpFailed, SettingsRejected
from nodescope.base.settings import Settings
from nodescope.publish.tell.alert_form import AlertForm
from nodescope.publish.tell.alert_sender import (
    HOLD_SECONDS,
    OVER_SECONDS,
    SPOOL_SECONDS,
    AlertCounters,
    AlertSender,
    name_alerts_file,
    parse_note,
)
from nodescope.publish.tell.alert_servers import build_alert_senders, check_alertmanager, read_credentials
from nodescope.serve.http_client import HttpAnswer
from nodescope.watch.finding_store import REOPEN_SECONDS, FindingStore
from nodescope.watch.sighting import FindingSubject, Sighting
from nodescope.watch.told_ledger import ToldLedger

SECOND = 1_000_000_000
LEAK = Sighting(
    "memory_leak",
    "kill",
    FindingSubject("shop", "catalog", "catalog-1", "app", "4841cfc03d50"),
    900.0,
    "shop/catalog reaches its limit in 50 min.",
    is_sure=True,
    advice="its heap",
)


class Server:
    """Stands in for the HTTP client: keeps what was posted, answers as told."""

    def __init__(self) -> None:
        self.posts: list[tuple[float, list[dict[str, Any]]]] = []
        self.is_away = False
        self.status = 200
        self.refuses = ""
        """A workload that it will not have."""
        self.clock: TurnableClock

    def interrupt(self) -> None: ...

    def close(self) -> None: ...

    def request(
        self, method: str, target: str, headers: dict[str, str], body: bytes, *, idempotent: bool
    ) -> HttpAnswer:
        assert (method, target, idempotent) == ("POST", "/api/v2/alerts", True)
        assert headers["Content-Type"] == "application/json"
        if self.is_away:
            raise HttpFailed("http://am", "Connection refused")
        if self.status != 200:
            return HttpAnswer(self.status, "", Message(), b"said so")  # type: ignore[arg-type]
        alerts = json.loads(body)
        if any(one["labels"].get("workload") == self.refuses for one in alerts):
            return HttpAnswer(400, "", Message(), b"bad label")  # type: ignore[arg-type]
        self.posts.append((self.clock.wall_ns() / 1e9, alerts))
        return HttpAnswer(200, "", Message())  # type: ignore[arg-type]

    @property
    def alerts(self) -> list[dict[str, Any]]:
        return [one for _, alerts in self.posts for one in alerts]


class Scene:
    def __init__(self, folder: Path | None = None, server: Server | None = None) -> None:
        self.server = server or Server()
        self.clock = TurnableClock()
        self.server.clock = self.clock
        self.store = FindingStore("node-a", folder / "findings.json" if folder else None)
        client: Any = self.server
        self.counters = AlertCounters("http://am")
        self.sender = AlertSender(
            client,
            self.store,
            self.clock,
            self.counters,
            AlertForm("blue"),
            60.0,
            ledger=ToldLedger(folder / "alerts.json" if folder else None),
            chance=lambda: 0.0,
        )
        self.sender.ledger.load(self.now)

    @property
    def now(self) -> float:
        return self.clock.wall_ns() / 1e9

    def see(self, sighting: Sighting = LEAK) -> None:
        self.store.see(sighting, self.now)

    def run(self, seconds: float) -> None:
        until = self.clock.mono_ns() + round(seconds * SECOND)
        while self.clock.mono_ns() < until:
            self.clock.advance(max(1, round(self.sender.step() * SECOND)))


def test_an_alert_has_the_labels_of_the_rule_that_tells_the_same() -> None:
    """Alertmanager knows alerts by labels: with both ways on, there is one alert."""
    scene = Scene()
    scene.see()
    scene.run(2)
    (alert,) = scene.server.alerts
    assert alert["labels"] == {
        "alertname": "FindingKill",
        "severity": "critical",
        "cluster": "blue",
        "kind": "memory_leak",
        "namespace": "shop",
        "workload": "catalog",
        "container": "app",
        "node": "node-a",
    }
    assert alert["annotations"]["summary"] == LEAK.sentence
    assert alert["startsAt"] == "1970-01-01T00:15:00.000Z"
    assert "endsAt" not in alert


def test_what_holds_is_sent_again_each_minute_and_its_end_with_its_time() -> None:
    """Five minutes are five times; the end is said for five more minutes, and then no more."""
    scene = Scene()
    scene.see()
    scene.run(300)
    assert len(scene.server.posts) == 5
    ended = scene.now
    scene.store.resolve(LEAK.key, ended)
    scene.run(OVER_SECONDS + 600)
    ends = [one["endsAt"] for one in scene.server.alerts if "endsAt" in one]
    assert len(set(ends)) == 1
    assert 5 <= len(ends) <= 7


def test_what_came_and_went_while_it_was_away_is_told_first_and_ended_later() -> None:
    """Ten minutes: of an alert that it has only known as over, Alertmanager tells nobody."""
    scene = Scene()
    scene.server.is_away = True
    scene.see()
    scene.run(300)
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(300)
    assert scene.counters.waiting == 1
    assert "Connection refused" in scene.counters.reason
    scene.server.is_away = False
    scene.run(HOLD_SECONDS + 60)
    (first, begins), (second, ends) = scene.server.posts[:2]
    assert ["endsAt" in one for one in (*begins, *ends)] == [False, True]
    assert second - first >= HOLD_SECONDS
    assert scene.counters.reason == ""


def test_an_outage_is_waited_for_with_growing_pauses() -> None:
    scene = Scene()
    scene.server.is_away = True
    scene.see()
    scene.run(600)
    assert 20 <= scene.counters.failed <= 50


def test_a_restart_forgets_no_end_and_repeats_no_beginning(tmp_path: Path) -> None:
    """It fired before, ended while we were down: its end is sent, with the same labels."""
    scene = Scene(tmp_path)
    scene.see()
    scene.run(90)
    scene.store.resolve(LEAK.key, scene.now)
    scene.store.save(scene.now)
    scene.server.posts.clear()
    later = Scene(tmp_path, scene.server)
    later.clock.advance(120 * SECOND)
    later.store.load()
    later.run(5)
    (alert,) = scene.server.alerts
    assert "endsAt" in alert


def test_what_was_over_before_anybody_wanted_to_know_is_not_told(tmp_path: Path) -> None:
    """An agent with a week of findings is given an Alertmanager: the week stays where it is."""
    scene = Scene(tmp_path)
    scene.store.see(LEAK, scene.now - 3600)
    scene.store.resolve(LEAK.key, scene.now - 1800)
    scene.run(300)
    assert scene.server.posts == []


def test_what_has_waited_for_more_than_a_day_is_left_out() -> None:
    scene = Scene()
    scene.server.is_away = True
    scene.see()
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(SPOOL_SECONDS + 60)
    scene.server.is_away = False
    scene.run(120)
    assert scene.server.posts == []


def test_a_severity_that_changes_ends_one_alert_and_begins_another() -> None:
    scene = Scene()
    scene.see(replace(LEAK, severity="hurt"))
    scene.run(90)
    scene.see()
    scene.run(5)
    told = [(one["labels"]["alertname"], "endsAt" in one) for one in scene.server.alerts]
    assert told[-2:] == [("FindingHurt", True), ("FindingKill", False)]


def test_what_comes_back_within_the_hour_begins_after_its_end() -> None:
    """Alertmanager joins alerts that overlap in time."""
    scene = Scene()
    scene.see()
    scene.run(90)
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(REOPEN_SECONDS / 2)
    scene.see()
    scene.run(2)
    ends = [one["endsAt"] for one in scene.server.alerts if "endsAt" in one]
    assert scene.server.alerts[-1]["startsAt"] > ends[-1]


def test_what_is_not_worth_a_page_is_no_alert() -> None:
    scene = Scene()
    scene.see(replace(LEAK, is_sure=False))
    scene.see(replace(LEAK, kind="waste", severity="waste"))
    scene.see(replace(LEAK, kind="cpu_throttling", severity="curious"))
    scene.run(120)
    assert scene.server.posts == []


def test_one_that_is_refused_keeps_no_other_waiting() -> None:
    scene = Scene()
    scene.server.refuses = "bad"
    scene.see()
    scene.see(replace(LEAK, subject=replace(LEAK.subject, workload="bad")))
    scene.run(5)
    assert [one["labels"]["workload"] for one in scene.server.alerts] == ["catalog"]
    assert scene.counters.refused == 1


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_server_that_says_no_is_asked_again_later(status: int) -> None:
    """A wrong token, another server's address, a restart: the reason is told, and nothing is lost."""
    scene = Scene()
    scene.server.status = status
    scene.see()
    scene.run(300)
    assert str(status) in scene.counters.reason
    scene.server.status = 200
    scene.run(61)
    assert len(scene.server.alerts) >= 1


def test_a_note_that_cannot_be_read_is_none() -> None:
    assert parse_note(None) is None
    assert parse_note({"severity": "kill"}) is None
    assert parse_note({"severity": "odd", "starts": 1.0, "fired": 1.0}) is None
    assert parse_note({"severity": "kill", "starts": "x", "fired": 1.0}) is None


def test_credentials_come_from_files_that_may_be_replaced(tmp_path: Path) -> None:
    token, basic = tmp_path / "token", tmp_path / "basic"
    token.write_text("one\n")
    basic.write_text("user:secret\n")
    settings = Settings(alertmanager_url=("http://am:9093",), alertmanager_token_file=token)
    assert read_credentials(settings) == {"Authorization": "Bearer one"}
    token.write_text("two")
    assert read_credentials(settings) == {"Authorization": "Bearer two"}
    settings = Settings(alertmanager_url=("http://am:9093",), alertmanager_basic_file=basic)
    encoded = base64.b64encode(b"user:secret").decode()
    assert read_credentials(settings) == {"Authorization": f"Basic {encoded}"}
    basic.unlink()
    (sender,) = build_alert_senders(settings, FindingStore("n"), TurnableClock())
    with pytest.raises(HttpFailed, match="No such file"):
        sender.read_headers()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alertmanager_url": ("alertmanager:9093",)}, "http://HOST:9093"),
        ({"alertmanager_url": ("http://am",), "watch": False}, "needs watch = true"),
        ({"alertmanager_ca": Path("/nothing")}, "goes with alertmanager_url"),
        ({"alertmanager_url": ("https://am",), "alertmanager_ca": Path("/nothing")}, "no certificates"),
        ({"alertmanager_url": ("http://am",), "alertmanager_token_file": Path("/nothing")}, "No such file"),
        (
            {
                "alertmanager_url": ("http://am",),
                "alertmanager_token_file": Path("/a"),
                "alertmanager_basic_file": Path("/b"),
            },
            "not both",
        ),
    ],
)
def test_what_could_never_work_is_refused_at_the_start(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsRejected, match=said):
        check_alertmanager(Settings(**given))


def test_each_of_a_cluster_of_alertmanagers_is_told(tmp_path: Path) -> None:
    """With a file each: one of them may be away."""
    settings = Settings(alertmanager_url=("http://a:9093", "http://b:9093/prefix/"))
    senders = build_alert_senders(settings, FindingStore("n"), TurnableClock())
    assert [one.counters.address for one in senders] == ["http://a:9093", "http://b:9093/prefix"]
    assert len({name_alerts_file(one.counters.address) for one in senders}) == 2


def test_a_silence_ends_the_alert_and_its_end_begins_it_again() -> None:
    scene = Scene()
    scene.see()
    scene.run(90)
    scene.store.silence({"labels": {"workload": "catalog"}, "seconds": 600}, scene.now)
    scene.run(5)
    assert "endsAt" in scene.server.alerts[-1]
    scene.run(600)
    scene.store.apply_silences(scene.now)
    scene.run(5)
    assert "endsAt" not in scene.server.alerts[-1]
    assert scene.server.alerts[-1]["startsAt"] > scene.server.alerts[-2]["endsAt"]


def test_what_began_and_ended_under_a_silence_is_never_an_alert() -> None:
    scene = Scene()
    scene.store.silence({"labels": {"workload": "catalog"}, "seconds": 600}, scene.now)
    scene.see()
    scene.run(60)
    scene.store.resolve(LEAK.key, scene.now)
    scene.run(900)
    assert scene.server.posts == []
