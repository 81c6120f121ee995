"""nodescope verify: everything is read, what is lost is said, and the exit code tells."""

import json
from pathlib import Path

import pytest
from tests.keep.frames import frames, write_log
from tests.support import TurnableClock

from nodescope.cli import main
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.copy.copier import Copier
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder

LATER_MS = 1_772_366_340_000 + 90 * 86_400_000


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A merged file with its rollup, a fresh file, a log."""
    made = DataFolder(tmp_path / "data")
    for number in range(2):
        write_log(made, frames(5, number * 5), segment=number + 1)
    Consolidator(Disk(), made, 2).run_pass(LATER_MS)
    write_log(made, frames(5, 10), segment=3)
    convert_all(Disk(), made)
    write_log(made, frames(5, 15), segment=4)
    return made


def verify(capsys: pytest.CaptureFixture[str], place: str) -> tuple[int, dict[str, object]]:
    code = main(["verify", place, "--json"])
    return code, json.loads(capsys.readouterr().out)


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


def test_a_whole_archive_is_whole(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = verify(capsys, str(folder.path))
    assert code == 0
    assert answer["files"] == {"whole": 4, "unchecked": 0, "repairable": 0, "lost": 0}


def test_every_kind_of_file_is_read(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """One bit in each: all four are named. The log has lost a frame, the others can be repaired."""
    samples = [file.path for file in folder.files()]
    flip(samples[0], 300)
    flip(samples[1].with_suffix(".containers"), 60)
    flip(next(iter(folder.rollup.files())).path, -20)
    log = folder.closed_segments()[0]
    flip(log, log.stat().st_size // 2)
    code, answer = verify(capsys, str(folder.path))
    # A definition of a table: the log corrects it.
    assert (code, answer["files"]) == (1, {"whole": 0, "unchecked": 0, "repairable": 4, "lost": 0})
    flip(log, -400)
    code, answer = verify(capsys, str(folder.path))
    assert code == 1
    assert answer["files"] == {"whole": 0, "unchecked": 0, "repairable": 3, "lost": 1}
    assert len(str(answer["damaged"])) > 100


def test_what_is_lost_is_said_with_rows_and_time(
    folder: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(iter(folder.files())).path
    path.write_bytes(path.read_bytes()[:400])
    assert main(["verify", str(folder.path)]) == 1
    text = capsys.readouterr().out
    assert path.name in text
    assert "2026-03-01" in text
    assert "1 lost" in text


def test_a_copy_is_read_by_its_manifest(
    folder: DataFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "store"
    open_store(target.as_uri()).set_up()
    clock = TurnableClock(LATER_MS * 1_000_000, 0)
    Copier(Disk(), folder, open_store(target.as_uri()), clock).run_pass(everything=True)
    for place in (target.as_uri(), str(target)):
        assert verify(capsys, place)[0] == 0
    flip(next(target.rglob("*.parquet")), 500)
    code, answer = verify(capsys, target.as_uri())
    assert (code, answer["files"]) == (1, {"whole": 1, "unchecked": 0, "repairable": 0, "lost": 1})


def test_a_folder_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "/nowhere/at/all"]) == 1
    assert "no folder /nowhere/at/all; accepted:" in capsys.readouterr().err
