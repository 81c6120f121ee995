"""
Answers being made at once: a few, and by turns of the addresses that ask.

Whoever asks a hundred times at once waits for their own questions, not the
others for them. No answer is begun while earlier ones that nobody reads take
all the room.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from contextvars import ContextVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodescope.base.errors import RequestRejected
from nodescope.serve.bounds.places import name_address
from nodescope.serve.connections import Connections
from nodescope.serve.json_response import make_refusal

# In the scope of a request: its Requester; set by the server.
REQUESTER_KEY = "nodescope.requester"
LOOK_SECONDS = 0.05


class TurnMissed(RequestRejected):
    """Others were before, or do not read what they asked for."""

    status, title, hint = 503, "busy", "try again in some seconds"


class RequesterLeft(Exception):
    """The connection was closed before its turn came."""


class Requester:
    """Who asks: an address, and a connection that may be closed while it waits."""

    __slots__ = ("address", "has_left", "waits")

    def __init__(self, address: str) -> None:
        self.address = address
        self.has_left = False
        self.waits: set[asyncio.Future[None]] = set()

    def leave(self) -> None:
        """What nobody waits for any more must not stay in memory until its turn comes."""
        self.has_left = True
        for wait in self.waits:
            if not wait.done():
                wait.set_result(None)


# For the task that answers.
REQUESTER: ContextVar[Requester] = ContextVar("requester")


def find_requester(scope: Scope) -> Requester:
    """From the server; of a request that came another way, by its client."""
    found = scope.get(REQUESTER_KEY)
    return found if isinstance(found, Requester) else Requester(name_address(scope.get("client")))


class Turns:
    """A semaphore that is fair to addresses."""

    def __init__(self, most: int, connections: Connections, wait_seconds: float) -> None:
        self._most = most
        self._connections = connections
        self._wait_seconds = wait_seconds
        self._at_work: Counter[str] = Counter()
        self._waiting: dict[asyncio.Future[None], str] = {}
        self._look: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Callable[[], None]]:
        """Gives a function that ends the turn before the context does; TurnMissed after too long a wait."""
        requester = REQUESTER.get(None) or Requester("")
        if requester.has_left:
            raise RequesterLeft
        await self._wait(requester)
        with ExitStack() as turn:
            turn.callback(self._end, requester.address)
            yield turn.close

    def _is_free(self, address: str) -> bool:
        return self._at_work.total() < self._most and self._connections.has_room(address)

    async def _wait(self, requester: Requester) -> None:
        if not self._waiting and self._is_free(requester.address):
            self._at_work[requester.address] += 1
            return
        mine = asyncio.get_running_loop().create_future()
        requester.waits.add(mine)
        self._waiting[mine] = requester.address
        self._wake()
        with ExitStack() as left:
            left.callback(self._give_up, mine, requester)
            await self._wait_for(mine)
            if mine in self._waiting:
                raise RequesterLeft
            left.pop_all()
            requester.waits.discard(mine)

    async def _wait_for(self, mine: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await mine
        except TimeoutError:
            raise TurnMissed("other answers are being made, or wait to be read") from None

    def _give_up(self, mine: asyncio.Future[None], requester: Requester) -> None:
        """The turn may have come at the same moment: then it is another's."""
        requester.waits.discard(mine)
        if self._waiting.pop(mine, None) is None:
            self._end(requester.address)

    def _end(self, address: str) -> None:
        self._at_work[address] -= 1
        if not self._at_work[address]:
            del self._at_work[address]
        self._wake()

    def _wake(self) -> None:
        """
        The first of those whose address has the fewest questions, answers under way and unread ones included.

        Whoever is woken is at work from now on, not from when its task is run: others are woken before that.
        """
        while chosen := self._choose():
            address = self._waiting[chosen]
            if not self._is_free(address):
                self._look_later()
                return
            del self._waiting[chosen]
            self._at_work[address] += 1
            chosen.set_result(None)

    def _choose(self) -> asyncio.Future[None] | None:
        waiting = {one: address for one, address in self._waiting.items() if not one.done()}
        load = Counter(waiting.values()) + self._at_work + self._connections.count_writing()
        strikes = self._connections.strikes.count
        return min(waiting, key=lambda one: (strikes(waiting[one]), load[waiting[one]]), default=None)

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_again)

    def _look_again(self) -> None:
        """Who does not read is cut off only where somebody waits for it."""
        self._look = None
        self._connections.cut_stalled()
        self._wake()


async def answer_in_turn(turns: Turns, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """The turn ends when the answer is in the connection's buffer: who does not read it holds none."""
    try:
        async with turns.take() as end_turn:

            async def send_without(message: Message) -> None:
                await send(message)
                if message["type"] == "http.response.body":
                    end_turn()

            await app(scope, receive, send_without)
    except RequesterLeft:
        return
    except TurnMissed as error:
        await make_refusal(error)(scope, receive, send)
