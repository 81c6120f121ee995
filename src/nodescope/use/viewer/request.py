"""
What every question to the viewer has in common: nodes, a range, and an answer that may be known already.

Handlers contain no decisions: they take parameters apart, call a function of
this folder in a worker thread, and wrap what it returns. What can be said
without work (the answer is unchanged) is said before any is done.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from nodescope import __version__
from nodescope.base.time_range import TimeRange
from nodescope.serve.connections import Connections
from nodescope.serve.json_response import make_error
from nodescope.serve.turns import RequesterLeft, TurnMissed, Turns
from nodescope.use.answers.container_table import Filter
from nodescope.use.answers.containers import Life
from nodescope.use.answers.over_lives.join import list_wholes
from nodescope.use.answers.over_lives.search import filter_lives
from nodescope.use.answers.refusal import too_much
from nodescope.use.answers.snapshots import NodeFolders, View
from nodescope.use.answers.timeseries import SERIES_MOST
from nodescope.use.answers.wire import Json, render_json
from nodescope.use.viewer.answer_memory import AnswerMemory
from nodescope.use.viewer.disconnect import LEFT_STATUS, CallerLeft, Connection
from nodescope.use.viewer.page import STATIC
from nodescope.use.viewer.question import (
    choose_lives,
    choose_nodes,
    parse_labels,
    parse_span,
    split_words,
)

if TYPE_CHECKING:
    from nodescope.base.clock import Clock
    from nodescope.use.cluster.gatherer import Gatherer

# Answers being made at once: DuckDB uses all cores for one as well.
WORKERS = 4
# Answer 503 after waiting this long for a turn.
WAIT_SECONDS = 30.0

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
Lives_ = Annotated[
    Literal["apart", "joined"],
    Query(description="joined: a container over all its restarts is one; apart: each life is"),
]
Scope_ = Annotated[str, Query(max_length=32, description="all series of a scope: node, cpu, disk, gpu, ...")]
Responses = dict[int | str, dict[str, Any]]
NOT_MODIFIED: Responses = {304: {"description": "as you have it"}}


Compare = Callable[[str, str, tuple[TimeRange, TimeRange] | None], Json]
"""Of a node and a container (empty: all of them), what differs between two spans; None: around the last deploy."""


@dataclass(slots=True)
class Viewer:
    """What the handlers answer from."""

    folders: NodeFolders
    static: Path = STATIC
    compare: Compare | None = None
    """The same function that agents ask; who starts the viewer connects it."""
    cluster: "tuple[Gatherer, Clock] | None" = None
    """What gathers from many nodes, where there are some; and the clock that their page goes by."""
    has_others: bool = False
    """Whether nodes behind other viewers are among them."""
    memory_totals: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By node: the newest file when it was read, and bytes."""
    listeners: int = 0
    stopping: bool = False
    connections: Connections = field(default_factory=Connections)
    """Of the server in front: no answer is made while too much of others is not read."""
    memory: AnswerMemory = field(default_factory=AnswerMemory)
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.turns = Turns(WORKERS, self.connections, WAIT_SECONDS)

    def view(self, node: str = "") -> View:
        """The node of that name, or all."""
        view = self.folders.view()
        return replace(view, nodes=choose_nodes(view.snapshot, node))


@dataclass(slots=True)
class RequestLimits:
    """The parameters that say when and where."""

    start: Start = ""
    to: Moment = ""
    whole: Whole = ""
    node: NodeName = ""


async def find_viewer(request: Request) -> Viewer:
    viewer: Viewer = request.app.state.viewer
    return viewer


async def read_filter(
    *,
    namespace: Words,
    qos_class: Words,
    labels: Words,
    search: Annotated[str, Query(max_length=256)] = "",
) -> Filter:
    names, classes = tuple(split_words(namespace)), tuple(split_words(qos_class))
    return Filter(names, classes, search.strip(), parse_labels(split_words(labels)))


Wanted = Annotated[Filter, Depends(read_filter)]
Served = Annotated[Viewer, Depends(find_viewer)]
Within = Annotated[RequestLimits, Depends()]


