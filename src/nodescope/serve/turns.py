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

from nodescope.base.errors import RequestRejected
from nodescope.serve.connections import Connections

# Who asks, for the task that answers; set by the server.
ASKER: ContextVar[str] = ContextVar("asker", default="")
# In the scope of a request: a function that says whether its connection was closed.
HAS_LEFT = "nodescope.has_left"
LOOK_SECONDS = 0.05


class TurnMissed(RequestRejected):
    """Others were before, or do not read what they asked for."""

    status, title, hint = 503, "busy", "try again in some seconds"


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
        address = ASKER.get()
        await self._wait(address)
        self._at_work[address] += 1
        # There may be room for one more; who was woken may have left.
        self._wake()
        with ExitStack() as turn:
            turn.callback(self._end, address)
            yield turn.close

    def _is_free(self, address: str) -> bool:
        return self._at_work.total() < self._most and self._connections.has_room(address)

    async def _wait(self, address: str) -> None:
        if not self._waiting and self._is_free(address):
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting[mine] = address
        self._wake()
        try:
            async with asyncio.timeout(self._wait_seconds):
                await mine
        except TimeoutError:
            raise TurnMissed("other answers are being made, or wait to be read") from None
        finally:
            self._waiting.pop(mine, None)
            if mine.cancelled():
                self._wake()

    def _end(self, address: str) -> None:
        self._at_work[address] -= 1
        if not self._at_work[address]:
            del self._at_work[address]
        self._wake()

    def _wake(self) -> None:
        """The first of those whose address has the fewest questions, answers under way and unread ones included."""
        waiting = {one: address for one, address in self._waiting.items() if not one.done()}
        if not waiting:
            return
        load = Counter(waiting.values()) + self._at_work + self._connections.count_writing()
        strikes = self._connections.strikes.count
        chosen = min(waiting, key=lambda one: (strikes(waiting[one]), load[waiting[one]]))
        if self._is_free(waiting[chosen]):
            chosen.set_result(None)
        elif self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_again)

    def _look_again(self) -> None:
        """Who does not read is cut off only where somebody waits for it."""
        self._look = None
        self._connections.cut_stalled()
        self._wake()
