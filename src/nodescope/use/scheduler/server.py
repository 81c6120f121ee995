"""
The extender's HTTP: two verbs for kube-scheduler, the rest for people and probes.

    POST /filter /prioritize   extender/v1; the same under any prefix such as /scheduler
    GET  /explain?pod=NS/NAME  why each node was scored as it was; by whichever replica decided it
    GET  /metrics /healthz /readyz

kube-scheduler can show a certificate and no token, people have tokens: where the
verbs have a listener of their own, each listener takes its own paths only.

Plain ASGI: a cluster's scheduling waits for every call, and a router between
would be half of what it costs. Bodies are bounded; one is parsed at a time.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nodescope.base.clock import stopwatch_seconds
from nodescope.base.errors import RequestRejected
from nodescope.base.text import hint_nearest
from nodescope.serve.body import HeldBytes, read_body
from nodescope.serve.connections import Connections
from nodescope.serve.gate import PROBES
from nodescope.serve.json_response import make_error, make_json, make_refusal
from nodescope.serve.prometheus_text import TEXT
from nodescope.serve.turns import Turns, answer_in_turn
from nodescope.use.scheduler.explain import describe_decision
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.peers import HERE, Peers
from nodescope.use.scheduler.self_metrics import ExtenderCounters
from nodescope.use.scheduler.wire import parse_call

# A Node has 10 to 30 KB: some three hundred whole ones. NodeNames needs 100 KB for 5,000.
BODY_BYTES = 8 * 2**20
# All bodies that are being read, and those of one address; above it 503 is answered.
BODIES_BYTES = 64 * 2**20
BODIES_BYTES_EACH = 32 * 2**20
# kube-scheduler sends at once, and waits five seconds for the answer unless it is told otherwise.
BODY_SECONDS = 5.0
# An answer is made in one go: turns are for those who wait because others do not read theirs.
TURNS = 4
WAIT_SECONDS = 5.0
VERBS = ("filter", "prioritize")
# What a listener takes.
EVERYTHING, VERBS_ONLY, QUESTIONS_ONLY = "everything", "verbs", "questions"
PATHS = ("/filter", "/prioritize", "/explain", "/metrics", "/healthz", "/readyz", "/")
INDEX = """nodescope extender

POST /filter /prioritize
/explain?pod=NAMESPACE/NAME
/metrics /healthz /readyz
"""
EXPLAINED = 50


class VerbElsewhere(RequestRejected):
    """A call of kube-scheduler's on a listener that is for people."""

    status, title = 403, "not here"


