"""Nothing is computed for a page that was closed."""

import asyncio
import threading
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from tests.use.viewer.asking import Asker

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.findings import run_studies
from nodescope.use.viewer.disconnect import LEFT_STATUS, CallerLeft, Connection
from nodescope.use.viewer.request import work

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}


def make_request(closes: asyncio.Event) -> Request:
    """A GET whose other end closes when it is told to."""
    bodies = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if bodies:
            return bodies.pop()
        await closes.wait()
        return {"type": "http.disconnect"}

    return Request(SCOPE, receive)


def test_who_left_while_waiting_is_not_answered(viewer: Asker) -> None:
    async def ask() -> Response:
        closes = asyncio.Event()
        closes.set()
        request = make_request(closes)
        await request.receive()
        return await work(viewer.viewer, lambda: pytest.fail("nobody waits for this"), Connection(request))

    assert asyncio.run(ask()).status_code == LEFT_STATUS


def test_who_leaves_meanwhile_is_noticed_between_two_pieces_of_work(viewer: Asker) -> None:
    async def ask() -> Response:
        closes, begun, told = asyncio.Event(), threading.Event(), threading.Event()
        caller = Connection(make_request(closes))

        def answer() -> Response:
            begun.set()
            assert told.wait(10)
            # The event is set by the loop, some moments after the connection closed.
            for _ in range(1000):
                caller.check()
                threading.Event().wait(0.01)
            return Response()

        async def leave() -> None:
            await asyncio.to_thread(begun.wait, 10)
            closes.set()
            told.set()

        answered, _ = await asyncio.gather(work(viewer.viewer, answer, caller), leave())
        return answered

    assert asyncio.run(ask()).status_code == LEFT_STATUS


def test_who_stays_is_answered(viewer: Asker) -> None:
    async def ask() -> Response:
        return await work(viewer.viewer, Response, Connection(make_request(asyncio.Event())))

    assert asyncio.run(ask()).status_code == 200


def test_a_study_stops_between_two_series(viewer: Asker) -> None:
    view = viewer.viewer.view()
    newest_ms = view.snapshot.to_ms
    assert newest_ms
    looks = []

    def check() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise CallerLeft

    with pytest.raises(CallerLeft):
        run_studies(view, "summary", "memory", None, TimeRange(newest_ms - 600_000, newest_ms), check=check)
    assert len(looks) == 3
