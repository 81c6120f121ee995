"""Clocks that are off are named, and do not make the right ones look old."""

import os
from email.utils import formatdate
from pathlib import Path

import pytest
from tests.stories.catalogue import STORIES
from tests.stories.story import build_scene
from tests.use.mcp.asking import connected, local_fleet

from nodescope.serve.date import measure_ahead
from nodescope.use.answers.clocks import THIS_MACHINE, NodeClock, list_clocks, measured_against
from nodescope.use.mcp.protocol.server import build_server

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


def test_files_dated_before_their_samples_tell_a_clock_that_is_ahead(tmp_path: Path) -> None:
    """And not where all have one date, as of an archive that was unpacked, nor a date of 1980."""
    build_scene(STORIES["clock-is-ahead"], 1, tmp_path, is_small=True)
    assert ask_ahead(tmp_path) == {"node-c": pytest.approx(47 * 60, abs=100)}
    for sidecar in tmp_path.rglob("*.containers"):
        sidecar.unlink()
    assert ask_ahead(tmp_path) == {"node-c": pytest.approx(47 * 60, abs=100)}, "files alone have dates, too"
    files = [path for path in (tmp_path / "node-c").rglob("*") if path.is_file()]
    for number, path in enumerate(files):
        os.utime(path, (315_532_800 + number, 315_532_800 + number))
    assert ask_ahead(tmp_path) == {}


def ask_ahead(folder: Path) -> dict[str, float]:
    """By node, the seconds that list_nodes tells; its line and summarize_node's say the same."""
    with connected(build_server(local_fleet(folder))) as asker:
        content = asker.raw("list_nodes", {}).structured_content
        found = {
            one["node"]: one["evidence"]["clock_ahead_seconds"]
            for one in content["findings"]
            if "clock_ahead_seconds" in one["evidence"]
        }
        lines = [line for line in content["not_looked_at"] if "that dated its files" in line]
        assert all(line[4:] in content["headline"] for line in lines), "the headline says it"
        whole = asker.raw("summarize_node", {}).structured_content
        assert [line for line in whole["not_looked_at"] if "that dated its files" in line] == lines
        assert len(lines) == len(found)
    return found


def test_the_api_server_is_the_better_clock() -> None:
    """A machine that is itself 47 minutes behind does not make all nodes be ahead."""
    seen = NodeClock(NOW_MS, 47 * 60.0, THIS_MACHINE)
    right = measured_against(seen, 47 * 60.0)
    assert list_clocks({"a": right}, NOW_MS) == []
    off = measured_against(seen, 0.0)
    assert list_clocks({"a": off}, NOW_MS) == [
        "the clock of a is 47 min ahead of the API server's: its times are its own"
    ]
