"""
Findings for an Alertmanager: POST /api/v2/alerts, and nothing lost while it is away.

Alertmanager forgets an alert that it does not hear of for its resolve_timeout
(5 min unless changed), so that every alert is sent again each minute. One
that is over is sent with its end, also for some minutes. What could not be
sent is in the data folder: the findings themselves, and beside them what
Alertmanager has taken of each (its note):

    {"severity": "kill", "starts": T, "fired": T, "ends": T or null, "over": T or null}

A finding that began and ended while Alertmanager was away is sent as alert
first and as over a minute later: of an alert that it has known as over only,
Alertmanager tells nobody.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2s
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import HttpFailed, NodescopeError
from nodescope.base.findings import NodeFinding
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.publish.tell.alert_form import ALERTS, AlertForm, was_page_worthy
from nodescope.serve.http_client import HttpClient
from nodescope.serve.step_thread import GrowingPause, StepThread
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.told_ledger import ToldLedger

log = Log("alerts")

TARGET = "/api/v2/alerts"
LOOK_SECONDS = 1.0
# Longer than Alertmanager's default group_wait (30 s): it has told of the alert by then.
HOLD_SECONDS = 60.0
# An end is said again for so long: an Alertmanager that was started anew has forgotten it.
OVER_SECONDS = 300.0
# What ended longer ago is nobody's page any more.
SPOOL_SECONDS = 86_400.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
REFUSED_PAUSE_SECONDS = 60.0
ANSWER_SECONDS = 10.0
ANSWER_BYTES = 2**20


class AlertsRefused(NodescopeError):
    """Alertmanager answers, and takes nothing of us: token, path, or it is another server."""


@dataclass(slots=True)
class AlertCounters:
    """What became of alerts, for /metrics and /status."""

    address: str
    sent: int = 0
    """Alerts that were taken; one that is sent again counts again."""
    refused: int = 0
    """Alerts that it will never take."""
    failed: int = 0
    """Requests without an answer, or with another than yes."""
    waiting: int = 0
    """Findings of which it does not know what it should."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AlertNote:
    """What Alertmanager has taken of a finding; over is when it took the end."""

    severity: str
    starts: float
    fired: float
    ends: float | None = None
    over: float | None = None


@dataclass(frozen=True, slots=True)
class DueAlert:
    """What is to be sent, and the note once it is taken."""

    finding: NodeFinding
    note: AlertNote
    is_news: bool


