"""Missing parts of a machine are named on the last line of `make test`, and apt's lock is waited for."""

import os
import subprocess
import sys
from pathlib import Path

from tests.skips import render_skips

ROOT = Path(__file__).resolve().parents[2]
# apt-get, busy twice: its words are apt's own.
BUSY = """#!/bin/sh
echo "$@" >> {log}
[ "$(grep -c update {log})" -gt 2 ] || {{ echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7" >&2; exit 100; }}
"""


def test_skips_are_counted_by_what_is_missing() -> None:
    said = render_skips(
        [
            "Skipped: no promtool: apt-get install prometheus",
            "Skipped: chromium is not installed; remedy: sudo apt-get install chromium",
            "Skipped: chromium is not installed; remedy: sudo apt-get install chromium",
        ]
    )
    assert said == (
        "skipped 3 tests for what this machine lacks: 2 (chromium is not installed), 1 (no promtool)"
    )
    assert render_skips([]) == "all tests were run, none was skipped"


def test_a_run_of_pytest_adds_the_reasons_of_its_skips(tmp_path: Path) -> None:
    tests = tmp_path / "test_some.py"
    tests.write_text("import pytest\ndef test_a(): pytest.skip('no part: get it')\ndef test_b(): pass\n")
    file = tmp_path / "skipped"
    file.write_text("Skipped: from before\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:randomly",
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    done = subprocess.run(
        [*command, "-p", "tests.conftest", "--rootdir", str(ROOT), str(tests)],
        cwd=ROOT,
        env={**os.environ, "SKIPPED_TESTS_FILE": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert file.read_text().splitlines() == ["Skipped: from before", "Skipped: no part: get it"]


def test_another_apt_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    fake = tmp_path / "apt-get"
    fake.write_text(BUSY.format(log=log))
    fake.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "tools/apt-install"), "hello"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "APT_PAUSE_SECONDS": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "waiting for another apt to end\n")
    asked = log.read_text().splitlines()
    assert [line.split()[2] for line in asked] == ["update", "update", "update", "install"]
    assert asked[-1].endswith(" hello")


def test_an_apt_that_fails_otherwise_is_told_in_its_own_words(tmp_path: Path) -> None:
    fake = tmp_path / "apt-get"
    fake.write_text('#!/bin/sh\necho "E: Unable to locate package hello" >&2\nexit 100\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "tools/apt-install"), "hello"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "E: Unable to locate package hello\n")
