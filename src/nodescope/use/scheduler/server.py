"""
The extender's HTTP: two verbs for kube-scheduler, the rest for people and probes.

    POST /filter /prioritize   extender/v1; the same under any prefix such as /scheduler
    GET  /explain?pod=NS/NAME  why each node was scored as it was
    GET  /metrics /healthz /readyz

Plain ASGI: a cluster's scheduling waits for every call, and a router between
would be half of what it costs. Bodies are bounded, one is taken apart at a time.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from nodescope.base.clock import stopwatch_seconds
from nodescope.base.errors import RequestRejected
from nodescope.base.text import hint_nearest
from nodescope.use.scheduler.explain import describe_decision
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.self_metrics import ExtenderTally
from nodescope.use.scheduler.wire import parse_call

# A Node has 10 to 30 KB: some three hundred whole ones. NodeNames needs 100 KB for 5,000.
BODY_BYTES = 8 * 2**20
# Bodies being read at once; whoever is one more is told to come back.
READERS = 8
PROBES = ("/healthz", "/health", "/readyz")
VERBS = ("filter", "prioritize")
PATHS = ("/filter", "/prioritize", "/explain", "/metrics", "/healthz", "/readyz", "/")
JSON = "application/json"
PLAIN_TEXT = "text/plain; charset=utf-8"
METRICS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
QUERY_BYTES = 4096
EXPLAINED = 50


class ExtenderBodyTooLarge(RequestRejected):
    """More bytes than any question has."""


@dataclass(frozen=True, slots=True)
class WireAnswer:
    status: int
    body: bytes
    media_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


def answer_json(content: object, status: int = 200, **headers: str) -> WireAnswer:
    more = tuple((key.replace("_", "-").encode(), value.encode()) for key, value in headers.items())
    # Whatever a pod is called, the answer can be encoded.
    return WireAnswer(status, json.dumps(content).encode(), JSON, more)


def answer_error(status: int, error: str, detail: str, hint: str = "", **headers: str) -> WireAnswer:
    return answer_json({"error": error, "detail": detail, "hint": hint}, status, **headers)


class ExtenderApp:
    """The ASGI application."""

    def __init__(
        self,
        extender: Extender,
        tally: ExtenderTally,
        readiness: Callable[[], str],
        render_metrics: Callable[[], str],
        admits: Callable[[str], bool] | None = None,
    ) -> None:
        self._extender = extender
        self._tally = tally
        self._readiness = readiness
        self._render_metrics = render_metrics
        self._admits = admits
        self._readers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = await self._answer(scope, receive)
        headers = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            *answer.headers,
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> WireAnswer:
        path, method = scope["path"], scope["method"]
        if len(scope.get("query_string", b"")) > QUERY_BYTES:
            return answer_error(414, "query too long", f"at most {QUERY_BYTES} characters are accepted")
        if self._admits is not None and path not in PROBES and not self._admits(read_authorization(scope)):
            return answer_error(
                401,
                "token required",
                "send the header Authorization: Bearer TOKEN",
                WWW_Authenticate="Bearer",
            )
        # kube-scheduler's urlPrefix may have a path of its own.
        verb = path.rpartition("/")[2]
        if verb in VERBS:
            if method != "POST":
                return answer_error(
                    405, "method not allowed", f"{method} is not accepted; accepted: POST", Allow="POST"
                )
            return await self._ask(verb, scope, receive)
        if method not in ("GET", "HEAD"):
            return answer_error(
                405, "method not allowed", f"{method[:20]} is not accepted; accepted: GET", Allow="GET, HEAD"
            )
        return self._tell(path, scope)

    def _tell(self, path: str, scope: Scope) -> WireAnswer:
        if path in ("/healthz", "/health"):
            return answer_json({"live": True})
        if path == "/readyz":
            reason = self._readiness()
            return answer_json({"ready": not reason, "reason": reason}, 503 if reason else 200)
        if path == "/metrics":
            return WireAnswer(200, self._render_metrics().encode("utf-8", "replace"), METRICS_TEXT)
        if path == "/explain":
            return self._explain(parse_qs(scope.get("query_string", b"").decode("latin-1")))
        if path == "/":
            lines = ["nodescope extender", "", "POST /filter /prioritize", "/explain?pod=NAMESPACE/NAME"]
            return WireAnswer(200, "\n".join([*lines, "/metrics /healthz /readyz", ""]).encode(), PLAIN_TEXT)
        known = " ".join(PATHS)
        return answer_error(
            404, "not found", f"no {path[:80]}{hint_nearest(path[:80], PATHS)} there are: {known}"
        )

    def _explain(self, query: Mapping[str, list[str]]) -> WireAnswer:
        decisions = self._extender.decisions
        recent = decisions.keys()
        pod = query.get("pod", [""])[0]
        if not pod:
            return answer_error(
                400,
                "pod is missing",
                "accepted: /explain?pod=NAMESPACE/NAME",
                f"asked about lately: {' '.join(recent[:EXPLAINED]) or 'nobody'}",
            )
        key = pod if "/" in pod else f"default/{pod}"
        decision = decisions.find(key)
        if decision is None:
            hint = hint_nearest(key[:300], recent).removeprefix("; ")
            detail = f"no decision about {key[:300]}: kube-scheduler did not ask, it asks for nothing of ours, or it was long ago"
            return answer_error(404, "not found", detail, hint)
        return answer_json(describe_decision(decision))

    async def _ask(self, verb: str, scope: Scope, receive: Receive) -> WireAnswer:
        if self._readers >= READERS:
            return answer_error(503, "busy", f"{READERS} questions are being read", Retry_After="1")
        self._readers += 1
        try:
            body = await read_body(scope, receive)
            started = stopwatch_seconds()
            answer = self._decide(verb, body)
            self._tally.seconds[verb].observe(stopwatch_seconds() - started)
            self._tally.requests[verb, "ok"] += 1
        except ExtenderBodyTooLarge as error:
            self._tally.requests[verb, "refused"] += 1
            return answer_error(413, "too large", str(error))
        except RequestRejected as error:
            self._tally.requests[verb, "refused"] += 1
            return answer_error(400, "not accepted", str(error))
        finally:
            self._readers -= 1
        return answer

    def _decide(self, verb: str, body: bytes) -> WireAnswer:
        call = parse_call(body)
        self._tally.pods[verb, call.wish.kind] += 1
        made = self._extender.filter(call) if verb == "filter" else self._extender.prioritize(call)
        return WireAnswer(200, made)


def read_authorization(scope: Scope) -> str:
    found: dict[bytes, bytes] = dict(scope["headers"])
    return found.get(b"authorization", b"").decode("latin-1")


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The body, never more of it than we accept; the server bounds the time."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > BODY_BYTES:
        raise ExtenderBodyTooLarge(
            f"the body has {int(declared[:20])} bytes; at most {BODY_BYTES} are accepted"
        )
    parts: list[bytes] = []
    length = 0
    while True:
        message: Mapping[str, Any] = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRejected("the connection was closed before the body was whole")
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > BODY_BYTES:
            raise ExtenderBodyTooLarge(f"the body is longer than the {BODY_BYTES} bytes that are accepted")
        if not message.get("more_body"):
            return b"".join(parts)
        # A fast sender must not keep the others waiting.
        await asyncio.sleep(0)
