"""What is left of a consolidator between two passes: wakes for work, or after the longest time."""

import subprocess
import sys
from pathlib import Path

import pytest

from nodescope.commands.shared.asleep import __file__ as asleep_file
from nodescope.commands.shared.asleep import count_pauses, has_work

PROGRAM = (sys.executable, "-I", "-S", "-c", "print('awake')")


def sleep(folder: Path, pace: str, longest: str) -> str:
    """Without site packages: an import of anything else than the standard library would end it."""
    words = [sys.executable, "-I", "-S", asleep_file, pace, longest, str(folder), ".log", *PROGRAM]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_a_closed_segment_is_work_and_an_open_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "run-1.open").touch()
    assert not has_work(str(tmp_path), ".log")
    (tmp_path / "run-0.log").touch()
    assert has_work(str(tmp_path), ".log")


def test_a_folder_that_cannot_be_read_is_the_programs_to_tell(tmp_path: Path) -> None:
    assert has_work(str(tmp_path / "gone"), ".log")


def test_work_ends_the_sleep_at_the_next_look(tmp_path: Path) -> None:
    """A day of sleep would not end within this test."""
    (tmp_path / "run-0.log").touch()
    assert sleep(tmp_path, "0.01", "86400") == "awake"


def test_without_work_it_wakes_after_the_longest_time(tmp_path: Path) -> None:
    assert sleep(tmp_path, "0.01", "0.03") == "awake"


@pytest.mark.parametrize(("pace", "longest", "pauses"), [(300, 3600, 12), (300, 300, 1), (7200, 3600, 1)])
def test_the_longest_time_is_a_number_of_looks(pace: float, longest: float, pauses: int) -> None:
    assert count_pauses(pace, longest) == pauses
