"""Many nodes at once: bounded, each with its deadline, looked up anew when one has moved."""

from collections.abc import Mapping
from functools import partial
from threading import Event, Lock
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.containers import Life
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.overview import About
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import AT_ONCE, Fleet, JoinedDirectory, NodeEntry, Replies, StaticDirectory
from nodescope.use.mcp.nodes.stop import CallStopped, check_stopped
from nodescope.use.mcp.protocol.errors import DeadlinePassed, ToolMisused
from nodescope.use.mcp.protocol.server import suggest_shorter
from nodescope.use.mcp.tools import TOOLS
from nodescope.use.nodes.discovery import parse_pod
from nodescope.use.nodes.viewer_client import NodeAway


class Node:
    """A backend that only knows its name, and how many are being asked."""

    asked_now = 0
    asked_most = 0
    lock = Lock()

    def __init__(self, name: str, hold: Event | None = None, away: str = "") -> None:
        self.name, self.hold, self.away = name, hold, away

    def read_about(self) -> About:
        with Node.lock:
            Node.asked_now += 1
            Node.asked_most = max(Node.asked_most, Node.asked_now)
        if self.hold:
            self.hold.wait()
        with Node.lock:
            Node.asked_now -= 1
        if self.away:
            raise NodeAway(self.away)
        return About(self.name, "0", 0, 1, 0)


def entry(node: Node, address: str = "here", reason: str = "") -> NodeEntry:
    return NodeEntry(node.name, cast("Backend", node), address, reason)


def ask(fleet: Fleet) -> Replies[About]:
    return anyio.run(partial(fleet.ask, fleet.choose(None), lambda backend: backend.read_about()))


def test_a_node_that_hangs_is_named_after_its_deadline() -> None:
    held = Event()
    nodes = {"a": entry(Node("a")), "b": entry(Node("b", held)), "c": entry(Node("c"))}
    # Long enough for the others' threads on a machine that has other things to do.
    replies = ask(Fleet(StaticDirectory(nodes), SystemClock(), 1.5))
    held.set()
    assert list(replies.answers) == ["a", "c"]
    assert replies.away == {"b": "no answer within 1.5 s"}


def test_no_more_are_asked_at_once_than_the_bound() -> None:
    """However many nodes there are, and all are asked."""
    Node.asked_most = 0
    nodes = {f"n{number:03}": entry(Node(f"n{number:03}")) for number in range(5 * AT_ONCE)}
    replies = ask(Fleet(StaticDirectory(nodes), SystemClock(), 30))
    assert list(replies.answers) == sorted(nodes)
    assert 1 <= Node.asked_most <= AT_ONCE


def test_when_all_hang_a_question_still_ends() -> None:
    held = Event()
    nodes = {f"n{number:03}": entry(Node(f"n{number:03}", held)) for number in range(5 * AT_ONCE)}
    replies = ask(Fleet(StaticDirectory(nodes), SystemClock(), 0.05))
    held.set()
    assert not replies.answers
    assert set(replies.away) == set(nodes)
    # Some were never asked: that is more than a long span.
    with pytest.raises(ToolMisused, match="no node answered"):
        replies.need_one()


class Moved:
    """A directory that lags: its entry is gone, a fresh look finds the new one."""

    def __init__(self, old: NodeEntry, new: NodeEntry | None) -> None:
        self._old, self._new = old, new
        self.looked = 0

    def entries(self) -> Mapping[str, NodeEntry]:
        return {self._old.node: self._old}

    def resolve(self, node: str) -> NodeEntry | None:
        assert node == self._old.node
        self.looked += 1
        return self._new

    def trouble(self) -> str:
        return ""

    def server_ahead(self) -> float | None:
        return None


def test_a_node_whose_pod_was_replaced_is_asked_at_its_new_address() -> None:
    directory = Moved(entry(Node("a", away="connection refused"), "10.0.0.1"), entry(Node("a"), "10.0.0.2"))
    replies = ask(Fleet(directory, SystemClock(), 30))
    assert list(replies.answers) == ["a"]
    assert directory.looked == 1


@pytest.mark.parametrize(
    "new", [None, entry(Node("a"), "10.0.0.1"), entry(Node("a"), "10.0.0.2", "not ready")]
)
def test_a_node_that_is_where_it_was_or_gone_is_not_asked_twice(new: NodeEntry | None) -> None:
    directory = Moved(entry(Node("a", away="connection refused"), "10.0.0.1"), new)
    assert ask(Fleet(directory, SystemClock(), 30)).away == {"a": "connection refused"}


def test_a_node_with_a_reason_is_named_and_not_asked() -> None:
    nodes = {"a": entry(Node("a")), "b": entry(Node("b", away="asked!"), reason="its pod is not ready")}
    assert ask(Fleet(StaticDirectory(nodes), SystemClock(), 30)).away == {"b": "its pod is not ready"}


