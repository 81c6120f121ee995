"""A request's body, read within bounds: of its own, and of all bodies that are being read."""

import asyncio
from collections import Counter

from starlette.types import Receive, Scope

from nodescope.base.errors import RequestRejected
from nodescope.serve.bounds.places import name_address


class BodyTooLarge(RequestRejected):
    """More bytes than any request of this kind has."""

    status, title = 413, "too large"


class BodiesTooMany(RequestRejected):
    """Others are sending so much that there is no room for this one."""

    status, title, hint = 503, "busy", "try again in a second"


class HeldBytes:
    """
    The bytes of bodies that are being read, bounded in sum and for one address.

    Counted as they come: a slow sender holds what it has sent, and no place.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self.most = most
        self.most_each = most_each
        self.total = 0
        self._by_address: Counter[str] = Counter()

    def take(self, address: str, count: int) -> None:
        if self.total + count > self.most or self._by_address[address] + count > self.most_each:
            raise BodiesTooMany(f"{self.total} bytes of requests are being read; at most {self.most} are")
        self.total += count
        self._by_address[address] += count

    def give(self, address: str, count: int) -> None:
        self.total -= count
        self._by_address[address] -= count
        if not self._by_address[address]:
            del self._by_address[address]


class Holding:
    """The part of one body."""

    def __init__(self, all_held: HeldBytes | None, address: str) -> None:
        self._all = all_held
        self._address = address
        self._count = 0

    def add(self, count: int) -> None:
        if self._all is not None:
            self._all.take(self._address, count)
            self._count += count

    def end(self) -> None:
        if self._all is not None:
            self._all.give(self._address, self._count)


async def read_body(
    scope: Scope,
    receive: Receive,
    most_bytes: int,
    seconds: float | None = None,
    all_held: HeldBytes | None = None,
) -> bytes:
    """The whole body; RequestRejected when it is too long, cut, or takes longer than it may."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > most_bytes:
        raise BodyTooLarge(f"the body has {int(declared[:20])} bytes; at most {most_bytes} are accepted")
    held = Holding(all_held, name_address(scope.get("client")))
    try:
        async with asyncio.timeout(seconds):
            return await _read_parts(receive, most_bytes, held)
    except TimeoutError:
        raise RequestRejected(f"the body did not arrive within {seconds:g} s") from None
    finally:
        held.end()


async def _read_parts(receive: Receive, most_bytes: int, held: Holding) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRejected("the connection was closed before the body was whole")
        body += message.get("body", b"")
        held.add(len(message.get("body", b"")))
        if len(body) > most_bytes:
            raise BodyTooLarge(f"the body is longer than the {most_bytes} bytes that are accepted")
        if not message.get("more_body"):
            return bytes(body)
        # A fast sender must not keep the others waiting.
        await asyncio.sleep(0)
