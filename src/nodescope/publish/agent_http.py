"""
The agent's HTTP: one Starlette application, bounded in every direction.

Routes contain no decisions: they parse parameters, call a function of
`scrape` or `agent_json`, and wrap what it returns. Errors are JSON with what was
wrong, what is accepted and, where there is one, the nearest name.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from nodescope.base.clock import Clock, stopwatch_seconds
from nodescope.base.errors import RequestRejected, SettingsRejected
from nodescope.base.findings.annotation import Annotation, parse_annotation_request
from nodescope.base.perf_requests import PerfRequests
from nodescope.base.settings_load import LoadedSettings
from nodescope.base.status import SamplerStatus
from nodescope.base.text import nearest_name
from nodescope.fpga.tracker import FpgaTracker
from nodescope.hold.ring import Ring
from nodescope.hold.window import NODE_STATISTICS
from nodescope.publish.agent_json import (
    answer_node_window,
    answer_scope_window,
    answer_status,
    check_scope,
    judge_health,
    parse_window_seconds,
)
from nodescope.publish.findings_json import (
    EVENT_STREAM,
    FindingStream,
    StreamPlaces,
    answer_findings,
    answer_post,
    find_watcher,
    wants_stream,
)
from nodescope.publish.fpga_intake import BODY_BYTES, BODY_SECONDS, parse_event
from nodescope.publish.live import Live
from nodescope.publish.pods_json import answer_pods, check_pods_form
from nodescope.publish.scrape import Scrape, accepts_gzip, compress_pieces, prefers_openmetrics
from nodescope.publish.self_metrics import SelfMetrics
from nodescope.serve.body import read_body
from nodescope.serve.gate import PROBES, Gate, listens_locally, name_hosts
from nodescope.serve.json_response import make_error, make_json, make_refusal
from nodescope.serve.pieces import PiecesResponse
from nodescope.serve.probes import LoopPulse
from nodescope.serve.prometheus_text import OPENMETRICS, TEXT
from nodescope.serve.server import parse_address
from nodescope.serve.token import Token
from nodescope.serve.turns import Turns, answer_in_turn
from nodescope.watch.watcher import Watcher

INTAKE_PATHS = frozenset({"/", "/fpga/events"})
OK_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"2")],
}
OK_BODY = {"type": "http.response.body", "body": b"ok"}
WINDOW_PARAMETERS = ("window_seconds", "window_sec", "window")
# Not labels but parameters of /window.
NOT_FILTERS = frozenset({"seconds", "scope", "stats", "metrics", "perf", *WINDOW_PARAMETERS})
# Below this, gzip costs more than it saves.
COMPRESS_BYTES = 1024
# Answers being made at once; the rest waits its turn for a moment.
WORKERS = 2
WAIT_SECONDS = 10.0
QUERY_CHARACTERS = 4096
HINTS = {421: "start it with --allow-host NAME, or --listen 0.0.0.0:9100"}
# Namespace, pod and container names have 63 to 253 characters each.
PATTERN_CHARACTERS = 600
PLAIN_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")


@dataclass(frozen=True, slots=True)
class Agent:
    """
    What the answers are made from, and a method for each route.

    Starlette calls a plain method on a worker thread, an async one on the event loop.
    """

    node: str
    loaded: LoadedSettings
    ring: Ring
    scrape: Scrape
    own: SelfMetrics
    frames: Live
    clock: Clock
    sampler_status: Callable[[], SamplerStatus]
    permissions: Callable[[], dict[str, Any]]
    reader: str
    """How files are read, in words."""
    fpga: FpgaTracker
    perf_requests: PerfRequests
    watcher: Watcher | None = None
    listeners: StreamPlaces = field(default_factory=StreamPlaces)
    annotate: Callable[[Annotation], None] | None = None
    """Keeps a note in the data folder; None where there is none."""

    def metrics(self, request: Request) -> Response:
        given = next((name for name in WINDOW_PARAMETERS if name in request.query_params), None)
        if given:
            return self._node_window(request.query_params, given)
        openmetrics = prefers_openmetrics(request.headers.get("accept", ""))
        sources = tuple(request.query_params.getlist("source"))
        pieces = self.scrape.read(sources, openmetrics=openmetrics)
        first, *more = islice(pieces, 2)
        headers = {"Vary": "Accept, Accept-Encoding"}
        is_long = sum(map(len, (first, *more))) > COMPRESS_BYTES
        # Set by hand: Starlette would add a second charset to text types.
        headers["Content-Type"] = OPENMETRICS if openmetrics else TEXT
        if is_long and accepts_gzip(request.headers.get("accept-encoding", "")):
            headers["Content-Encoding"] = "gzip"
            return Response(compress_pieces(chain((first,), more, pieces)), headers=headers)
        # The first may be shared with other answers of this tick; the others are small, or joined.
        return PiecesResponse(first, b"".join(chain(more, pieces)), headers)

    def _node_window(self, parameters: QueryParams, given: str) -> Response:
        seconds = parse_window_seconds(parameters[given], self.ring, "node")
        cores, names = parameters.get("cores", ""), parameters.get("names", "")
        return make_json(answer_node_window(self.ring, self.clock, self.node, seconds, cores, names))

    def window(self, request: Request) -> Response:
        parameters = request.query_params
        scope = check_scope(parameters.get("scope", "node"))
        given = next((name for name in ("seconds", *WINDOW_PARAMETERS) if name in parameters), None)
        seconds = parse_window_seconds(parameters[given] if given else "20", self.ring, scope)
        self._request_perf(scope, parameters.getlist("perf"))
        statistics = tuple(parameters.get("stats", ",".join(NODE_STATISTICS)).split(","))
        metrics = tuple(name for name in parameters.get("metrics", "").split(",") if name)
        filters = {key: value for key, value in parameters.items() if key not in NOT_FILTERS}
        content = answer_scope_window(
            self.ring, self.clock, self.node, scope, seconds, statistics, filters, metrics
        )
        return make_json(content)

    def pods(self, request: Request) -> Response:
        seconds = parse_window_seconds(request.query_params.get("seconds", "20"), self.ring, "container")
        form = check_pods_form(request.query_params.get("form", "json"))
        answer = answer_pods(self.ring, self.clock, self.node, seconds)
        if form == "json":
            return make_json(answer.describe())
        return Response(answer.render_lines(), media_type="text/plain")

    def _request_perf(self, scope: str, patterns: list[str]) -> None:
        """Hardware counters of containers are read on request, and for a minute from then."""
        if patterns and scope not in ("container", "service"):
            raise RequestRejected(f"perf goes with scope=container or scope=service, not with scope={scope}")
        for pattern in patterns:
            if not pattern or len(pattern) > PATTERN_CHARACTERS:
                raise RequestRejected(
                    f"perf={pattern[:40]!r} is not accepted; accepted: namespace/pod/container, a name, or an id; * stands for anything"
                )
            self.perf_requests.add(pattern)

    async def health(self, request: Request) -> Response:
        """The same answer on all probes; /readyz fails without fresh samples, the others without a loop."""
        health = judge_health(self.sampler_status(), self.clock.mono_ns())
        is_well = health.ready if request.scope["path"] == "/readyz" else health.live
        return make_json(asdict(health), 200 if is_well else 503)

    def judge_probe(self, pulse: LoopPulse, path: str) -> tuple[bool, dict[str, Any]]:
        """The same on a thread of its own; a server that hangs is not well either."""
        health = judge_health(self.sampler_status(), self.clock.mono_ns())
        if hung := pulse.describe():
            health = replace(health, live=False, ready=False, reason=hung)
        return health.ready if path == "/readyz" else health.live, asdict(health)

    def status(self, request: Request) -> Response:
        del request
        now_ns = self.clock.mono_ns()
        content = answer_status(
            self.sampler_status(), self.ring, self.loaded, now_ns, self.node, self.permissions()
        )
        if self.own.archive:
            content["archive"] = asdict(self.own.archive())
        content["memory"] = asdict(self.own.memory()) if self.own.memory else None
        content["annotations"] = asdict(self.own.annotation) if self.own.annotation.keys else None
        events = self.own.pod_events
        content["kubernetes_events"] = asdict(events) if events.is_on or events.reason else None
        content["alertmanagers"] = [asdict(one) for one in self.own.alerts]
        content["reader"] = self.reader
        content["watcher"] = asdict(self.watcher.status) if self.watcher else None
        content["connections"] = self.own.connections.describe()
        return make_json(content)

    def live(self, request: Request) -> Response:
        tail = self.frames.read(request.query_params.get("since", ""))
        headers = {
            "Nodescope-Cursor": tail.cursor,
            "Nodescope-Complete": "true" if tail.complete else "false",
            "Nodescope-More": "true" if tail.more else "false",
        }
        if self.own.archive:
            # Frames up to this one are on disk as well; later ones are here only.
            headers["Nodescope-Written"] = str(self.own.archive().written_sequence)
        return Response(tail.body, media_type="application/vnd.nodescope.frames", headers=headers)

    async def findings(self, request: Request) -> Response:
        """JSON; or, for who accepts it, server-sent events of every change from now on."""
        watcher = find_watcher(self.watcher)
        if EVENT_STREAM in request.headers.get("accept", ""):
            return FindingStream(watcher.store, request.headers.get("last-event-id", ""), self.listeners)
        return make_json(answer_findings(watcher, self.node, self.clock.wall_ns() / 1e9))

    async def judge_finding(self, request: Request) -> Response:
        """What a person says: {"id": ..., "verdict": "not_a_problem"}, {"silence": {...}} or {"end_silence": ID}."""
        watcher = find_watcher(self.watcher)
        body = await read_body(request.scope, request.receive, BODY_BYTES, BODY_SECONDS)
        return make_json(answer_post(watcher.store, body, self.clock.wall_ns() / 1e9))

    async def add_note(self, request: Request) -> Response:
        """{"text": "deployed 2.1 here", "at": EPOCH_SECONDS}; for who may not write the data folder, such as a viewer."""
        body = await read_body(request.scope, request.receive, BODY_BYTES, BODY_SECONDS)
        note = parse_annotation_request(body, self.clock.wall_ns() / 1e9)
        if self.annotate is None:
            raise RequestRejected("this agent keeps no data folder: archive = false")
        try:
            await run_in_threadpool(self.annotate, note)
        except OSError as error:
            raise RequestRejected(f"the note could not be kept: {error.strerror}") from error
        return make_json(note.to_json())

    async def index(self, request: Request) -> Response:
        del request
        lines = [
            f"nodescope agent on {self.node}",
            "",
            "/metrics                       Prometheus text; ?source=cpu narrows it",
            "/metrics?window_seconds=20     the node's last seconds, for a scheduler",
            "  &cores=3,4,5&names=thesis    single cores, and the names of the original model",
            "/window?scope=container        any scope, any statistics",
            "/pods                          every pod's last seconds, for an autoscaler",
            "/findings                      what is wrong on this node; also as server-sent events",
            "POST /annotations              a note about this moment of the data",
            "/status                        every source: ok, absent or failed, and why",
            "/healthz /readyz               probes",
            "POST /fpga/events              a report of FPGA usage",
        ]
        return Response("\n".join(lines) + "\n", media_type="text/plain")


def check_metrics_path(path: str, taken: Iterable[str]) -> None:
    """One more path for /metrics may be any plain one that is not another answer's."""
    if not PLAIN_PATH.fullmatch(path) or path in taken:
        raise SettingsRejected(
            f"metrics_path = {path!r} is not accepted; accepted: a path such as /gpu/metrics that is none of {' '.join(taken)}"
        )


