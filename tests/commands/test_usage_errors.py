"""A wrong command line is answered in one line: what was wrong, what is accepted, the nearest name."""

import pytest

from nodescope.cli import main

REFUSED = [
    (["completion"], "shell (accepted: bash, zsh, fish) is missing"),
    (["completion", "zhs"], 'shell zhs is not accepted; did you mean "zsh"? (accepted: bash, zsh, fish)'),
    # What systemd's unit takes over may be nothing: it is not missing.
    (["service"], "action (accepted: install, remove, status) is missing"),
    (["annotate"], "TEXT (one line, at most 200 characters) is missing"),
    (["demo", "--seed", "x"], "--seed x is not accepted; accepted: a whole number"),
    (["demo", "--seed", "\x1b[31m" + 200 * "x"], "is not accepted; accepted: a whole number"),
    (["export", "--out"], "--out needs a value (ends in .parquet, .csv, .html or .pftrace)"),
    (["agent", "--prot", "1"], 'no option --prot; did you mean "--port"?'),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_is_wrong_and_what_is_accepted(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith(f"nodescope {words[0]}: ")
    assert said in line
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert len(line) < 400
