"""Commands: exit codes, one clear line, the nearest name."""

import argparse
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from nodescope.base.settings import FIELDS
from nodescope.base.settings_load import find_config, load_settings, read_settings
from nodescope.cli import COMMANDS, build_parser, main
from nodescope.commands import viewer
from nodescope.commands.shared.meanings import read_first_sentence
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
        (("settings", "--ring-seconds=3"), 'no option --ring-seconds=3; did you mean "--ring"?'),
        (("settings", "--ring", "1s"), "ring_seconds = '1s' is not accepted"),
        (("settings", "--names", "mine"), "one of compatible, own"),
        (("settings", "--ring-bytes", "1"), "a size such as 64MiB, at least 1 MiB"),
        (("settings", "--interval", "2h"), "at least 0.1 s, at most 60 s"),
        (("consolidate", "/srv/data"), "/srv/data is one word too many (nodescope consolidate --help"),
        (("top", "--interval", "100ms"), "--interval 100ms is not accepted; accepted: 500ms to 1h"),
        (("watch", "--interval", "soon"), "--interval soon is not accepted; accepted: 500ms to 1h"),
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


READERS = (
    *(("containers",), ("metrics",), ("study", "trend"), ("incidents",), ("rightsize",), ("top", "--once")),
    *(("viewer",), ("mcp", "--stdio"), ("ask", "who uses the most memory?"), ("verify",)),
    ("export", "--out", "x.csv"),
)


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_a_folder_that_is_not_there_is_a_failure_of_one_line(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 from every command; 2 is for words that are wrong wherever they are said."""
    missing = tmp_path / "missing"
    assert run(*words, str(missing)) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"nodescope {words[0]}: ")
    assert str(missing) in shown.err
    assert shown.err.count("\n") == 1


# A study takes CSV as well, and tells what is wrong with a line of it.
ARCHIVE_READERS = tuple(words for words in READERS if words[0] != "study")


@pytest.mark.parametrize("words", ARCHIVE_READERS, ids=lambda words: words[0])
@pytest.mark.parametrize("content", [b"root:x:0:0", b""], ids=["text", "empty"])
def test_a_file_of_another_kind_is_a_failure_of_one_line(
    tmp_path: Path, words: tuple[str, ...], content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server says so when it starts, not when it is asked."""
    path = tmp_path / "passwd"
    path.write_bytes(content)
    assert run(*words, str(path)) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith(f"nodescope {words[0]}: ")
    assert "passwd" in shown.err
    assert "accepted: a data folder" in shown.err
    assert shown.err.count("\n") == 1


def test_a_folder_without_data_is_said_by_the_viewer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "session.json").write_text("{}")
    viewer.say_empty([tmp_path / "full", tmp_path])
    assert capsys.readouterr().err == ""
    (tmp_path / "empty").mkdir()
    viewer.say_empty([tmp_path / "empty"])
    assert capsys.readouterr().err.startswith(
        f"nodescope viewer: there is no data in {tmp_path / 'empty'} yet"
    )


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
    rows = {line.split()[0]: re.split(r"  +", line)[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["ring_seconds"][:2] == ["2 min", str(path)]
    assert rows["interval_seconds"] == ["0.5 s", "command line", "The length of a tick."]
    assert rows["pss"][0] == "false"
    assert rows["ring_bytes"][0] == "64 MiB"
    assert rows["budget_ratio"][0] == "5%"
    assert rows["process_top"][:2] == ["25", "default"]


def test_what_settings_print_may_be_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Human units out, and in: every value that is shown is accepted, and means the same."""
    assert run("settings") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    shown = {line.split()[0]: re.split(r"  +", line)[1] for line in lines}
    given = {key: value for key, value in shown.items() if value != "-"}
    assert len(given) > 20
    again = load_settings({}, {}, given).settings
    assert again == load_settings({}, {}, {}).settings


def test_alone_it_says_where_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "usage: nodescope" in shown.out
    assert "nodescope up " in shown.out
    assert all(f"    {name}" in shown.out for name in COMMANDS)


def test_the_help_of_every_setting_is_its_own_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("agent", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name in FIELDS:
        words = read_first_sentence(name).removesuffix(".")
        assert words[1:] in shown, name
    assert "nodescope settings" not in shown.partition("example:")[0]


def test_the_help_of_a_setting_says_what_it_takes_and_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("agent", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "--interval VALUE The length of a tick (a duration such as 500ms or 2m; default 1 s)",
        "(a size such as 64MiB; default 64 MiB)",
        "(auto or native or python; default auto)",
        "as cAdvisor does (true or false; default false)",
    ):
        assert words in shown


def test_one_thing_has_one_name() -> None:
    """A setting's option is called the same in every command that has it."""
    options = {
        name: {word for action in list_actions(name) for word in action.option_strings} for name in COMMANDS
    }
    assert "--copy-rate" in options["agent"] & options["consolidate"]
    assert not any(word == "--copy-rate-bytes" for words in options.values() for word in words)


def list_actions(command: str) -> list[argparse.Action]:
    parser = argparse.ArgumentParser()
    import_module(f"nodescope.commands.{COMMANDS[command][0]}").add_arguments(parser)
    return parser._actions


def test_a_folder_without_data_is_an_error_and_no_empty_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("containers", "metrics", "verify"):
        assert run(command, str(tmp_path)) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(f"nodescope {command}: {tmp_path}: no data of nodescope is here")
        assert shown.err.count("\n") == 1


def test_a_question_about_a_folder_without_data_is_answered_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (("ask", "who uses the most memory?"), ("top", "--once")):
        assert run(*words, str(tmp_path)) == 1
        shown = capsys.readouterr()
        assert shown.err.startswith(f"nodescope {words[0]}: there is no ")
        assert str(tmp_path) in shown.err
        assert shown.err.count("\n") == 1


def test_a_data_folder_that_has_no_files_yet_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wal").mkdir()
    assert run("verify", str(tmp_path)) == 0
    assert capsys.readouterr().out.startswith("0 files: ")


def test_the_settings_file_that_nobody_named_is_the_user_s_or_the_system_s(tmp_path: Path) -> None:
    system, own = tmp_path / "etc.toml", tmp_path / "home" / ".config" / "nodescope.toml"
    environment = {"HOME": str(tmp_path / "home")}
    assert find_config(environment, system) is None
    system.write_text("ring_seconds = 60\n")
    assert find_config(environment, system) == system
    assert find_config({}, system) == system
    own.parent.mkdir(parents=True)
    own.write_text("ring_seconds = 90\n")
    assert find_config(environment, system) == own
    assert find_config({**environment, "NODESCOPE_CONFIG": "/named"}, system) == Path("/named")
    loaded = read_settings({}, None, environment)
    assert (loaded.settings.ring_seconds, loaded.origins["ring_seconds"]) == (90, str(own))


def test_a_home_that_may_not_be_entered_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object, **_: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", refuse)
        assert find_config({"HOME": str(tmp_path)}, tmp_path / "system.toml") is None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("completion", shell) == 0
    shown = capsys.readouterr().out
    assert "_ARGCOMPLETE" in shown
    assert "nodescope" in shown


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("nodescope rig", {"rightsize "}),
        ("nodescope up --agent", {"--agent-port "}),
        ("nodescope completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_a_shell_is_offered_commands_options_and_choices(
    line: str, offered: set[str], tmp_path: Path
) -> None:
    """As bash asks: the line in the environment, the answer on file descriptor 8."""
    answer = tmp_path / "answer"
    command = f"exec {sys.executable} -m nodescope 8> {answer} 9> /dev/null"
    subprocess.run(
        ["bash", "-c", command],
        env={
            **os.environ,
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        },
        check=True,
    )
    assert offered <= set(answer.read_text().split("\n"))


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
