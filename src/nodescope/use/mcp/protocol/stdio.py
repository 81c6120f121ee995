"""
The protocol on stdin and stdout: one message a line, and an answer to every request.

A line that is no message is answered with an error. A client that closes our
stdin after its last request still gets the answer: the SDK alone would end
the work with the input.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, BinaryIO, Self, cast

import anyio
from anyio import to_thread
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from nodescope.use.mcp.protocol.message import MESSAGE_BYTES, TOO_LONG, Id, MessageRefused, read_message

CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError)


class Unanswered:
    """Requests that were handed on and have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[Id] = set()
        self._none_left = anyio.Event()

    def add(self, its_id: Id) -> None:
        if its_id is not None:
            self._ids.add(its_id)

    def remove(self, its_id: Id) -> None:
        self._ids.discard(its_id)
        self._none_left.set()

    async def wait(self, seconds: float) -> None:
        """Until all are answered; a call that hangs is given up."""
        with anyio.move_on_after(seconds):
            while self._ids:
                self._none_left = anyio.Event()
                await self._none_left.wait()


class AnswerStream:
    """What the server sends, and which request it answers."""

    def __init__(self, outgoing: Any, unanswered: Unanswered) -> None:
        self._outgoing = outgoing
        self._unanswered = unanswered

    async def send(self, item: SessionMessage) -> None:
        await self._outgoing.send(item)
        if not hasattr(item.message, "method"):
            self._unanswered.remove(getattr(item.message, "id", None))

    async def aclose(self) -> None:
        await self._outgoing.aclose()

    async def __aenter__(self) -> Self:
        await self._outgoing.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        return cast("bool | None", await self._outgoing.__aexit__(*error))


class MessageLines:
    """The lines that are messages; the others are answered here."""

    def __init__(self, source: BinaryIO, unanswered: Unanswered, last_seconds: float) -> None:
        self._source = source
        self._unanswered = unanswered
        self._last_seconds = last_seconds
        self.outgoing: Any = None
        """Where refusals go; known as soon as both directions are open, before the first line is read."""

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await to_thread.run_sync(read_line, self._source, abandon_on_cancel=True):
            if not line.strip():
                continue
            found = TOO_LONG if len(line) > MESSAGE_BYTES else read_message(line)
            if isinstance(found, MessageRefused):
                await self._refuse(found)
                continue
            self._unanswered.remove(found.cancels)
            self._unanswered.add(found.id)
            yield line.decode()
        await self._unanswered.wait(self._last_seconds)

    async def _refuse(self, refusal: MessageRefused) -> None:
        if refusal.is_answered:
            with suppress(*CLOSED):
                await self.outgoing.send(SessionMessage(refusal.to_error()))


def read_line(source: BinaryIO) -> bytes:
    """The next line; of one that is too long only so much that this can be seen."""
    line = source.readline(MESSAGE_BYTES + 1)
    rest = line
    while len(rest) > MESSAGE_BYTES and not rest.endswith(b"\n"):
        rest = source.readline(MESSAGE_BYTES + 1)
    return line


async def serve_lines(server: Server[Any], source: BinaryIO, last_seconds: float) -> None:
    """Until the input ends and what was asked before is answered, at most so many seconds later."""
    unanswered = Unanswered()
    lines = MessageLines(source, unanswered, last_seconds)
    async with stdio_server(stdin=cast("anyio.AsyncFile[str]", lines)) as (incoming, outgoing):
        lines.outgoing = outgoing
        answers = AnswerStream(outgoing, unanswered)
        await server.run(incoming, answers, server.create_initialization_options())
