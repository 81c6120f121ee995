"""What happened: tiles, containers, curves, findings, events."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nodescope.use.answers.container_table import list_containers
from nodescope.use.answers.events import EVENTS_MOST, list_events
from nodescope.use.answers.findings import run_studies
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.incidents.explain import MOST_INCIDENTS
from nodescope.use.answers.incidents.json_form import render_incidents
from nodescope.use.answers.node_summary.sentence import render_summaries
from nodescope.use.answers.node_summary.summary import summarize_nodes
from nodescope.use.answers.node_summary.wrongs import read_wrongs, render_wrongs
from nodescope.use.answers.over_lives.table import list_whole_containers
from nodescope.use.answers.overview import read_overview
from nodescope.use.answers.ranked.workload_ranking import rank_workloads
from nodescope.use.answers.rightsizing.json_form import render_sizes
from nodescope.use.answers.rightsizing.measure import read_needs
from nodescope.use.answers.scanning.json_form import render_scans
from nodescope.use.answers.scanning.scan import scan_nodes
from nodescope.use.answers.timeseries import TimeseriesRequest, read_timeseries
from nodescope.use.answers.wire import (
    EVENTS,
    EXACT_TIMESERIES,
    TIMESERIES,
    Json,
    render_containers,
    render_overview,
    render_studies,
    render_workloads,
)
from nodescope.use.viewer import shapes
from nodescope.use.viewer.question import POINTS_DEFAULT, POINTS_MOST
from nodescope.use.viewer.request import (
    NOT_MODIFIED,
    Answer,
    Lives_,
    MetricName,
    Scope_,
    Served,
    ViewerRequest,
    Wanted,
    Words,
)
from nodescope.use.viewer.routes_streams import open_cards

ROWS_MOST = 1000
# Incidents of a node: as many as a page has cards.
CARDS_MOST = 5
Rate_ = Literal["auto", "on", "off"]
Limits_ = Annotated[
    Literal["on", "off"], Query(description="off: limits are not looked up, which is cheaper")
]
Exact = Annotated[
    Literal["on", "off"],
    Query(description="on: numbers as they are; off: seven figures, which a chart shows"),
]
ExactShares = Annotated[
    Literal["on", "off"],
    Query(description="on: numbers as they are; off: confidence and missing_share in four decimals"),
]

router = APIRouter()


@router.get("/api/summary", response_model=shapes.SummaryJson, responses=NOT_MODIFIED)
async def summary(answer: Answer, wanted: Wanted) -> Response:
    return await answer(lambda question: render_overview(read_overview(question.view, question.span, wanted)))


@router.get("/api/containers", response_model=shapes.ContainersJson, responses=NOT_MODIFIED)
async def containers(
    answer: Answer,
    wanted: Wanted,
    *,
    metric: MetricName = "cpu",
    limit: Annotated[int, Query(ge=1, le=ROWS_MOST)] = 200,
    sort: Annotated[str, Query(max_length=32)] = "value",
    lives: Lives_ = "apart",
) -> Response:
    def make(question: ViewerRequest) -> Json:
        read = list_whole_containers if lives == "joined" else list_containers
        return render_containers(read(question.view, metric, question.span, wanted, sort, limit))

    return await answer(make)


@router.get("/api/workloads", response_model=shapes.WorkloadsJson, responses=NOT_MODIFIED)
async def workloads(
    answer: Answer,
    viewer: Served,
    *,
    metric: MetricName = "cpu",
    limit: Annotated[int, Query(ge=1, le=ROWS_MOST)] = 200,
) -> Response:
    def make(question: ViewerRequest) -> Json:
        rows = rank_workloads(viewer.folders, question.view, metric, question.span)
        return render_workloads(rows, limit, metric, question.span)

    return await answer(make)


@router.get("/api/events", response_model=shapes.EventsJson, responses=NOT_MODIFIED)
async def events(
    answer: Answer,
    wanted: Wanted,
    *,
    containers: Words,
    limit: Annotated[int, Query(ge=1, le=EVENTS_MOST)] = 500,
) -> Response:
    def make(question: ViewerRequest) -> Json:
        ids = question.choose_among(containers, wanted)
        return EVENTS.render(list_events(question.view, question.span, ids, limit))

    return await answer(make)


@router.get("/api/incidents", response_model=shapes.IncidentsJson, responses=NOT_MODIFIED)
async def incidents(
    answer: Answer,
    viewer: Served,
    request: Request,
    *,
    containers: Words,
    most: Annotated[int, Query(ge=1, le=CARDS_MOST)] = MOST_INCIDENTS,
) -> Response:
    """At once; for who accepts text/event-stream as `cards` events, each a WrongJson, whenever something is new."""
    if "text/event-stream" in request.headers.get("accept", ""):
        return open_cards(viewer, request.query_params.get("node", ""), most)

    def make(question: ViewerRequest) -> Json:
        ids = question.choose_ids(containers)
        return render_incidents(list_incidents(question.view, question.span, ids, question.check, most))

    return await answer(make)


@router.get("/api/wrong", response_model=shapes.WrongJson, responses=NOT_MODIFIED)
async def wrong(answer: Answer) -> Response:
    def make(question: ViewerRequest) -> Json:
        return render_wrongs(read_wrongs(question.view, question.check))

    return await answer(make)


@router.get("/api/rightsize", response_model=shapes.RightsizeJson, responses=NOT_MODIFIED)
async def rightsize(answer: Answer, *, containers: Words) -> Response:
    def make(question: ViewerRequest) -> Json:
        ids = question.choose_ids(containers)
        return render_sizes(read_needs(question.view, question.span, ids, question.check))

    return await answer(make)


@router.get("/api/node", response_model=shapes.NodeSummariesJson, responses=NOT_MODIFIED)
async def summarize_node(answer: Answer) -> Response:
    return await answer(
        lambda question: render_summaries(summarize_nodes(question.view, question.span, question.check))
    )


@router.get("/api/scan/{study}", response_model=shapes.ScanJson, responses=NOT_MODIFIED)
async def scan(answer: Answer, study: str, *, metric: MetricName = "cpu") -> Response:
    def make(question: ViewerRequest) -> Json:
        return render_scans(scan_nodes(question.view, study, metric, question.span, question.check))

    return await answer(make)


@router.get("/api/timeseries", response_model=shapes.TimeseriesJson, responses=NOT_MODIFIED)
async def timeseries(
    answer: Answer,
    wanted: Wanted,
    *,
    metric: MetricName,
    containers: Words,
    lives: Lives_ = "apart",
    scope: Scope_ = "",
    max_points: Annotated[int, Query(ge=1, le=POINTS_MOST)] = POINTS_DEFAULT,
    rate: Rate_ = "auto",
    limits: Limits_ = "on",
    exact: Exact = "off",
) -> Response:
    def make(question: ViewerRequest) -> Json:
        asked = TimeseriesRequest(
            metric,
            question.span,
            max_points,
            rate,
            question.choose(containers),
            scope,
            limits == "on",
            is_whole=lives == "joined",
            wanted=wanted,
        )
        form = EXACT_TIMESERIES if exact == "on" else TIMESERIES
        return form.render(read_timeseries(question.view, asked))

    return await answer(make)


@router.get("/api/study/{study}", response_model=shapes.StudyJson, responses=NOT_MODIFIED)
async def study(
    answer: Answer,
    study: str,
    *,
    metric: MetricName = "cpu",
    containers: Words,
    scope: Scope_ = "",
    exact: ExactShares = "off",
) -> Response:
    def make(question: ViewerRequest) -> Json:
        lives = question.choose(containers)
        answers = run_studies(question.view, study, metric, lives, question.span, scope, question.check)
        return render_studies(study, answers, exact=exact == "on")

    return await answer(make)
