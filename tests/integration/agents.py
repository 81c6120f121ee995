"""
Agents for the tests: as a process of its own, or in this one behind a real socket.

    with running_agent("--interval", "0.2s") as agent:
        agent.get("/metrics")

    parts = make_parts(clock=TurnableClock())
    with serving(parts) as client:
        client.get("/status")
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from nodescope.base.settings_load import load_settings
from nodescope.collect.run.call_runner import CallRunner
from nodescope.collect.run.sampler import SourceSlot
from nodescope.collect.run.source import MakeBatchSource, MakeCallSource
from nodescope.serve.server import build_server, open_socket
from nodescope.wiring import Parts, build_agent_app, build_parts

# The first tick comes within a second; a machine that builds something else
# beside us needs longer.
READY_SECONDS = 30.0
NODESCOPE = (sys.executable, "-m", "nodescope")

Result = TypeVar("Result")


def wait_for(
    look: Callable[[], Result | None],
    what: str,
    seconds: float = READY_SECONDS,
    pause_seconds: float = 0.05,
) -> Result:
    """What `look` gives, once it gives something true; AssertionError after the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        result = look()
        if result:
            return result
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(pause_seconds)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without settings that the caller's shell may carry."""
    names = {"EXPORTER_PORT", "NODE_NAME", "METRICS_PATH", "LOG_LEVEL", "CLUSTER_NAME"}
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in names and not key.startswith("NODESCOPE_")
    }
    return {**kept, **(more or {})}


# -- a process of its own ----------------------------------------------------


@dataclass
class Agent:
    """A running agent."""

    process: subprocess.Popen[bytes]
    port: int
    client: httpx.Client
    output: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers={key.replace("_", "-"): value for key, value in headers.items()})

    def scrape(self) -> str:
        return self.get("/metrics", accept_encoding="identity").raise_for_status().text

    def printed(self) -> str:
        return self.output.read_text()


@contextlib.contextmanager
def running_agent(
    *flags: str,
    command: str = "agent",
    port: int | None = None,
    environment: Mapping[str, str] | None = None,
    scheme: str = "http",
    client_options: Mapping[str, Any] | None = None,
    ready: str = "/readyz",
    ready_seconds: float = READY_SECONDS,
) -> Iterator[Agent]:
    """An agent that has its first sample; stopped and reaped on the way out."""
    port = port or free_port()
    # `up` has a viewer, too: on any port that is free.
    ports = ["--port", str(port)] if command == "agent" else ["--agent-port", str(port), "--port", "0"]
    # A converter of an agent that was killed may still write while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="nodescope-test-", ignore_cleanup_errors=True) as folder:
        output = Path(folder, "output")
        with output.open("wb") as sink:
            process = subprocess.Popen(
                [*NODESCOPE, command, *ports, *flags],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                # An archive of its own: one agent a folder.
                env={"XDG_STATE_HOME": folder, **clean_environment(environment)},
            )
        options = {"timeout": 20.0, **(client_options or {})}
        try:
            with httpx.Client(base_url=f"{scheme}://127.0.0.1:{port}", **options) as client:
                agent = Agent(process, port, client, output)
                wait_for(lambda: is_ready(agent, ready), f"an agent that answers {ready}", ready_seconds)
                yield agent
        finally:
            stop(process)


def is_ready(agent: Agent, path: str) -> bool:
    assert agent.process.poll() is None, f"the agent left with {agent.process.returncode}: {agent.printed()}"
    try:
        return agent.client.get(path).status_code == 200
    except httpx.TransportError:
        return False


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_nodescope(
    *words: str, environment: Mapping[str, str] | None = None, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*NODESCOPE, *words],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env=clean_environment(environment),
        stdin=subprocess.DEVNULL,
    )


# -- in this process -------------------------------------------------------------


@dataclass
class TurnableClock:
    """A clock that goes when it is turned; whoever waits turns it to the deadline."""

    mono: int = 1_000_000_000_000
    wall: int = 1_700_000_000_000_000_000
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wall_ns(self) -> int:
        return self.wall

    def mono_ns(self) -> int:
        return self.mono

    def turn(self, seconds: float) -> None:
        with self._lock:
            self.mono += round(seconds * 1e9)
            self.wall += round(seconds * 1e9)

    def wait_until(self, deadline_mono_ns: int, stop: threading.Event) -> bool:
        self.turn(max(0, deadline_mono_ns - self.mono) / 1e9)
        return stop.is_set()


def make_parts(clock: Any = None, **settings: Any) -> Parts:
    """The agent, connected but not started; the memory of this process is not the agent's."""
    return build_parts(load_settings({"memory_bytes": "1TiB", **settings}, {}, {}), clock)


def plant(parts: Parts, *sources: MakeBatchSource | MakeCallSource) -> None:
    """More sources for an agent that has not been started."""
    for source in sources:
        if hasattr(source, "pace_seconds"):
            parts.sampler._callers.append(CallRunner(source, parts.context, parts.clock))  # type: ignore[arg-type]
        else:
            parts.sampler._slots.append(SourceSlot(source))


def tick(parts: Parts, count: int, seconds: float = 1.0) -> None:
    """Ticks at exact distances on a turnable clock."""
    assert isinstance(parts.clock, TurnableClock)
    for _ in range(count):
        parts.clock.turn(seconds)
        parts.sampler.tick()


@contextlib.contextmanager
def serving(parts: Parts, *, sampling: bool = False) -> Iterator[httpx.Client]:
    """The agent's own server on a free port; the sampler runs only when asked for."""
    settings = parts.loaded.settings
    server = build_server(build_agent_app(parts), settings)
    listener = open_socket("127.0.0.1:0")
    port = listener.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    if sampling:
        parts.sampler.start()
    try:
        wait_for(lambda: server.started, "a server that listens")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
        parts.sampler.stop()
