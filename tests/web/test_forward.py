"""A node's page through the cluster's viewer: what goes to the node, what comes back, and what a hostile node cannot do."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from nodescope.base.clock import SystemClock
from nodescope.base.errors import NodescopeError
from nodescope.use.cluster.asked_node import AskedNode, CellsWanted, RemoteNode
from nodescope.use.cluster.gatherer import Gatherer
from nodescope.use.nodes.directory import NodeEntry, StaticDirectory
from nodescope.use.nodes.viewer_client import ViewerAccess, parse_address
from nodescope.use.viewer.many.forward import FORWARDS_MOST, Forwarder

pytestmark = pytest.mark.real

Said = tuple[int, str, bytes, dict[str, str]]
INSTANCE: Said = (200, "application/json", b'{"node": "x", "nodes": ["x"], "version": "1"}', {})


@contextmanager
def serving(answer: Callable[[str], Said]) -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """A server of one node; what it was asked, with the headers."""
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, dict(self.headers)))
            status, kind, body, headers = answer(self.path)
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def forwarding(url: str, token: str = "") -> Iterator[Forwarder]:
    """One that knows this viewer as node `n`; what is not forwarded is answered `here`."""
    access = ViewerAccess(SystemClock(), 5.0, token=lambda: token)
    node: AskedNode = RemoteNode("n", parse_address(url), access)
    gatherer = Gatherer(StaticDirectory({"n": NodeEntry("n", node, url)}), SystemClock(), 5.0)
    try:
        yield Forwarder(PlainTextResponse("here"), gatherer)
    finally:
        gatherer.close()
        node.close()


def ask(
    url: str, *paths: str, token: str = "", headers: dict[str, str] | None = None
) -> Sequence[httpx.Response]:
    async def get_all(app: Forwarder) -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            return [await client.get(path) for path in paths]

    with forwarding(url, token) as app:
        return asyncio.run(get_all(app))


def answer_with(said: Said) -> Callable[[str], Said]:
    return lambda path: INSTANCE if path == "/api/instance" else said


def test_a_question_goes_to_its_node_without_the_page_s_own_headers() -> None:
    body = b'{"series": []}'
    with serving(answer_with((200, "application/json", body, {"ETag": '"a"'}))) as (url, asked):
        [answer] = ask(
            url,
            "/api/timeseries?node=n&metric=cpu&containers=a%2Cb",
            token="secret",  # noqa: S106 - of a test
            headers={"Cookie": "nodescope_token=mine", "If-None-Match": '"a"'},
        )
    assert (answer.status_code, answer.content) == (200, body)
    assert answer.headers["etag"] == '"a"'
    path, headers = asked[-1]
    assert path == "/api/timeseries?metric=cpu&containers=a%2Cb"
    assert headers["Authorization"] == "Bearer secret"
    assert headers["If-None-Match"] == '"a"'
    assert "Cookie" not in headers


def test_the_node_has_the_name_that_it_has_here() -> None:
    with serving(answer_with(INSTANCE)) as (url, _):
        [answer] = ask(url, "/api/instance?node=n")
    assert answer.json() == {"node": "n", "nodes": ["n"], "version": "1", "cluster": True}


def test_what_is_not_of_another_node_stays_here() -> None:
    with serving(answer_with(INSTANCE)) as (url, asked):
        paths = ("/api/timeseries?metric=cpu", "/api/cluster/wall?node=n", "/api/containers?node=")
        assert [one.text for one in ask(url, *paths)] == ["here"] * 3
        unknown = ask(url, "/api/containers?node=m")[0]
    assert not asked
    assert unknown.status_code == 404
    assert unknown.json()["detail"] == 'no node "m"'


@pytest.mark.parametrize(
    "path",
    [
        "/api/../metrics?node=n",
        "/api//evil?node=n",
        "/api/study/..%2f..%2fmetrics?node=n",
        "/api/x@169.254.169.254/?node=n",
        "/api/x%0d%0aHost:%20evil?node=n",
        "/openapi.json?node=n",
    ],
)
def test_no_part_of_a_path_chooses_another_place(path: str) -> None:
    with serving(answer_with(INSTANCE)) as (url, asked):
        answer = ask(url, path)[0]
    assert answer.status_code == 404
    assert not asked


def test_a_redirect_is_not_followed() -> None:
    """Neither by the questions of the wall, nor for a page: a node cannot send us to another address."""
    with serving(answer_with(INSTANCE)) as (other, reached):
        moved: Said = (302, "text/plain", b"", {"Location": f"{other}/api/secret"})
        with serving(answer_with(moved)) as (url, _):
            answer = ask(url, "/api/containers?node=n")[0]
        assert not reached
    assert answer.status_code == 502
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    "kind", ["text/html", "text/javascript", "image/svg+xml", "application/xhtml+xml", ""]
)
def test_what_a_browser_would_run_or_show_is_saved_as_a_file(kind: str) -> None:
    script = b"<script src='/api/x?node=n'></script>"
    with serving(answer_with((200, kind, script, {"Content-Disposition": "inline"}))) as (url, _):
        answer = ask(url, "/api/export?node=n")[0]
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_headers_that_nobody_asked_for_are_left_out() -> None:
    more = {"Set-Cookie": "nodescope_token=evil", "Access-Control-Allow-Origin": "*", "Refresh": "0; url=//x"}
    with serving(answer_with((200, "application/json", b"{}", more))) as (url, _):
        answer = ask(url, "/api/containers?node=n")[0]
    assert not {"set-cookie", "access-control-allow-origin", "refresh"} & set(answer.headers)


def test_an_error_is_told_in_the_node_s_own_words_and_a_refused_token_in_ours() -> None:
    error = b'{"error": "not found", "detail": "no metric \\"x\\"", "hint": "ask"}'
    with serving(answer_with((404, "application/json", error, {}))) as (url, _):
        answer = ask(url, "/api/timeseries?node=n&metric=x")[0]
    assert (answer.status_code, answer.json()["detail"]) == (404, 'no metric "x"')
    with serving(answer_with((401, "application/json", b"{}", {}))) as (url, _):
        refused = ask(url, "/api/timeseries?node=n&metric=x")[0]
    assert refused.status_code == 503, "the browser's own token is not the one that is wrong"
    assert "--viewer-token-file" in refused.json()["detail"]


def test_a_node_that_is_not_there_is_said_so() -> None:
    answer = ask("http://127.0.0.1:9", "/api/containers?node=n")[0]
    assert answer.status_code == 503
    assert answer.json()["detail"] == "n: its viewer is not there: connection refused"


def test_what_is_no_answer_is_not_kept() -> None:
    """A node cannot fill the page's memory, nor break it, by what it sends as its cells."""
    wrong: list[Any] = [
        b"[]",
        b'{"nodes": []}',
        b'{"nodes": [{"from": 0, "to": 60, "step": 60, "cpu": [1, 2, 3]}]}',
        b'{"nodes": [{"from": 0, "to": 1e12, "step": 60}]}',
        b'{"nodes": [{"from": "x"}]}',
        b'{"nodes": 7}',
    ]
    for body in wrong:
        with serving(answer_with((200, "application/json", body, {}))) as (url, _):
            node = RemoteNode("n", parse_address(url), ViewerAccess(SystemClock(), 5.0))
            with pytest.raises(NodescopeError):
                node.read_minutes(CellsWanted(60_000, None, 3600.0))
            node.close()


def test_pages_that_were_closed_before_their_answer_do_not_count() -> None:
    """Their senders fail before the first byte; more of them than may be under way at once."""

    async def send_nobody(message: object) -> None:
        raise OSError("nobody is there")

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/timeseries",
        "query_string": b"node=n",
        "headers": [],
        "asgi": {"version": "3.0", "spec_version": "2.4"},
    }

    async def close_many(app: Forwarder) -> list[httpx.Response]:
        for _ in range(FORWARDS_MOST + 1):
            with pytest.raises(Exception):  # noqa: B017 - whatever the server makes of it
                await app(scope, receive, send_nobody)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost"
        ) as client:
            return [await client.get("/api/timeseries?node=n")]

    with serving(answer_with((200, "application/json", b"{}", {}))) as (url, _), forwarding(url) as app:
        [answer] = asyncio.run(close_many(app))
    assert answer.status_code == 200
