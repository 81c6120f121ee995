"""
Sends requests to a collector, one after the other, oldest first.

OTLP over HTTP: a POST of protobuf, gzipped. 429, 502, 503, 504 and no answer
at all mean "later": the request is kept and tried again with growing pauses,
or when Retry-After says. Any other status means that the collector will never
take it: counted, said, and the next one follows.
https://opentelemetry.io/docs/specs/otlp/#otlphttp-response
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event

from nodescope.base.clock import Clock
from nodescope.base.errors import HttpFailed, ParseError
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.serve.http_client import HttpAnswer, HttpClient
from nodescope.serve.protobuf_message import read_fields
from nodescope.use.push.push_queue import PushQueue
from nodescope.use.push.request import Encoded

LATER = frozenset({429, 502, 503, 504})
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
# What a collector may ask for.
LONGEST_RETRY_SECONDS = 600.0
# How long the queue is waited for before the loop looks up.
LOOK_SECONDS = 1.0
HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
log = Log("push")


@dataclass(slots=True)
class OtlpSender:
    queue: PushQueue
    client: HttpClient
    clock: Clock
    headers: Callable[[], Mapping[str, str]] = dict
    """Asked before every request: a rotated token needs no restart."""
    chance: Callable[[], float] = random.random
    path: str = ""
    reason: str = ""
    """Why the last request was not taken; empty when it was."""
    _failures: int = 0
    _stop: Event = field(default_factory=Event)

    def run(self) -> None:
        """Until it is stopped, or the queue is closed and empty; what is left is in the queue."""
        while not self._stop.is_set():
            request = self.queue.take(LOOK_SECONDS)
            if request is not None:
                self.deliver(request)
            elif self.queue.is_closed:
                return

    def stop(self) -> None:
        self._stop.set()
        self.queue.close()
        self.client.interrupt()

    def deliver(self, request: Encoded) -> None:
        """Until it is taken or refused, or we are stopped: then it is the queue's oldest again."""
        while not self._stop.is_set():
            pause_seconds = self.try_once(request)
            if pause_seconds is None:
                return
            self.queue.counters.retries += 1
            deadline_ns = self.clock.mono_ns() + round(pause_seconds * 1e9)
            self.clock.wait_until(deadline_ns, self._stop)
        self.queue.put_back(request)

    def try_once(self, request: Encoded) -> float | None:
        """None when the request is done with; else the seconds until it may be sent again."""
        try:
            headers = {**self.headers(), **HEADERS}
            answer = self.client.request("POST", self.path, headers, request.body, idempotent=True)
        except HttpFailed as error:
            return self._postpone(f"no answer: {error.reason}", 0.0)
        if answer.status in LATER:
            return self._postpone(f"it says {answer.status}", read_retry_after(answer))
        if not 200 <= answer.status < 300:
            self._refuse(request, answer)
            return None
        self._accept(request, answer)
        return None

    def _postpone(self, reason: str, asked_seconds: float) -> float:
        if not self.reason:
            log.warning("the collector does not take what is pushed; it is kept", reason=reason)
        self.reason = reason
        most = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        # Between half and all of it: nodes that lost one collector do not return as one.
        return max(asked_seconds, most * (0.5 + 0.5 * self.chance()))

    def _refuse(self, request: Encoded, answer: HttpAnswer) -> None:
        self.queue.counters.lost["refused"] += request.points
        self._failures = 0
        self.reason = f"refused with {answer.status}"
        words = clean_text(answer.body[:400].decode("utf-8", "replace"), 200)
        log.warning("the collector refused points", points=request.points, status=answer.status, answer=words)

    def _accept(self, request: Encoded, answer: HttpAnswer) -> None:
        if self.reason:
            log.info("the collector takes what is pushed", waiting=self.queue.waiting_requests)
        self.reason, self._failures = "", 0
        rejected, words = read_rejected(answer.body)
        rejected = min(rejected, request.points)
        self.queue.counters.requests += 1
        self.queue.counters.sent += request.points - rejected
        if rejected:
            self.queue.counters.lost["rejected"] += rejected
            log.warning("the collector took a part only", rejected=rejected, answer=words)


def read_retry_after(answer: HttpAnswer) -> float:
    """In seconds; a date is not waited for, because two clocks are not one."""
    text = (answer.headers.get("Retry-After") or "").strip()
    return min(float(text), LONGEST_RETRY_SECONDS) if text.isdigit() else 0.0


def read_rejected(body: bytes) -> tuple[int, str]:
    """ExportMetricsServiceResponse: 1 partial_success {1 rejected_data_points, 2 error_message}."""
    rejected, words = 0, ""
    try:
        for number, value in read_fields(body):
            if number == 1 and isinstance(value, bytes):
                for inner, part in read_fields(value):
                    if inner == 1 and isinstance(part, int):
                        rejected = part
                    elif inner == 2 and isinstance(part, bytes):
                        words = clean_text(part.decode("utf-8", "replace"), 200)
    except ParseError:
        # Not what the protocol says; the status did say that it was taken.
        return 0, ""
    return rejected, words
