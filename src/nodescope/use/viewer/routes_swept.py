"""Of every container at once: what changed in a selection, sums of groups, how near each is to its limit."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from nodescope.use.answers.swept.changes import ROWS_MOST, rank_changes
from nodescope.use.answers.swept.groups import GroupKind, sum_groups
from nodescope.use.answers.swept.heat import read_heat
from nodescope.use.answers.swept.json_form import render_groups, render_heat, render_shifts
from nodescope.use.viewer import shapes
from nodescope.use.viewer.request import NOT_MODIFIED, Answer, MetricName, Wanted

POINTS_DEFAULT, POINTS_MOST = 200, 1000
Points_ = Annotated[int, Query(ge=2, le=POINTS_MOST, alias="max_points")]

router = APIRouter()


@router.get("/api/changes", response_model=shapes.ShiftsJson, responses=NOT_MODIFIED)
async def changes(
    answer: Answer, wanted: Wanted, *, most: Annotated[int, Query(ge=1, le=ROWS_MOST)] = ROWS_MOST
) -> Response:
    """Every container and metric by its change against as long a time before the range."""
    return await answer(
        lambda question: render_shifts(
            rank_changes(question.view, question.span, wanted, question.check, most)
        )
    )


@router.get("/api/groups", response_model=shapes.GroupsJson, responses=NOT_MODIFIED)
async def groups(
    answer: Answer,
    wanted: Wanted,
    *,
    metric: MetricName = "cpu",
    group: GroupKind = "namespace",
    points: Points_ = POINTS_DEFAULT,
) -> Response:
    return await answer(
        lambda question: render_groups(
            sum_groups(question.view, metric, group, question.span, points, wanted, question.check)
        )
    )


@router.get("/api/heat", response_model=shapes.HeatJson, responses=NOT_MODIFIED)
async def heat(
    answer: Answer, wanted: Wanted, *, metric: MetricName = "memory", points: Points_ = POINTS_DEFAULT
) -> Response:
    return await answer(
        lambda question: render_heat(
            read_heat(question.view, metric, question.span, points, wanted, question.check)
        )
    )
