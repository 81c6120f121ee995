"""
The viewer's HTTP API: one FastAPI application over the shelf.

Handlers contain no decisions: they take parameters apart, call a function of
this folder in a worker thread, and wrap what it returns. What can be said
without work (the answer is unchanged) is said before any is done.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import ASGIApp

from nodescope import __version__
from nodescope.base.errors import NodescopeError, NothingYet
from nodescope.base.moment import Span
from nodescope.base.text import clean_text, nearest_name
from nodescope.read.query import Engine
from nodescope.read.subject import scope_of
from nodescope.use.viewer import findings, shapes
from nodescope.use.viewer.booklet import make_booklet
from nodescope.use.viewer.caller import LEFT_STATUS, Caller, CallerLeft
from nodescope.use.viewer.extract import write_extract
from nodescope.use.viewer.gate import Gate, make_error
from nodescope.use.viewer.happenings import EVENTS_MOST, answer_events
from nodescope.use.viewer.live import LISTENERS_MOST, Listener, status_of, stream
from nodescope.use.viewer.live import METRICS_MOST as LIVE_METRICS_MOST
from nodescope.use.viewer.page import STATIC, serve_page
from nodescope.use.viewer.question import (
    POINTS_DEFAULT,
    POINTS_MOST,
    SERIES_MOST,
    Member,
    choose_members,
    choose_nodes,
    members_of,
    parse_span,
    resolve,
    split_words,
)
from nodescope.use.viewer.refusal import Refused, bad_request, too_much
from nodescope.use.viewer.render import Json, render_json
from nodescope.use.viewer.roster import (
    Filter,
    answer_containers,
    answer_filters,
    answer_metrics,
    parse_labels,
)
from nodescope.use.viewer.shelf import Node, Shelf, Snapshot
from nodescope.use.viewer.tiles import answer_summary, count_cores, read_memory_total
from nodescope.use.viewer.timeseries import Wish, answer_timeseries

PANELS_MOST = 5
# Answers being made at once: DuckDB uses all cores for one as well.
WORKERS = 4
# Waiting for a worker longer than this, a page is told to come back.
WAIT_SECONDS = 30.0
ROWS_MOST = 1000
COMPRESS_BYTES = 1024
COMPRESS_LEVEL = 4
PROBLEMS_SHOWN = 50

Moment = Annotated[str, Query(max_length=64, description="ISO 8601, epoch seconds, -15m, or now")]
Start = Annotated[
    str, Query(alias="from", max_length=64, description="ISO 8601, epoch seconds, -15m, or now")
]
Whole = Annotated[
    str, Query(alias="range", max_length=16, description="15m, 1h, 6h, 1d, 1w or all; instead of from and to")
]
NodeName = Annotated[
    str, Query(max_length=256, description="one of the nodes that are served; all unless given")
]
MetricName = Annotated[str, Query(max_length=256, description="a plain or raw name; /api/metrics lists them")]
Words = Annotated[
    list[str],
    Query(default_factory=list, max_length=SERIES_MOST, description="several by comma, or repeated"),
]
Scope_ = Annotated[str, Query(max_length=32, description="all series of a scope: node, cpu, disk, gpu, ...")]
Rate_ = Literal["auto", "on", "off"]

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": shapes.Error, "description": words}
    for status, words in (
        (400, "not accepted: says what is"),
        (401, "a token is needed"),
        (404, "no such node, metric or container: says the nearest"),
        (413, "more work than one request may ask for: says how much"),
        (414, "the query is too long"),
        (421, "asked under a name that is not this viewer's"),
        (422, "a parameter is not of its kind"),
        (503, "nothing yet, or too busy: come back"),
    )
}
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "as you have it"}}


@dataclass(slots=True)
class Viewer:
    """What the handlers answer from."""

    shelf: Shelf
    engine: Engine = field(default_factory=Engine)
    static: Path = STATIC
    memory_totals: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By node: the newest file when it was read, and bytes."""
    listeners: int = 0
    stopping: bool = False
    workers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WORKERS))


