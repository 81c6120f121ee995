"""JSON answers, and the one form of a refusal: what was wrong, what is accepted, where there is one a hint."""

from collections.abc import Callable, Mapping

from starlette.responses import Response

from nodescope.base.errors import RequestRejected
from nodescope.serve.json_text import render_json


def make_json(content: object, status: int = 200) -> Response:
    return Response(render_json(content), status, media_type="application/json")


def make_error(
    status: int,
    error: str,
    detail: str,
    hint: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    render: Callable[[object], bytes] = render_json,
) -> Response:
    body = render({"error": error, "detail": detail, "hint": hint})
    return Response(body, status, headers, media_type="application/json")


def make_refusal(error: RequestRejected) -> Response:
    return make_error(error.status, error.title, str(error), error.hint)
