"""Commands: exit codes, one clear line, the nearest name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodescope.cli import COMMANDS, build_parser, main
from nodescope.commands.shared.options import gather_flags


def run(*words: str) -> int:
    """The exit code, whether returned or raised."""
    try:
        return main(words)
    except SystemExit as end:
        return int(str(end.code))


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert run(name, "--help") == 0
        shown = capsys.readouterr().out
        assert "example" in shown
        assert f"nodescope {name}" in shown


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("sorces",), 'no command "sorces"; did you mean "sources"?'),
        (("settings", "--ring-secnds=3"), "no option --ring-secnds=3"),
        (("settings", "--ring", "1s"), "ring_seconds = '1s' is not accepted"),
        (("settings", "--names", "mine"), "one of compatible, own"),
        (("settings", "--config", "/nowhere/at/all.toml"), "/nowhere/at/all.toml"),
    ],
)
def test_wrong_usage_is_one_clear_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    assert run(*words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert line in shown.err
    assert shown.err.count("\n") == 1


def test_a_settings_file_that_is_no_toml_is_refused_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("ring_seconds = = 3")
    assert run("settings", "--config", str(path)) == 2
    assert str(path) in capsys.readouterr().err


def test_settings_show_value_and_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.toml"
    path.write_text('[ring]\nseconds = "2m"\n')
    assert run("settings", "--config", str(path), "--interval", "500ms", "--no-pss") == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["ring_seconds"].split()[1:] == ["120", str(path)]
    assert rows["interval_seconds"].split()[1:] == ["0.5", "command", "line"]
    assert rows["pss"].split()[1] == "False"
    assert rows["process_top"].split()[1:] == ["25", "default"]


def test_the_short_port_is_one_more_listener_on_loopback() -> None:
    parser = build_parser("agent")
    options = parser.parse_args(["agent", "--listen", "0.0.0.0:1", "--port", "2"])
    assert gather_flags(options)["listen"] == ["0.0.0.0:1", "127.0.0.1:2"]


def test_an_option_that_was_not_given_leaves_its_setting_alone() -> None:
    parser = build_parser("agent")
    assert gather_flags(parser.parse_args(["agent"])) == {}


def test_numpy_is_loaded_by_commands_which_have_said_one_thread_of_blas() -> None:
    """Two threads of BLAS on a busy node took three times the CPU of one, and ten times as long."""
    looks = (
        "import os, sys, nodescope.cli\n"
        "assert 'numpy' not in sys.modules\n"
        "try: nodescope.cli.main(['metrics', '--help'])\n"
        "except SystemExit: pass\n"
        "print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    for given, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")):
        said = subprocess.run(
            [sys.executable, "-c", looks],
            env={**environment, **given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.splitlines()[-1] == expected