@dataclass(frozen=True, slots=True)
class Asked:
    """What every question has: a snapshot, its nodes, a range."""

    snapshot: Snapshot
    nodes: tuple[Node, ...]
    span: Span


def build_app(
    viewer: Viewer,
    admits: Callable[[str], bool] | None = None,
    *,
    only_local: bool = True,
    hosts: tuple[str, ...] = (),
) -> ASGIApp:
    return Gate(build_api(viewer), admits, only_local=only_local, hosts=hosts)


def build_api(viewer: Viewer) -> FastAPI:
    api = FastAPI(
        title="nodescope viewer",
        version=__version__,
        description="Archives and live tails of nodes: who uses what, since when, and what happened.",
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )
    api.add_middleware(GZipMiddleware, minimum_size=COMPRESS_BYTES, compresslevel=COMPRESS_LEVEL)
    add_facts(api, viewer)
    add_charts(api, viewer)
    add_streams(api, viewer)
    add_refusals(api)

    @api.get("/{path:path}", include_in_schema=False)
    async def page(path: str) -> Response:
        if path.startswith("api/") or path == "api":
            raise HTTPException(404)
        return await run_in_threadpool(serve_page, path, viewer.static)

    return api


# -- doing the work -----------------------------------------------------------------


async def work(viewer: Viewer, answer: Callable[[], Response], caller: Caller | None = None) -> Response:
    """In a thread, a few at a time; not for somebody who has left meanwhile."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await viewer.workers.acquire()
    except TimeoutError:
        return make_error(503, "busy", "other answers are being made", "try again in some seconds")
    try:
        if caller is None:
            return await run_in_threadpool(answer)
        async with caller.watched():
            caller.check()
            return await run_in_threadpool(answer)
    except CallerLeft:
        return Response(status_code=LEFT_STATUS)
    finally:
        viewer.workers.release()


def make_json(content: Json, headers: dict[str, str] | None = None) -> Response:
    return Response(
        render_json(content), media_type="application/json", headers=headers or {"Cache-Control": "no-cache"}
    )


def ask(viewer: Viewer, node: str, start: str, end: str, span: str) -> Asked:
    snapshot = viewer.shelf.snapshot()
    return Asked(snapshot, choose_nodes(snapshot, node), parse_span(snapshot, start, end, span))


def stamp(asked: Asked, request: Request) -> str:
    """
    The answer's name while it cannot change; empty while it can.

    A range that ends before the newest file does is made of these files and
    nothing else. Relative times were made absolute before.
    """
    ends = [node.catalog.to_ms for node in asked.nodes]
    if any(end is None or end < asked.span.to_ms for end in ends) or not ends:
        return ""
    digest = hashlib.sha256(f"{__version__} {request.url.path} {asked.span}".encode())
    for key, value in sorted(request.query_params.multi_items()):
        if key not in ("from", "to", "range"):
            digest.update(f"\n{key}={value}".encode("utf-8", "replace"))
    for node in asked.nodes:
        for entry in node.catalog.select(asked.span.from_ms - 120_000, asked.span.to_ms):
            digest.update(f"\n{entry.path}:{entry.size_bytes}".encode("utf-8", "replace"))
    return f'"{digest.hexdigest()[:32]}"'


def answer_once(asked: Asked, request: Request, make: Callable[[], Json]) -> Response:
    """304 where the asker has it already."""
    tag = stamp(asked, request)
    if not tag:
        return make_json(make())
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in [
        word.strip().removeprefix("W/") for word in request.headers.get("if-none-match", "").split(",")
    ]:
        return Response(status_code=304, headers=headers)
    return make_json(make(), headers)


def choose(asked: Asked, texts: Sequence[str]) -> tuple[Member, ...] | None:
    words = split_words(texts)
    if not words:
        return None
    if len(words) > SERIES_MOST:
        raise too_much(f"{len(words)} containers; accepted: up to {SERIES_MOST} in one answer")
    return tuple(choose_members(members_of(asked.snapshot, asked.nodes), words))


# -- what there is ------------------------------------------------------------------


def add_facts(api: FastAPI, viewer: Viewer) -> None:
    @api.get("/api/health", response_model=shapes.Health)
    @api.get("/healthz", include_in_schema=False)
    @api.get("/readyz", include_in_schema=False)
    async def health() -> Response:
        return make_json({"status": "ok", "version": __version__})

    @api.get("/api/instance", response_model=shapes.Instance)
    async def instance() -> Response:
        return await work(viewer, lambda: make_json(answer_instance(viewer)))

    @api.get("/api/metrics", response_model=shapes.Metrics)
    async def metrics(node: NodeName = "") -> Response:
        def answer() -> Response:
            return make_json(answer_metrics(choose_nodes(viewer.shelf.snapshot(), node)))

        return await work(viewer, answer)

    @api.get("/api/filters", response_model=shapes.Filters)
    async def filters(node: NodeName = "") -> Response:
        def answer() -> Response:
            snapshot = viewer.shelf.snapshot()
            return make_json(answer_filters(snapshot, choose_nodes(snapshot, node)))

        return await work(viewer, answer)

    @api.get("/api/studies", response_model=shapes.Studies)
    async def studies() -> Response:
        return make_json(findings.answer_studies())


def answer_instance(viewer: Viewer) -> Json:
    snapshot = viewer.shelf.snapshot()
    agent = viewer.shelf.agent
    status = status_of(snapshot, agent.address if agent else None)
    cores = [count for node in snapshot.nodes if (count := count_cores(node))]
    memory = [size for node in snapshot.nodes if (size := know_memory_total(viewer, node))]
    problems = [{"file": refusal.path.name, "reason": refusal.reason} for refusal in snapshot.refusals]
    if agent and agent.reason:
        problems.append({"file": agent.address, "reason": agent.reason})
    names = [node.name for node in snapshot.nodes]
    return {
        "version": __version__,
        "node": names[0] if len(names) == 1 else "",
        "nodes": names,
        "from": None if snapshot.from_ms is None else snapshot.from_ms / 1000,
        "to": None if snapshot.to_ms is None else snapshot.to_ms / 1000,
        "live": status["live"],
        "lag_seconds": status["lag_seconds"],
        "agent": agent.address if agent else None,
        "cores": sum(cores) if cores else None,
        "memory_bytes": sum(memory) if memory else None,
        "containers": sum(
            1 for node in snapshot.nodes for one in node.listed if scope_of(one) == "container"
        ),
        "limit": {
            "panels": PANELS_MOST,
            "max_points": POINTS_MOST,
            "containers": SERIES_MOST,
            "studies": findings.SERIES_MOST,
        },
        "problems": problems[:PROBLEMS_SHOWN],
    }


def know_memory_total(viewer: Viewer, node: Node) -> float | None:
    """Read once a file: every page begins with this answer, and the size of a node hardly changes."""
    newest = node.catalog.entries[-1].path.name if node.catalog.entries else ""
    known = viewer.memory_totals.get(node.name)
    if known and known[0] == newest:
        return known[1]
    total = read_memory_total(viewer.engine, node)
    if total is not None:
        viewer.memory_totals[node.name] = (newest, total)
    return total


# -- what happened ------------------------------------------------------------------


def add_charts(api: FastAPI, viewer: Viewer) -> None:
    @api.get("/api/summary", response_model=shapes.Summary, responses=NOT_MODIFIED)
    async def summary(
        request: Request, start: Start = "", to: Moment = "", whole: Whole = "", node: NodeName = ""
    ) -> Response:
        def answer() -> Response:
            asked = ask(viewer, node, start, to, whole)
            return answer_once(asked, request, lambda: answer_summary(viewer.engine, asked.nodes, asked.span))

        return await work(viewer, answer, Caller(request))

    @api.get("/api/containers", response_model=shapes.Containers, responses=NOT_MODIFIED)
    async def containers(
        request: Request,
        *,
        metric: MetricName = "cpu",
        namespace: Words,
        qos_class: Words,
        search: Annotated[str, Query(max_length=256)] = "",
        labels: Words,
        start: Start = "",
        to: Moment = "",
        whole: Whole = "",
        limit: Annotated[int, Query(ge=1, le=ROWS_MOST)] = 200,
        sort: Annotated[str, Query(max_length=32)] = "value",
        node: NodeName = "",
    ) -> Response:
        def answer() -> Response:
            asked = ask(viewer, node, start, to, whole)
            wanted = Filter(
                tuple(split_words(namespace)),
                tuple(split_words(qos_class)),
                search,
                parse_labels(split_words(labels)),
            )
            return answer_once(
                asked,
                request,
                lambda: answer_containers(
                    viewer.engine, asked.snapshot, asked.nodes, metric, asked.span, wanted, sort, limit
                ),
            )

        return await work(viewer, answer, Caller(request))

    @api.get("/api/timeseries", response_model=shapes.Timeseries, responses=NOT_MODIFIED)
    async def timeseries(
        request: Request,
        *,
        metric: MetricName,
        containers: Words,
        scope: Scope_ = "",
        start: Start = "",
        to: Moment = "",
        whole: Whole = "",
        max_points: Annotated[int, Query(ge=1, le=POINTS_MOST)] = POINTS_DEFAULT,
        rate: Rate_ = "auto",
        node: NodeName = "",
    ) -> Response:
        def answer() -> Response:
            asked = ask(viewer, node, start, to, whole)

            def make() -> Json:
                wish = Wish(metric, asked.span, max_points, rate, choose(asked, containers), scope)
                return answer_timeseries(viewer.engine, asked.snapshot, asked.nodes, wish)

            return answer_once(asked, request, make)

        return await work(viewer, answer, Caller(request))

    @api.get("/api/study/{study}", response_model=shapes.Study, responses=NOT_MODIFIED)
    async def study(
        request: Request,
        study: str,
        *,
        metric: MetricName = "cpu",
        containers: Words,
        scope: Scope_ = "",
        start: Start = "",
        to: Moment = "",
        whole: Whole = "",
        node: NodeName = "",
    ) -> Response:
        caller = Caller(request)

        def answer() -> Response:
            asked = ask(viewer, node, start, to, whole)

            def make() -> Json:
                members = choose(asked, containers)
                return findings.answer_study(
                    viewer.engine,
                    asked.snapshot,
                    asked.nodes,
                    study,
                    metric,
                    members,
                    scope,
                    asked.span,
                    caller.check,
                )

            return answer_once(asked, request, make)

        return await work(viewer, answer, caller)

    @api.get("/api/events", response_model=shapes.Events, responses=NOT_MODIFIED)
    async def events(
        request: Request,
        *,
        containers: Words,
        start: Start = "",
        to: Moment = "",
        whole: Whole = "",
        limit: Annotated[int, Query(ge=1, le=EVENTS_MOST)] = 500,
        node: NodeName = "",
    ) -> Response:
        def answer() -> Response:
            asked = ask(viewer, node, start, to, whole)

            def make() -> Json:
                members = choose(asked, containers)
                ids = None if members is None else [one.id for one in members]
                return answer_events(asked.snapshot, asked.nodes, asked.span, ids, limit)

            return answer_once(asked, request, make)

        return await work(viewer, answer, Caller(request))


# -- streams ------------------------------------------------------------------------


def add_streams(api: FastAPI, viewer: Viewer) -> None:
    binary: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/octet-stream": {}, "text/csv": {}, "text/html": {}}}
    }

    @api.get("/api/export", response_class=Response, responses=binary)
    async def export(
        *,
        metric: Words,
        containers: Words,
        start: Start = "",
        to: Moment = "",
        whole: Whole = "",
        form: Annotated[Literal["parquet", "csv", "html"], Query(alias="format")] = "csv",
        node: NodeName = "",
    ) -> Response:
        def answer() -> Response:
            asked = ask(viewer, node, start, to, whole)
            metrics, members = split_words(metric), choose(asked, containers)
            if form == "html":
                return send_booklet(viewer, asked, metrics, members)
            if not metrics:
                raise bad_request("metric is missing; /api/metrics lists what there is")
            return send_extract(viewer, asked, metrics, members, form)

        return await work(viewer, answer)

    events: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}

    @api.get("/api/live", response_class=Response, responses=events)
    async def live(
        *,
        metric: Words,
        containers: Words,
        node: NodeName = "",
    ) -> Response:
        if viewer.listeners >= LISTENERS_MOST:
            return make_error(
                503,
                "too many listeners",
                f"at most {LISTENERS_MOST} live tails are served",
                "close another page",
            )
        listener = await run_in_threadpool(
            make_listener, viewer, split_words(metric) or ["cpu"], containers, node
        )
        return StreamingResponse(
            listen(viewer, listener), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )


def make_listener(viewer: Viewer, metrics: Sequence[str], texts: Sequence[str], node: str) -> Listener:
    snapshot = viewer.shelf.snapshot()
    nodes = choose_nodes(snapshot, node)
    if len(metrics) > LIVE_METRICS_MOST:
        raise too_much(f"{len(metrics)} metrics; accepted: up to {LIVE_METRICS_MOST} in one live tail")
    for metric in metrics:
        resolve(nodes, metric)
    words = split_words(texts)
    members = tuple(choose_members(members_of(snapshot, nodes), words[:SERIES_MOST])) if words else ()
    return Listener(tuple(metrics), members, node)


async def listen(viewer: Viewer, listener: Listener) -> AsyncIterator[bytes]:
    viewer.listeners += 1
    try:
        async for part in stream(viewer.engine, viewer.shelf, listener, lambda: viewer.stopping):
            yield part
    finally:
        viewer.listeners -= 1


def send_booklet(
    viewer: Viewer, asked: Asked, metrics: Sequence[str], members: Sequence[Member] | None
) -> Response:
    booklet = make_booklet(
        viewer.engine,
        asked.snapshot,
        asked.nodes,
        answer_instance(viewer),
        metrics,
        members,
        asked.span,
        viewer.static,
    )
    name = f"nodescope-{asked.span.from_ms // 1000}-{asked.span.to_ms // 1000}.html"
    # Saved, never shown: inside this origin its own script would be refused.
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(booklet.content, media_type="text/html", headers=headers)


def send_extract(
    viewer: Viewer, asked: Asked, metrics: Sequence[str], members: Sequence[Member] | None, form: str
) -> Response:
    descriptor, name = tempfile.mkstemp(prefix="nodescope-export-", suffix=f".{form}")
    os.close(descriptor)
    path = Path(name)
    with ExitStack() as stack:
        stack.callback(path.unlink, missing_ok=True)
        write_extract(viewer.engine, asked.nodes, metrics, members, asked.span, path)
        # Written: it is removed when it has been sent.
        forget = stack.pop_all().close
    kind = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}[form]
    return FileResponse(
        path,
        media_type=kind,
        filename=f"nodescope-{asked.span.from_ms // 1000}-{asked.span.to_ms // 1000}.{form}",
        background=BackgroundTask(forget),
    )


# -- saying no ----------------------------------------------------------------------


def add_refusals(api: FastAPI) -> None:
    known = sorted({getattr(route, "path", "") for route in api.routes} - {""})

    @api.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        del request
        return make_error(error.status, error.error, str(error), error.hint)

    @api.exception_handler(NodescopeError)
    async def rejected(request: Request, error: NodescopeError) -> Response:
        del request
        return make_error(503 if isinstance(error, NothingYet) else 400, "not accepted", str(error))

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        del request
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("query", "path"))
        given = clean_text(str(first.get("input", "")), 60)
        return make_error(
            422, "not accepted", f"{where}={given!r}: {first['msg']}", "/openapi.json says what is"
        )

    @api.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> Response:
        path = request.url.path
        if error.status_code == 404:
            near = nearest_name(path, known)
            paths = " ".join(name for name in known if name.startswith("/api/"))
            hint = f"did you mean {near}?" if near else ""
            return make_error(404, "not found", f"no {clean_text(path, 80)}; there are: {paths}", hint)
        refusal = make_error(
            error.status_code, "refused", f"{request.method} is not accepted here; accepted: GET"
        )
        if error.status_code == 405:
            refusal.headers["Allow"] = "GET"
        return refusal
