"""All nodes are asked at once and nobody is waited for; what they said is kept within bounds."""

import pytest
from tests.use.cluster.fake_nodes import END_MS, MINUTE_MS, FakeNode, Later, make_cluster, make_event

from nodescope.base.time_range import TimeRange
from nodescope.use.answers.minutes.node_minutes import CELLS_MOST, CellRequest
from nodescope.use.cluster.asked_node import parse_workload
from nodescope.use.cluster.gatherer import (
    AGAIN_SECONDS,
    GONE_SECONDS,
    LIVE_MS,
    PAUSE_SECONDS,
    ROUNDS_MOST,
    STILL_SECONDS,
)
from nodescope.use.cluster.grid import EVENTS_KEPT, MEASURED

LAST_HOUR = CellRequest(END_MS - 60 * MINUTE_MS, END_MS, MINUTE_MS)


def test_who_looks_never_waits() -> None:
    """What is known is there at once; the questions are only handed over."""
    cluster = make_cluster(Later(), a=FakeNode({"cpu": 4.0}), b=FakeNode({"cpu": 2.0}))
    assert cluster.gatherer.want_cells(LAST_HOUR) == 2
    states = cluster.gatherer.states()
    assert [cluster.gatherer.describe(one) for one in states.values()] == [("asking", "")] * 2
    assert isinstance(cluster.executor, Later)
    cluster.executor.run()
    assert [cluster.gatherer.describe(one) for one in states.values()] == [("ok", "")] * 2


def test_a_node_that_hangs_is_away_after_its_deadline_and_costs_nobody_else() -> None:
    """Its deadline begins with its turn: waiting behind others is no fault of its own."""
    cluster = make_cluster(Later(), hung=FakeNode(), well=FakeNode({"cpu": 1.0}))
    gatherer, executor = cluster.gatherer, cluster.executor
    gatherer.want_cells(LAST_HOUR)
    cluster.clock.turn(60)
    assert gatherer.describe(gatherer.states()["hung"]) == ("asking", "")
    # Its turn has come, and no answer does.
    gatherer.states()["hung"].started_ns = cluster.clock.mono_ns()
    assert isinstance(executor, Later)
    executor.waiting.pop(0)
    executor.run()
    assert gatherer.describe(gatherer.states()["well"]) == ("ok", "")
    cluster.clock.turn(4.9)
    assert gatherer.describe(gatherer.states()["hung"])[0] == "asking"
    cluster.clock.turn(0.2)
    assert gatherer.describe(gatherer.states()["hung"]) == ("away", "no answer within 5 s")
    # One question at a time: a hung node does not take one thread after the other.
    cluster.clock.turn(600)
    gatherer.want_cells(CellRequest(END_MS, END_MS + 60 * MINUTE_MS, MINUTE_MS))
    assert len(executor.waiting) == 1


def test_a_node_that_failed_is_asked_again_after_a_pause_that_grows() -> None:
    node = FakeNode(away="its viewer is not there: connection refused")
    cluster = make_cluster(a=node)
    cluster.gatherer.want_cells(LAST_HOUR)
    state = cluster.gatherer.states()["a"]
    assert cluster.gatherer.describe(state) == ("away", "its viewer is not there: connection refused")
    cluster.gatherer.want_cells(LAST_HOUR)
    assert len(node.asked) == 1
    cluster.clock.turn(PAUSE_SECONDS)
    cluster.gatherer.want_cells(LAST_HOUR)
    cluster.clock.turn(PAUSE_SECONDS)
    cluster.gatherer.want_cells(LAST_HOUR)
    assert len(node.asked) == 2, "the second pause is twice as long"
    node.away = ""
    cluster.clock.turn(PAUSE_SECONDS)
    cluster.gatherer.want_cells(LAST_HOUR)
    assert cluster.gatherer.describe(state) == ("ok", "")


def test_a_node_that_vanishes_stays_with_its_last_time_for_a_day() -> None:
    cluster = make_cluster(a=FakeNode({"cpu": 1.0}), b=FakeNode())
    cluster.gatherer.want_cells(LAST_HOUR)
    del cluster.directory.nodes["a"]
    state = cluster.gatherer.states()["a"]
    word, reason = cluster.gatherer.describe(state)
    assert word == "away"
    assert reason.startswith("not listed any more since 2026-03-01 12:00:00 UTC")
    assert state.cells.newest_ms == END_MS - 1
    assert len(state.cells.windows[MINUTE_MS].cut(LAST_HOUR)[0]) == 60
    cluster.clock.turn(GONE_SECONDS + 1)
    assert list(cluster.gatherer.states()) == ["b"]


def test_a_node_that_was_never_heard_of_and_is_gone_leaves_nothing() -> None:
    cluster = make_cluster(Later(), a=FakeNode())
    assert list(cluster.gatherer.states()) == ["a"]
    cluster.directory.nodes.clear()
    assert not cluster.gatherer.states()


def test_a_pod_that_is_not_ready_is_named_and_not_asked() -> None:
    node = FakeNode()
    cluster = make_cluster(a=node)
    cluster.directory.reasons["a"] = "its viewer's pod x is not ready: ContainersNotReady"
    cluster.gatherer.want_cells(LAST_HOUR)
    assert not node.asked
    assert cluster.gatherer.describe(cluster.gatherer.states()["a"])[0] == "away"


