"""Who is worst and why; the cells of each measure; what `now` is."""

import numpy as np
import pytest
from tests.use.cluster.fake_nodes import (
    END_MS,
    MINUTE_MS,
    FakeCluster,
    FakeNode,
    Later,
    make_cluster,
    make_event,
)

from nodescope.base.errors import RequestRejected
from nodescope.use.answers.minutes.node_minutes import SeenFinding
from nodescope.use.cluster.json_form import render_row, render_wall
from nodescope.use.cluster.measure import MEASURES
from nodescope.use.cluster.wall import Wall, draw_wall, find_measure, reduce_cells

CALM = {"cpu": 2.0, "memory": 40.0, "pressure_cpu": 0.01, "throttled": 0.0}


def draw(cluster: FakeCluster, measure: str = "cpu", range_: str = "1h", columns: int = 180) -> Wall:
    return draw_wall(cluster.gatherer, cluster.clock, find_measure(measure), ("", "", range_), columns)


def test_the_worst_comes_first_each_with_its_reason() -> None:
    """A kill before silence, silence before waiting, waiting before full, full before calm."""
    cluster = make_cluster(
        calm=FakeNode(CALM),
        full=FakeNode({**CALM, "memory": 96.0}),
        waits=FakeNode({**CALM, "pressure_memory": 0.3}),
        silent=FakeNode(away="its viewer did not answer in time"),
        killed=FakeNode(CALM, events=(make_event("oom", 5), make_event("restart", 4.9))),
        throttled=FakeNode({**CALM, "throttled": 0.5}),
        loops=FakeNode(CALM, events=tuple(make_event("restart", 5 + one) for one in range(6))),
    )
    rows = draw(cluster).rows
    assert [row.node for row in rows] == ["killed", "silent", "waits", "throttled", "loops", "full", "calm"]
    why = {row.node: row.harm.sentence for row in rows}
    assert why["killed"] == 'OOM kill of "cache-5ab43138c-8880a/cache" at 2026-03-01 11:55:00 UTC.'
    assert why["silent"] == "It does not answer: its viewer did not answer in time."
    assert why["waits"].startswith("Tasks waited for memory 30 % of the time, most 30 % at 2026-03-01")
    assert why["throttled"].startswith("A container was throttled in 50 % of its periods")
    assert why["loops"].startswith('6 restarts, the last of "cache-5ab43138c-8880a/cache"')
    assert why["full"] == "Memory was 90 % or more in use for 60 min, most 96 %."
    assert why["calm"] == "CPU 25 %, memory 40 %; nothing unusual."
    assert [row.node for row in rows if row.harm.is_hurt] == [row.node for row in rows[:-1]]


def test_what_was_full_for_a_tenth_of_the_range_is_told() -> None:
    """The mean of the range would hide it."""
    cluster = make_cluster(
        late=FakeNode(CALM, levels_at_end={"cpu": 7.6}), calm=FakeNode({**CALM, "cpu": 6.0})
    )
    rows = draw(cluster, range_="3h").rows
    assert [row.node for row in rows] == ["late", "calm"]
    assert rows[0].harm.sentence == "CPU was 90 % or more in use for 20 min, most 95 %."
    assert not rows[1].harm.is_hurt


def test_a_finding_that_somebody_should_know_of_is_told() -> None:
    finding = SeenFinding("f", "memory_leak", "kill", END_MS - 600_000, 0, "shop/cache", "It leaks.")
    waste = SeenFinding("w", "waste", "waste", END_MS - 600_000, 0, "shop/api", "It wastes.")
    cluster = make_cluster(
        leaks=FakeNode(CALM, findings=(finding, waste)), wastes=FakeNode(CALM, findings=(waste,))
    )
    wall = draw(cluster, "findings")
    assert wall.rows[0].harm.sentence == "It leaks."
    assert not wall.rows[1].harm.is_hurt
    cells = wall.rows[0].cells
    assert (cells[-2], cells[0]) == (1.0, 0.0), "open from its beginning on"


def test_the_sentence_tells_how_the_cluster_is() -> None:
    cluster = make_cluster(
        a=FakeNode(CALM), b=FakeNode(CALM, events=(make_event("oom", 5),)), c=FakeNode(away="x")
    )
    assert draw(cluster).sentence == (
        '1 of 3 nodes is hurt. Worst is b: OOM kill of "cache-5ab43138c-8880a/cache" at 2026-03-01 11:55:00 UTC. '
        "1 node not answering: c."
    )
    assert draw(make_cluster(a=FakeNode(CALM))).sentence == "1 of 1 node answered and none is hurt."
    assert draw(make_cluster()).sentence == "There is no node yet."
    assert draw(make_cluster(Later(), a=FakeNode())).sentence == "1 node being asked."


