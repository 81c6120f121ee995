"""Who keeps a place when all are taken: a real server on loopback, and the rules by themselves."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Self

from starlette.types import Receive, Scope, Send
from tests.serve.stalled import Reader, come_true

from nodescope.base.settings import Settings
from nodescope.serve.connections import CONNECTIONS, CONNECTIONS_EACH, UNREAD_BYTES, Connections
from nodescope.serve.server import build_server, open_socket

MOST_SECONDS = 20.0
SCRAPER = "127.0.9.1"
HEAD = b"GET / HTTP/1.1\r\n"
REST = b"Host: localhost\r\n\r\n"
ENDLESS = b"GET /endless HTTP/1.1\r\n" + REST
LONG = b"GET /long HTTP/1.1\r\nConnection: close\r\n" + REST
BODY = b"x" * 4 * 2**20


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    if scope["path"] == "/endless":
        await asyncio.sleep(3600)
    body = BODY if scope["path"] == "/long" else b"ok"
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


class Client:
    """One connection from an address of loopback."""

    def __init__(self, port: int, source: str) -> None:
        self._place = ("127.0.0.1", port)
        self._source = source

    async def __aenter__(self) -> Self:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        sock.bind((self._source, 0))
        await asyncio.get_running_loop().sock_connect(sock, self._place)
        self.reader, self.writer = await asyncio.open_connection(sock=sock, limit=1024)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> bytes:
        """All until the other side closes, or a short answer; empty where it was closed without one."""
        with contextlib.suppress(ConnectionResetError):
            return await asyncio.wait_for(self.reader.read(65536), MOST_SECONDS)
        return b""


@contextlib.asynccontextmanager
async def serving(connections: Connections) -> AsyncIterator[int]:
    listener = open_socket("127.0.0.1:0")
    server = build_server(answer, Settings(), connections)
    await server.startup([listener])
    try:
        yield listener.getsockname()[1]
    finally:
        server.servers[0].close()
        for one in connections.served:
            one.abort()
        listener.close()


async def earn_credit(port: int, connections: Connections) -> None:
    for _ in range(3):
        async with Client(port, SCRAPER) as scraper:
            await scraper.send(HEAD + REST)
            assert b"200 OK" in await scraper.read()
    await come_true(lambda: connections.strikes.count(SCRAPER) < 0)


@contextlib.asynccontextmanager
async def crowd(port: int, count: int, request: bytes) -> AsyncIterator[list[Client]]:
    async with contextlib.AsyncExitStack() as stack:
        made = [
            await stack.enter_async_context(Client(port, f"127.0.7.{number % 50 + 1}"))
            for number in range(count)
        ]
        for one in made:
            await one.send(request)
        yield made


def test_who_reads_what_it_asks_for_has_time_to_ask_while_all_others_are_answered() -> None:
    """
    The one connection that could give way was the scraper's: its request, or its handshake, was coming in.

    The newcomer is refused instead; before, the scrape was cut off.
    """

    async def talk() -> tuple[bytes, bytes]:
        connections = Connections()
        async with serving(connections) as port:
            await earn_credit(port, connections)
            async with crowd(port, CONNECTIONS - 1, ENDLESS), Client(port, SCRAPER) as scraper:
                await come_true(lambda: len(connections.served) == CONNECTIONS - 1)
                await scraper.send(HEAD)
                await come_true(lambda: connections.served.count(SCRAPER) == 1)
                async with Client(port, "127.0.8.1") as newcomer:
                    await newcomer.send(ENDLESS)
                    refused = await newcomer.read()
                await scraper.send(REST)
                return refused, await scraper.read()

    refused, answered = asyncio.run(talk())
    assert refused == b""
    assert answered.startswith(b"HTTP/1.1 200 OK")


def test_an_answer_that_is_being_sent_does_not_give_way() -> None:
    """Its connection closes after it, or is idle: what is still to be sent was lost."""

    async def talk() -> int:
        connections = Connections()
        async with serving(connections) as port, Client(port, SCRAPER) as scraper:
            await scraper.send(LONG)
            await come_true(lambda: len(connections.writing) == 1)
            async with crowd(port, 2 * CONNECTIONS, ENDLESS):
                await come_true(lambda: connections.closed["crowded"] > 0)
                received = 0
                while part := await scraper.read():
                    received += len(part)
                return received

    assert asyncio.run(talk()) > len(BODY)


def test_who_is_slow_has_no_longer_time_than_others_with_credit() -> None:
    """Credit protects the first second of a request: after it, anybody who comes may have the place."""
    connections = Connections()
    slow = Reader("good", 0, 0)
    slow.standing = (2, 5.0)
    connections.strikes.forgive("good")
    connections.served.enter(slow, "good")
    for number in range(CONNECTIONS - 1):
        connections.served.enter(Reader(f"10.0.0.{number}", 0, 0), f"10.0.0.{number}")
    slow.has_just_begun = True
    assert not connections.serve(Reader("other", 0, 0))
    slow.has_just_begun = False
    assert connections.serve(Reader("other", 0, 0))
    assert slow.is_aborted


def test_of_those_who_do_not_read_the_worst_addresses_are_cut_first() -> None:
    """Until there is room: who has credit and is slow for a moment is not cut for the others' sake."""
    connections = Connections()
    good, bad = Reader("good", UNREAD_BYTES, 9), Reader("bad", UNREAD_BYTES, 1)
    connections.strikes.forgive("good")
    connections.strikes.add("bad")
    for one in (good, bad):
        connections.served.enter(one, one.address)
        connections.writing.add(one)
    connections.cut_stalled()
    assert bad.is_aborted
    assert not good.is_aborted


def test_an_address_of_many_displaces_its_own() -> None:
    """A scraper behind the address of an attacker shares that address's places and its strikes."""
    connections = Connections()
    for _ in range(CONNECTIONS_EACH):
        one = Reader("shared", 0, 0)
        one.standing = (3, 1.0)
        connections.served.enter(one, "shared")
    other = Reader("other", 0, 0)
    connections.served.enter(other, "other")
    assert connections.serve(Reader("shared", 0, 0))
    assert connections.served.count("shared") == CONNECTIONS_EACH
    assert not other.is_aborted
