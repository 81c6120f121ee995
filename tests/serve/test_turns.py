"""Answers by turns: fair to addresses, and none begun while others are not read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.serve.stalled import Reader, hold_unread

from nodescope.serve.connections import UNREAD_BYTES, Connections
from nodescope.serve.turns import REQUESTER, Requester, RequesterLeft, TurnMissed, Turns


async def ask(turns: Turns, address: str, order: list[str], work: Callable[[], Awaitable[Any]]) -> None:
    REQUESTER.set(Requester(address))
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
        stalled = hold_unread(connections)
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


def test_no_more_are_at_work_than_turns_however_many_come_at_once() -> None:
    """Whoever was woken counts before its task has run: arrivals in between get no turn."""

    async def talk() -> int:
        turns = Turns(2, Connections(), 5)
        at_work, most = 0, 0

        async def work() -> None:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0)
            at_work -= 1

        await asyncio.gather(*(ask(turns, f"{number % 7}", [], work) for number in range(100)))
        return most

    assert asyncio.run(talk()) == 2


def test_who_leaves_while_it_waits_stops_waiting_and_takes_no_turn() -> None:
    async def talk() -> tuple[list[str], BaseException | None]:
        turns = Turns(1, Connections(), 60)
        order: list[str] = []
        leaving, rest = Requester("left"), asyncio.Event()

        async def wait_and_leave() -> None:
            REQUESTER.set(leaving)
            async with turns.take():
                order.append("left")

        first = asyncio.create_task(ask(turns, "a", order, rest.wait))
        await asyncio.sleep(0)
        gone = asyncio.create_task(wait_and_leave())
        last = asyncio.create_task(ask(turns, "b", order, lambda: asyncio.sleep(0)))
        await asyncio.sleep(0)
        leaving.leave()
        (found,) = await asyncio.gather(gone, return_exceptions=True)
        rest.set()
        await asyncio.gather(first, last)
        return order, found

    order, found = asyncio.run(talk())
    assert order == ["a", "b"]
    assert isinstance(found, RequesterLeft)


def test_a_turn_that_comes_as_it_is_given_up_goes_to_the_next() -> None:
    async def talk() -> list[str]:
        turns = Turns(1, Connections(), 60)
        order: list[str] = []
        async with turns.take() as end_turn:
            second = asyncio.create_task(ask(turns, "b", order, lambda: asyncio.sleep(0)))
            third = asyncio.create_task(ask(turns, "c", order, lambda: asyncio.sleep(0)))
            await asyncio.sleep(0)
            end_turn()
            # Woken by now, but not run.
            second.cancel()
        await asyncio.gather(second, third, return_exceptions=True)
        return order

    assert asyncio.run(talk()) == ["c"]
