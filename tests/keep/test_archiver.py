"""The archiver: never in the way of the tick, and back by itself when the disk is."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.keep.frames import MONO_NS, SECOND_NS, START_NS, archived_times, frame_at
from tests.support import TurnableClock

from nodescope.base.errors import ArchiveBusy
from nodescope.keep.archiver import ArchivePlan, Archiver
from nodescope.keep.copy.copied_files import Status, write_status
from nodescope.keep.disk import Disk, Operation, read_json
from nodescope.keep.folder import DataFolder
from nodescope.keep.retention import RetentionLimits
from nodescope.keep.session import Session
from nodescope.publish.self_metrics import archive_families

PLAN = ArchivePlan(1000.0, 5.0, RetentionLimits(7 * 86400.0, 2**32, 0, 90 * 86400.0))


def session(run: str = "run1") -> Session:
    return Session(run, "n1", "2026-03-01T11:59:00.000Z", "n1", "", 1000, 1000.0, "0", {})


class BrokenDisk:
    """A watcher that fails writes to the data folder while it is told to."""

    def __init__(self) -> None:
        self.error: int | None = None

    def __call__(self, operation: Operation) -> None:
        if self.error is not None and operation.kind in ("write", "create", "folder"):
            raise OSError(self.error, os.strerror(self.error))


Make = Callable[..., Archiver]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Archiver] = []

    def build(run: str = "run1", plan: ArchivePlan = PLAN, disk: Disk | None = None) -> Archiver:
        clock = TurnableClock(START_NS, MONO_NS)
        archiver = Archiver(DataFolder(tmp_path / "data"), session(run), plan, clock, disk or Disk())
        made.append(archiver)
        return archiver

    yield build
    for archiver in made:
        archiver.stop()


def wait_written(archiver: Archiver, sequence: int) -> None:
    """Until the thread has taken this frame; the test's own deadline is the runner's."""
    poll = threading.Event()
    while True:
        status = archiver.status()
        if status.frames + status.frames_lost + status.frames_waiting > sequence:
            return
        poll.wait(0.01)


def wait_paused(archiver: Archiver) -> None:
    """A frame counts as waiting a moment before the pause is told."""
    poll = threading.Event()
    while archiver.status().state != "paused":
        poll.wait(0.01)


def test_what_was_accepted_is_in_the_archive_after_stop(make: Make) -> None:
    archiver = make()
    archiver.start()
    for number in range(5):
        archiver.accept(frame_at(number))
    archiver.stop()
    assert archived_times(archiver.folder) == [0, 1, 2, 3, 4]
    assert archiver.status().rows > 0
    assert not list(archiver.folder.wal.glob("*.log"))


def test_a_second_agent_is_refused_by_name_of_the_first(make: Make) -> None:
    make().start()
    with pytest.raises(ArchiveBusy, match=r"agent of node n1 \(run run1"):
        make("run2").start()


def test_the_folder_is_free_again_after_the_first_has_gone(make: Make) -> None:
    first = make()
    first.start()
    first.stop()
    second = make("run2")
    second.start()
    assert read_json(second.folder.session)["run_id"] == "run2"
    assert (second.folder.sessions / "run1.json").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO], ids=["full", "read-only", "broken"])
def test_a_disk_that_fails_pauses_the_archive_and_resumes_it(make: Make, code: int) -> None:
    """Ticks meanwhile wait; all are archived once, in order."""
    broken = BrokenDisk()
    archiver = make(disk=Disk(broken))
    archiver.start()
    for number in range(3):
        archiver.accept(frame_at(number))
    wait_written(archiver, 2)
    broken.error = code
    for number in range(3, 6):
        archiver.accept(frame_at(number))
    wait_written(archiver, 5)
    status = archiver.status()
    assert status.state == "paused"
    assert status.reason
    assert (status.frames_waiting, status.frames_lost) == (3, 0)
    broken.error = None
    for number in range(20, 23):
        archiver.accept(frame_at(number))
    wait_written(archiver, 8)
    assert archiver.status().state == "writing"
    archiver.stop()
    assert archived_times(archiver.folder) == [0, 1, 2, 3, 4, 5, 20, 21, 22]
    assert archiver.status().frames_lost == 0


@pytest.mark.parametrize(
    ("plan", "kept"), [({"hold_seconds": 10.0}, [40, 45, 50]), ({"hold_bytes": 150}, [45, 50])]
)
def test_a_pause_longer_than_the_ring_loses_its_beginning(
    make: Make, plan: dict[str, float], kept: list[int]
) -> None:
    """Counted one by one; by age, and by bytes (a frame here has 56)."""
    broken = BrokenDisk()
    archiver = make(disk=Disk(broken))
    archiver.plan = replace(archiver.plan, **plan)  # type: ignore[arg-type]
    broken.error = errno.ENOSPC
    archiver.start()
    for number in range(0, 50, 5):
        archiver.accept(frame_at(number))
    wait_written(archiver, 9)
    broken.error = None
    archiver.accept(frame_at(50))
    archiver.stop()
    assert archived_times(archiver.folder) == kept
    assert archiver.status().frames_lost == 11 - len(kept)


def test_a_folder_that_vanishes_is_waited_for_not_made_anew(make: Make, tmp_path: Path) -> None:
    """Its mount point is no place to write to."""
    archiver = make()
    archiver.start()
    archiver.accept(frame_at(0))
    wait_written(archiver, 0)
    archiver.folder.path.rename(tmp_path / "away")
    archiver.accept(frame_at(1))
    wait_written(archiver, 1)
    wait_paused(archiver)
    assert "gone" in archiver.status().reason
    assert not archiver.folder.path.exists()
    (tmp_path / "away").rename(archiver.folder.path)
    archiver.accept(frame_at(20))
    wait_written(archiver, 2)
    archiver.stop()
    assert archived_times(archiver.folder) == [0, 1, 20]


def test_a_clock_stepped_back_begins_a_new_segment(make: Make) -> None:
    """Both stretches are there, under names that do not meet."""
    archiver = make()
    archiver.start()
    hour_ns = 3600 * SECOND_NS
    for number in range(3):
        archiver.accept(frame_at(number))
    for number in range(3, 6):
        archiver.accept(frame_at(number, at_ns=START_NS + number * SECOND_NS - hour_ns))
    archiver.stop()
    assert archived_times(archiver.folder) == [-3597, -3596, -3595, 0, 1, 2]
    assert len(list(archiver.folder.files())) == 2


def test_a_full_queue_loses_and_counts_and_returns_at_once(make: Make) -> None:
    archiver = make()
    for number in range(100):
        archiver.accept(frame_at(number))
    assert archiver.status().frames_lost == 40


def test_what_a_crash_left_open_is_archived_at_the_next_start(make: Make) -> None:
    """No clean stop: the lock is freed by the kernel, the log is found."""
    archiver = make()
    archiver.start()
    archiver.accept(frame_at(0))
    wait_written(archiver, 0)
    (left,) = archiver.folder.wal.glob("*.open")
    data = left.read_bytes()
    archiver.stop()
    for file in list(archiver.folder.files()):
        file.path.unlink()
        file.sidecar.unlink()
    left.write_bytes(data + b"torn")
    second = make("run2")
    second.start()
    second.accept(frame_at(50))
    second.stop()
    assert archived_times(second.folder) == [0, 50]


def test_too_little_free_space_pauses_before_the_disk_is_full(make: Make) -> None:
    plan = ArchivePlan(1000.0, 5.0, RetentionLimits(7 * 86400.0, 2**32, 2**62, 90 * 86400.0))
    archiver = make(plan=plan)
    archiver.start()
    assert "retention_free_bytes" in archiver.status().reason


def test_the_lag_of_the_copy_is_published(make: Make) -> None:
    """From the consolidator's file; nothing is told where nothing is copied."""
    archiver = make()
    assert archiver.status().copy is None
    names = {family.name for family in archive_families(archiver.status())}
    assert "nodescope_copy_lag_seconds" not in names
    oldest_ms = START_NS // 1_000_000 - 7_200_000
    status = Status("s3://bucket", oldest_ms, 3, 4096, 1, 100, 2, "refused", 1, 55, 4)
    write_status(Disk(), archiver.folder, status)
    told = {family.name: family.samples[0][2] for family in archive_families(archiver.status())}
    assert told["nodescope_copy_lag_seconds"] == 7200.0
    assert told["nodescope_copy_waiting_files"] == 3
    assert told["nodescope_copy_failures_total"] == 2
    assert told["nodescope_copy_lost_bytes_total"] == 55
    assert told["nodescope_copy_vanished_files_total"] == 4
