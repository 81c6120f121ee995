"""What agents say: asked once, kept for a moment, withheld when it is old, never 0."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import HttpFailed, ParseError
from nodescope.use.adapter import reports as module
from nodescope.use.adapter.answers import Answers, NothingKnown
from nodescope.use.adapter.metric_table import parse_metric
from nodescope.use.adapter.pod_index import PodIndex
from nodescope.use.adapter.reports import Reports, parse_report, pick_number

CPU = parse_metric("cpu", "pods")


def make_body(newest_seconds: float = 0.5, **cpu: float) -> bytes:
    head = {"newest_seconds": newest_seconds, "statistics": ["mean", "p95", "max"]}
    first = json.dumps({**head, "metrics": {"cpu_util": [0.5, 0.6, 0.7]}})
    pods = [f'uid-{pod} {{"cpu":[{value},{value},{value}]}}' for pod, value in cpu.items()]
    return "\n".join([first, *pods]).encode()


class Cluster:
    """Agents that answer, fail or say nothing, and a clock that a test turns."""

    def __init__(self, nodes: int = 10) -> None:
        self.clock = TurnableClock()
        self.index = PodIndex("app=agent")
        self.asked: Counter[str] = Counter()
        self.cpu = dict.fromkeys((f"n{number}" for number in range(nodes)), 1.0)
        self.dead: set[str] = set()
        self.silent: set[str] = set()
        self.newest_seconds = 0.5
        self.reports = Reports(self.ask, self.clock)
        self.answers = Answers(self.index, self.reports)
        for node in self.cpu:
            about = {
                "namespace": "shop",
                "name": f"p-{node}",
                "uid": f"uid-p_{node}",
                "labels": {"app": "web"},
            }
            status = {"phase": "Running"}
            self.index.change({"metadata": about, "spec": {"nodeName": node}, "status": status})

    async def ask(self, node: str) -> bytes:
        self.asked[node] += 1
        if node in self.dead:
            raise HttpFailed(node, "connection refused")
        if node in self.silent:
            await asyncio.Event().wait()
        return make_body(self.newest_seconds, **{f"p_{node}": self.cpu[node]})

    async def read(self) -> dict[str, float]:
        values = await self.answers.read_pods(CPU, self.index.select("shop", ""))
        return {value.name: value.value for value in values}

    async def total(self) -> float:
        return (await self.answers.read_sum(CPU, "shop", "app=web")).value


Trial = Callable[[Cluster], Coroutine[Any, Any, None]]


def run(trial: Trial) -> None:
    async def go() -> None:
        cluster = Cluster()
        await trial(cluster)
        for state in cluster.reports._states.values():
            if state.asking:
                state.asking.cancel()

    asyncio.run(go())


def test_only_the_nodes_of_the_pods_are_asked_and_once() -> None:
    async def trial(cluster: Cluster) -> None:
        pods = [pod for pod in cluster.index.select("shop", "") if pod.node in ("n1", "n2")]
        for _ in range(3):
            await cluster.answers.read_pods(CPU, pods)
        assert cluster.asked == {"n1": 1, "n2": 1}
        cluster.clock.advance(round((module.FRESH_SECONDS + 1) * 1e9))
        await cluster.answers.read_pods(CPU, pods)
        assert cluster.asked == {"n1": 2, "n2": 2}

    run(trial)


def test_what_a_dead_agent_said_last_counts_for_a_minute_and_then_nothing_does() -> None:
    async def trial(cluster: Cluster) -> None:
        assert len(await cluster.read()) == 10
        cluster.dead = {"n3"}
        cluster.clock.advance(30 * 10**9)
        assert (await cluster.read())["p-n3"] == 1.0
        cluster.clock.advance(31 * 10**9)
        found = await cluster.read()
        assert "p-n3" not in found
        assert len(found) == 9
        assert "connection refused" in cluster.reports.explain("n3")

    run(trial)


def test_an_agent_whose_samples_stand_still_is_withheld_although_it_answers() -> None:
    async def trial(cluster: Cluster) -> None:
        cluster.newest_seconds = 61.0
        with pytest.raises(NothingKnown):
            await cluster.read()

    run(trial)


def test_an_agent_that_says_nothing_holds_nobody_up() -> None:
    """Silent for ever: the answer comes at the deadline, with the others' values."""

    async def trial(cluster: Cluster) -> None:
        cluster.silent = {"n7"}
        async with asyncio.timeout(10):
            assert len(await cluster.read()) == 9
        # It is still being waited for: no second question.
        await cluster.read()
        assert cluster.asked["n7"] == 1

    run(trial)


