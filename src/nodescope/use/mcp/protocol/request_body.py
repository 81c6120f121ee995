"""
Bodies of requests over HTTP: what is no message is answered here, and a call whose client has gone is stopped.

The SDK answers malformed bodies without the request's id, and in the protocol's
earlier era with the text of a validation library.
"""

from dataclasses import dataclass

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodescope.use.mcp.protocol.message import MESSAGE_BYTES, MessageRefused, read_message


@dataclass(frozen=True, slots=True)
class RequestBody:
    """In front of the SDK's application."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not is_json(scope):
            await self.app(scope, receive, send)
            return
        messages = await read_body(receive)
        body = b"".join(one.get("body", b"") for one in messages)
        found = read_message(body) if len(body) <= MESSAGE_BYTES else None
        if isinstance(found, MessageRefused):
            content = found.to_error().model_dump_json(by_alias=True, exclude_unset=True)
            await Response(content, 400, media_type="application/json")(scope, receive, send)
            return
        await run_while_connected(self.app, scope, messages, receive, send)


def is_json(scope: Scope) -> bool:
    """Another content type is the SDK's to refuse."""
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    return bool(types) and types[0].split(b";")[0].strip().lower() == b"application/json"


async def read_body(receive: Receive) -> list[Message]:
    """All of it, or so much that it is seen to be too long."""
    messages: list[Message] = []
    size = 0
    while size <= MESSAGE_BYTES:
        messages.append(message := await receive())
        size += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    return messages


async def run_while_connected(
    app: ASGIApp, scope: Scope, read: list[Message], receive: Receive, send: Send
) -> None:
    """The application, cancelled when its client closes the connection."""
    gone = anyio.Event()
    is_whole = not read[-1].get("more_body")

    async def replay() -> Message:
        if read:
            return read.pop(0)
        if not is_whole:
            return await receive()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def watch() -> None:
        while is_whole and (await receive())["type"] != "http.disconnect":
            pass
        if is_whole:
            gone.set()
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await app(scope, replay, send)
        group.cancel_scope.cancel()
