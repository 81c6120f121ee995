"""The consolidator as a process: between two passes it is small, holds its lock, and ends when it is told."""

import os
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.integration.agents import NODESCOPE, clean_environment, run_nodescope, stop, wait_for

pytestmark = pytest.mark.real

SLOW_SECONDS = 120.0
NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
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
        assert process.wait(SLOW_SECONDS) == 0
        assert (
            run_nodescope("consolidate", "--once", "--data", str(data), seconds=SLOW_SECONDS).returncode == 0
        )
    finally:
        stop(process)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare: run it with sudo"
)
def test_the_first_process_of_a_container_hears_a_stop(tmp_path: Path) -> None:
    """The kernel drops signals that process 1 has no handler for; a stop would wait for the kill."""
    (tmp_path / "data" / "wal").mkdir(parents=True)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*NAMESPACE, *NODESCOPE, "consolidate", "--data", str(tmp_path / "data"), "--every", "10m"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=clean_environment(),
        )
    try:
        wait_for(partial(has_passed, log, 1), "a pass", SLOW_SECONDS)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first = int(wait_for(children.read_text, "the first process of a namespace"))
        wait_for(lambda: is_asleep(first), "a sleeper", SLOW_SECONDS)
        os.kill(first, signal.SIGTERM)
        assert process.wait(SLOW_SECONDS) == 0
    finally:
        stop(process)
