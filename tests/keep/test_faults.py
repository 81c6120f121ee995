"""A disk that fails in one place: what is elsewhere goes on, and nothing is taken for lost that is only unread."""

import errno
import os
import shutil
from pathlib import Path

import pytest
from tests.keep.frames import START_NS, archived_times, frames, write_log
from tests.support import TurnableClock
from tests.torture import fault_grid
from tests.torture.faults.grid import FileCall, thin
from tests.torture.faults.shim import find_missing

from nodescope.keep import segment as segment_module
from nodescope.keep.archive_clock import ClockReading, clock_path, take_time
from nodescope.keep.check.heal import Healer
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.copy import copier as copier_module
from nodescope.keep.copy.copied_files import CopiedFiles, copied_files_path, write_copied_files
from nodescope.keep.copy.copier import Copier
from nodescope.keep.copy.object_store import Digest, ObjectStore, digest_file, open_store
from nodescope.keep.disk import Disk, Operation
from nodescope.keep.folder import DataFolder
from nodescope.keep.housekeeping import Housekeeping
from nodescope.keep.merge import open_source
from nodescope.keep.retention import RetentionLimits, apply_retention
from nodescope.keep.rollup import renew_rollups, write_rollup

START_MS = START_NS // 1_000_000
DAY_MS = 86_400_000
LATER_MS = START_MS + 90 * DAY_MS
LIMITS = RetentionLimits(30 * 86400.0, 2**40, 0, 365 * 86400.0)
HOUR_TICKS = 3600


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Three fresh files in each of two hours."""
    made = DataFolder(tmp_path / "data")
    for hour in range(2):
        for number in range(3):
            first = hour * HOUR_TICKS + number * 5
            write_log(made, frames(5, first), segment=hour * 3 + number + 1)
    convert_all(Disk(), made)
    return made


def fail_without_room(operation: Operation) -> None:
    if operation.kind in ("create", "write", "folder"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def keep_house(folder: DataFolder, disk: Disk, now_ms: int) -> Housekeeping:
    clock = TurnableClock(now_ms * 1_000_000, 0)
    return Housekeeping(Consolidator(disk, folder, 2), clock, "boot", None, LIMITS)


def test_of_a_file_in_many_pieces_the_first_two_one_in_the_middle_and_the_last_are_met() -> None:
    """Whatever other files do in between; an operation of another kind begins a new row."""
    pieces = [FileCall(2 * number, "write", "data/a.tmp") for number in range(50)]
    others = [FileCall(2 * number + 1, "stat", f"data/{number}") for number in range(50)]
    again = [FileCall(200, "sync", "data/a.tmp"), FileCall(201, "write", "data/a.tmp")]
    calls = sorted([*pieces, *others], key=lambda call: call.number)
    kept = thin([*calls, *again])
    assert [call.number for call in kept if call.kind == "write"] == [0, 2, 50, 98, 201]
    assert [call for call in kept if call.kind == "stat"] == others
    assert [call for call in kept if call.kind == "sync"] == again[:1]


@pytest.mark.skipif(bool(find_missing()), reason=f"faults at system calls: {find_missing()}")
def test_a_share_of_the_grid_loses_doubles_and_stops_nothing() -> None:
    """The short form of the torture's row: some sixty of ten thousand cells, the same every time."""
    rows = fault_grid.run(0.005, walkers=1)
    assert [row.render() for row in rows if not row.met] == []


