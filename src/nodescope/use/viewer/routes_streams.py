"""What is sent piece by piece: an export as a file, the live tail as events."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from nodescope.base.clock import SystemClock
from nodescope.serve.json_response import make_error
from nodescope.serve.turns import TurnMissed
from nodescope.use.answers.containers import Life
from nodescope.use.answers.metrics import resolve
from nodescope.use.answers.refusal import bad_request, too_much
from nodescope.use.answers.timeseries import SERIES_MOST
from nodescope.use.viewer import shapes
from nodescope.use.viewer.export_data import Extract, stream_extract
from nodescope.use.viewer.incident_stream import CardWatch, stream_cards
from nodescope.use.viewer.live import LISTENERS_MOST, METRICS_MOST, LiveListener, split_scope, stream
from nodescope.use.viewer.offline_page import make_page
from nodescope.use.viewer.question import choose_lives, split_words
from nodescope.use.viewer.request import (
    NodeName,
    Responses,
    Served,
    Viewer,
    ViewerRequest,
    Within,
    Words,
    work,
)
from nodescope.use.viewer.routes_facts import answer_instance

FORMS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
FILES: Responses = {200: {"content": {"application/octet-stream": {}, "text/csv": {}, "text/html": {}}}}
EVENTS: Responses = {
    200: {
        "description": "events: the data of `points` is a LivePointsJson, of `status` a LiveStatusJson",
        "content": {"text/event-stream": {}},
    }
}


router = APIRouter()


@router.get("/api/export", response_class=Response, responses=FILES)
async def export(
    viewer: Served,
    limits: Within,
    *,
    metric: Words,
    containers: Words,
    form: Annotated[Literal["parquet", "csv", "html"], Query(alias="format")] = "csv",
) -> Response:
    def answer() -> Response:
        question = ViewerRequest.of(viewer, limits)
        metrics, lives = split_words(metric), question.choose(containers)
        if form == "html":
            return send_page(viewer, question, metrics, lives)
        if not metrics:
            raise bad_request("metric is missing; /api/metrics lists what there is")
        return send_extract(viewer, question, Extract(metrics, lives, question.span), form)

    return await work(viewer, answer)


# The model is named for the document's list of shapes: what is sent is a stream of both.
@router.get(
    "/api/live",
    response_class=Response,
    response_model=shapes.LivePointsJson | shapes.LiveStatusJson,
    responses=EVENTS,
)
async def live(viewer: Served, *, metric: Words, containers: Words, node: NodeName = "") -> Response:
    if viewer.listeners >= LISTENERS_MOST:
        detail = f"at most {LISTENERS_MOST} live tails are served"
        return make_error(503, "too many listeners", detail, "close another page")
    # Counted before anything is waited for: a hundred pages may ask at the same moment.
    viewer.listeners += 1
    with ExitStack() as stack:
        stack.callback(forget_listener, viewer)
        metrics = split_words(metric) or ["cpu"]
        listener = await run_in_threadpool(make_listener, viewer, metrics, containers, node)
        return LiveResponse(stream(viewer.folders, listener, lambda: viewer.stopping), stack.pop_all().close)


def open_cards(viewer: Viewer, node: str, most: int) -> Response:
    """A page that listens for cards counts as one that follows the live tail."""
    if viewer.listeners >= LISTENERS_MOST:
        detail = f"at most {LISTENERS_MOST} pages are told what is new"
        return make_error(503, "too many listeners", detail, "close another page")
    # A name that is none is refused before anything is sent.
    viewer.view(node)
    viewer.listeners += 1
    events = stream_cards(viewer, CardWatch(node, most, SystemClock()), lambda: viewer.stopping)
    return LiveResponse(events, lambda: forget_listener(viewer))


def make_listener(viewer: Viewer, metrics: Sequence[str], texts: Sequence[str], node: str) -> LiveListener:
    view = viewer.view(node)
    if len(metrics) > METRICS_MOST:
        raise too_much(f"{len(metrics)} metrics; accepted: up to {METRICS_MOST} in one live tail")
    for word in metrics:
        scope, metric = split_scope(word)
        resolve(view.nodes, metric, scope=scope)
    words = split_words(texts)
    lives = tuple(choose_lives(view.lives(), words[:SERIES_MOST])) if words else ()
    return LiveListener(tuple(metrics), lives, node)


def forget_listener(viewer: Viewer) -> None:
    viewer.listeners -= 1


class LiveResponse(StreamingResponse):
    """Events; calls back when the page has left, also where it left before the first of them."""

    def __init__(self, events: AsyncIterator[bytes], end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


def send_page(
    viewer: Viewer, question: ViewerRequest, metrics: Sequence[str], lives: tuple[Life, ...] | None
) -> Response:
    page = make_page(question.view, answer_instance(viewer), metrics, lives, question.span, viewer.static)
    # Saved, never shown: inside this origin its own script would be refused.
    disposition = f'attachment; filename="{name_file(question, "html")}"'
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return Response(page.content, media_type="text/html", headers=headers)


def name_file(question: ViewerRequest, form: str) -> str:
    return f"nodescope-{question.span.from_ms // 1000}-{question.span.to_ms // 1000}.{form}"


def send_extract(viewer: Viewer, question: ViewerRequest, extract: Extract, form: str) -> Response:
    """The first piece is made here, so that what cannot be answered is refused."""
    pieces = stream_extract(question.view, extract, form)
    disposition = f'attachment; filename="{name_file(question, form)}"'
    return StreamingResponse(
        send_pieces(viewer, next(pieces), pieces),
        media_type=FORMS[form],
        headers={"Content-Disposition": disposition, "Cache-Control": "no-store"},
    )


async def send_pieces(viewer: Viewer, first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """A turn for each piece: who reads slowly holds none."""
    yield first
    while piece := await make_piece(viewer, pieces):
        yield piece


async def make_piece(viewer: Viewer, pieces: Iterator[bytes]) -> bytes | None:
    """The next one, however long others come first: what is sent already cannot become a 503."""
    while True:
        with suppress(TurnMissed):
            async with viewer.turns.take():
                return await run_in_threadpool(next, pieces, None)
