"""
Many nodes asked at once: a bounded number at a time, each with a deadline of its own.

A node that is slow, hung or gone costs its deadline and is named in the
answer; the others' answers stand.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio import to_thread

from nodescope.base.clock import Clock
from nodescope.base.errors import NodescopeError, RequestRejected
from nodescope.base.text import clean_text, hint_nearest
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.stop import stopping_work
from nodescope.use.mcp.protocol.errors import DeadlinePassed, ToolMisused
from nodescope.use.nodes import directory
from nodescope.use.nodes.viewer_client import NodeAway

Reply = TypeVar("Reply")
NodeEntry = directory.NodeEntry[Backend]
NodeDirectory = directory.NodeDirectory[Backend]
StaticDirectory = directory.StaticDirectory[Backend]
JoinedDirectory = directory.JoinedDirectory[Backend]

# Requests in flight: enough to hide the way to 100 nodes, few enough for one small process.
AT_ONCE = 16
LATE = "not asked in time: too many other nodes did not answer"
# However many nodes hang, a question ends after this many deadlines.
MOST_DEADLINES = 3


@dataclass(slots=True)
class Replies(Generic[Reply]):
    """Answers by node, in order of names; who refused and who did not answer, with reasons."""

    away: dict[str, str]
    answers: dict[str, Reply] = field(default_factory=dict)
    refused: dict[str, ToolMisused] = field(default_factory=dict)
    late: dict[str, float] = field(default_factory=dict)
    """Nodes that are there and needed longer than these seconds."""

    @property
    def missing(self) -> dict[str, str]:
        """Whose part is not in the answer, and why."""
        return {**self.away, **{node: str(error) for node, error in sorted(self.refused.items())}}

    def need_one(self) -> "Replies[Reply]":
        """At least one answer, else an error that says why there is none."""
        if self.answers:
            return self
        if self.refused:
            raise self.refused[min(self.refused)]
        if self.late and self.late.keys() >= self.away.keys():
            raise DeadlinePassed(f"this takes longer than the deadline of {max(self.late.values()):g} s")
        reasons = "; ".join(f"{node}: {reason}" for node, reason in list(self.away.items())[:5])
        raise ToolMisused(f"no node answered ({reasons}); call list_nodes to see which are ready")


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes that can be asked."""

    directory: NodeDirectory
    clock: Clock
    deadline_seconds: float
    """For a node's answer: a list takes a second, a study a few."""

    @property
    def longest_seconds(self) -> float:
        """Of one question, however many nodes hang."""
        return self.deadline_seconds * MOST_DEADLINES

    def choose(self, node: str | None) -> dict[str, NodeEntry]:
        """All nodes, or the one that was named; a miss is answered with the nearest name."""
        entries = dict(sorted(self.directory.entries().items()))
        if not entries:
            trouble = self.directory.trouble()
            raise ToolMisused(
                f"there is no node to ask{f': {trouble}' if trouble else ''}; "
                "check the data folder, --viewer or the viewers' label, and call list_nodes again"
            )
        if node is None:
            return entries
        if node in entries:
            return {node: entries[node]}
        names = ", ".join(list(entries)[:8]) + (f" and {len(entries) - 8} more" if len(entries) > 8 else "")
        raise ToolMisused(
            f'no node "{clean_text(node, 80)}"{hint_nearest(node, entries)}; there are: {names}'
        )

    async def ask(
        self,
        entries: Mapping[str, NodeEntry],
        question: Callable[[Backend], Reply],
        deadline_seconds: float | None = None,
    ) -> Replies[Reply]:
        """The question put to every node on threads; in order of names whatever came first."""
        deadline_seconds = deadline_seconds or self.deadline_seconds
        replies: Replies[Reply] = Replies({node: entry.reason or LATE for node, entry in entries.items()})
        turns = anyio.Semaphore(AT_ONCE, fast_acquire=True)
        with anyio.move_on_after(deadline_seconds * MOST_DEADLINES):
            async with anyio.create_task_group() as group:
                for entry in entries.values():
                    if not entry.reason:
                        group.start_soon(self._ask_one, entry, question, deadline_seconds, turns, replies)
        replies.answers = dict(sorted(replies.answers.items()))
        return replies

    async def ask_all(self, node: str | None, question: Callable[[Backend], Reply]) -> Replies[Reply]:
        """All nodes, or the one that was named: at least one answers, else an error."""
        return (await self.ask(self.choose(node), question)).need_one()

    async def _ask_one(
        self,
        entry: NodeEntry,
        question: Callable[[Backend], Reply],
        deadline_seconds: float,
        turns: anyio.Semaphore,
        replies: Replies[Reply],
    ) -> None:
        async with turns:
            # Said first: a process that stood still finds both deadlines over, and this node was asked.
            replies.away[entry.node] = f"no answer within {deadline_seconds:g} s"
            replies.late[entry.node] = deadline_seconds
            with suppress(TimeoutError), anyio.fail_after(deadline_seconds):
                await self._note_answer(entry, question, replies)
                del replies.late[entry.node]

    async def _note_answer(
        self, entry: NodeEntry, question: Callable[[Backend], Reply], replies: Replies[Reply]
    ) -> None:
        """The node's answer, its refusal or why it is away."""
        try:
            with stopping_work():
                replies.answers[entry.node] = await self._try_twice(entry, question)
        except RequestRejected as error:
            replies.refused[entry.node] = ToolMisused(f"{error} {error.hint}".strip())
        except ToolMisused as error:
            replies.refused[entry.node] = error
        except TimeoutError:
            raise
        except (NodescopeError, OSError) as error:
            replies.away[entry.node] = str(error) or type(error).__name__
        if entry.node in replies.answers or entry.node in replies.refused:
            del replies.away[entry.node]

    async def _try_twice(self, entry: NodeEntry, question: Callable[[Backend], Reply]) -> Reply:
        """Once more where the node has moved meanwhile: its pod was replaced."""
        try:
            return await run(question, entry.backend)
        except NodeAway:
            now = await run(self.directory.resolve, entry.node)
            if now is None or now.reason or now.address == entry.address:
                raise
            return await run(question, now.backend)


Argument = TypeVar("Argument")


async def run(function: Callable[[Argument], Reply], argument: Argument) -> Reply:
    """On a thread that is left behind when the deadline comes, and ends at its next step (nodes/stop.py)."""
    return await to_thread.run_sync(
        function, argument, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
    )