def build_app(agent: Agent, token: Token | None) -> ASGIApp:
    intake = Intake(agent.fpga)
    more = agent.loaded.settings.metrics_path
    routes = [
        Route("/metrics", agent.metrics),
        Route("/window", agent.window),
        Route("/pods", agent.pods),
        *(Route(path, agent.health) for path in ("/healthz", "/health", "/readyz")),
        Route("/status", agent.status),
        Route("/live", agent.live),
        Route("/findings", agent.findings),
        Route("/findings", agent.judge_finding, methods=["POST"]),
        Route("/annotations", agent.add_note, methods=["POST"]),
        Route("/fpga/events", intake, methods=["POST"]),
        Route("/", agent.index),
        Route("/", intake, methods=["POST"]),
    ]
    if more != "/metrics":
        check_metrics_path(more, [route.path for route in routes])
        routes.append(Route(more, agent.metrics))
    known = list(dict.fromkeys(route.path for route in routes))
    accepted = {
        path: sorted({method for route in routes if route.path == path for method in route.methods or ()})
        for path in known
    }

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
        if error.status_code == 404:
            near = nearest_name(request.url.path, known)
            hint = f"did you mean {near}?" if near else ""
            return make_error(
                404, "not found", f"no {request.url.path[:80]}; there are: {' '.join(known)}", hint
            )
        if error.status_code == 405:
            methods = accepted.get(request.url.path, ["GET"])
            return make_error(
                405,
                "method not allowed",
                f"{request.method} {request.url.path[:80]} is not accepted; accepted: {' '.join(methods)}",
                headers={"Allow": ", ".join(methods)},
            )
        return make_error(error.status_code, "refused", str(error.detail))

    app = Starlette(routes=routes, exception_handlers={HTTPException: refuse, RequestRejected: reject})
    settings = agent.loaded.settings
    guarded = partial(
        Gate,
        admits=token.admits if token else None,
        query_characters=QUERY_CHARACTERS,
        server="agent",
    )
    gate = partial(
        guarded,
        hosts=name_hosts(settings.listen, settings.allow_host),
        any_address=not listens_locally(settings.listen),
        hints=HINTS,
    )
    events = EventsListener(guarded(EventsOnly(intake)), settings.fpga_listen)
    return AgentApp(app, intake, agent.own, gate, frozenset(known), events)


