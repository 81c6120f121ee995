"""Names of others reach no terminal as commands."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.keep.frames import CURRENT, container, frame_at, write_log

from nodescope.cli import main
from nodescope.commands.text.terminal import CleanStream, paint, render_table
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.sidecar import read_sidecar, render_sidecar

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eabc\x7f"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A sidecar whose pod name, metric help and unit are commands to a terminal."""
    folder = DataFolder(tmp_path)
    write_log(folder, [frame_at(number, (container("a", "pod"),)) for number in range(3)])
    convert_all(Disk(), folder)
    for file in folder.files():
        sidecar = read_sidecar(file.sidecar).whole()
        for subject in sidecar.subjects:
            subject.labels = tuple(EVIL if label == "pod" else label for label in subject.labels)
        sidecar.metrics = tuple(
            replace(one, help=EVIL, unit=EVIL) if one.name == CURRENT.name else one for one in sidecar.metrics
        )
        file.sidecar.write_bytes(render_sidecar(sidecar))
    return tmp_path


@pytest.mark.parametrize("command", ["containers", "metrics"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_lists_have_no_control_characters(
    data: Path, command: str, form: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(data), *form]) == 0
    text = capfd.readouterr().out
    assert "abc" in text
    assert CONTROL.findall(text) == []


def test_an_error_has_none_either(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["containers", f"/nowhere/{EVIL}"]) == 1
    assert CONTROL.findall(capfd.readouterr().err) == []


def test_our_own_colours_stay() -> None:
    table = render_table(("a", "b"), [(paint("red", "red", wanted=True), f"x{EVIL}")])
    assert "\x1b[31mred\x1b[0m" in table
    assert "\x1b]" not in table
    out = io.StringIO()
    CleanStream(out).write(f"\x1b[31mred\x1b[0m {EVIL}\n\tx\r")
    assert out.getvalue().startswith("\x1b[31mred\x1b[0m ")
    assert "\x1b]" not in out.getvalue()
    assert out.getvalue().endswith("\n\tx\r")