@dataclass(slots=True)
class ExtenderApp:
    """The ASGI application behind the gate."""

    _extender: Extender
    _counters: ExtenderCounters
    _readiness: Callable[[], str]
    """Empty when ready, else why not."""
    _render_metrics: Callable[[], str]
    connections: Connections = field(default_factory=Connections)
    """Of the server in front."""
    _takes: str = EVERYTHING
    peers: Peers | None = None
    """The replicas, where there are others."""
    _bodies: HeldBytes = field(default_factory=lambda: HeldBytes(BODIES_BYTES, BODIES_BYTES_EACH))
    _turns: Turns = field(init=False)
    _peer_turns: Turns = field(init=False)
    """Of people who wait for the other replicas: kube-scheduler does not wait for those."""

    def __post_init__(self) -> None:
        self._turns = Turns(TURNS, self.connections, WAIT_SECONDS)
        self._peer_turns = Turns(TURNS, self.connections, WAIT_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] in PROBES:
            await self._answer_path(scope["path"], scope)(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except RequestRejected as error:
            await make_refusal(error)(scope, receive, send)
            return

        peers = self.peers if scope["path"] == "/explain" else None
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        asks_peers = peers is not None and query.get("pod", [""])[0] and HERE not in query

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = self._answer(scope, body)
            if peers is not None and asks_peers:
                response = await self._ask_peers(scope, response, peers, query["pod"][0])
            await response(scope, receive, send)

        # Behind the reading of the body: a slow sender holds no turn.
        turns = self._peer_turns if asks_peers else self._turns
        await answer_in_turn(turns, answer, scope, receive, send)

    async def _ask_peers(self, scope: Scope, own: Response, peers: Peers, pod: str) -> Response:
        """The newest decision of all replicas; ours where no other has a newer one."""
        if own.status_code not in (200, 404):
            return own
        authorization = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        told = await asyncio.to_thread(peers.explain, pod, authorization)
        newest = max(told, key=lambda one: float(one["at"]), default=None)
        if newest is None or (own.status_code == 200 and json.loads(bytes(own.body))["at"] >= newest["at"]):
            return own
        return make_json(newest)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        verb = scope["path"].rpartition("/")[2]
        if verb not in VERBS or scope["method"] != "POST":
            return b""
        if self._takes == QUESTIONS_ONLY:
            raise VerbElsewhere("kube-scheduler asks with its certificate, at the address of --verbs-listen")
        try:
            return await read_body(scope, receive, BODY_BYTES, BODY_SECONDS, self._bodies)
        except RequestRejected:
            self._counters.requests[verb, "refused"] += 1
            raise

    def _answer(self, scope: Scope, body: bytes) -> Response:
        path, method = scope["path"], scope["method"]
        # kube-scheduler's urlPrefix may have a path of its own.
        verb = path.rpartition("/")[2]
        if verb in VERBS:
            if method != "POST":
                return refuse_method(f"{method} is not accepted; accepted: POST", "POST")
            return self._answer_verb(verb, body)
        if self._takes == VERBS_ONLY:
            return make_error(404, "not found", "this listener takes POST /filter and /prioritize alone")
        if method not in ("GET", "HEAD"):
            return refuse_method(f"{method[:20]} is not accepted; accepted: GET", "GET, HEAD")
        return self._answer_path(path, scope)

    def _answer_path(self, path: str, scope: Scope) -> Response:
        if path in ("/healthz", "/health"):
            return make_json({"live": True})
        if path == "/readyz":
            reason = self._readiness()
            return make_json({"ready": not reason, "reason": reason}, 503 if reason else 200)
        if path == "/metrics":
            body = self._render_metrics().encode("utf-8", "replace")
            return Response(body, headers={"Content-Type": TEXT})
        if path == "/explain":
            return self._explain(parse_qs(scope.get("query_string", b"").decode("latin-1")))
        if path == "/":
            return Response(INDEX, media_type="text/plain")
        known = " ".join(PATHS)
        return make_error(
            404, "not found", f"no {path[:80]}{hint_nearest(path[:80], PATHS)} there are: {known}"
        )

    def _explain(self, query: Mapping[str, list[str]]) -> Response:
        decisions = self._extender.decisions
        recent = decisions.keys()
        pod = query.get("pod", [""])[0]
        if not pod:
            return make_error(
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
            return make_error(404, "not found", detail, hint)
        return make_json(describe_decision(decision))

    def _answer_verb(self, verb: str, body: bytes) -> Response:
        try:
            started = stopwatch_seconds()
            answer = self._decide(verb, body)
            self._counters.seconds[verb].observe(stopwatch_seconds() - started)
            self._counters.requests[verb, "ok"] += 1
        except RequestRejected as error:
            self._counters.requests[verb, "refused"] += 1
            return make_refusal(error)
        return answer

    def _decide(self, verb: str, body: bytes) -> Response:
        call = parse_call(body)
        self._counters.pods[verb, call.pod.kind] += 1
        made = self._extender.filter(call) if verb == "filter" else self._extender.prioritize(call)
        return Response(made, media_type="application/json")


def refuse_method(detail: str, accepted: str) -> Response:
    return make_error(405, "method not allowed", detail, headers={"Allow": accepted})