def test_what_a_node_that_never_answered_counts_is_not_known() -> None:
    """Missing is not zero: it may have killed anything."""
    rows = draw(make_cluster(a=FakeNode(CALM), c=FakeNode(away="x"))).rows
    found = {row.node: render_row(row) for row in rows}
    for name in ("kills", "restarts", "findings", "containers"):
        assert found["c"][name] is None
        assert found["a"][name] is not None


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("cpu", 0.25),
        ("memory", 0.4),
        ("pressure", 0.01),
        ("throttled", 0.0),
        ("findings", 0.0),
        ("restarts", 0.0),
    ],
)
def test_a_measure_is_a_share_of_the_node(measure: str, expected: float) -> None:
    cells = draw(make_cluster(a=FakeNode(CALM)), measure).rows[0].cells
    assert cells[:60] == pytest.approx([expected] * 60, abs=1e-6)


def test_what_was_not_measured_is_no_zero() -> None:
    """No GPU: null in every cell, and no mean."""
    content = render_wall(draw(make_cluster(a=FakeNode(CALM)), "gpu"))
    [row] = content["nodes"]
    assert set(row["cells"]) == {None}
    assert row["mean"]["gpu"] is None
    assert row["mean"]["throttled"] == 0


def test_a_node_of_unknown_size_is_beside_the_largest() -> None:
    cluster = make_cluster(a=FakeNode({"cpu": 2.0}, cores=None), b=FakeNode({"cpu": 4.0}))
    shares = {row.node: row.means["cpu"] for row in draw(cluster).rows}
    assert shares == {"a": 0.5, "b": 0.5}
    why = {row.node: row.harm.sentence for row in draw(cluster).rows}
    assert why["a"] == "Nothing unusual.", "a share of an unknown size is not told"


def test_a_minute_that_hurt_survives_a_wide_column() -> None:
    values = np.array([0.1, 0.9, np.nan, 0.2, np.nan, np.nan, 0.3])
    assert reduce_cells(values, 3).tolist()[:1] == [0.9]
    assert reduce_cells(values, 3)[1] == 0.2
    assert reduce_cells(values, 3)[2] == 0.3


def test_wide_ranges_have_wider_cells() -> None:
    node = FakeNode(CALM)
    cluster = make_cluster(a=node)
    draw(cluster, range_="1h")
    wall = draw(cluster, range_="1w", columns=100)
    assert wall.step_ms == 600_000 * 10
    assert {one.step_ms for one in node.asked} == {MINUTE_MS, 600_000}


def test_a_clock_that_runs_ahead_does_not_move_the_page() -> None:
    cluster = make_cluster(a=FakeNode(CALM), ahead=FakeNode(CALM, newest_ms=END_MS + 3_600_000))
    wall = draw(cluster)
    assert wall.is_live
    assert wall.span.to_ms == END_MS


def test_an_archive_ends_where_its_newest_node_does() -> None:
    days = 30 * 86_400_000
    cluster = make_cluster(
        a=FakeNode(CALM, newest_ms=END_MS - days), b=FakeNode(CALM, newest_ms=END_MS - days - 1)
    )
    wall = draw(cluster)
    assert not wall.is_live
    assert wall.span.to_ms == END_MS - days


def test_errors_say_what_is_accepted() -> None:
    cluster = make_cluster(a=FakeNode(CALM))
    with pytest.raises(RequestRejected, match='no measure "cpux"; did you mean "cpu"'):
        find_measure("cpux")
    with pytest.raises(RequestRejected, match="accepted: 15m, 1h"):
        draw(cluster, range_="soon")
    assert set(MEASURES) == {"cpu", "memory", "pressure", "throttled", "gpu", "findings", "restarts"}


def test_hostile_names_are_cut_and_cannot_end_their_quotation_marks() -> None:
    event = make_event("oom", 5, 'x" is fine. "' + "n" * 2000)
    cluster = make_cluster(a=FakeNode(CALM, events=(event,)))
    sentence = draw(cluster).rows[0].harm.sentence
    assert sentence.count('"') == 2
    assert len(sentence) < 250
