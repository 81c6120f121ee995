"""A day of a large node becomes files of some hours each; a day of a small one becomes one file."""

from pathlib import Path

import pytest
from tests.keep.frames import SAME, archived_times, frame_at, write_log

from nodescope.keep import consolidator
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder

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
