"""What the benches rely on, checked without running them."""

from pathlib import Path

import pytest
from bench import prepared


@pytest.mark.parametrize("pattern", prepared.WRITERS)
def test_what_decides_an_archive_s_bytes_is_still_there(pattern: str) -> None:
    assert prepared.find_writers(pattern)


def test_an_input_is_made_once(tmp_path: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "file").write_text("x")

    first = prepared.prepare_input("input", make, tmp_path)
    assert prepared.prepare_input("input", make, tmp_path) == first
    assert (first / "file").read_text() == "x"
    assert len(made) == 1


def test_an_input_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    def stop(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared.prepare_input("input", stop, tmp_path)
    folder = prepared.prepare_input("input", lambda folder: (folder / "whole").write_text("y"), tmp_path)
    assert [path.name for path in folder.iterdir()] == ["whole"]
