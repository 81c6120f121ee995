"""What leaves, and in which order."""

import os
from pathlib import Path

import pytest

from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder, render_day, render_stamp
from nodescope.keep.retention import RetentionLimits, apply_retention

NOW_MS = 1_772_366_340_000
DAY_MS = 86_400_000


def make_file(folder: DataFolder, age_days: float, size: int = 1000, kind: str = "metrics") -> Path:
    at_ms = NOW_MS - round(age_days * DAY_MS)
    partition = (
        folder.rollup.partition(render_day(at_ms), "n1")
        if kind == "minute"
        else folder.partition(render_day(at_ms), "n1")
    )
    partition.mkdir(parents=True, exist_ok=True)
    path = partition / f"{kind}-{render_stamp(at_ms)}.parquet"
    path.write_bytes(bytes(size))
    path.with_suffix(".containers").write_bytes(b"")
    return path


def limits(
    age_days: float = 7, total: int = 10**9, free: int = 0, rollup_days: float = 90
) -> RetentionLimits:
    return RetentionLimits(age_days * 86400, total, free, rollup_days * 86400)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path)


def test_old_files_leave_with_their_sidecars(folder: DataFolder) -> None:
    old, new = make_file(folder, 8), make_file(folder, 1)
    freed = apply_retention(Disk(), folder, limits(), NOW_MS)
    assert (old.exists(), old.with_suffix(".containers").exists(), new.exists()) == (False, False, True)
    assert (freed.files, freed.bytes, freed.left_bytes) == (1, 1000, 1000)


def test_bytes_take_the_oldest_first_and_rollups_last(folder: DataFolder) -> None:
    files = [make_file(folder, age) for age in (5, 4, 3, 2)]
    rollup = make_file(folder, 6, kind="minute")
    apply_retention(Disk(), folder, limits(total=3000), NOW_MS)
    assert [path.exists() for path in files] == [False, False, True, True]
    assert rollup.exists()


def test_the_newest_file_always_stays(folder: DataFolder) -> None:
    newest = make_file(folder, 30)
    apply_retention(Disk(), folder, limits(total=1), NOW_MS)
    assert newest.exists()


def test_too_little_free_space_takes_all_but_the_newest(folder: DataFolder) -> None:
    files = [make_file(folder, age) for age in (3, 2, 1)]
    apply_retention(Disk(), folder, limits(free=2**62), NOW_MS)
    assert [path.exists() for path in files] == [False, False, True]


def test_rollups_have_an_age_of_their_own(folder: DataFolder) -> None:
    make_file(folder, 0)
    young, old = make_file(folder, 60, kind="minute"), make_file(folder, 100, kind="minute")
    apply_retention(Disk(), folder, limits(), NOW_MS)
    assert (young.exists(), old.exists()) == (True, False)


def test_the_log_is_never_touched(folder: DataFolder) -> None:
    folder.wal.mkdir()
    log = folder.wal / "run1-000001.log"
    log.write_bytes(bytes(5000))
    make_file(folder, 1)
    apply_retention(Disk(), folder, limits(total=1, free=2**62), NOW_MS)
    assert log.exists()


def test_damaged_files_and_logs_leave_with_their_age(tmp_path: Path) -> None:
    """They are kept as long as samples are, and are the first to go for bytes; their list stays."""
    folder = DataFolder(tmp_path)
    paths = [folder.wal / "run1-000001.damaged", folder.damaged / "dt=2026-03-01" / "a.parquet"]
    note = folder.damaged / "list.json"
    for path in (*paths, note):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (NOW_MS / 1000 - 86400, NOW_MS / 1000 - 86400))
    apply_retention(Disk(), folder, limits(), NOW_MS)
    assert all(path.exists() for path in paths)
    apply_retention(Disk(), folder, limits(total=100), NOW_MS)
    assert [path.exists() for path in (*paths, note)].count(True) == 2
    apply_retention(Disk(), folder, limits(), NOW_MS + 30 * 86_400_000)
    assert [path.exists() for path in (*paths, note)] == [False, False, True]
