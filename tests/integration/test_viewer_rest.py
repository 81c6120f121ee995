"""The viewer as a process that nobody asks: small before the first question, and again some time after the last."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.agents import NODESCOPE, clean_environment, free_port, stop, wait_for
from tests.use.viewer.archives import write_demo

pytestmark = pytest.mark.real

SLOW_SECONDS = 120.0
TOKEN = "a-token-of-this-test"  # noqa: S105
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
# What the process has mapped once somebody has asked.
HEAVY = ("libarrow", "_multiarray_umath", "pydantic_core")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("rest") / "demo")


class RestingViewer:
    """A viewer process with a listener for probes."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, probe_port: int) -> None:
        self.process = process
        self.address = f"http://127.0.0.1:{port}"
        self.probes = f"http://127.0.0.1:{probe_port}"

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
        """On a connection of its own: one that stays open would be somebody who may ask."""
        return httpx.get(f"{self.address}{path}", headers=headers, timeout=SLOW_SECONDS)

    def loaded(self) -> list[str]:
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        return [name for name in HEAVY if name in maps]

    def count_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def is_up(self) -> bool:
        assert self.process.poll() is None, "the viewer left"
        try:
            return self.get("/api/health").status_code == 200
        except httpx.TransportError:
            return False

    def await_rest(self) -> None:
        wait_for(lambda: not self.loaded(), "memory given back", SLOW_SECONDS)


@contextlib.contextmanager
def running(archive: Path, token: Path, rest: str) -> Iterator[RestingViewer]:
    port, probe_port = free_port(), free_port()
    words = ["viewer", str(archive), "--port", str(port), "--rest", rest, "--token-file", str(token)]
    with subprocess.Popen(
        [*NODESCOPE, *words, "--probe-listen", f"127.0.0.1:{probe_port}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        viewer = RestingViewer(process, port, probe_port)
        try:
            wait_for(viewer.is_up, "a viewer that answers", SLOW_SECONDS)
            yield viewer
        finally:
            stop(process)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(TOKEN)
    return tmp_path / "token"


def test_memory_comes_with_the_first_question_and_leaves_after_the_last(archive: Path, token: Path) -> None:
    """Twice, so that what one rest leaves behind would be seen in the next; all on the same process and sockets."""
    with running(archive, token, "1s") as viewer:
        assert viewer.get("/").status_code == 200
        assert viewer.loaded() == []
        descriptors = []
        for _ in range(2):
            assert viewer.get("/api/instance").status_code == 401
            assert viewer.loaded() == []
            assert viewer.get("/api/health").json()["answers"] == "resting"
            assert viewer.get("/api/instance", AUTHORIZED).json()["nodes"]
            assert len(viewer.loaded()) == len(HEAVY)
            # Those who only look whether it lives neither keep it awake nor see it rest.
            while viewer.loaded():
                assert viewer.get("/api/health").json()["answers"] in ("ready", "resting")
                assert httpx.get(f"{viewer.probes}/healthz", timeout=SLOW_SECONDS).status_code == 200
            descriptors.append(viewer.count_descriptors())
        # A connection of the last look may still be closing.
        wait_for(
            lambda: viewer.count_descriptors() <= descriptors[0],
            "as many descriptors as after the first rest",
        )
        viewer.process.send_signal(signal.SIGTERM)
        out, _ = viewer.process.communicate(timeout=SLOW_SECONDS)
        assert viewer.process.returncode == 0
        # One line of where it is, although it began three times.
        assert out.decode().count("viewer  http://") == 1


@contextlib.contextmanager
def opened(archive: Path, *words: str) -> Iterator[tuple[RestingViewer, str]]:
    """A viewer for other machines, and the line that it prints first."""
    port, probe_port = free_port(), free_port()
    command = [*NODESCOPE, "viewer", str(archive), "--port", str(port), "--host", "0.0.0.0", *words]  # noqa: S104
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield RestingViewer(process, port, probe_port), process.stdout.readline().decode().strip()
        finally:
            process.terminate()


def test_a_token_that_was_made_holds_after_a_rest(archive: Path) -> None:
    with opened(archive, "--rest", "1s") as (viewer, told):
        token = told.rpartition("/?token=")[2]
        assert len(token) >= 32, told
        assert "0.0.0.0" not in told  # noqa: S104
        headers = {"Authorization": f"Bearer {token}"}
        for _ in range(2):
            assert viewer.get("/api/instance").status_code == 401
            assert viewer.get("/api/instance", headers).status_code == 200
            viewer.await_rest()
        assert viewer.get("/api/instance", headers).status_code == 200


def test_without_a_token_when_that_is_asked_for(archive: Path) -> None:
    with opened(archive, "--no-token") as (viewer, told):
        assert "token" not in told
        assert viewer.get("/api/instance").status_code == 200


def test_an_open_live_tail_keeps_it_awake(archive: Path, token: Path) -> None:
    with running(archive, token, "1s") as viewer:
        with httpx.stream(
            "GET", f"{viewer.address}/api/live?metric=cpu", headers=AUTHORIZED, timeout=SLOW_SECONDS
        ) as tail:
            # An archive's tail says something every three seconds.
            lines = (line for line in tail.iter_lines() if line.startswith("event:"))
            assert [next(lines) for _ in range(2)] == ["event: status"] * 2
            assert len(viewer.loaded()) == len(HEAVY)
        viewer.await_rest()


def test_a_folder_that_has_gone_meanwhile_is_told_and_not_the_end(tmp_path: Path, token: Path) -> None:
    folder = tmp_path / "data"
    write_demo(folder)
    with running(folder, token, "1s") as viewer:
        assert viewer.get("/api/instance", AUTHORIZED).status_code == 200
        folder.rename(tmp_path / "elsewhere")
        viewer.await_rest()
        refused = viewer.get("/api/instance", AUTHORIZED)
        assert refused.status_code == 503
        assert "no such file or folder" in refused.json()["detail"]
        (tmp_path / "elsewhere").rename(folder)
        assert viewer.get("/api/instance", AUTHORIZED).json()["nodes"]
