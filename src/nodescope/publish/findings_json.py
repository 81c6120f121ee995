"""/findings: what is wrong on this node, at once or as server-sent events, and what people say about it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from nodescope.base.errors import NothingYet, RequestRejected
from nodescope.base.findings import NodeFinding, describe_health
from nodescope.serve.json_text import render_json
from nodescope.watch.finding_store import VERDICTS, FindingStore
from nodescope.watch.silence import EXAMPLE as SILENCE
from nodescope.watch.watcher import Watcher

EVENT_STREAM = "text/event-stream"
# Who listens costs a connection and a look a second.
LISTENERS_MOST = 16
PERIOD_SECONDS = 1.0
# A comment now and then: a proxy must not think the connection dead.
COMMENT_EVERY = 15
EXAMPLE = '{"id": "4f2a90c1d3", "verdict": "not_a_problem"}'
ENDED = "end_silence"


class WatcherAbsent(RequestRejected):
    """The agent was started without it."""

    status, title, hint = 404, "not found", "start the agent without --no-watch"


class StreamsFull(RequestRejected):
    """Too many listen."""

    status, title, hint = 503, "busy", "ask /findings without a stream"


@dataclass(slots=True)
class StreamPlaces:
    """How many listen."""

    taken: int = 0


def find_watcher(watcher: Watcher | None) -> Watcher:
    if watcher is None:
        raise WatcherAbsent("the watcher is turned off: watch = false")
    return watcher


def answer_findings(watcher: Watcher, node: str, now: float) -> dict[str, Any]:
    """The most urgent first; those of the last week that are over come last."""
    if not watcher.status.looks:
        raise NothingYet("the watcher has not looked yet")
    recent = watcher.store.recent()
    return {
        "node": node,
        "sentence": describe_health(recent, node, watcher.containers),
        "revision": watcher.store.revision,
        "looks": watcher.status.looks,
        "containers": watcher.containers,
        "findings": [finding.to_json() for finding in recent],
        "silences": [silence.to_json() for silence in watcher.store.list_silences(now)],
    }


def answer_post(store: FindingStore, body: bytes, now: float) -> dict[str, Any]:
    """What a person says: a verdict about a finding, a silence, or that a silence ends."""
    content = parse_body(body)
    if "silence" in content:
        return store.silence(content["silence"], now).to_json()
    if ENDED in content:
        return store.end_silence(str(content[ENDED]), now).to_json()
    return store.judge(*parse_feedback(content), now).to_json()


def parse_body(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRejected(f"the body is not JSON; accepted: {EXAMPLE} or {SILENCE}") from error
    return content if isinstance(content, dict) else {}


def parse_feedback(given: Mapping[str, Any]) -> tuple[str, str]:
    """(id, verdict)."""
    identity, verdict = given.get("id"), given.get("verdict")
    if not isinstance(identity, str) or not isinstance(verdict, str):
        raise RequestRejected(
            f"id and verdict ({' or '.join(VERDICTS)}) are wanted; accepted: {EXAMPLE} or {SILENCE}"
        )
    return identity, verdict


def render_event(finding: NodeFinding) -> bytes:
    return (
        f"event: finding\nid: {finding.revision}\ndata: ".encode() + render_json(finding.to_json()) + b"\n\n"
    )


def parse_last_id(text: str, newest: int) -> int:
    """Where a listener goes on; one that is new hears the state of now first."""
    return min(int(text), newest) if text.isascii() and text.isdigit() and len(text) < 16 else -1


async def listen(store: FindingStore, last: int) -> AsyncGenerator[bytes]:
    """Open findings first, unless the listener says where it was; then every change."""
    yield b"retry: 2000\n\n"
    if last < 0:
        last = store.revision
        for finding in store.current():
            yield render_event(finding)
    turn = 0
    while True:
        for finding in store.changes(last) if store.revision != last else ():
            last = finding.revision
            yield render_event(finding)
        turn += 1
        if turn % COMMENT_EVERY == 0:
            yield b": still here\n\n"
        await asyncio.sleep(PERIOD_SECONDS)


class FindingStream(StreamingResponse):
    """Counts as a listener until the other side has left."""

    def __init__(self, store: FindingStore, last_id: str, places: StreamPlaces) -> None:
        if places.taken >= LISTENERS_MOST:
            raise StreamsFull(f"{LISTENERS_MOST} listen already")
        places.taken += 1
        self._places = places
        events = listen(store, parse_last_id(last_id, store.revision))
        super().__init__(events, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._places.taken -= 1


def wants_stream(scope: Scope) -> bool:
    """Whether a request asks for events: it takes no turn, which it would keep for as long as it listens."""
    if scope["path"] != "/findings" or scope["method"] != "GET":
        return False
    return any(name == b"accept" and EVENT_STREAM.encode() in value for name, value in scope["headers"])
