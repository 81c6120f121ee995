"""nodescope's own programs beside the test control plane: agents and the extender, as processes."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.cluster.control_plane import free_port, wait_for

NODESCOPE = (sys.executable, "-m", "nodescope")


def clean_environment() -> dict[str, str]:
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("NODESCOPE_") and key != "KUBECONFIG"
    }


class Program:
    """One of ours, answering at an address."""

    def __init__(self, url: str, process: "subprocess.Popen[bytes]") -> None:
        self.url = url
        self.process = process

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=10)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, "the program ended"
        try:
            return self.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def metric(self, line: str) -> float:
        """The value of one series, by name and labels as /metrics writes them."""
        found = [text for text in self.get("/metrics").text.splitlines() if text.startswith(f"{line} ")]
        return float(found[0].split()[-1]) if found else float("nan")


class Agent(Program):
    """nodescope agent."""

    def source(self) -> dict[str, Any]:
        """How the watch stands, by /status."""
        found: dict[str, Any] = self.get("/status").json()["sources"]["kubernetes"]
        return found

    def post(self, **fields: object) -> httpx.Response:
        return httpx.post(f"{self.url}/", data={"timestamp_ms": str(time.time_ns() // 10**6), **fields})

    def container(self, container_id: str) -> dict[str, str]:
        """A container's labels and details."""
        entities = self.get("/window?scope=container&seconds=10&stats=last").json().get("entities", [])
        found = [one["labels"] for one in entities if one["labels"]["container_id"] == container_id]
        return found[0] if found else {}


class Extender(Program):
    """nodescope extender."""

    def explain(self, pod: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/explain?pod={pod}").raise_for_status().json()
        return found

    def scores(self, pod: str) -> dict[str, int]:
        return {one["node"]: one["score"] for one in self.explain(pod)["nodes"]}


@contextmanager
def run_program(command: Sequence[str], log: Path) -> "Iterator[subprocess.Popen[bytes]]":
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*NODESCOPE, *command], stdout=output, stderr=output, env=clean_environment()
        )
    try:
        yield process
    finally:
        end_program(process)


def end_program(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def run_agent(root: Path, kubeconfig: Path, node: str, *flags: str) -> Iterator[Agent]:
    port = free_port()
    command = ["agent", "--root", str(root), "--port", str(port), "--node", node]
    command += ["--kubeconfig", str(kubeconfig), *(() if "--data" in flags else ("--no-archive",)), *flags]
    log = Path(tempfile.gettempdir()) / f"nodescope-agent-{port}.log"
    try:
        with run_program(command, log) as process:
            agent = Agent(f"http://127.0.0.1:{port}", process)
            wait_for("the agent answers", agent.is_ready, 60)
            yield agent
    finally:
        log.unlink()


@contextmanager
def run_extender(kubeconfig: Path, port: int, log: Path, *flags: str) -> Iterator[Extender]:
    command = ["extender", "--kubeconfig", str(kubeconfig), "--port", str(port), *flags]
    with run_program(command, log) as process:
        extender = Extender(f"http://127.0.0.1:{port}", process)
        wait_for("the extender is ready", extender.is_ready, 60)
        yield extender
