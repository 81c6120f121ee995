"""The consolidator as a process: between two passes it is small, holds its lock, and ends when it is told."""

import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.integration.agents import NODESCOPE, clean_environment, run_nodescope, stop, wait_for

pytestmark = pytest.mark.real

SLOW_SECONDS = 120.0
HEAVY = ("libarrow", "_multiarray_umath")


def is_asleep(pid: int) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    maps = Path(f"/proc/{pid}/maps").read_text()
    return b"asleep.py" in words and not any(name in maps for name in HEAVY)


def has_passed(log: Path, passes: int) -> bool:
    return log.read_text().count(" rollups;") == passes


def test_it_sleeps_between_two_passes_with_its_lock(tmp_path: Path) -> None:
    """The same process throughout; a segment that is closed meanwhile wakes it, and its lock is never free."""
    data = tmp_path / "data"
    (data / "wal").mkdir(parents=True)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*NODESCOPE, "consolidate", "--data", str(data), "--every", "1s"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=clean_environment(),
        )
    try:
        for passes in (1, 2):
            wait_for(partial(has_passed, log, passes), f"{passes} passes", SLOW_SECONDS)
            wait_for(lambda: is_asleep(process.pid), "a sleeper", SLOW_SECONDS)
            refused = run_nodescope("consolidate", "--once", "--data", str(data), seconds=SLOW_SECONDS)
            assert refused.returncode == 1
            assert f"is being consolidated by process {process.pid}" in refused.stderr
            # No segment of ours: set aside by the pass that it causes.
            (data / "wal" / f"run-{passes}.log").write_bytes(b"not a log")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(SLOW_SECONDS) == -signal.SIGTERM
        assert (
            run_nodescope("consolidate", "--once", "--data", str(data), seconds=SLOW_SECONDS).returncode == 0
        )
    finally:
        stop(process)
