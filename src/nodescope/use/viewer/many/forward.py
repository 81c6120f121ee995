"""
The page of one node through the viewer of many: a question about a node behind another viewer is put to that viewer.

    /api/timeseries?node=worker-3&metric=cpu   ->   the viewer of worker-3, /api/timeseries?metric=cpu

Only GET, only paths of the API, and only viewers that were given or
discovered: no part of a request chooses an address. What comes back is data:
a node must not be able to run a script in the page of all others, so that
kinds of content that a browser would run or show are refused or saved as a file.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio
from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from nodescope.base.errors import HttpFailed, NodescopeError
from nodescope.base.text import clean_text, hint_nearest
from nodescope.serve.http_client import HttpAnswer
from nodescope.serve.json_response import make_error, make_json
from nodescope.use.cluster.asked_node import RemoteNode
from nodescope.use.cluster.gatherer import Gatherer
from nodescope.use.nodes.viewer_client import parse_object, render_failure, render_unwelcome

# Questions under way: a page has some ten, and one live tail.
FORWARDS_MOST = 64
# A live tail says something every second.
SILENCE_SECONDS = 30.0
PIECE_BYTES = 64 * 1024
# Words of routes; what else a path may have (dots, colons, percent signs) would be somebody's attempt.
PATH = re.compile(r"/api/[a-z_]+(?:/[a-z_]+)?")
EVENTS = "text/event-stream"
DATA = frozenset(
    {"application/json", EVENTS, "text/csv", "application/vnd.apache.parquet", "application/octet-stream"}
)
KEPT_HEADERS = ("ETag", "Cache-Control", "Content-Disposition")


class Forwarder:
    """In front of the API: what is about a node of another viewer goes there, all else to the API."""

    def __init__(self, api: ASGIApp, gatherer: Gatherer) -> None:
        self._api = api
        self._gatherer = gatherer
        self._threads = anyio.CapacityLimiter(FORWARDS_MOST)
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        node = next((value for key, value in query if key == "node" and value), "")
        path = str(scope["path"])
        if not node or scope["method"] != "GET" or path.startswith("/api/cluster/"):
            await self._api(scope, receive, send)
            return
        entry = await run_in_threadpool(self._gatherer.entry, node)
        if entry is None:
            names = await run_in_threadpool(self._gatherer.names)
            answer: Response = make_error(
                404,
                "not found",
                f'no node "{clean_text(node, 80)}"{hint_nearest(node, names)}',
                f"there are: {', '.join(clean_text(name, 60) for name in names[:20])}",
            )
        elif not isinstance(entry.backend, RemoteNode):
            await self._api(scope, receive, send)
            return
        elif entry.reason:
            answer = make_error(503, "the node does not answer", entry.reason)
        elif self._under_way >= FORWARDS_MOST:
            answer = make_error(503, "too many questions", f"at most {FORWARDS_MOST} at once", "close a page")
        elif not PATH.fullmatch(path):
            answer = make_error(404, "not found", f"no {clean_text(path, 80)} that a node could be asked for")
        else:
            # Until its last byte is sent, and however it ends: a page that was closed counts no more.
            self._under_way += 1
            try:
                rest = [(key, value) for key, value in query if key != "node"]
                forwarded = await self._forward(entry.backend, node, path, rest, read_headers(scope))
                await forwarded(scope, receive, send)
            finally:
                self._under_way -= 1
            return
        await answer(scope, receive, send)

    async def _forward(
        self,
        backend: RemoteNode,
        node: str,
        path: str,
        query: list[tuple[str, str]],
        given: Mapping[str, str],
    ) -> Response:
        try:
            head, lines = await to_thread.run_sync(
                open_answer, backend, path, query, given, limiter=self._threads
            )
        except NodescopeError as error:
            reason = render_failure(error) if isinstance(error, HttpFailed) else str(error)
            return make_error(503, "the node does not answer", clean_text(f"{node}: {reason}", 400))
        if head.status != 200 or path == "/api/instance":
            return await to_thread.run_sync(answer_whole, head, lines, node, limiter=self._threads)
        return self._stream(head, lines)

    def _stream(self, head: HttpAnswer, lines: Iterator[bytes]) -> Response:
        kind = content_kind(head)
        headers = {name: value for name in KEPT_HEADERS if (value := safe_header(head, name))}
        if kind not in DATA:
            # The exported page, or something that calls itself so: saved, never shown here.
            kind = "application/octet-stream"
            headers["Content-Disposition"] = 'attachment; filename="nodescope.html"'
        return StreamingResponse(self._pieces(lines, kind == EVENTS), media_type=kind, headers=headers)

    async def _pieces(self, lines: Iterator[bytes], is_stream: bool) -> AsyncIterator[bytes]:
        try:
            while piece := await to_thread.run_sync(read_piece, lines, is_stream, limiter=self._threads):
                yield piece
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(close_lines, lines)


def open_answer(
    backend: RemoteNode, path: str, query: list[tuple[str, str]], given: Mapping[str, str]
) -> tuple[HttpAnswer, Iterator[bytes]]:
    client = backend.client
    query = [*query, *client.name_node().items()]
    target = f"{path}?{urlencode(query)}" if query else path
    headers = {**client.headers(given.get("accept") or "*/*")}
    if tag := given.get("if-none-match"):
        headers["If-None-Match"] = tag
    return backend.pages.stream(target, headers, SILENCE_SECONDS, PIECE_BYTES)


def read_headers(scope: Scope) -> dict[str, str]:
    """What of the page's headers matters to who answers; nothing else, and no cookie, goes on."""
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return {name: found[name] for name in ("accept", "if-none-match") if name in found}


def answer_whole(head: HttpAnswer, lines: Iterator[bytes], node: str) -> Response:
    """An error in the node's own words, and the answer about the instance under the name that the node has here."""
    if head.status == 304:
        tag = safe_header(head, "ETag")
        return Response(status_code=304, headers={"ETag": tag} if tag else {})
    body = head.body or b"".join(lines)
    content = parse_object(body)
    if head.status == 200 and content is not None:
        return make_json({**content, "node": node, "nodes": [node], "cluster": True})
    if head.status == 401:
        return make_error(503, "the node does not answer", f"{node}: its viewer {render_unwelcome({})}")
    if content is None or not 400 <= head.status < 600:
        return make_error(502, "the node does not answer", f"{node}: its viewer said {head.status}")
    said = {name: clean_text(str(content.get(name) or ""), 400) for name in ("error", "detail", "hint")}
    return make_error(head.status, said["error"], said["detail"], said["hint"])


def content_kind(head: HttpAnswer) -> str:
    return str(head.headers.get("Content-Type") or "").partition(";")[0].strip().lower()


def safe_header(head: HttpAnswer, name: str) -> str:
    value = str(head.headers.get(name) or "")
    return value if len(value) <= 200 and value.isascii() and value.isprintable() else ""


def read_piece(lines: Iterator[bytes], is_stream: bool) -> bytes:
    """Many lines at once; of events each as soon as it is whole. Empty at the end, also where the node broke off."""
    parts: list[bytes] = []
    size = 0
    try:
        for line in lines:
            parts.append(line)
            size += len(line)
            if size >= PIECE_BYTES or (is_stream and not line.strip()):
                break
    except HttpFailed:
        pass
    return b"".join(parts)


def close_lines(lines: Any) -> None:
    close = getattr(lines, "close", None)
    if close is not None:
        close()
