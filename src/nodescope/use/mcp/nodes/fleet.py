"""
Many nodes asked at once: a bounded number at a time, each with a deadline of its own.

A node that is slow, hung or gone costs its deadline and is named in the
answer; the others' answers stand.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

import anyio
from anyio import to_thread

from nodescope.base.clock import Clock
from nodescope.base.errors import NodescopeError, RequestRejected
from nodescope.base.text import clean_text, hint_nearest
from nodescope.use.mcp.nodes.backend import About, Backend
from nodescope.use.mcp.protocol.errors import NodeAway, ToolMisused

Reply = TypeVar("Reply")

# Requests in flight: enough to hide the way to 100 nodes, few enough for one small process.
AT_ONCE = 16
# A list answers within a second, a study within a few; beyond is trouble.
DEADLINE_SECONDS = 10.0
# However many nodes hang, a question ends after this many deadlines.
MOST_DEADLINES = 3


@dataclass(frozen=True, slots=True)
class Seat:
    """A node as the roster knows it."""

    node: str
    backend: Backend
    address: str
    reason: str = ""
    """Why it is not asked; empty when it is."""


class NodeRoster(Protocol):
    """Who there is; it may change at any time."""

    def seats(self) -> Mapping[str, Seat]: ...

    def resolve(self, node: str) -> Seat | None:
        """Looked up anew, after a failure; None when the node is gone."""
        ...

    def trouble(self) -> str:
        """Why the list itself cannot be trusted; empty when it can."""
        ...


@dataclass(slots=True)
class Replies(Generic[Reply]):
    """Answers by node, in order of names; who refused and who did not answer, with reasons."""

    answers: dict[str, Reply] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)
    errors: dict[str, ToolMisused] = field(default_factory=dict)

    def need_one(self) -> "Replies[Reply]":
        """At least one answer, else an error that says why there is none."""
        if self.answers:
            return self
        if self.errors:
            raise self.errors[min(self.errors)]
        reasons = "; ".join(f"{node}: {reason}" for node, reason in list(self.away.items())[:5])
        raise ToolMisused(f"no node answered ({reasons}); call list_nodes to see which are ready")


class Fleet:
    """The nodes that can be asked."""

    def __init__(self, roster: NodeRoster, clock: Clock, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self.roster = roster
        self.clock = clock
        self.deadline_seconds = deadline_seconds

    def now_ms(self) -> int:
        return self.clock.wall_ns() // 1_000_000

    def choose(self, node: str | None) -> dict[str, Seat]:
        """All nodes, or the one that was named; a miss is answered with the nearest name."""
        seats = dict(sorted(self.roster.seats().items()))
        if not seats:
            trouble = self.roster.trouble()
            raise ToolMisused(
                f"there is no node to ask{f': {trouble}' if trouble else ''}; "
                "check the data folder, --viewer or the viewers' label, and call list_nodes again"
            )
        if node is None:
            return seats
        if node in seats:
            return {node: seats[node]}
        names = ", ".join(list(seats)[:8]) + (f" and {len(seats) - 8} more" if len(seats) > 8 else "")
        raise ToolMisused(f'no node "{clean_text(node, 80)}"{hint_nearest(node, seats)}; there are: {names}')

    async def ask(
        self,
        seats: Mapping[str, Seat],
        question: Callable[[Backend], Reply],
        deadline_seconds: float | None = None,
    ) -> Replies[Reply]:
        """The question put to every node on threads; in order of names whatever came first."""
        deadline_seconds = deadline_seconds or self.deadline_seconds
        replies: Replies[Reply] = Replies()
        asked = [seat for seat in seats.values() if not seat.reason]
        replies.away.update({seat.node: seat.reason for seat in seats.values() if seat.reason})
        waiting = {seat.node for seat in asked}
        turns = anyio.Semaphore(AT_ONCE)
        with anyio.move_on_after(deadline_seconds * MOST_DEADLINES):
            async with anyio.create_task_group() as group:
                for seat in asked:
                    group.start_soon(
                        partial(self._ask_one, seat, question, deadline_seconds, turns, replies, waiting)
                    )
        for node in waiting:
            replies.away[node] = "not asked in time: too many other nodes did not answer"
        for part in (replies.answers, replies.refused, replies.away):
            ordered = dict(sorted(part.items()))
            part.clear()
            part.update(ordered)  # type: ignore[arg-type]
        return replies

    async def _ask_one(
        self,
        seat: Seat,
        question: Callable[[Backend], Reply],
        deadline_seconds: float,
        turns: anyio.Semaphore,
        replies: Replies[Reply],
        waiting: set[str],
    ) -> None:
        async with turns:
            try:
                with anyio.fail_after(deadline_seconds):
                    replies.answers[seat.node] = await self._try_twice(seat, question)
            except TimeoutError:
                replies.away[seat.node] = f"no answer within {deadline_seconds:g} s"
            except NodeAway as error:
                replies.away[seat.node] = str(error)
            except (RequestRejected, ToolMisused) as error:
                replies.refused[seat.node] = str(error)
                replies.errors[seat.node] = (
                    error if isinstance(error, ToolMisused) else ToolMisused(str(error))
                )
            except (NodescopeError, OSError) as error:
                replies.away[seat.node] = str(error) or type(error).__name__
            waiting.discard(seat.node)

    async def _try_twice(self, seat: Seat, question: Callable[[Backend], Reply]) -> Reply:
        """Once more where the node has moved meanwhile: its pod was replaced."""
        try:
            return await run(question, seat.backend)
        except NodeAway:
            now = await run(self.roster.resolve, seat.node)
            if now is None or now.reason or now.address == seat.address:
                raise
            return await run(question, now.backend)

    async def read_abouts(self, seats: Mapping[str, Seat]) -> Replies[About]:
        return await self.ask(seats, read_about)


def read_about(backend: Backend) -> About:
    return backend.read_about()


Asked = TypeVar("Asked")


async def run(function: Callable[[Asked], Reply], argument: Asked) -> Reply:
    """On a thread that is left behind when the deadline comes; its own timeouts end it."""
    return await to_thread.run_sync(
        function, argument, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
    )


class LocalRoster:
    """Nodes of data folders on this machine, found anew as folders fill."""

    def __init__(
        self,
        list_nodes: Callable[[], Sequence[str]],
        build: Callable[[str], Backend],
        trouble: Callable[[], str],
    ) -> None:
        self._list_nodes = list_nodes
        self._build = build
        self.trouble = trouble
        self._seats: dict[str, Seat] = {}

    def seats(self) -> Mapping[str, Seat]:
        names = self._list_nodes()
        self._seats = {
            name: self._seats.get(name) or Seat(name, self._build(name), "this machine") for name in names
        }
        return self._seats

    def resolve(self, node: str) -> Seat | None:
        return self.seats().get(node)


class StaticRoster:
    """Viewers whose addresses were given."""

    def __init__(self, seats: Mapping[str, Seat]) -> None:
        self._seats = dict(seats)

    def seats(self) -> Mapping[str, Seat]:
        return self._seats

    def resolve(self, node: str) -> Seat | None:
        return self._seats.get(node)

    def trouble(self) -> str:
        return ""


class JoinedRoster:
    """Several rosters as one; of one name the first counts."""

    def __init__(self, rosters: Sequence[NodeRoster]) -> None:
        self._rosters = tuple(rosters)

    def seats(self) -> Mapping[str, Seat]:
        found: dict[str, Seat] = {}
        for roster in reversed(self._rosters):
            found.update(roster.seats())
        return found

    def resolve(self, node: str) -> Seat | None:
        return next((seat for roster in self._rosters if (seat := roster.resolve(node))), None)

    def trouble(self) -> str:
        return "; ".join(trouble for roster in self._rosters if (trouble := roster.trouble()))
