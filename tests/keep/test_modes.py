"""Files of the archive are for their owner and group."""

import os
import stat
from pathlib import Path

import pytest
from tests.keep.frames import frames
from tests.keep.test_archiver import session

from nodescope.base.clock import SystemClock
from nodescope.keep.archiver import ArchivePlan, Archiver
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.retention import RetentionLimits

LATER_MS = 1_772_366_340_000 + 90 * 86_400_000


@pytest.fixture
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_nobody_else_may_read_what_the_agent_writes(tmp_path: Path) -> None:
    """Whatever the umask: no file or folder of a data folder is readable or writable by others."""
    folder = DataFolder(tmp_path / "state" / "data")
    plan = ArchivePlan(90.0, 1.0, RetentionLimits(10**9, 10**12, 0, 10**9))
    archiver = Archiver(folder, session(), plan, SystemClock())
    archiver.start()
    for frame in frames(3):
        archiver.accept(frame)
    archiver.stop()
    Consolidator(Disk(), folder, 1).run_pass(LATER_MS)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").rglob("*")}
    assert any(path.suffix == ".parquet" for path in found)
    assert any(path.suffix == ".containers" for path in found)
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o027} == {}
