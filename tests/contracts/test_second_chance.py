"""
tools/test-phase, on tests of its own: unlucky is told from broken, and neither is silent.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not (ROOT / ".venv/bin/python").exists(), reason="no .venv beside the project"),
]
GOOD = "def test_good(): assert True\n"
UNLUCKY = """
import pathlib
def test_unlucky():
    seen = pathlib.Path({seen!r})
    if not seen.exists():
        seen.touch()
        raise AssertionError("once")
"""
# Two runs of pytest with a worker each: seconds, and minutes on a machine with eighty others in the queue.
HUNG_SECONDS = 900
BROKEN = "def test_broken(): assert not True\n"


def run(folder: Path, *texts: str, phase: str = "real") -> subprocess.CompletedProcess[str]:
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "FAILED_"))
    }
    arguments = [
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(folder),
        "-p",
        "tests.conftest",
        str(folder),
    ]
    return subprocess.run(
        [str(ROOT / "tools/test-phase"), phase, "", "1", *arguments],
        capture_output=True,
        text=True,
        timeout=HUNG_SECONDS,
        env=environment,
        check=False,
    )


def test_what_passes_runs_once(tmp_path: Path) -> None:
    done = run(tmp_path, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "once more" not in done.stderr


@pytest.mark.parametrize("phase", ["fast", "real"])
def test_what_passes_alone_is_named(tmp_path: Path, phase: str) -> None:
    done = run(tmp_path, GOOD, UNLUCKY.format(seen=str(tmp_path / "seen")), phase=phase)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed alone only, to be mended: " in done.stderr
    assert "test_unlucky" in done.stderr.splitlines()[-1]


def test_what_is_broken_stays_broken(tmp_path: Path) -> None:
    done = run(tmp_path, GOOD, BROKEN)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "passed alone only" not in done.stderr


def test_many_are_no_bad_luck(tmp_path: Path) -> None:
    done = run(tmp_path, *[BROKEN] * 4)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "once more" not in done.stderr


def test_what_cannot_be_collected_is_no_bad_luck(tmp_path: Path) -> None:
    done = run(tmp_path, GOOD, "import nothing_of_this_name\n")
    assert done.returncode != 0, done.stdout + done.stderr
    assert "passed alone only" not in done.stderr
