"""
A disk that fills, turns read-only or is unmounted: python -m tests.torture.pauses [SCALE].

Scale 1 is a pause of sixty seconds of each kind. A real agent writes to a
tmpfs in a mount namespace of its own; every frame that it sampled is fetched
from it meanwhile, and must be in the archive in the end, once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.integration.archive_agent import ArchiveAgent, sample_times
from tests.torture.result import TortureRow

from nodescope.base.codec import Decoder
from nodescope.keep.folder import DataFolder

PAUSE_SECONDS = 60.0
# A retry comes every five seconds; the rest is for a busy machine.
PATIENCE_SECONDS = 90.0
MOUNT = 'mount -t tmpfs -o size=48m tmpfs "$0" && mount --bind "$0" "$1" && shift && exec "$@"'
METRIC = "cgroup.v2.memory.current"


def can_mount() -> bool:
    return os.geteuid() == 0 and bool(shutil.which("unshare")) and bool(shutil.which("nsenter"))


@dataclass
class PausedAgent:
    """An agent on a disk that can be taken away."""

    place: Path
    agent: ArchiveAgent = field(init=False)
    seen: set[int] = field(default_factory=set)
    """Times of all container samples that the agent had."""
    cursor: str = "all--1"

    def __post_init__(self) -> None:
        self.disk, self.data = self.place / "disk", self.place / "data"
        self.disk.mkdir()
        self.data.mkdir()
        words = ("unshare", "-m", "--", "sh", "-c", MOUNT, str(self.disk), str(self.data))
        self.agent = ArchiveAgent(self.data, prefix=words)
        self.agent.wait_ready()
        self.root = Path(f"/proc/{self.agent.process.pid}/root")

    @property
    def folder(self) -> DataFolder:
        return DataFolder(self.root / self.disk.relative_to("/"))

    def fetch(self) -> None:
        body, headers = self.agent.ask(f"/live?since={self.cursor}")
        self.cursor = {key.lower(): value for key, value in headers.items()}["nodescope-cursor"]
        self.seen |= sample_times(list(Decoder().decode(body)))

    def enter(self, *words: str) -> bool:
        command = ["nsenter", "-t", str(self.agent.process.pid), "-m", *words]
        return subprocess.run(command, check=False).returncode == 0

    def wait(self, what: Callable[[], bool], words: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not what():
            self.fetch()
            if time.monotonic() > deadline:
                raise TimeoutError(f"never came: {words}")
            time.sleep(0.2)

    def is_in(self, state: str) -> bool:
        return bool(self.agent.archive()["state"] == state)

    # -- ways to take the disk away, and to give it back ---------------------------

    def fill(self) -> None:
        with (self.folder.path / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError:
                pass

    def empty(self) -> None:
        (self.folder.path / "filler").unlink()

    def lock(self) -> None:
        """Busy while the log is open for writing: the disk is full first, as a failing one often is."""
        self.fill()
        self.wait(lambda: self.is_in("paused"), "a pause")
        self.wait(lambda: self.enter("mount", "-o", "remount,ro", str(self.disk)), "a read-only disk")

    def unlock(self) -> None:
        self.wait(lambda: self.enter("mount", "-o", "remount,rw", str(self.disk)), "a writable disk")
        self.empty()

    def unmount(self) -> None:
        assert self.enter("umount", "-l", str(self.data))

    def mount(self) -> None:
        assert self.enter("mount", "--bind", str(self.disk), str(self.data))


WAYS: dict[str, tuple[Callable[[PausedAgent], None], Callable[[PausedAgent], None]]] = {
    "full": (PausedAgent.fill, PausedAgent.empty),
    "read-only": (PausedAgent.lock, PausedAgent.unlock),
    "unmounted": (PausedAgent.unmount, PausedAgent.mount),
}


def archived_times(folder: DataFolder) -> list[int]:
    """Of one container's samples, in ms; twice when twice."""
    found: list[int] = []
    for file in folder.files():
        rows = pq.read_table(
            file.path,
            columns=["time", "l_container_id"],
            filters=[("metric_name", "=", METRIC)],
            partitioning=None,
        )
        first = rows.column("l_container_id")[0].as_py()
        mine = rows.filter(pa.compute.equal(rows.column("l_container_id"), first))
        found += mine.column("time").cast(pa.int64()).to_pylist()
    return found


def run_pause(way: str, seconds: float, place: Path) -> TortureRow:
    paused = PausedAgent(place)
    try:
        paused.wait(lambda: paused.agent.archive()["rows"] > 0, "a first file")
        take_away, give_back = WAYS[way]
        take_away(paused)
        paused.wait(lambda: paused.is_in("paused"), "a pause")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            paused.fetch()
            time.sleep(0.5)
        give_back(paused)
        paused.wait(lambda: paused.is_in("writing"), "its end")
        paused.fetch()
        newest = paused.agent.archive()["written_sequence"]
        paused.wait(lambda: paused.agent.archive()["written_sequence"] > newest + 20, "more frames")
        wanted = set(paused.seen)
        status = paused.agent.archive()
        paused.wait(lambda: wanted <= set(archived_times(paused.folder)), "all frames in the archive")
    except TimeoutError as error:
        wanted, status = set(paused.seen), paused.agent.archive() | {"error": str(error)}
    try:
        return judge(way, seconds, wanted, archived_times(paused.folder), status, list(place.glob("data/*")))
    finally:
        paused.agent.kill()


def judge(
    way: str,
    seconds: float,
    wanted: set[int],
    there: list[int],
    status: dict[str, object],
    strays: list[Path],
) -> TortureRow:
    """Strays are files that were written to the mount point while its mount was away."""
    lost, doubled = wanted - set(there), len(there) - len(set(there))
    is_met = bool(wanted) and not lost and not doubled and not status["frames_lost"] and not strays
    found = f"{len(lost)} lost, {doubled} twice, of {len(wanted)}"
    remark = str(status.get("error") or status["reason"] or "")
    return TortureRow("pauses", f"frames of a pause of {seconds:g} s, {way}", found, "0 lost", is_met, remark)


def run(scale: float = 1.0) -> list[TortureRow]:
    if not can_mount():
        return [TortureRow("pauses", "frames lost", "not run", "0 lost", met=False, remark="needs root")]
    rows = []
    for way in WAYS:
        with tempfile.TemporaryDirectory(prefix="nodescope-pause-") as text:
            rows.append(run_pause(way, PAUSE_SECONDS * scale, Path(text)))
    return rows


if __name__ == "__main__":
    for one in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(one.render())
