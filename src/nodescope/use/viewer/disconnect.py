"""
Whether somebody still waits for an answer.

A page that was closed, or zoomed again, has left its questions behind. A study
of eight series takes seconds: it must not slow the next page for nobody.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

# What proxies call it; nobody is there to read it.
LEFT_STATUS = 499


class CallerLeft(Exception):
    """The connection was closed before the answer was made."""


class Connection:
    """The other end of a request, as seen from the thread that answers it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._left = threading.Event()

    def check(self) -> None:
        """Raises where nobody waits any more; called between two pieces of work."""
        if self._left.is_set():
            raise CallerLeft

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        # A connection that was closed while the request waited is known already.
        if await self._request.is_disconnected():
            self._left.set()
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _watch(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self._left.set()
