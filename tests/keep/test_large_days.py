"""A day of a large node becomes files of some hours each; a day of a small one becomes one file."""

from pathlib import Path

import pytest
from tests.keep.frames import SAME, archived_times, frame_at, write_log

from nodescope.keep import consolidator
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.rollup import read_rollup_segments

LATER_MS = 1_772_366_340_000 + 90 * 86_400_000
# 12:00, in frames after the first; frames of each hour, and the rows of a frame: two containers with three
# metrics, and the node's load, which every seventh frame lacks.
NOON, EACH = 60, 5
HOURS = 6


def number_frames() -> list[int]:
    return [NOON + 3600 * hour + place for hour in range(HOURS) for place in range(EACH)]


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path)
    for hour in range(HOURS):
        numbers = number_frames()[hour * EACH : (hour + 1) * EACH]
        write_log(folder, [frame_at(number, SAME) for number in numbers], segment=hour + 1)
    convert_all(Disk(), folder)
    return folder


def list_files(folder: DataFolder) -> list[str]:
    return [file.path.name for file in folder.files()]


def test_a_large_day_becomes_files_of_about_the_same_size(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hours each, in order of time; the next pass finds nothing to do."""
    monkeypatch.setattr(consolidator, "DAY_ROWS", 80)
    report = Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert (report.outputs, report.merged_files) == (3, 6)
    assert list_files(folder) == [
        "consolidated-20260301T120000Z-20260301T130004Z.parquet",
        "consolidated-20260301T140000Z-20260301T150004Z.parquet",
        "consolidated-20260301T160000Z-20260301T170004Z.parquet",
    ]
    assert archived_times(folder) == number_frames()
    assert Consolidator(Disk(), folder).run_pass(LATER_MS).outputs == 0


def test_a_small_day_becomes_one_file(folder: DataFolder) -> None:
    assert Consolidator(Disk(), folder).run_pass(LATER_MS).outputs == 1
    assert list_files(folder) == ["consolidated-20260301T120000Z-20260301T170004Z.parquet"]
    assert archived_times(folder) == number_frames()


def test_a_file_that_cannot_be_read_does_not_stop_the_others(folder: DataFolder) -> None:
    """It counts no rows; the merge says why it is left."""
    broken = min(folder.path.glob("dt=*/*/*.parquet"))
    broken.write_bytes(b"PAR1 and nothing else")
    report = Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert broken.name in report.refused
    assert archived_times(folder) == number_frames()[EACH:]


def rolled_up_segments(folder: DataFolder) -> list[tuple[int, int]]:
    """First and last segment of the log that rollups have, in order."""
    found = [
        tuple(ends)
        for path in folder.path.glob("rollup/dt=*/*/minute-*.parquet")
        for ranges in read_rollup_segments(path).values()
        for ends in ranges
    ]
    return sorted(found)


def test_a_fresh_file_that_stands_alone_in_a_cut_day_has_its_minutes(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came after the day was cut, and no part has room for it."""
    monkeypatch.setattr(consolidator, "DAY_ROWS", 80)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    late = [NOON + 3600 * HOURS + place for place in range(EACH)]
    write_log(folder, [frame_at(number, SAME) for number in late], segment=HOURS + 1)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert list_files(folder)[-1] == "consolidated-20260301T180000Z-20260301T180004Z.parquet"
    assert rolled_up_segments(folder) == [(1, 2), (3, 4), (5, 6), (7, 7)]
    assert archived_times(folder) == number_frames() + late
    assert Consolidator(Disk(), folder).run_pass(LATER_MS).outputs == 0


def test_a_day_of_a_single_fresh_file_has_its_minutes_when_it_is_over(tmp_path: Path) -> None:
    """Of an agent that ran for a minute; while the day goes on the file may get company."""
    folder = DataFolder(tmp_path)
    numbers = number_frames()[:EACH]
    write_log(folder, [frame_at(number, SAME) for number in numbers])
    Consolidator(Disk(), folder).run_pass(LATER_MS - 90 * 86_400_000 + 7_200_000)
    assert rolled_up_segments(folder) == []
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    assert rolled_up_segments(folder) == [(1, 1)]
    assert archived_times(folder) == numbers
    assert Consolidator(Disk(), folder).run_pass(LATER_MS).outputs == 0
