"""Clocks that are off are named, and do not make the right ones look old."""

from email.utils import formatdate

import pytest

from nodescope.use.mcp.nodes.viewer import measure_ahead
from nodescope.use.mcp.tools.shared.clocks import NodeClock, list_clocks

NOW_MS = 1_772_366_400_000
MINUTE_MS = 60_000


def test_a_node_ahead_does_not_make_the_others_old() -> None:
    """Forty-seven minutes, measured by the Date of its viewer."""
    ahead = NodeClock(NOW_MS + 47 * MINUTE_MS, 47 * 60.0)
    lines = list_clocks({"a": NodeClock(NOW_MS, 0.2), "b": ahead, "c": NodeClock(NOW_MS, -0.3)}, NOW_MS)
    assert lines == ["the clock of b is 47 min ahead of this machine's: its times are its own"]


def test_data_from_the_future_is_a_clock_and_not_news() -> None:
    """Of folders no clock can be read; this machine's is known."""
    lines = list_clocks({"a": NodeClock(NOW_MS), "b": NodeClock(NOW_MS + 47 * MINUTE_MS)}, NOW_MS)
    assert lines == ["the newest data of b is 47 min ahead of this machine's clock: one of both is off"]


def test_in_an_old_archive_the_majority_decides() -> None:
    later_ms = NOW_MS + 10**9
    clocks = {"a": NodeClock(NOW_MS), "b": NodeClock(NOW_MS + 47 * MINUTE_MS), "c": NodeClock(NOW_MS - 5000)}
    (line,) = list_clocks(clocks, later_ms)
    assert line.startswith("the newest data of b is 47 min later than that of the other 2 nodes, which agree")


def test_a_node_whose_data_ends_earlier_is_still_told() -> None:
    """Measured clocks that are right: its data is old."""
    clocks = {
        "a": NodeClock(NOW_MS, 0.0),
        "b": NodeClock(NOW_MS - 47 * MINUTE_MS, 0.0),
        "c": NodeClock(NOW_MS, 0.0),
    }
    (line,) = list_clocks(clocks, NOW_MS)
    assert line.startswith("b is ranked by older data")
    behind = {**clocks, "b": NodeClock(NOW_MS - 47 * MINUTE_MS, -47 * 60.0)}
    (line,) = list_clocks(behind, NOW_MS)
    assert line == "the clock of b is 47 min behind this machine's: its times are its own"


@pytest.mark.parametrize(("ahead", "seconds"), [(0, 0.0), (2820, 2820.0), (-2820, -2820.0), (1, 0.0)])
def test_the_date_of_an_answer_tells_the_clock(ahead: int, seconds: float) -> None:
    """To the second in which the answer was made; a request of a second hides a second."""
    begun_ns = NOW_MS * 1_000_000
    date = formatdate(NOW_MS / 1000 + ahead, usegmt=True)
    found = measure_ahead(date, begun_ns, begun_ns + 1_000_000_000)
    assert found == pytest.approx(seconds, abs=1.01)


def test_without_a_date_nothing_is_measured() -> None:
    assert measure_ahead(None, 0, 1) is None
    assert measure_ahead("soon", 0, 1) is None