async def reject(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, RequestRejected)  # noqa: S101 - registered for nothing else
    return make_refusal(error)


class AgentApp:
    """The gate and what is behind it, with the time that each request took."""

    def __init__(
        self,
        app: ASGIApp,
        intake: "Intake",
        own: SelfMetrics,
        make_gate: Callable[[ASGIApp], ASGIApp],
        known: frozenset[str],
        events: "EventsListener",
    ) -> None:
        self._app = app
        self._intake = intake
        self._own = own
        self._known = known
        self._turns = Turns(WORKERS, own.connections, WAIT_SECONDS)
        self._gate = make_gate(self._choose)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = stopwatch_seconds()
        gate = self._events.gate if self._events.is_asked(scope) else self._gate
        await gate(scope, receive, send)
        # How long somebody listens is no latency.
        if scope["type"] == "http" and not wants_stream(scope):
            path = scope["path"] if scope["path"] in self._known else "other"
            self._own.observe_request(path, stopwatch_seconds() - started)

    async def _choose(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES or wants_stream(scope):
            await self._app(scope, receive, send)
        elif scope["method"] == "POST" and scope["path"] in INTAKE_PATHS:
            # Events may come a thousand a second: finding their route would cost more than they do.
            await self._intake(scope, receive, send)
        else:
            await answer_in_turn(self._turns, self._app, scope, receive, send)


class EventsListener:
    """The listener that takes events alone, known by its port."""

    def __init__(self, gate: ASGIApp, address: str) -> None:
        self.gate = gate
        self._port = parse_address(address)[1] if address else None

    def is_asked(self, scope: Scope) -> bool:
        return self._port is not None and (scope.get("server") or ("", None))[1] == self._port


class EventsOnly:
    """Takes events; all else is not there."""

    def __init__(self, intake: "Intake") -> None:
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST" and scope["path"] in INTAKE_PATHS:
            await self._intake(scope, receive, send)
            return
        detail = f"this listener takes events alone: POST {' or POST '.join(sorted(INTAKE_PATHS))}"
        await make_error(404, "not found", detail)(scope, receive, send)


class Intake:
    """
    A report of FPGA usage: plain ASGI, folded in on the event loop.

    It waits for no turn: a slow sender of an event must not take a scrape's.
    """

    def __init__(self, tracker: FpgaTracker) -> None:
        self._tracker = tracker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(scope, receive, BODY_BYTES, BODY_SECONDS)
            media_type = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
            query = scope.get("query_string", b"").decode("latin-1")
            self._tracker.accept(parse_event(body, media_type, query))
        except RequestRejected as error:
            await make_refusal(error)(scope, receive, send)
            return
        await send(OK_START)
        await send(OK_BODY)