@dataclass(slots=True)
class AlertSender:
    """One for each Alertmanager: those of a cluster of them are told each."""

    client: HttpClient
    store: FindingStore
    clock: Clock
    counters: AlertCounters
    form: AlertForm
    resend_seconds: float
    read_headers: Callable[[], Mapping[str, str]] = dict
    """Asked before every request: a rotated token needs no restart."""
    ledger: ToldLedger = field(default_factory=ToldLedger)
    hold_seconds: float = HOLD_SECONDS
    chance: Callable[[], float] = random.random
    _sent: dict[str, float] = field(default_factory=dict)
    """By finding: when it was sent last, by this run."""
    _pause: GrowingPause = field(init=False)

    def __post_init__(self) -> None:
        self._pause = GrowingPause(FIRST_PAUSE_SECONDS, self.chance)

    def make_thread(self) -> StepThread:
        return StepThread("alerts", self.step, self.client, self.clock, lambda: self.ledger.load(self._now()))

    def _now(self) -> float:
        return self.clock.wall_ns() / 1e9

    def step(self) -> float:
        """Sends what is due; how long to wait before looking again."""
        now = self._now()
        due = list(self.list_due(now))
        self.counters.waiting = sum(one.is_news for one in due)
        if not due:
            return LOOK_SECONDS
        try:
            self._send(due, now)
        except HttpFailed as error:
            self._count_failure(error.reason)
            return self._pause.grow(LONGEST_PAUSE_SECONDS)
        except AlertsRefused as error:
            self._count_failure(str(error))
            return self._pause.grow(REFUSED_PAUSE_SECONDS)
        finally:
            self.ledger.forget_all_but(one.id for one in self.store.recent())
            self.ledger.save()
        self._pause.reset()
        self.counters.waiting = 0
        self.counters.reason = ""
        return LOOK_SECONDS

    # -- what is due ---------------------------------------------------------------

    def list_due(self, now: float) -> Iterator[DueAlert]:
        for finding in self.store.recent():
            note = parse_note(self.ledger.notes.get(finding.id))
            one = self._judge(finding, note, now)
            if one is not None:
                yield one

    def _judge(self, finding: NodeFinding, note: AlertNote | None, now: float) -> DueAlert | None:
        if note is not None and note.ends is None and not self._still_holds(finding, note):
            if now - note.fired < self.hold_seconds:
                return None
            ends = finding.ended if finding.ended is not None else now
            return DueAlert(finding, replace(note, ends=ends, over=now), is_news=True)
        if note is not None and note.over is not None and self._is_worth_saying_again(finding, note, now):
            return DueAlert(finding, note, is_news=False)
        if finding.is_page_worthy:
            return self._judge_live(finding, note, now)
        if note is None and was_page_worthy(finding) and self._is_in_spool(finding, now):
            return DueAlert(finding, AlertNote(finding.severity, finding.onset, now), is_news=True)
        return None

    def _still_holds(self, finding: NodeFinding, note: AlertNote) -> bool:
        return finding.is_page_worthy and finding.severity == note.severity

    def _is_worth_saying_again(self, finding: NodeFinding, note: AlertNote, now: float) -> bool:
        if finding.is_page_worthy or note.over is None or now - note.over > OVER_SECONDS:
            return False
        return now - self._sent.get(finding.id, 0.0) >= self.resend_seconds

    def _judge_live(self, finding: NodeFinding, note: AlertNote | None, now: float) -> DueAlert | None:
        if note is None or note.ends is not None:
            # One that comes back begins anew: its first beginning lies before its end.
            starts = finding.onset if note is None else finding.updated
            return DueAlert(finding, AlertNote(finding.severity, starts, now), is_news=True)
        if now - self._sent.get(finding.id, 0.0) >= self.resend_seconds:
            return DueAlert(finding, note, is_news=False)
        return None

    def _is_in_spool(self, finding: NodeFinding, now: float) -> bool:
        """It ended since somebody wanted to be told, and not long ago."""
        ended = finding.ended or 0.0
        return ended >= self.ledger.since and now - ended <= SPOOL_SECONDS

    # -- sending -----------------------------------------------------------------------

    def _send(self, due: list[DueAlert], now: float) -> None:
        """All at once; one by one where it refuses them together."""
        if self._post(due) or len(due) == 1:
            self._settle(due, now)
            return
        for one in due:
            self._post([one])
            self._settle([one], now)

    def _post(self, due: list[DueAlert]) -> bool:
        """Whether they were taken; False where one of them will never be."""
        alerts = [
            self.form.build(one.finding, one.note.severity, one.note.starts, one.note.ends) for one in due
        ]
        body = json.dumps(alerts).encode()
        headers = {"Content-Type": "application/json", **self.read_headers()}
        # The same alert twice is one to Alertmanager.
        answer = self.client.request("POST", TARGET, headers, body, idempotent=True)
        if answer.status < 300:
            self.counters.sent += len(due)
            return True
        words = clean_text(answer.body[:300].decode("utf-8", "replace"), 200)
        if answer.status in (400, 413, 422):
            if len(due) == 1:
                self.counters.refused += 1
                log.warning("alert refused", finding=due[0].finding.id, status=answer.status, answer=words)
            return False
        if answer.status == 429 or answer.status >= 500:
            raise HttpFailed(self.counters.address, f"it says {answer.status} {words}", answer.status)
        raise AlertsRefused(
            f"{self.counters.address}{TARGET} says {answer.status} {words}; accepted: the address of an Alertmanager, and its token or password"
        )

    def _settle(self, due: list[DueAlert], now: float) -> None:
        for one in due:
            self._sent[one.finding.id] = now
            if one.is_news:
                self.ledger.note(one.finding.id, asdict(one.note))
        known = self.ledger.notes
        self._sent = {identity: at for identity, at in self._sent.items() if identity in known}

    def _count_failure(self, reason: str) -> None:
        self.counters.failed += 1
        if reason != self.counters.reason:
            log.warning("alerts not sent; they are kept", server=self.counters.address, reason=reason)
        self.counters.reason = reason


def name_alerts_file(address: str) -> str:
    """What each Alertmanager has taken is its own file: one of two may be away."""
    return f"findings.alerts.{blake2s(address.encode(), digest_size=4).hexdigest()}.json"


def parse_note(value: Any) -> AlertNote | None:
    """None where there is none, or none that can be read: then it is sent again, which is one alert still."""
    try:
        note = AlertNote(**value)
        numbers = (note.starts, note.fired, note.ends or 0.0, note.over or 0.0)
        return note if note.severity in ALERTS and sum(map(float, numbers)) >= 0 else None
    except (TypeError, ValueError):
        return None
