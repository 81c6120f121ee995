"""A request's body, read within bounds."""

import asyncio

from starlette.types import Receive, Scope

from nodescope.base.errors import RequestRejected


class BodyTooLarge(RequestRejected):
    """More bytes than any request of this kind has."""

    status, title = 413, "too large"


async def read_body(scope: Scope, receive: Receive, most_bytes: int, seconds: float | None = None) -> bytes:
    """The whole body; RequestRejected when it is too long, cut, or takes longer than it may."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > most_bytes:
        raise BodyTooLarge(f"the body has {int(declared[:20])} bytes; at most {most_bytes} are accepted")
    try:
        async with asyncio.timeout(seconds):
            return await _read_parts(receive, most_bytes)
    except TimeoutError:
        raise RequestRejected(f"the body did not arrive within {seconds:g} s") from None


async def _read_parts(receive: Receive, most_bytes: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRejected("the connection was closed before the body was whole")
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise BodyTooLarge(f"the body is longer than the {most_bytes} bytes that are accepted")
        if not message.get("more_body"):
            return bytes(body)
        # A fast sender must not keep the others waiting.
        await asyncio.sleep(0)
