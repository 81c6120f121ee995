"""Answers by turns: fair to addresses, and none begun while others are not read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodescope.serve.connections import UNREAD_BYTES, Connections
from nodescope.serve.turns import ASKER, TurnMissed, Turns


class Reader:
    """A connection whose answer is not read."""

    def __init__(self, address: str, unread_bytes: int, stalled_seconds: float) -> None:
        self.address = address
        self.unread_bytes = unread_bytes
        self.stalled_seconds = stalled_seconds
        self.in_handshake = False
        self.is_aborted = False

    def rank(self) -> tuple[int, float] | None:
        return None

    def abort(self) -> None:
        self.is_aborted = True


async def ask(turns: Turns, address: str, order: list[str], work: Callable[[], Awaitable[Any]]) -> None:
    ASKER.set(address)
    async with turns.take():
        order.append(address)
        await work()


def test_who_asks_once_does_not_wait_for_who_asks_often() -> None:
    async def talk() -> list[str]:
        turns = Turns(1, Connections(), 5)
        order: list[str] = []
        tasks = [asyncio.create_task(ask(turns, "many", order, lambda: asyncio.sleep(0))) for _ in range(10)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(ask(turns, "one", order, lambda: asyncio.sleep(0))))
        await asyncio.gather(*tasks)
        return order

    order = asyncio.run(talk())
    assert len(order) == 11
    assert order.index("one") <= 2


def test_no_answer_is_begun_while_others_are_not_read_and_the_stalled_are_cut() -> None:
    async def talk() -> tuple[Reader, list[str]]:
        connections = Connections()
        order: list[str] = []
        stalled = Reader("hostile", UNREAD_BYTES + 1, 60)
        connections.served.enter(stalled, "hostile")
        connections.writing.add(stalled)
        await ask(Turns(4, connections, 5), "good", order, lambda: asyncio.sleep(0))
        return stalled, order

    stalled, order = asyncio.run(talk())
    assert stalled.is_aborted
    assert order == ["good"]


def test_a_turn_that_does_not_come_is_a_503() -> None:
    """A slow reader that still reads is not cut; the others are told to come back."""

    async def talk() -> None:
        connections = Connections()
        connections.writing.add(Reader("slow", 100 * UNREAD_BYTES, 0))
        await ask(Turns(4, connections, 0.01), "other", [], lambda: asyncio.sleep(0))

    with pytest.raises(TurnMissed) as caught:
        asyncio.run(talk())
    assert caught.value.status == 503


def test_a_turn_ends_with_its_task() -> None:
    async def talk() -> list[str]:
        turns = Turns(1, Connections(), 5)
        order: list[str] = []
        hung = asyncio.create_task(ask(turns, "a", order, lambda: asyncio.sleep(60)))
        waiting = asyncio.create_task(ask(turns, "b", order, lambda: asyncio.sleep(0)))
        await asyncio.sleep(0)
        hung.cancel()
        await asyncio.gather(hung, waiting, return_exceptions=True)
        return order

    assert asyncio.run(talk()) == ["a", "b"]