def test_retention_makes_room_on_a_full_disk(folder: DataFolder) -> None:
    """Merging fails, its part of the pass is named, and what is too old leaves all the same."""
    report = keep_house(folder, Disk(fail_without_room), START_MS + DAY_MS // 2).run_pass()
    assert len(list(folder.files())) == 6
    assert any("No space left" in reason for reason in report.merged.refused.values())
    (folder.path / "clock.json").unlink(missing_ok=True)
    keeper = keep_house(folder, Disk(fail_without_room), LATER_MS)
    keeper.limits = RetentionLimits(30 * 86400.0, 1, 0, 365 * 86400.0)
    freed = keeper.run_pass().merged.freed
    assert freed is not None
    assert freed.files == 5
    assert len(list(folder.files())) == 1


def test_a_part_that_fails_is_named_and_the_next_one_runs(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Consolidator, "run_pass", fail)
    keeper = keep_house(folder, Disk(), LATER_MS)
    keeper.limits = RetentionLimits(30 * 86400.0, 1, 0, 365 * 86400.0)
    report = keeper.run_pass()
    assert report.failures == ["merging: Input/output error"]
    assert len(list(folder.files())) == 1


def test_half_a_file_on_a_full_disk_takes_no_room(folder: DataFolder) -> None:
    """A merge that could not be written whole leaves nothing behind, at once."""

    def fail_late(operation: Operation) -> None:
        if operation.kind == "sync" and operation.path.name.startswith("consolidated"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Consolidator(Disk(fail_late), folder, 2).run_pass(LATER_MS)
    assert not list(folder.path.rglob("*.tmp"))
    assert len(list(folder.files())) == 6


def test_a_log_with_a_bad_sector_loses_the_records_in_it_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mapped, such a page would have ended the converter, and with it all other logs' conversion."""
    folder = DataFolder(tmp_path)
    path = write_log(folder, frames(2000))
    bad = path.stat().st_size // 2 // 4096 * 4096

    def read(descriptor: int, size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        if offset == bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(descriptor, size, offset)

    class HalfBrokenOs:
        fstat = staticmethod(os.fstat)

    HalfBrokenOs.read = staticmethod(read)  # type: ignore[attr-defined]
    HalfBrokenOs.pread = staticmethod(pread)  # type: ignore[attr-defined]
    monkeypatch.setattr(segment_module, "os", HalfBrokenOs)
    segment = segment_module.read_segment(path)
    assert 1700 < len(segment.frames) < 2000
    assert segment.lost


def test_a_log_that_cannot_be_read_at_all_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk may be back with the next pass."""
    folder = DataFolder(tmp_path)
    path = write_log(folder, frames(5))

    class BrokenOs:
        fstat = staticmethod(os.fstat)

        @staticmethod
        def read(*_: int) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        pread = read

    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "os", BrokenOs)
        result = convert_all(Disk(), folder)
    assert len(result.failures) == 1
    assert path.exists()
    assert not convert_all(Disk(), folder).failures
    assert archived_times(folder) == list(range(5))


def test_a_list_of_copied_files_that_cannot_be_read_lets_nothing_go(folder: DataFolder) -> None:
    """It is there, so files are copied: which of them is not known."""
    write_copied_files(Disk(), folder, CopiedFiles("file:///store"))
    copied_files_path(folder).write_text("{")
    apply_retention(Disk(), folder, LIMITS, LATER_MS)
    assert len(list(folder.files())) == 6
    copied_files_path(folder).unlink()
    apply_retention(Disk(), folder, LIMITS, LATER_MS)
    assert len(list(folder.files())) == 1


def test_a_noted_time_that_cannot_be_read_removes_nothing(folder: DataFolder) -> None:
    """The newest sample may have been written while the clock was ahead."""
    ahead = START_NS + 100 * DAY_MS * 1_000_000
    write_log(folder, frames(5, 100 * 86_400), segment=99)
    convert_all(Disk(), folder)
    clock_path(folder).write_text("{")
    time = take_time(Disk(), folder, ClockReading(ahead // 1_000_000 + 60_000, 0, "boot"))
    apply_retention(Disk(), folder, LIMITS, time)
    assert len(list(folder.files())) == 7


def test_a_rollup_that_another_one_contains_is_removed_in_a_later_pass(folder: DataFolder) -> None:
    """A pass that was stopped before it removed them left both, and each sample counted twice."""
    Consolidator(Disk(), folder, 2).run_pass(START_MS + 2 * 3_600_000)
    Consolidator(Disk(), folder, 2).run_pass(LATER_MS)
    (day,) = folder.files()
    write_rollup(Disk(), folder.rollup.partitions()[0], open_source(day.path))
    assert len(list(folder.rollup.files())) == 3
    renew_rollups(Disk(), folder, folder.partitions()[0])
    assert len(list(folder.rollup.files())) == 1


def test_a_file_larger_than_a_pass_may_read_is_read_and_passed(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    healer = Healer(Disk(), folder)
    examined: list[str] = []
    monkeypatch.setattr(Healer, "examine", lambda _, file: examined.append(file.path.name))
    for _ in range(6):
        healer.scrub(budget_bytes=1)
    assert len(set(examined)) == 6


def test_a_file_that_its_disk_cannot_read_does_not_hold_up_the_copy_of_others(
    folder: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Consolidator(Disk(), folder, 2).run_pass(START_MS + 2 * 3_600_000)
    first, second = sorted(file.path for file in folder.files())

    def read(path: Path) -> Digest:
        if path == first:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return digest_file(path)

    monkeypatch.setattr(copier_module, "digest_file", read)
    store = open_store((tmp_path / "store").as_uri())
    store.set_up()
    copied = Copier(Disk(), folder, store, TurnableClock(LATER_MS * 1_000_000, 0)).run_pass(everything=True)
    assert list(copied.failures) == [first.name]
    assert (tmp_path / "store" / second.relative_to(folder.path)).exists()


def test_a_partition_of_the_store_that_fails_does_not_hold_up_the_others(
    folder: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(folder, frames(5, 86_400), segment=90)
    write_log(folder, frames(5, 86_410), segment=91)
    Consolidator(Disk(), folder, 2).run_pass(LATER_MS)
    first, second = sorted(folder.partitions())
    store = open_store((tmp_path / "store").as_uri())
    store.set_up()

    class HalfStore(copier_module.Partition):
        def __init__(self, store: ObjectStore, name: str) -> None:
            if first.parent.name in name:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().__init__(store, name)

    monkeypatch.setattr(copier_module, "Partition", HalfStore)
    copied = Copier(Disk(), folder, store, TurnableClock(LATER_MS * 1_000_000, 0)).run_pass(everything=True)
    assert copied.files == 1
    assert len(copied.failures) == 1
    assert (tmp_path / "store" / second.relative_to(folder.path)).is_dir()


def test_a_file_that_was_closed_writes_into_no_other(tmp_path: Path) -> None:
    """Arrow ends a file when it forgets its writer; the number of the descriptor is another file's by then."""
    output = Disk().create(tmp_path / "first")
    output.close()
    with (tmp_path / "second").open("wb"), pytest.raises(OSError, match="Bad file descriptor"):
        output.write(b"late")
    assert (tmp_path / "second").read_bytes() == b""


def test_a_disk_that_is_away_for_a_moment_is_not_an_empty_one(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log whose file is there already is not written a second time because that cannot be read now."""
    log = write_log(folder, frames(5), segment=1)
    saved = folder.path.parent / "saved"
    shutil.copytree(folder.path, saved)
    first = min(file.path for file in folder.files())
    original = first.read_bytes()
    first.with_suffix(".containers").unlink()

    def refuse(path: Path, **_: object) -> None:
        from nodescope.base.errors import ArchiveRefused

        raise ArchiveRefused("not now") from OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr("nodescope.keep.convert.open_parquet", refuse)
        assert len(convert_all(Disk(), folder).failures) == 1
    assert log.exists()
    assert first.read_bytes() == original
    assert len(list(folder.files())) == 6