@dataclass(frozen=True, slots=True)
class ViewerRequest:
    """The same, understood: nodes of a snapshot, and a range."""

    view: View
    span: TimeRange
    check: Callable[[], None]
    """Raises where nobody waits for the answer any more."""

    @classmethod
    def of(
        cls, viewer: Viewer, limits: RequestLimits, check: Callable[[], None] = lambda: None
    ) -> "ViewerRequest":
        view = viewer.view(limits.node)
        return cls(view, parse_span(view.snapshot, limits.start, limits.to, limits.whole), check)

    def choose(self, texts: Sequence[str]) -> tuple[Life, ...] | None:
        """The containers that were named; None where none was."""
        words = split_words(texts)
        if not words:
            return None
        if len(words) > SERIES_MOST:
            raise too_much(f"{len(words)} containers; accepted: up to {SERIES_MOST} in one answer")
        return tuple(choose_lives(self.view.lives(), words))

    def choose_among(self, texts: Sequence[str], wanted: Filter) -> set[str] | None:
        """Ids of the containers that were named, with all their lives, or that the filter admits; None: of all."""
        lives = self.choose(texts)
        if lives is not None:
            return {life.id for life in list_wholes(self.view).expand(lives, self.span)}
        return None if wanted.is_empty else {life.id for life in filter_lives(self.view.lives(), wanted)}

    def choose_ids(self, texts: Sequence[str]) -> set[str] | None:
        lives = self.choose(texts)
        return None if lives is None else {life.id for life in lives}


async def work(viewer: Viewer, answer: Callable[[], Response], caller: Connection | None = None) -> Response:
    """In a thread, a few at a time by turns of addresses; not for somebody who has left meanwhile."""
    try:
        async with viewer.turns.take():
            return await run_watched(answer, caller)
    except TurnMissed as error:
        return make_error(error.status, error.title, str(error), error.hint)
    except (CallerLeft, RequesterLeft):
        return Response(status_code=LEFT_STATUS)


async def run_watched(answer: Callable[[], Response], caller: Connection | None) -> Response:
    if caller is None:
        return await run_in_threadpool(answer)
    async with caller.watched():
        caller.check()
        return await run_in_threadpool(answer)


async def answer(
    viewer: Viewer, request: Request, limits: RequestLimits, make: Callable[[ViewerRequest], Json]
) -> Response:
    """What `make` says of these nodes and this range; 304 where the asker has it already."""
    caller = Connection(request)

    def answer_once() -> Response:
        question = ViewerRequest.of(viewer, limits, caller.check)
        tag = stamp(question, request)
        if not tag:
            return make_json(make(question))
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if tag in known_tags(request):
            return Response(status_code=304, headers=headers)
        content = viewer.memory.find(tag)
        if content is None:
            content = render_json(make(question))
            viewer.memory.keep(tag, content)
        return Response(content, media_type="application/json", headers=headers)

    return await work(viewer, answer_once, caller)


async def bind_answer(request: Request, viewer: Served, limits: Within) -> "Answerer":
    return partial(answer, viewer, request, limits)


Answerer = Callable[[Callable[[ViewerRequest], Json]], Awaitable[Response]]
Answer = Annotated[Answerer, Depends(bind_answer)]
"""What a handler of nodes and a range calls with the function that makes its answer."""


def known_tags(request: Request) -> list[str]:
    words = request.headers.get("if-none-match", "").split(",")
    return [word.strip().removeprefix("W/") for word in words]


def make_json(content: Json, headers: dict[str, str] | None = None) -> Response:
    return Response(
        render_json(content), media_type="application/json", headers=headers or {"Cache-Control": "no-cache"}
    )


def stamp(question: ViewerRequest, request: Request) -> str:
    """
    The answer's name while it cannot change; empty while it can.

    A range that ends before the newest file does is made of these files and
    nothing else. Relative times were made absolute before.
    """
    ends = [node.catalog.to_ms for node in question.view.nodes]
    if any(end is None or end < question.span.to_ms for end in ends) or not ends:
        return ""
    digest = hashlib.sha256(f"{__version__} {request.url.path} {question.span}".encode())
    for key, value in sorted(request.query_params.multi_items()):
        if key not in ("from", "to", "range"):
            digest.update(f"\n{key}={value}".encode("utf-8", "replace"))
    for node in question.view.nodes:
        digest.update("".join(note.id for note in node.notes).encode())
        for entry in node.catalog.select(question.span.from_ms - 120_000, question.span.to_ms):
            digest.update(f"\n{entry.path}:{entry.size_bytes}".encode("utf-8", "replace"))
    return f'"{digest.hexdigest()[:32]}"'