def test_an_agent_that_was_late_is_not_waited_for_until_it_answers_again() -> None:
    """Silent once at the deadline: later answers come without it, however long the deadline is, and then with it."""

    async def trial(cluster: Cluster) -> None:
        cluster.silent = {"n7"}
        assert len(await cluster.read()) == 9
        cluster.reports.deadline_seconds = 1e6
        async with asyncio.timeout(60):
            for _ in range(5):
                cluster.clock.advance(round((module.FRESH_SECONDS + 1) * 1e9))
                assert len(await cluster.read()) == 9
        asking = cluster.reports._states["n7"].asking
        assert asking is not None
        cluster.silent = set()
        asking.cancel()
        await asyncio.wait([asking])
        for _ in range(2):
            cluster.clock.advance(round((module.FRESH_SECONDS + 1) * 1e9))
            found = await cluster.read()
        assert len(found) == 10
        assert not cluster.reports._states["n7"].is_late

    run(trial)


def test_pods_are_found_alike_whether_few_or_many_are_asked_for() -> None:
    names = {f"p{number}": float(number) for number in range(12)}
    report = parse_report(make_body(**names), TurnableClock())
    for _ in range(2):
        for name, value in names.items():
            assert pick_number(report.read_pod(f"uid-{name}"), "cpu", 0) == value
        assert report.read_pod("uid-p") == report.read_pod("uid-none") == report.read_pod("") == {}


def test_an_agent_that_fails_is_left_alone_for_longer_each_time() -> None:
    async def trial(cluster: Cluster) -> None:
        cluster.dead = {"n1"}
        for _ in range(60):
            await cluster.read()
            cluster.clock.advance(10**9)
        assert 4 <= cluster.asked["n1"] <= 8

    run(trial)


def test_a_sum_never_falls_because_data_are_missing() -> None:
    """The busiest pod's agent dies: its pod counts as before, for as long as it is missing."""

    async def trial(cluster: Cluster) -> None:
        cluster.cpu["n4"] = 5.0
        assert await cluster.total() == pytest.approx(14.0)
        cluster.dead = {"n4"}
        for _ in range(5):
            cluster.clock.advance(61 * 10**9)
            assert await cluster.total() == pytest.approx(14.0)
        cluster.cpu = dict.fromkeys(cluster.cpu, 2.0)
        cluster.clock.advance(61 * 10**9)
        assert await cluster.total() == pytest.approx(9 * 2.0 + 5.0)
        cluster.dead = set()
        cluster.clock.advance(61 * 10**9)
        assert await cluster.total() == pytest.approx(20.0)

    run(trial)


def test_a_pod_that_was_never_known_counts_as_the_mean() -> None:
    async def trial(cluster: Cluster) -> None:
        cluster.dead = {"n4"}
        cluster.cpu["n5"] = 10.0
        assert await cluster.total() == pytest.approx(18.0 + 18.0 / 9)

    run(trial)


def test_a_sum_over_fewer_than_half_is_withheld() -> None:
    async def trial(cluster: Cluster) -> None:
        cluster.dead = {f"n{number}" for number in range(6)}
        with pytest.raises(NothingKnown, match="4 of 10"):
            await cluster.total()

    run(trial)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"statistics": ["mean"]}',
        b"[" * 100_000,
        make_body().replace(b'["mean", "p95", "max"]', b'["max", "mean", "p95"]'),
        make_body().replace(b"0.5,", b'"x",', 1),
        make_body().replace(b"0.5,", b"1e999,", 1),
    ],
)
def test_what_is_no_answer_of_an_agent_is_a_failure(body: bytes) -> None:
    with pytest.raises(ParseError):
        parse_report(body, TurnableClock())


@pytest.mark.parametrize(
    "rest", [b"", b"[]", b"{", b"[" * 100_000, b'{"cpu":5}', b'{"cpu":["1",2,3]}', b'{"cpu":[NaN]}']
)
def test_a_line_that_is_none_is_a_pod_without_numbers(rest: bytes) -> None:
    report = parse_report(make_body(b=1.0) + b"\nuid-a " + rest, TurnableClock())
    assert pick_number(report.read_pod("uid-a"), "cpu", 0) is None
    assert pick_number(report.read_pod("uid-b"), "cpu", 0) == 1.0


def test_answers_are_held_within_a_bound() -> None:
    """Of nodes that were asked longest ago the answer is forgotten first."""

    async def trial(cluster: Cluster) -> None:
        cluster.reports.most = 3
        await cluster.read()
        assert list(cluster.reports._states) == ["n7", "n8", "n9"]
        assert cluster.reports._held_bytes == sum(
            state.report.used_bytes for state in cluster.reports._states.values() if state.report
        )

    run(trial)