def test_only_what_is_missing_is_asked() -> None:
    """Earlier cells, and from the last settled one on; an open page does not repeat its question at once."""
    node = FakeNode({"cpu": 1.0})
    cluster = make_cluster(a=node)
    cluster.gatherer.want_cells(LAST_HOUR)
    cluster.gatherer.want_cells(LAST_HOUR)
    # A zoom into what is there asks nobody.
    cluster.gatherer.want_cells(CellRequest(END_MS - 30 * MINUTE_MS, END_MS, MINUTE_MS))
    assert len(node.asked) == 1
    cluster.clock.turn(AGAIN_SECONDS)
    longer = CellRequest(END_MS - 90 * MINUTE_MS, END_MS, MINUTE_MS)
    cluster.gatherer.want_cells(longer)
    spans = [one.span for one in node.asked[1:]]
    assert spans == [
        TimeRange(longer.from_ms, LAST_HOUR.from_ms - 1),
        TimeRange(END_MS - 2 * MINUTE_MS, END_MS - 1),
    ]
    window = cluster.gatherer.states()["a"].cells.windows[MINUTE_MS]
    assert (window.from_ms, window.to_ms) == (longer.from_ms, END_MS)


def test_a_node_that_records_nothing_now_is_asked_less_often() -> None:
    """Somebody who zooms in an archive would ask all its nodes again every ten seconds, for cells that never change."""
    node = FakeNode({"cpu": 1.0})
    cluster = make_cluster(a=node)
    cluster.clock.turn(LIVE_MS / 1000)
    cluster.gatherer.want_cells(LAST_HOUR)
    cluster.clock.turn(STILL_SECONDS - 1)
    cluster.gatherer.want_cells(LAST_HOUR)
    assert len(node.asked) == 1
    cluster.clock.turn(1)
    cluster.gatherer.want_cells(LAST_HOUR)
    assert len(node.asked) == 2


def test_a_window_stays_within_its_bound() -> None:
    """What lies elsewhere begins it anew; it never has a hole that nobody asked for."""
    node = FakeNode({"cpu": 1.0})
    cluster = make_cluster(a=node)
    cluster.gatherer.want_cells(LAST_HOUR)
    long_ago = END_MS - (CELLS_MOST + 100) * MINUTE_MS
    cluster.gatherer.want_cells(CellRequest(long_ago, long_ago + 60 * MINUTE_MS, MINUTE_MS))
    window = cluster.gatherer.states()["a"].cells.windows[MINUTE_MS]
    assert (window.from_ms, window.values.shape) == (long_ago, (len(MEASURED), 60))


def test_events_stay_within_their_bound() -> None:
    node = FakeNode(events=tuple(make_event("restart", 1 + number / 60) for number in range(400)))
    cluster = make_cluster(a=node)
    cluster.gatherer.want_cells(LAST_HOUR)
    assert len(cluster.gatherer.states()["a"].cells.events) == EVENTS_KEPT


def test_workloads_are_asked_once_for_each_metric_and_span() -> None:
    node = FakeNode()
    cluster = make_cluster(a=node, b=FakeNode(away="gone"))
    span = TimeRange(END_MS - 3_600_000, END_MS)
    for _ in range(3):
        replies, asking, away = cluster.gatherer.copy_round(cluster.gatherer.rank("cpu", span))
    assert (list(replies), asking, away) == (["a"], 0, {"b": "gone"})
    assert len(node.ranked) == 1
    for number in range(ROUNDS_MOST):
        cluster.gatherer.rank("memory", TimeRange(span.from_ms - number, span.to_ms))
    cluster.gatherer.rank("cpu", span)
    assert len(node.ranked) == 1 + ROUNDS_MOST + 1, "only so many are kept"


def test_an_error_of_our_own_is_told_like_a_node_s() -> None:
    class Broken(FakeNode):
        def read_minutes(self, wanted: object) -> object:  # type: ignore[override]
            raise ZeroDivisionError

    cluster = make_cluster(a=Broken())
    cluster.gatherer.want_cells(LAST_HOUR)
    reason = cluster.gatherer.describe(cluster.gatherer.states()["a"])
    assert reason == ("away", "its answer could not be read here: ZeroDivisionError")


def test_workloads_of_a_node_that_came_back_are_asked_for_again() -> None:
    node = FakeNode(away="gone")
    cluster = make_cluster(a=node)
    span = TimeRange(END_MS - 3_600_000, END_MS)
    cluster.gatherer.want_cells(LAST_HOUR)
    for _ in range(2):
        known = cluster.gatherer.rank("cpu", span)
        assert cluster.gatherer.copy_round(known) == ({}, 0, {"a": "gone"})
    assert not node.ranked, "a node that is known to be away is not asked for more"
    node.away = ""
    cluster.clock.turn(PAUSE_SECONDS + 1)
    cluster.gatherer.want_cells(LAST_HOUR)
    assert cluster.gatherer.copy_round(cluster.gatherer.rank("cpu", span)) == ({"a": []}, 0, {})


def test_an_error_of_our_own_ends_a_round_of_workloads() -> None:
    class Broken(FakeNode):
        def rank(self, metric: str, span: TimeRange) -> object:  # type: ignore[override]
            raise ZeroDivisionError

    gatherer = make_cluster(a=Broken()).gatherer
    known = gatherer.rank("cpu", TimeRange(END_MS - 3_600_000, END_MS))
    assert gatherer.copy_round(known) == (
        {},
        0,
        {"a": "its answer could not be read here: ZeroDivisionError"},
    )


@pytest.mark.parametrize("used", ["nan", "inf", float("nan"), 1e999])
def test_a_viewer_that_sends_no_number_is_refused(used: object) -> None:
    with pytest.raises(ValueError, match="infinite"):
        parse_workload({"name": "web", "over_span": used}, "cores")
