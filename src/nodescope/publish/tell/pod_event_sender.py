"""
Findings as Events of their pods: one for each finding and state, never twice, and never in the tick.

    new              POST under the name of finding and state; "it is there" is as good
    the same state   PATCH of message, time and count of that Event
    server away      kept, tried again; what is older than an Event lives is left out
    server refuses   this one is left out where it is the Event's fault, kept
                     where the account lacks the right

Many findings at once are sent in a burst of 25, and one every 12 s after that.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.base.findings import NodeFinding
from nodescope.base.log import Log
from nodescope.kube.client import Client
from nodescope.publish.tell.pace import SendPace
from nodescope.publish.tell.pod_event import build_change, build_event, is_for_pods, name_event
from nodescope.serve.step_thread import GrowingPause, StepThread
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.told_ledger import ToldLedger

log = Log("events")

FILE_NAME = "findings.events.json"
LOOK_SECONDS = 1.0
BURST = 25
EVERY_SECONDS = 12.0
# The API server forgets Events after an hour (--event-ttl).
EVENT_SECONDS = 3600.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
# A missing right is not granted within seconds.
REFUSED_PAUSE_SECONDS = 60.0
EXISTS, ABSENT = 409, 404
REMEDY = "the account needs create and patch on events"


@dataclass(slots=True)
class PodEventCounters:
    """What became of Events, for /metrics and /status."""

    is_on: bool = False
    written: int = 0
    refused: int = 0
    """Events that the server will not have: their pod is on another node, their namespace is gone."""
    failed: int = 0
    waiting: int = 0
    reason: str = ""
    """Why the newest attempt failed; empty when it did not."""


@dataclass(slots=True)
class PodEventSender:
    client: Client
    store: FindingStore
    clock: Clock
    counters: PodEventCounters
    ledger: ToldLedger = field(default_factory=ToldLedger)
    chance: Callable[[], float] = random.random
    _pace: SendPace = field(init=False)
    _seen: int = -1
    """The store's revision at the last look after which nothing was left to tell."""
    _pause: GrowingPause = field(init=False)

    def __post_init__(self) -> None:
        self.counters.is_on = True
        self._pace = SendPace(self.clock, BURST, EVERY_SECONDS)
        self._pause = GrowingPause(FIRST_PAUSE_SECONDS, self.chance)

    def make_thread(self) -> StepThread:
        return StepThread("events", self.step, self.client, self.clock, self._load)

    def _load(self) -> None:
        self.ledger.load(self.clock.wall_ns() / 1e9)

    def step(self) -> float:
        """Tells what is due; how long to wait before looking again."""
        if self.store.revision == self._seen:
            return LOOK_SECONDS
        try:
            self._tell_all()
        except KubernetesAway as error:
            self._count_failure(str(error))
            return max(self._pause.grow(LONGEST_PAUSE_SECONDS), error.retry_after_seconds or 0.0)
        except KubernetesRefused as error:
            self._count_failure(f"{error}; {REMEDY}")
            return self._pause.grow(REFUSED_PAUSE_SECONDS)
        finally:
            self.ledger.save()
        self._pause.reset()
        self.counters.reason = ""
        return LOOK_SECONDS

    def _tell_all(self) -> None:
        revision = self.store.revision
        pending = self.list_pending(self.clock.wall_ns() / 1e9)
        self.counters.waiting = len(pending)
        for finding, count in pending:
            if not self._pace.take():
                return
            self._tell(finding, count)
            self.counters.waiting -= 1
        self._seen = revision
        self.ledger.forget_all_but(one.id for one in self.store.recent())

    def list_pending(self, now: float) -> list[tuple[NodeFinding, int]]:
        """In order; of several moments in one state the newest, with how many there were in all."""
        newest: dict[tuple[str, str], NodeFinding] = {}
        counts: dict[tuple[str, str], int] = {}
        for finding in self.ledger.list_untold(self.store.changes(0)):
            is_old = not finding.is_open and now - finding.updated > EVENT_SECONDS
            if is_old or not is_for_pods(finding):
                continue
            key = (finding.id, finding.state)
            newest[key] = finding
            counts[key] = counts.get(key, self._told_count(finding)) + 1
        found = [(finding, counts[key]) for key, finding in newest.items()]
        return sorted(found, key=lambda one: one[0].revision)

    def _told_count(self, finding: NodeFinding) -> int:
        notes = self.ledger.notes.get(finding.id)
        told = notes.get(finding.state) if isinstance(notes, dict) else None
        return told if type(told) is int else 0

    def _tell(self, finding: NodeFinding, count: int) -> None:
        try:
            self._write(finding, count)
            self.counters.written += 1
        except KubernetesRefused as error:
            if not is_events_fault(error):
                raise
            self.counters.refused += 1
            log.warning("event refused", finding=finding.id, pod=finding.pod, reason=str(error))
        notes = self.ledger.notes.get(finding.id)
        self.ledger.note(finding.id, {**(notes if isinstance(notes, dict) else {}), finding.state: count})
        self.ledger.settle(finding)

    def _write(self, finding: NodeFinding, count: int) -> None:
        """Made, or changed where it is there: whichever it is, the next time finds the same Event."""
        path = f"/api/v1/namespaces/{quote(finding.namespace, safe='')}/events"
        one = f"{path}/{name_event(finding)}"
        if count > 1:
            try:
                self.client.patch(one, build_change(finding, count))
            except KubernetesRefused as error:
                if error.status != ABSENT:
                    raise
            else:
                return
        try:
            self.client.create(path, build_event(finding, count))
        except KubernetesRefused as error:
            if error.status != EXISTS:
                raise
            self.client.patch(one, build_change(finding, count))

    def _count_failure(self, reason: str) -> None:
        self.counters.failed += 1
        if reason != self.counters.reason:
            log.warning("events not written", reason=reason)
        self.counters.reason = reason


def is_events_fault(error: KubernetesRefused) -> bool:
    """Whether another try, or another right, would not help this Event."""
    text = str(error)
    if error.status == 403:
        return "ValidatingAdmissionPolicy" in text or "being terminated" in text
    return error.status in (400, 404, 409, 413, 422)
