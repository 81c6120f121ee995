"""Many nodes: the wall, workloads across nodes, comparisons; and the cells that a node gives to others' walls."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from nodescope import __version__
from nodescope.base.clock import Clock
from nodescope.base.time_range import TimeRange, parse_moment
from nodescope.use.answers.minutes.json_form import render_minutes
from nodescope.use.answers.minutes.node_minutes import read_minutes
from nodescope.use.answers.refusal import not_found
from nodescope.use.answers.wire import Json, render_json, seconds
from nodescope.use.cluster.comparison import ComparedSide, compare
from nodescope.use.cluster.gatherer import Gatherer
from nodescope.use.cluster.json_form import render_comparison, render_spread, render_wall
from nodescope.use.cluster.spread import join_workloads, matches
from nodescope.use.cluster.wall import COLUMNS_MOST, ClusterTime, draw_wall, find_measure, parse_span
from nodescope.use.viewer.many import cluster_shapes as shapes
from nodescope.use.viewer.request import (
    NOT_MODIFIED,
    Answer,
    MetricName,
    Moment,
    NodeName,
    Served,
    Start,
    Viewer,
    Whole,
    known_tags,
)

ROWS_MOST = 500
Measure_ = Annotated[str, Query(max_length=32, description="what the cells show; `measures` lists them")]

router = APIRouter()


@router.get("/api/minutes", response_model=shapes.MinutesJson, responses=NOT_MODIFIED)
async def minutes(answer: Answer, *, step: Annotated[int, Query(ge=60, le=3600)] = 60) -> Response:
    """Nodes in cells of 60, 600 or 3600 seconds, from rollups: what a wall of many nodes is drawn from."""
    return await answer(
        lambda question: render_minutes(read_minutes(question.view, question.span, step * 1000))
    )


@router.get("/api/cluster/wall", response_model=shapes.WallJson, responses=NOT_MODIFIED)
async def wall(
    request: Request,
    viewer: Served,
    *,
    measure: Measure_ = "cpu",
    columns: Annotated[int, Query(ge=1, le=COLUMNS_MOST)] = 180,
    start: Start = "",
    to: Moment = "",
    whole: Whole = "",
) -> Response:
    """What is known at once; nodes that lack some of the range are asked meanwhile."""
    gatherer, clock = find_cluster(viewer)
    found = find_measure(measure)
    return await reply(
        viewer,
        request,
        lambda: render_wall(draw_wall(gatherer, clock, found, (start, to, whole), columns)),
    )


@router.get("/api/cluster/workloads", response_model=shapes.ClusterWorkloadsJson, responses=NOT_MODIFIED)
async def cluster_workloads(
    request: Request,
    viewer: Served,
    *,
    metric: MetricName = "cpu",
    search: Annotated[str, Query(max_length=256)] = "",
    limit: Annotated[int, Query(ge=1, le=ROWS_MOST)] = 100,
    start: Start = "",
    to: Moment = "",
    whole: Whole = "",
) -> Response:
    """Workloads over all nodes with their spread; what used most first."""
    gatherer, clock = find_cluster(viewer)

    def make() -> Json:
        span = whole_minutes(read_span(gatherer, clock, start, to, whole))
        replies, asking, away = gatherer.copy_round(gatherer.rank(metric, span))
        rows = [one for one in join_workloads(replies) if matches(one, search)]
        return {
            "metric": metric,
            "unit": rows[0].unit if rows else "",
            "from": seconds(span.from_ms),
            "to": seconds(span.to_ms),
            "workloads": [render_spread(one) for one in rows[:limit]],
            "total": len(rows),
            "answered": len(replies),
            "asking": asking,
            "away": away,
        }

    return await reply(viewer, request, make)


@router.get("/api/cluster/compare", response_model=shapes.ClusterComparisonJson, responses=NOT_MODIFIED)
async def cluster_compare(
    request: Request,
    viewer: Served,
    *,
    left: NodeName = "",
    right: NodeName = "",
    metric: MetricName = "cpu",
    measure: Measure_ = "cpu",
    before: Annotated[str, Query(max_length=64, description="where the range on the left begins")] = "",
    start: Start = "",
    to: Moment = "",
    whole: Whole = "",
) -> Response:
    """Two nodes in one range, or (with `before`) a range beside an earlier one of the same length."""
    gatherer, clock = find_cluster(viewer)
    measured = find_measure(measure)

    def make() -> Json:
        span = whole_minutes(read_span(gatherer, clock, start, to, whole))
        earlier = span
        if before:
            from_ms = parse_moment(before, span.to_ms) // 60_000 * 60_000
            earlier = TimeRange(from_ms, from_ms + span.to_ms - span.from_ms)
        sides = ComparedSide(left, earlier), ComparedSide(right, span)
        return render_comparison(compare(gatherer, *sides, metric, measured.id))

    return await reply(viewer, request, make)


def find_cluster(viewer: Viewer) -> tuple[Gatherer, Clock]:
    if viewer.cluster is None:
        raise not_found(
            "this viewer has no page of many nodes",
            "start nodescope viewer with several folders, --viewer NODE=URL or --kubernetes",
        )
    return viewer.cluster


def read_span(gatherer: Gatherer, clock: Clock, start: str, to: str, whole: str) -> TimeRange:
    return parse_span(ClusterTime.of(list(gatherer.states().values()), clock), start, to, whole)


def whole_minutes(span: TimeRange) -> TimeRange:
    """An open page asks every few seconds; within a minute it is the same question."""
    return TimeRange(span.from_ms // 60_000 * 60_000, -(-span.to_ms // 60_000) * 60_000 - 1)


async def reply(viewer: Viewer, request: Request, make: Callable[[], Json]) -> Response:
    """
    Made in a thread; the same question is answered from memory while no node has said anything new.

    What is made marks the nodes that it asks, so it is looked up after that: the
    answer's name is that of what was known when it was finished.
    """

    def answer_once() -> Response:
        gatherer, clock = find_cluster(viewer)
        name = name_answer(request, gatherer, clock)
        headers = {"ETag": name, "Cache-Control": "private, no-cache"}
        if name in known_tags(request):
            return Response(status_code=304, headers=headers)
        content = viewer.memory.find(name)
        if content is None:
            made = make()
            content = render_json(made)
            if not made["asking"]:
                headers["ETag"] = name_answer(request, gatherer, clock)
                viewer.memory.keep(headers["ETag"], content)
            else:
                headers = {"Cache-Control": "no-cache"}
        return Response(content, media_type="application/json", headers=headers)

    return await run_in_threadpool(answer_once)


# An open page that is live moves on; what it shows is not older than this.
FRESH_SECONDS: Literal[15] = 15


def name_answer(request: Request, gatherer: Gatherer, clock: Clock) -> str:
    """By what was asked, what nodes have said, how each stands, and a quarter of a minute."""
    states = ((name, gatherer.describe(state)) for name, state in gatherer.states().items())
    at = clock.wall_ns() // (FRESH_SECONDS * 1_000_000_000)
    whole = (__version__, str(request.url.query), request.url.path, gatherer.version, at, tuple(states))
    return f'"{hashlib.sha256(repr(whole).encode("utf-8", "replace")).hexdigest()[:32]}"'