def test_of_one_name_the_first_directory_counts() -> None:
    first, second = entry(Node("a"), "first"), entry(Node("a"), "second")
    joined = JoinedDirectory(
        [StaticDirectory({"a": first}), StaticDirectory({"a": second, "b": entry(Node("b"))})]
    )
    assert joined.entries()["a"] is first
    assert set(joined.entries()) == {"a", "b"}


def pod(**status: Any) -> dict[str, Any]:
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"uid": "u", "name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": "n", "containers": [{"name": "x"}]},
        "status": {"podIP": "10.0.0.1", "conditions": ready, **status},
    }


def test_a_pod_is_read_with_its_reason() -> None:
    """Ready, without an address, not ready, being deleted, not placed yet."""
    ready = parse_pod(pod(), 8050)
    assert ready is not None
    assert (ready.reason, ready.port) == ("", 8050)
    for status, word in ((pod(podIP=""), "no address yet"), (pod(conditions=[]), "not ready")):
        found = parse_pod(status, 8050)
        assert found is not None
        assert word in found.reason
    leaving = pod()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = parse_pod(leaving, 8050)
    assert found is not None
    assert "being deleted" in found.reason
    assert parse_pod({**pod(), "spec": {}}, 8050) is None


@pytest.mark.parametrize("ends", ["cancelled", "late"])
def test_a_call_that_nobody_waits_for_stops_its_work(ends: str) -> None:
    """The thread cannot be ended; it ends itself at its next step."""
    started, stopped = Event(), Event()

    def question(_: Backend) -> None:
        started.set()
        try:
            while True:
                check_stopped()
        except CallStopped:
            stopped.set()
            raise

    fleet = Fleet(StaticDirectory({"a": entry(Node("a"))}), SystemClock(), 60 if ends == "cancelled" else 0.5)

    async def ask_and_leave() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fleet.ask, fleet.choose(None), question)
            while not started.is_set():
                await anyio.lowlevel.checkpoint()
            if ends == "cancelled":
                group.cancel_scope.cancel()

    anyio.run(ask_and_leave)
    assert stopped.wait(60)


@pytest.mark.parametrize(
    ("tool", "given", "shorter"),
    [
        ("top_containers", {"from": "-24h"}, "shorten the span to 6 h (for example from=-360m)"),
        ("analyze_container", {}, "shorten the span to 15 min (for example from=-15m)"),
        (
            "compare_windows",
            {"b_from": "-12h", "b_to": "now"},
            "shorten the span to 3 h (for example b_from=-180m)",
        ),
        ("explain_incident", {"minutes": 60}, "shorten the span to minutes=15"),
    ],
)
def test_a_span_too_long_for_the_deadline_is_told_so(tool: str, given: dict[str, Any], shorter: str) -> None:
    """Never "no node answered" for a node that is only still reading."""
    held = Event()
    fleet = Fleet(StaticDirectory({"a": entry(Node("a", held))}), SystemClock(), 0.05)
    with pytest.raises(DeadlinePassed, match=r"this takes longer than the deadline of 0.05 s"):
        ask(fleet).need_one()
    held.set()
    assert suggest_shorter(TOOLS[tool], given) == f"; {shorter}"


def test_a_process_that_stood_still_blames_the_deadline() -> None:
    """Both deadlines are over at once: the node was asked, and no other node was in its way."""
    started, held = Event(), Event()
    fleet = Fleet(StaticDirectory({"a": entry(Node("a"))}), SystemClock(), 0.2)
    found: list[Replies[bool]] = []

    def question(_: Backend) -> bool:
        started.set()
        return held.wait()

    async def ask_and_stand_still() -> None:
        async with anyio.create_task_group() as group:

            async def keep_replies() -> None:
                found.append(await fleet.ask(fleet.choose(None), question))

            group.start_soon(keep_replies)
            while not started.is_set():
                await anyio.lowlevel.checkpoint()
            # The loop itself waits, longer than all deadlines of the question.
            held.wait(fleet.longest_seconds)

    anyio.run(ask_and_stand_still)
    held.set()
    assert found[0].away == {"a": "no answer within 0.2 s"}
    with pytest.raises(DeadlinePassed):
        found[0].need_one()


class Refusing(Node):
    """Its archive has nothing that could be listed."""

    def read_metrics(self) -> list[MetricRow]:
        if self.away:
            raise RequestRejected(self.away)
        return [MetricRow("cpu", "container", True, "gauge", "cores", "CPU time used per second.")]

    def read_lives(self, span: TimeRange | None) -> list[Life]:
        del span
        return []


@pytest.mark.parametrize("tool", ["find_metrics", "list_metrics"])
def test_a_node_that_refuses_is_named_by_every_list(tool: str) -> None:
    nodes = {"a": entry(Refusing("a")), "b": entry(Refusing("b", away="there is no data here yet"))}
    fleet = Fleet(StaticDirectory(nodes), SystemClock(), 30)
    values = {"question": "who uses the most CPU?", "search": None, "node": None}
    answer = anyio.run(TOOLS[tool].run, fleet, values)
    assert answer.nodes_away == {"b": "there is no data here yet"}
