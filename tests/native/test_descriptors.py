"""At the limit of open files nothing is lost; /status tells what it costs."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agents import wait_for
from tests.integration.peers.servers import Server, _wait_ready, free_port
from tests.support import NODES, TurnableClock, build_parts_at

# soft - 256 would be less than nothing: the agent then keeps 64.
LIMIT = 160
KEPT = 64


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Server]:
    port = free_port()
    words = [
        *("sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh"),
        sys.executable,
        "-m",
        "nodescope",
        "agent",
        "--port",
        str(port),
        "--no-archive",
        "--no-kubernetes",
    ]
    with (tmp_path / "log").open("w+b") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            server = Server("nodescope", port, process.pid)
            _wait_ready(server, process, log)
            yield server
        finally:
            process.terminate()
            process.wait(20)


def read_reopened(agent: Server, *, wanted: bool) -> dict[str, Any] | None:
    """/status once processes were read, and something was opened again if that is to be expected."""
    with urllib.request.urlopen(f"http://127.0.0.1:{agent.port}/status", timeout=20) as answer:
        status: dict[str, Any] = json.load(answer)
    was_read = "process" in status["sources"]
    # By table: none is there before its first reading.
    was_reopened = status["files"]["reopened"] and "process.all" in status["files"]["tables"]
    return status if was_read and (was_reopened or not wanted) else None


@pytest.mark.real
def test_an_agent_at_its_limit_opens_the_rest_for_each_reading(agent: Server) -> None:
    """Every process has a file; some sixty stay open, the others are read all the same."""
    processes = sum(path.name.isdigit() for path in Path("/proc").iterdir())
    # What is read less often has not been read twice at once.
    status = wait_for(lambda: read_reopened(agent, wanted=processes > KEPT), "files that are opened again")
    files = status["files"]
    assert files["limit"] == KEPT
    assert files["kept_open"] <= KEPT
    assert len(list(Path(f"/proc/{agent.pid}/fd").iterdir())) < LIMIT
    if processes > KEPT:
        assert files["reopened"] > 0
        assert files["tables"]["process.all"][1] > 0
    assert status["sources"]["process"]["state"] == "ok"
    # The numbers of files are known before the tick that reads them is over.
    assert wait_for(lambda: "cpu_process_rss_bytes{" in agent.scrape(), "processes in a scrape")


def test_what_is_kept_open_and_what_is_not_adds_up() -> None:
    """By table; when a node's files are closed, all counts go back to nothing."""
    parts = build_parts_at(NODES / "cgroup2-systemd" / "t0", TurnableClock(), node="n")
    descriptors = parts.context.descriptors
    descriptors.limit = 10
    parts.sampler.tick()
    files = parts.sampler.status().files
    assert files.kept_open == 10
    assert files.reopened == sum(count for _, count in files.tables.values()) > 0
    parts.sampler.stop()
    assert (descriptors.pinned, descriptors.reopened.total()) == (0, 0)
