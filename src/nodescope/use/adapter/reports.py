"""
What agents said last: asked when somebody wants to know, kept for a moment, withheld when it is old.

    younger than 7.5 s  taken as it is: several autoscalers cost an agent one answer
    older               the agent is asked, and waited for until the deadline
    no answer in time   what it said last, if its newest sample is not older than 60 s
    older than that     nothing: a value that is not known is not 0

An agent that failed is left alone for a moment, longer each time. One that let a
deadline pass, or failed, is asked as before, but nobody waits for it longer than a
moment until it answers again: dead agents cost one answer the deadline, not every
answer. Ages are by our own clock and the agent's word for how old its newest sample is: clocks of
nodes need not agree.
"""

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import HttpFailed, ParseError
from nodescope.base.log import Log

log = Log("adapter")

# Half of the period in which a HorizontalPodAutoscaler looks (15 s): each of its looks finds something newer.
FRESH_SECONDS = 7.5
OLD_SECONDS = 60.0
# What an autoscaler waits for; agents have longer, for the next question.
DEADLINE_SECONDS = 0.2
# How long those are waited for that were late before; an agent that is well answers in a few ms.
LATE_SECONDS = 0.02
AGENT_SECONDS = 2.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 15.0
# All answers together; those of nodes that were asked longest ago are forgotten first.
HELD_BYTES = 48 * 2**20
# Agents that are asked at the same time.
AT_ONCE = 200
WINDOW_SECONDS = 20
# Pods of one answer that are looked up by a search; for more of them all lines are put in order.
FEW_PODS = 4
# Beyond these it is no age, and no measurement.
LONGEST_SECONDS = 1e9
LARGEST = 1e300

Ask = Callable[[str], Awaitable[bytes]]
"""The body of an agent's answer, by node."""


@dataclass(slots=True)
class PodLines:
    """A line for each pod: its uid, and numbers that are read when somebody asks for them."""

    body: bytes
    _asked: int = 0
    _by_uid: dict[bytes, bytes] | None = None

    def find(self, uid: bytes) -> bytes:
        """The rest of its line; an empty object where there is none."""
        self._asked += 1
        if self._by_uid is None and self._asked <= FEW_PODS:
            return self._search(uid)
        if self._by_uid is None:
            lines = (line.partition(b" ") for line in self.body.split(b"\n")[1:])
            self._by_uid = {one: rest for one, _, rest in lines}
        return self._by_uid.get(uid, b"{}")

    def _search(self, uid: bytes) -> bytes:
        """Most questions are about two of a hundred pods: cutting all lines takes longer than finding these."""
        begin = self.body.find(b"\n" + uid + b" ")
        if begin < 0:
            return b"{}"
        end = self.body.find(b"\n", begin + 1)
        return self.body[begin + len(uid) + 2 : end if end >= 0 else None]


@dataclass(frozen=True, slots=True)
class NodeReport:
    """An agent's answer."""

    newest_mono_ns: int
    """When its newest sample was taken, by our clock."""
    newest_ms: int
    """The same as a wall clock tells it."""
    pods: PodLines
    metrics: Mapping[str, Any]
    """Each number's statistics."""
    used_bytes: int

    def read_pod(self, uid: str) -> Mapping[str, Any]:
        """Empty where the agent does not know it, or says something else than numbers by name."""
        try:
            found = json.loads(self.pods.find(uid.encode()))
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class AgentState:
    """One node's newest answer, and how it goes with asking."""

    report: NodeReport | None = None
    asked_mono_ns: int | None = None
    """When the newest answer was asked for."""
    failures: int = 0
    not_before_mono_ns: int = 0
    reason: str = ""
    is_late: bool = False
    """Whether it failed, or let a deadline pass, since it last answered."""
    asking: "asyncio.Task[None] | None" = None


