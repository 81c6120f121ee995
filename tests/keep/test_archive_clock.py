"""The time that retention counts by: a wall clock cannot make it run."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.torture import clock_steps
from tests.torture.clock_steps import DAY, HOUR, LIMITS, build

from nodescope.keep.archive_clock import SHARE_AFTER_STEP, ClockReading, read_clock, take_time
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.retention import apply_retention

NOW_MS = 1_773_143_940_000
READING = ClockReading(NOW_MS, 10**15, "boot")


def later(reading: ClockReading, seconds: float, step_seconds: float = 0.0) -> ClockReading:
    wall_ms = reading.wall_ms + round((seconds + step_seconds) * 1000)
    return replace(reading, wall_ms=wall_ms, mono_ns=reading.mono_ns + round(seconds * 1e9))


def test_steps_of_the_clock_remove_nothing() -> None:
    """The short form of the torture."""
    rows = clock_steps.run(0.02)
    assert [row.render() for row in rows if not row.met] == []


def test_the_wall_clock_alone_would_remove_the_archive(tmp_path: Path) -> None:
    """What the torture would see without the archive's own time."""
    node = build(tmp_path / "data")
    young = [name for name in node.names() if node.now - node.taken[name] < 7 * DAY]
    apply_retention(Disk(), node.folder, LIMITS, node.reading().wall_ms + 100 * DAY * 1000)
    assert len(young) > 20
    assert len(node.names()) == 1


def test_a_step_ahead_is_believed_after_it_was_steady(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Less than a day: for an hour. It is said when it is seen, and before it counts."""
    folder = DataFolder(tmp_path)
    take_time(Disk(), folder, READING)
    stepped = later(READING, 90, 5 * HOUR)
    assert take_time(Disk(), folder, stepped).now_ms == NOW_MS + 90_000
    assert "the clock was stepped" in caplog.text
    state = read_clock(folder)
    assert state
    assert state.step_ms == 5 * HOUR * 1000
    assert take_time(Disk(), folder, later(stepped, HOUR - 10)).now_ms < NOW_MS + 2 * HOUR * 1000
    believed = take_time(Disk(), folder, later(stepped, HOUR + 10))
    assert believed.now_ms == later(stepped, HOUR + 10).wall_ms
    assert believed.share == SHARE_AFTER_STEP
    assert "ages are counted by it" in caplog.text


def test_a_step_of_days_is_believed_after_a_day(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    take_time(Disk(), folder, READING)
    stepped = later(READING, 90, 100 * DAY)
    take_time(Disk(), folder, stepped)
    assert take_time(Disk(), folder, later(stepped, 23 * HOUR)).now_ms < NOW_MS + DAY * 1000
    assert take_time(Disk(), folder, later(stepped, 25 * HOUR)).now_ms > NOW_MS + 100 * DAY * 1000


def test_after_a_step_a_pass_removes_a_share(tmp_path: Path) -> None:
    """A twentieth of 36 files is two; when no more are too old, a pass is free again."""
    node = build(tmp_path / "data")
    node.run_pass()
    node.offset = 100.0 * DAY
    node.run_pass()
    node.now += 2 * DAY
    left = len(node.names())
    node.run_pass()
    assert left - len(node.names()) == round(SHARE_AFTER_STEP * left)


def test_before_the_first_pass_the_newest_sample_counts(tmp_path: Path) -> None:
    """An archive that nobody wrote for a year is not emptied by the first pass over it."""
    node = build(tmp_path / "data")
    node.now += 365 * DAY
    node.boot = "boot-2"
    before = len(node.names())
    apply_retention(Disk(), node.folder, LIMITS, take_time(Disk(), node.folder, node.reading()))
    assert before - len(node.names()) <= 8


def test_a_clock_that_says_1926_keeps_its_samples(tmp_path: Path) -> None:
    """A file whose name is too old, of this start of the machine: its age is the monotonic one."""
    node = build(tmp_path / "data")
    node.run_pass()
    node.offset = -36_525.0 * DAY
    node.now += 60
    node.sample()
    (name,) = [name for name in node.names() if "dt=1926" in name]
    node.offset = 0.0
    node.now += 60
    node.run_pass()
    assert name in node.names()
    node.now += 8 * DAY
    node.sample()
    for _ in range(40):
        node.run_pass()
    assert name not in node.names()
