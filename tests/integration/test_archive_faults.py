"""A real small disk that fills, turns read-only and comes back; a second agent on the same folder."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.archive_agent import ArchiveAgent

from nodescope.keep.folder import DataFolder
from nodescope.keep.parquet import open_parquet

MOUNT = 'mount -t tmpfs -o size=6m tmpfs "$0" && exec "$@"'
# Retries come every 5 s; a busy machine is allowed a few of them.
PATIENCE_SECONDS = 60.0

needs_mounts = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare: run it with sudo"
)


def wait_for(what: Callable[[], bool], words: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < deadline, f"never came: {words}"
        time.sleep(0.1)


class SmallDisk:
    """An agent whose data folder is a tmpfs of 6 MiB in a mount namespace of its own."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.agent = ArchiveAgent(path, prefix=("unshare", "-m", "--", "sh", "-c", MOUNT, str(path)))
        self._mount = path
        self.agent.wait_ready()
        self.seen = Path(f"/proc/{self.agent.process.pid}/root") / path.relative_to("/")

    def fill(self) -> None:
        with (self.seen / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self) -> None:
        (self.seen / "filler").unlink()

    def remount(self, how: str) -> None:
        pid = str(self.agent.process.pid)
        words = ["nsenter", "-t", pid, "-m", "mount", "-o", f"remount,{how}", str(self._mount)]
        # Busy while somebody has a file open for writing: between two retries nobody has.
        wait_for(lambda: subprocess.run(words, check=False).returncode == 0, f"remount {how}")

    def state(self) -> str:
        return str(self.agent.archive()["state"])

    def ticks(self) -> float:
        text = self.agent.ask("/metrics")[0].decode()
        return float(
            next(line for line in text.splitlines() if line.startswith("nodescope_ticks_total ")).split()[1]
        )


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "data")
    yield disk
    disk.agent.kill()


@pytest.mark.real
@needs_mounts
def test_a_full_disk_pauses_the_archive_and_nothing_else(small: SmallDisk) -> None:
    """Then it turns read-only, then writable and free: the archive resumes by itself."""
    wait_for(lambda: bool(list(DataFolder(small.seen).files())), "a first Parquet file")
    small.fill()
    wait_for(lambda: small.state() == "paused", "a pause")
    assert "full" in small.agent.archive()["reason"]
    before = small.ticks()
    wait_for(lambda: small.ticks() > before, "ticks during the pause")
    assert small.agent.archive()["frames_waiting"] > 0
    assert "nodescope_archive_paused 1" in small.agent.ask("/metrics")[0].decode()
    small.remount("ro")
    wait_for(lambda: "read-only" in small.agent.archive()["reason"], "the read-only reason")
    small.remount("rw")
    small.free()
    wait_for(lambda: small.state() == "writing", "its end")
    rows = small.agent.archive()["rows"]
    wait_for(lambda: small.agent.archive()["rows"] > rows, "new Parquet after the pause")
    for file in DataFolder(small.seen).files():
        assert open_parquet(file.path).metadata.num_rows > 0


@pytest.mark.real
def test_a_folder_that_vanishes_is_waited_for(tmp_path: Path) -> None:
    """A mount that goes away and comes back: ticks go on, nothing is written beside it, the archive goes on."""
    data, away = tmp_path / "data", tmp_path / "away"
    agent = ArchiveAgent(data)
    try:
        agent.wait_ready()
        wait_for(lambda: agent.archive()["rows"] > 0, "a first Parquet file")
        data.rename(away)
        wait_for(lambda: agent.archive()["state"] == "paused", "a pause")
        assert "gone" in agent.archive()["reason"]
        before = agent.ask("/metrics")[0]
        wait_for(lambda: agent.ask("/metrics")[0] != before, "ticks during the pause")
        assert not data.exists()
        away.rename(data)
        wait_for(lambda: agent.archive()["state"] == "writing", "its end")
        rows = agent.archive()["rows"]
        wait_for(lambda: agent.archive()["rows"] > rows, "new Parquet after the pause")
    finally:
        agent.stop()
    assert not list(DataFolder(data).wal.glob("*.log"))
    for file in DataFolder(data).files():
        assert open_parquet(file.path).metadata.num_rows > 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ArchiveAgent, Path]]:
    data = tmp_path_factory.mktemp("undisturbed") / "data"
    agent = ArchiveAgent(data)
    agent.wait_ready()
    yield agent, data
    agent.stop()


@pytest.mark.real
def test_a_second_agent_is_refused_and_the_first_goes_on(undisturbed: tuple[ArchiveAgent, Path]) -> None:
    first, data = undisturbed
    second = ArchiveAgent(data)
    _, words = second.process.communicate(timeout=60)
    assert second.process.returncode == 1
    assert b"is written by the agent of node n1" in words
    assert first.archive()["state"] == "writing"


@pytest.mark.real
def test_the_agent_loads_neither_arrow_nor_duckdb(undisturbed: tuple[ArchiveAgent, Path]) -> None:
    """Its memory is the sampler's; conversion happens in a child."""
    agent, _ = undisturbed
    wait_for(lambda: agent.archive()["rows"] > 0, "a conversion")
    maps = Path(f"/proc/{agent.process.pid}/maps").read_text()
    assert "arrow" not in maps
    assert "duckdb" not in maps
