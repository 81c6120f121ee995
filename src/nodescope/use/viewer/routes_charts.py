"""What happened: tiles, containers, curves, findings, events."""

from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request
from starlette.responses import Response

from nodescope.use.viewer import findings, shapes
from nodescope.use.viewer.container_table import Filter, answer_containers, parse_labels
from nodescope.use.viewer.disconnect import Connection
from nodescope.use.viewer.events import EVENTS_MOST, answer_events
from nodescope.use.viewer.question import POINTS_DEFAULT, POINTS_MOST, split_words
from nodescope.use.viewer.render import Json
from nodescope.use.viewer.request import (
    NOT_MODIFIED,
    MetricName,
    Scope_,
    Viewer,
    ViewerRequest,
    Within,
    Words,
    answer,
)
from nodescope.use.viewer.tiles import answer_summary
from nodescope.use.viewer.timeseries import TimeseriesRequest, answer_timeseries

ROWS_MOST = 1000
Rate_ = Literal["auto", "on", "off"]
Limits_ = Annotated[
    Literal["on", "off"], Query(alias="limits", description="off: limits are not looked up, which is cheaper")
]


def add_charts(api: FastAPI, viewer: Viewer) -> None:
    add_overview(api, viewer)
    add_curves(api, viewer)


def add_overview(api: FastAPI, viewer: Viewer) -> None:
    @api.get("/api/summary", response_model=shapes.SummaryJson, responses=NOT_MODIFIED)
    async def summary(request: Request, limits: Within) -> Response:
        def make(asked: ViewerRequest, _: Connection) -> Json:
            return answer_summary(viewer.engine, asked.nodes, asked.span)

        return await answer(viewer, request, limits, make)

    @api.get("/api/containers", response_model=shapes.ContainersJson, responses=NOT_MODIFIED)
    async def containers(
        request: Request,
        limits: Within,
        *,
        metric: MetricName = "cpu",
        namespace: Words,
        qos_class: Words,
        search: Annotated[str, Query(max_length=256)] = "",
        labels: Words,
        limit: Annotated[int, Query(ge=1, le=ROWS_MOST)] = 200,
        sort: Annotated[str, Query(max_length=32)] = "value",
    ) -> Response:
        def make(asked: ViewerRequest, _: Connection) -> Json:
            wanted = Filter(
                tuple(split_words(namespace)),
                tuple(split_words(qos_class)),
                search,
                parse_labels(split_words(labels)),
            )
            return answer_containers(
                viewer.engine, asked.snapshot, asked.nodes, metric, asked.span, wanted, sort, limit
            )

        return await answer(viewer, request, limits, make)

    @api.get("/api/events", response_model=shapes.EventsJson, responses=NOT_MODIFIED)
    async def events(
        request: Request,
        limits: Within,
        *,
        containers: Words,
        limit: Annotated[int, Query(ge=1, le=EVENTS_MOST)] = 500,
    ) -> Response:
        def make(asked: ViewerRequest, _: Connection) -> Json:
            members = asked.choose(containers)
            ids = None if members is None else [one.id for one in members]
            return answer_events(asked.snapshot, asked.nodes, asked.span, ids, limit)

        return await answer(viewer, request, limits, make)


def add_curves(api: FastAPI, viewer: Viewer) -> None:
    @api.get("/api/timeseries", response_model=shapes.TimeseriesJson, responses=NOT_MODIFIED)
    async def timeseries(
        request: Request,
        limits: Within,
        *,
        metric: MetricName,
        containers: Words,
        scope: Scope_ = "",
        max_points: Annotated[int, Query(ge=1, le=POINTS_MOST)] = POINTS_DEFAULT,
        rate: Rate_ = "auto",
        with_limits: Limits_ = "on",
    ) -> Response:
        def make(asked: ViewerRequest, _: Connection) -> Json:
            members = asked.choose(containers)
            wish = TimeseriesRequest(
                metric, asked.span, max_points, rate, members, scope, with_limits == "on"
            )
            return answer_timeseries(viewer.engine, asked.snapshot, asked.nodes, wish)

        return await answer(viewer, request, limits, make)

    @api.get("/api/study/{study}", response_model=shapes.StudyJson, responses=NOT_MODIFIED)
    async def study(
        request: Request,
        study: str,
        limits: Within,
        *,
        metric: MetricName = "cpu",
        containers: Words,
        scope: Scope_ = "",
    ) -> Response:
        def make(asked: ViewerRequest, caller: Connection) -> Json:
            members = asked.choose(containers)
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

        return await answer(viewer, request, limits, make)
