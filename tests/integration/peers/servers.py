"""Starts the agent and its peers as processes, scrapes them, watches their cost."""

import contextlib
import gzip
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.integration.peers.binaries import Peer, peer_binary

# The first tick and a Go program's first collection are there well before;
# a machine that is busy building needs longer.
READY_SECONDS = 30.0

# One group per process name with its threads left out is the cheapest set-up
# that process-exporter's own documentation offers for "all processes".
PROCESS_EXPORTER_FLAGS = ("-children=false", "-threads=false", "-gather-smaps=false")


@dataclass(frozen=True)
class Server:
    """A running exporter."""

    name: str
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def scrape(self) -> str:
        return self.fetch().decode()

    def fetch(self, encoding: str = "identity") -> bytes:
        """The body as it came over the wire."""
        request = urllib.request.Request(self.url, headers={"Accept-Encoding": encoding})  # noqa: S310 - our own address
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            body: bytes = answer.read()
        return body

    def body_bytes(self) -> tuple[int, int]:
        """Bytes of one scrape, plain and gzip."""
        zipped = self.fetch("gzip")
        plain = gzip.decompress(zipped) if zipped[:2] == b"\x1f\x8b" else zipped
        return len(plain), len(zipped)

    def cpu_seconds(self) -> float:
        """User and system time of all its threads."""
        return self._times_seconds(11)

    def children_seconds(self) -> float:
        """User and system time of the children that it has reaped."""
        return self._times_seconds(13)

    def _times_seconds(self, place: int) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[place : place + 2])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        return self._memory_bytes("VmRSS")

    def peak_bytes(self) -> int:
        return self._memory_bytes("VmHWM")

    def _memory_bytes(self, key: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def agent_command(port: int, data: Path | None) -> list[str]:
    archive = ["--data", str(data)] if data else ["--no-archive"]
    return [sys.executable, "-m", "nodescope", "agent", "--port", str(port), "--no-kubernetes", *archive]


def peer_command(name: Peer, port: int, folder: Path) -> list[str]:
    binary = str(peer_binary(name))
    if name == "node_exporter":
        return [binary, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    if name == "process_exporter":
        config = folder / "processes.yml"
        config.write_text("process_names:\n  - name: '{{.Comm}}:{{.PID}}'\n    cmdline: ['.+']\n")
        listen = f"-web.listen-address=127.0.0.1:{port}"
        return [binary, f"-config.path={config}", listen, *PROCESS_EXPORTER_FLAGS]
    return [binary, f"-listen=127.0.0.1:{port}"]


@contextlib.contextmanager
def agent_running(
    data: Path | None = None, descriptors: int | None = None, words: Sequence[str] = ()
) -> Iterator[Server]:
    """The agent, with an archive where there is a folder for it, with few descriptors where a number says so."""
    port = free_port()
    limit = ["prlimit", f"--nofile={descriptors}:{descriptors}"] if descriptors else []
    with program_running("nodescope", [*limit, *agent_command(port, data), *words], port) as server:
        yield server


@contextlib.contextmanager
def peer_running(name: Peer) -> Iterator[Server]:
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        program_running(name, peer_command(name, port, Path(folder)), port) as server,
    ):
        yield server


@contextlib.contextmanager
def program_running(
    name: str, command: Sequence[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process,
    ):
        try:
            server = Server(name, port, process.pid)
            _wait_ready(server, process, log)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_ready(server: Server, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if server.fetch():
                return
        if process.poll() is not None or time.monotonic() > deadline:
            log.seek(0)
            said = log.read().decode(errors="replace").strip()[-800:]
            raise RuntimeError(f"{server.name} gave no metrics (exit {process.poll()}): {said}")
        time.sleep(0.1)
