"""What differs between two spans of time: of one workload, or of everything on the nodes."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.refusal import not_found
from nodescope.use.answers.wire import Json
from nodescope.use.viewer import shapes
from nodescope.use.viewer.question import parse_span
from nodescope.use.viewer.request import NOT_MODIFIED, Answer, Moment, Served, ViewerRequest, Within

router = APIRouter()


@router.get("/api/compare", response_model=shapes.ComparisonJson, responses=NOT_MODIFIED)
async def compare(
    answer: Answer,
    viewer: Served,
    limits: Within,
    *,
    container: Annotated[
        str, Query(max_length=256, description="a workload, pod or container; all unless given")
    ] = "",
    before: Moment = "",
) -> Response:
    """The range beside as long a one before it (or from `before` on); without a range, before and after the last deploy."""

    def make(question: ViewerRequest) -> Json:
        if viewer.compare is None:
            raise not_found("this viewer compares nothing", "nodescope viewer does")
        is_given = any((limits.start, limits.to, limits.whole, before))
        spans = (choose_earlier(question, before), question.span) if is_given else None
        return viewer.compare(limits.node, container, spans)

    return await answer(make)


def choose_earlier(question: ViewerRequest, before: str) -> TimeRange:
    span = question.span
    if before:
        from_ms = parse_span(question.view.snapshot, before, "", "").from_ms
        return TimeRange(from_ms, from_ms + span.to_ms - span.from_ms)
    return TimeRange(2 * span.from_ms - span.to_ms, span.from_ms)