@dataclass(slots=True)
class Reports:
    """All agents that were asked lately; on the event loop."""

    ask: Ask
    clock: Clock
    deadline_seconds: float = DEADLINE_SECONDS
    most: int = 10_000
    """Nodes that are remembered; the one asked longest ago is forgotten first."""
    requests: Counter[str] = field(default_factory=Counter)
    """By outcome: ok, failed."""
    _states: OrderedDict[str, AgentState] = field(default_factory=OrderedDict)
    _held_bytes: int = 0
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def gather(self, nodes: Iterable[str]) -> dict[str, NodeReport]:
        """Of the nodes whose answer is not too old; never longer than the deadline."""
        wanted = list(nodes)
        await self._wait([state for node in wanted if (state := self._begin(node)).asking])
        found = {node: self._states[node].report for node in wanted if node in self._states}
        oldest = self.clock.mono_ns() - round(OLD_SECONDS * 1e9)
        return {
            node: report
            for node, report in found.items()
            if report is not None and report.newest_mono_ns >= oldest
        }

    async def _wait(self, asked: Sequence[AgentState]) -> None:
        """For those that answered last time until the deadline, for the others a moment."""
        late = [one.asking for one in asked if one.asking and one.is_late]
        others = [one.asking for one in asked if one.asking and not one.is_late]
        until = asyncio.get_running_loop().time() + LATE_SECONDS
        if others:
            await asyncio.wait(others, timeout=self.deadline_seconds)
        left_seconds = until - asyncio.get_running_loop().time()
        if late and left_seconds > 0:
            await asyncio.wait(late, timeout=left_seconds)
        for one in asked:
            one.is_late = one.is_late or one.asking is not None

    def explain(self, node: str) -> str:
        """Why nothing is known of a node."""
        state = self._states.get(node)
        if state is None or (not state.reason and state.report is None):
            return "its agent has not answered yet"
        return state.reason or f"its newest sample is older than {OLD_SECONDS:g} s"

    def _begin(self, node: str) -> AgentState:
        """Asks its agent, unless that is under way, or neither needed nor wanted."""
        state = self._states.setdefault(node, AgentState())
        self._states.move_to_end(node)
        while len(self._states) > self.most or self._held_bytes > HELD_BYTES:
            self._forget(next(iter(self._states)))
        now_mono_ns = self.clock.mono_ns()
        if state.asking is not None:
            return state
        is_fresh = state.asked_mono_ns is not None and now_mono_ns - state.asked_mono_ns < FRESH_SECONDS * 1e9
        if not is_fresh and now_mono_ns >= state.not_before_mono_ns:
            state.asking = asyncio.create_task(self._renew(node, state))
        return state

    def _forget(self, node: str) -> None:
        state = self._states.pop(node)
        self._hold(state, None)

    def _hold(self, state: AgentState, report: NodeReport | None) -> None:
        self._held_bytes -= state.report.used_bytes if state.report else 0
        self._held_bytes += report.used_bytes if report else 0
        state.report = report

    async def _renew(self, node: str, state: AgentState) -> None:
        try:
            async with self._places:
                asked_mono_ns = self.clock.mono_ns()
                body = await self.ask(node)
            report = parse_report(body, self.clock)
            if self._states.get(node) is state:
                self._hold(state, report)
            state.asked_mono_ns, state.failures, state.reason = asked_mono_ns, 0, ""
            state.is_late = False
            self.requests["ok"] += 1
        except (HttpFailed, ParseError) as error:
            self._note_failure(node, state, str(error))
        finally:
            state.asking = None

    def _note_failure(self, node: str, state: AgentState, reason: str) -> None:
        if state.reason != reason:
            log.warning("agent does not answer", node=node, reason=reason)
        pause_seconds = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(state.failures, 10))
        state.failures += 1
        state.reason, state.is_late = reason, True
        state.not_before_mono_ns = self.clock.mono_ns() + round(pause_seconds * 1e9)
        self.requests["failed"] += 1


def parse_report(body: bytes, clock: Clock) -> NodeReport:
    """ParseError for what no agent of ours sends."""
    first, _, _ = body.partition(b"\n")
    try:
        head = json.loads(first)
        if head["statistics"] != ["mean", "p95", "max"]:
            raise ParseError(f"statistics {str(head['statistics'])[:60]} are not known")
        newest_seconds = max(0.0, float(head["newest_seconds"]))
        metrics = dict(head["metrics"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParseError(f"the agent's answer is not understood: {type(error).__name__} {error}") from error
    if newest_seconds > LONGEST_SECONDS:
        raise ParseError(f"its newest sample is said to be {newest_seconds:g} s old")
    newest_mono_ns = clock.mono_ns() - round(newest_seconds * 1e9)
    newest_ms = round(clock.wall_ns() / 1e6 - newest_seconds * 1000)
    return NodeReport(newest_mono_ns, newest_ms, PodLines(body), metrics, len(body))


def pick_number(numbers: Mapping[str, Any], name: str, place: int) -> float | None:
    """One statistic of a number; None where it is not there, or is none."""
    found = numbers.get(name)
    value = found[place] if isinstance(found, list) and len(found) > place else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < LARGEST else None
