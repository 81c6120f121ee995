"""The viewer's HTTP API: one FastAPI application over data folders."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from nodescope import __version__
from nodescope.base.errors import NodescopeError, NothingYet
from nodescope.base.text import clean_text, nearest_name
from nodescope.serve.gate import Admits, Gate
from nodescope.serve.json_response import make_error
from nodescope.use.answers.refusal import Refused
from nodescope.use.viewer import (
    routes_charts,
    routes_compare,
    routes_facts,
    routes_notes,
    routes_streams,
    routes_swept,
    shapes,
)
from nodescope.use.viewer.front import Front, guard
from nodescope.use.viewer.gate import refuse_method
from nodescope.use.viewer.many import routes_cluster
from nodescope.use.viewer.request import Responses, Viewer

ROUTERS = (
    routes_facts.router,
    routes_charts.router,
    routes_compare.router,
    routes_cluster.router,
    routes_swept.router,
    routes_notes.router,
    routes_streams.router,
)

REFUSALS: Responses = {
    status: {"model": shapes.ErrorJson, "description": words}
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


def build_app(
    viewer: Viewer, admits: Admits | None = None, *, only_local: bool = True, hosts: tuple[str, ...] = ()
) -> Gate:
    """The whole viewer; what answers questions is there from the beginning."""
    return guard(Front(lambda: build_api(viewer), viewer.static), admits, only_local=only_local, hosts=hosts)


def build_api(viewer: Viewer) -> FastAPI:
    api = FastAPI(
        title="nodescope viewer",
        version=__version__,
        description="Archives and live tails of nodes: who uses what, since when, and what happened.",
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )
    api.state.viewer = viewer
    for router in ROUTERS:
        api.include_router(router)
    add_refusals(api)
    return api


def add_refusals(api: FastAPI) -> None:
    routes = (route for one in (api, *ROUTERS) for route in one.routes)
    known = sorted({getattr(route, "path", "") for route in routes} - {""})

    @api.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return make_error(error.status, error.error, str(error), error.hint)

    @api.exception_handler(NodescopeError)
    async def rejected(_: Request, error: NodescopeError) -> Response:
        return make_error(503 if isinstance(error, NothingYet) else 400, "not accepted", str(error))

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
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
        return refuse_method(request.method, "GET, POST" if path == "/api/annotations" else "GET")
