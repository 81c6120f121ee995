"""A snapshot is made anew within a second where a log has grown, and not where nothing was written."""

from pathlib import Path

from tests.keep.frames import frames, write_log
from tests.support import TurnableClock

from nodescope.keep.folder import DataFolder
from nodescope.use.answers.snapshots import LOOK_NS, NEWS_NS, NodeFolders


def test_a_log_that_has_grown_is_looked_at_before_a_second_has_passed(tmp_path: Path) -> None:
    clock = TurnableClock()
    write_log(DataFolder(tmp_path), frames(3))
    folders = NodeFolders([tmp_path], clock)
    first = folders.snapshot()
    clock.advance(NEWS_NS)
    assert folders.snapshot() is first, "nothing was written"
    write_log(DataFolder(tmp_path), frames(4))
    second = folders.snapshot()
    assert second.to_ms == (first.to_ms or 0) + 1000
    write_log(DataFolder(tmp_path), frames(5))
    assert folders.snapshot() is second, "four looks a second are the most"
    clock.advance(NEWS_NS)
    assert folders.snapshot().to_ms == (second.to_ms or 0) + 1000


def test_an_archive_is_looked_at_once_a_second(tmp_path: Path) -> None:
    clock = TurnableClock()
    folders = NodeFolders([tmp_path], clock)
    first = folders.snapshot()
    assert not folders.follows_logs
    clock.advance(LOOK_NS - 1)
    assert folders.snapshot() is first
    clock.advance(1)
    assert folders.snapshot() is not first
