"""A server looks through the newest day's files while nobody waits."""

from pathlib import Path

import pytest

from nodescope.base.clock import SystemClock
from nodescope.keep.check import sums
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.use.mcp.nodes import local
from nodescope.use.mcp.nodes.local import LocalFolders

END_MS = 1_770_000_030_000
MINUTE_MS = 60_000


@pytest.mark.parametrize(("looked_ms", "share"), [(24 * 60 * MINUTE_MS, 1.0), (5 * MINUTE_MS, 0.5)])
def test_files_of_the_newest_day_are_read_once_and_before_a_question(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, looked_ms: int, share: float
) -> None:
    """Not those before it: they are looked at with the first question about them."""
    write_node(DemoRequest(tmp_path, 0.4, 3, 7, END_MS, "demo-1"), "0", lambda _: None)
    monkeypatch.setattr(local, "DAY_MS", looked_ms)
    sums.forget_checks()
    read: list[Path] = []
    inner = sums.find_file_damage

    def find_file_damage(path: Path, expected: sums.FileSum) -> list[sums.DamagedPiece]:
        read.append(path)
        return inner(path, expected)

    monkeypatch.setattr(sums, "find_file_damage", find_file_damage)
    folders = LocalFolders([tmp_path], SystemClock())
    folders.make_ready()
    entries = folders.folders.snapshot().nodes[0].catalog.entries
    newest_ms = max(entry.to_ms for entry in entries)
    assert set(read) == {entry.path for entry in entries if entry.to_ms >= newest_ms - looked_ms}
    assert len(read) <= max(1, share * len(entries))
    for entry in entries:
        assert entry.find_damage() == ""
    assert sorted(read) == sorted(entry.path for entry in entries)
