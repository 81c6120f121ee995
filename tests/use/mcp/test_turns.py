"""The MCP server answers by turns of the addresses that ask; slow senders and probes hold none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, cast

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from nodescope.serve.connections import Connections
from nodescope.serve.server import name_requester
from nodescope.use.mcp.protocol import http
from nodescope.use.mcp.protocol.http import CALLS_MOST, build_app

MOST_SECONDS = 20.0
CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}}'
HEADERS = {"Content-Type": "application/json"}


class SlowTools:
    """In place of the SDK's server: each call is answered when it is told to."""

    def __init__(self) -> None:
        self.gate = asyncio.Semaphore(0)
        self.called: list[str] = []

    def streamable_http_app(self, **_: object) -> ASGIApp:
        return self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["method"] == "POST":
            self.called.append(scope["client"][0])
            await self.gate.acquire()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


class Callers:
    """Clients of several addresses, and their calls under way."""

    def __init__(self, stack: AsyncExitStack, tools: SlowTools) -> None:
        self._stack = stack
        # No probe is asked that would need the nodes.
        self._app = name_requester(build_app(cast("Any", tools), cast("Any", None), (), None, Connections()))

    async def open(self, address: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self._app, client=(address, 1))
        client = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=MOST_SECONDS)
        return await self._stack.enter_async_context(client)

    async def call(self, address: str, body: "bytes | AsyncIterator[bytes]" = CALL) -> "asyncio.Task[int]":
        client = await self.open(address)

        async def post() -> int:
            return (await client.post("/mcp", content=body, headers=HEADERS)).status_code

        task = asyncio.create_task(post())
        self._stack.callback(task.cancel)
        return task


async def settle(tools: SlowTools, count: int) -> None:
    """Until so many are at work, and nobody else comes."""
    async with asyncio.timeout(MOST_SECONDS):
        while len(tools.called) < count:  # noqa: ASYNC110 - the tools are the ones that are looked at
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


def test_who_calls_once_does_not_wait_for_who_calls_a_hundred_times() -> None:
    """No more are at work than turns; of those that wait, the address with the fewest is next."""

    async def talk() -> tuple[int, list[str], int]:
        tools = SlowTools()
        async with AsyncExitStack() as stack:
            callers = Callers(stack, tools)
            for _ in range(2 * CALLS_MOST):
                await callers.call("10.0.0.1")
            await settle(tools, CALLS_MOST)
            at_work = len(tools.called)
            good = await callers.call("10.0.0.2")
            await asyncio.sleep(0.05)
            tools.gate.release()
            await settle(tools, CALLS_MOST + 1)
            next_ones = tools.called[CALLS_MOST:]
            for _ in range(3 * CALLS_MOST):
                tools.gate.release()
            return at_work, next_ones, await asyncio.wait_for(good, MOST_SECONDS)

    at_work, next_ones, status = asyncio.run(talk())
    assert at_work == CALLS_MOST
    assert next_ones == ["10.0.0.2"]
    assert status == 200


def test_slow_bodies_and_probes_hold_no_turn() -> None:
    async def never_ending() -> AsyncIterator[bytes]:
        yield CALL[:20]
        await asyncio.sleep(3600)

    async def talk() -> tuple[int, int]:
        tools = SlowTools()
        async with AsyncExitStack() as stack:
            callers = Callers(stack, tools)
            for _ in range(2 * CALLS_MOST):
                await callers.call("10.0.0.1", never_ending())
            tools.gate.release()
            called = await asyncio.wait_for(await callers.call("10.0.0.1"), MOST_SECONDS)
            for _ in range(CALLS_MOST):
                await callers.call("10.0.0.1")
            await settle(tools, CALLS_MOST + 1)
            probe = await (await callers.open("10.0.0.3")).get("/healthz")
            return called, probe.status_code

    assert asyncio.run(talk()) == (200, 200)


def test_a_turn_that_does_not_come_is_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "WAIT_SECONDS", 0.05)

    async def talk() -> int:
        tools = SlowTools()
        async with AsyncExitStack() as stack:
            callers = Callers(stack, tools)
            for _ in range(CALLS_MOST):
                await callers.call("10.0.0.1")
            await settle(tools, CALLS_MOST)
            return await asyncio.wait_for(await callers.call("10.0.0.2"), MOST_SECONDS)

    assert asyncio.run(talk()) == 503
