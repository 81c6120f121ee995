"""
The part of the viewer that is always there: the page, which is files, and what probes ask.

What answers questions (FastAPI, Arrow, NumPy: some 60 MiB) is loaded for the first
of them, in this process, so that the bounds of the server hold for it as for the
rest. Probes and files of the page load nothing. Who asks meanwhile waits for the
same load; `/api/health` says that it is going on.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from nodescope import __version__
from nodescope.base.errors import NodescopeError
from nodescope.base.log import Log
from nodescope.base.text import clean_text
from nodescope.serve.gate import Admits, Gate
from nodescope.serve.json_response import make_error, make_json
from nodescope.use.viewer.gate import (
    COOKIE,
    HEADERS,
    HINTS,
    PROBES,
    QUERY_CHARACTERS,
    holds_data,
    is_question,
    refuse_method,
)
from nodescope.use.viewer.page import STATIC, serve_page

log = Log("viewer")

COMPRESS_BYTES = 1024
COMPRESS_LEVEL = 4

Answers = Literal["resting", "starting", "ready"]
# A library that is missing, no memory or descriptors left, a folder that has gone.
NOT_LOADED = (NodescopeError, ImportError, OSError, MemoryError)


class Front:
    """The page at once; questions as soon as what answers them is loaded."""

    def __init__(self, load: Callable[[], ASGIApp], static: Path = STATIC, home: str = "/") -> None:
        self._load = load
        self._static = static
        self._home = home
        """Where / leads: to the page of many nodes, where there is no data of one node here."""
        self._app: ASGIApp | None = None
        self._starting: asyncio.Task[ASGIApp] | None = None
        self._questions = 0
        self._ended = 0.0
        self.woken = asyncio.Event()
        """Set with the first question."""

    @property
    def answers(self) -> Answers:
        if self._app is not None:
            return "ready"
        return "resting" if self._starting is None else "starting"

    def idle_seconds(self) -> float:
        """Since the last question had its whole answer; 0 while there is one, an open live tail included."""
        return 0.0 if self._questions else asyncio.get_running_loop().time() - self._ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if is_question(scope["path"]):
            with self._counted():
                await (await self.wake())(scope, receive, send)
        else:
            await (await self._answer_small(scope))(scope, receive, send)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._questions += 1
        self.woken.set()
        try:
            yield
        finally:
            self._questions -= 1
            self._ended = asyncio.get_running_loop().time()

    async def _answer_small(self, scope: Scope) -> Response:
        if scope["method"] != "GET":
            return refuse_method(scope["method"])
        if scope["path"] in PROBES:
            return make_health(self.answers)
        if scope["path"] == "/" and self._home != "/":
            # The browser takes the view behind # along.
            return RedirectResponse(self._home, headers={"Cache-Control": "no-cache"})
        return await run_in_threadpool(serve_page, scope["path"], self._static)

    async def wake(self) -> ASGIApp:
        """What answers; where it cannot be loaded, the refusal that says why. The next question tries again."""
        if self._app is not None:
            return self._app
        if self._starting is None:
            self._starting = asyncio.create_task(asyncio.to_thread(self._load))
        starting = self._starting
        try:
            # Of several who wait, one may leave: the load goes on for the others.
            self._app = await asyncio.shield(starting)
        except NOT_LOADED as error:
            if self._starting is starting:
                log.warning("what answers questions cannot be loaded", error=str(error))
            return make_error(503, "cannot answer", clean_text(str(error), 400), "ask again in some seconds")
        finally:
            if starting.done() and self._starting is starting:
                self._starting = None
        return self._app


def make_health(answers: Answers) -> Response:
    found = make_json({"status": "ok", "version": __version__, "answers": answers})
    found.headers["Cache-Control"] = "no-cache"
    return found


def guard(
    front: Front, admits: Admits | None = None, *, only_local: bool = True, hosts: tuple[str, ...] = ()
) -> Gate:
    """Behind the viewer's gate: who is refused loads nothing."""
    return Gate(
        GZipMiddleware(front, minimum_size=COMPRESS_BYTES, compresslevel=COMPRESS_LEVEL),
        admits,
        QUERY_CHARACTERS,
        needs_token=holds_data,
        hosts=frozenset(name.lower() for name in hosts) if only_local else None,
        cookie=COOKIE,
        headers=HEADERS,
        hints=HINTS,
        server="viewer",
    )
