"""
One MCP server in front of 100 viewers: how long top_containers over all of them takes, and its memory.

The viewers are real ones in one process on 100 ports, all over the same small
archive, each asked under a name of its own. The anchor asks the viewers the
same three questions each, as many at once, without MCP in between: what is
more than that is ours. Viewers and server share this machine's cores; in a
cluster only the server's part is on one machine.

    python -m bench.mcp FOLDER 100      the viewers alone: prints their ports
"""

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from anyio.from_thread import start_blocking_portal
from mcp import Client

from bench.result import Options, Row
from nodescope.base.clock import SystemClock
from nodescope.base.settings import Settings
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.serve.server import build_server, open_socket
from nodescope.use.mcp.nodes.fleet import AT_ONCE

VIEWERS = 100
CONTAINERS = 8
HOURS = 0.2
END_MS = 1_772_366_400_000
# A turn is some 300 requests; more turns would say the same more slowly.
MOST_ROUNDS = 10


def run(options: Options) -> list[Row]:
    rounds = min(options.rounds, MOST_ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        wish = DemoRequest(Path(folder, "node"), HOURS, CONTAINERS, 7, END_MS, "demo-1")
        write_node(wish, "0", lambda _: None)
        with started("bench.mcp", str(wish.data), str(VIEWERS)) as (said, _):
            ports = [int(port) for port in json.loads(said)]
            return measure(ports, rounds)


def measure(ports: list[int], rounds: int) -> list[Row]:
    flags = [word for port in ports for word in ("--viewer", f"node-{port}=http://127.0.0.1:{port}")]
    with started("nodescope", "mcp", "--port", "0", "--deadline", "60s", *flags) as (said, process):
        address = re.search(r"http\S+", said)
        if address is None:
            raise RuntimeError(f"the MCP server did not start: {said}")
        begun_bytes = resident_bytes(process.pid)
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(address.group())) as client,
        ):

            def call() -> None:
                result: Any = portal.call(client.call_tool, "top_containers", {"by": "memory"})
                if result.is_error or "nodes_not_answering" in result.structured_content:
                    raise RuntimeError(result.content[0].text)

            plain = PlainClient(ports)
            call()
            plain.ask_all()
            ours, theirs = [], []
            spent_seconds = 0.0
            for _ in range(rounds):
                before = cpu_seconds(process.pid)
                ours.append(timed(call))
                spent_seconds += cpu_seconds(process.pid) - before
                theirs.append(timed(plain.ask_all))
            plain.close()
        return [
            Row(
                f"top_containers over {len(ports)} nodes, p95",
                float(np.quantile(ours, 0.95)),
                "s",
                float(np.quantile(theirs, 0.95)),
                "the same requests without MCP",
            ),
            Row(
                f"top_containers over {len(ports)} nodes, median",
                float(np.median(ours)),
                "s",
                float(np.median(theirs)),
                "the same requests without MCP",
            ),
            Row(
                f"the MCP server's own CPU for one call over {len(ports)} nodes",
                spent_seconds / rounds,
                "s",
                remark="the rest is the viewers'",
            ),
            Row(
                "the MCP server's memory after it",
                resident_bytes(process.pid),
                "resident",
                begun_bytes,
                "the same server before its first call",
                remark=f"{rounds} calls",
            ),
        ]


def timed(work: Any) -> float:
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


class PlainClient:
    """What top_containers asks each viewer, by kept connections and as many at once."""

    def __init__(self, ports: list[int]) -> None:
        self._connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for port in ports]
        self._pool = ThreadPoolExecutor(AT_ONCE)

    def ask_all(self) -> None:
        list(self._pool.map(self._ask_one, self._connections))

    def _ask_one(self, connection: http.client.HTTPConnection) -> None:
        instance = self._read(connection, "/api/instance")
        rows = self._read(connection, "/api/containers?metric=none&range=all&limit=1000&sort=last_seen")[
            "containers"
        ]
        ids = ",".join(row["id"] for row in rows[:64])
        span = f"from={instance['from']}&to={instance['to']}"
        self._read(
            connection, f"/api/timeseries?metric=memory&containers={ids}&max_points=1&limits=off&{span}"
        )

    @staticmethod
    def _read(connection: http.client.HTTPConnection, target: str) -> Any:
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # Idle for too long between two turns: the viewer closed it.
            connection.close()
            connection.request("GET", target)
            answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"{target}: {content}")
        return content

    def close(self) -> None:
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()


@contextmanager
def started(*arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A module as a process, and its first line."""
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline(), process
        finally:
            process.terminate()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return float(found.group(1)) * 1024 if found else float("nan")


def serve_viewers(folder: Path, count: int) -> None:
    """One application behind many ports: each is a viewer to whoever asks it."""
    from nodescope.use.answers.snapshots import NodeFolders
    from nodescope.use.viewer.app import build_app
    from nodescope.use.viewer.request import Viewer

    sockets = [open_socket("127.0.0.1:0") for _ in range(count)]
    server = build_server(build_app(Viewer(NodeFolders([folder], SystemClock()))), Settings())
    # The limit is for one port's clients; here a hundred share it.
    server.config.limit_concurrency = None
    print(json.dumps([listener.getsockname()[1] for listener in sockets]), flush=True)
    asyncio.run(server.serve(sockets=sockets))


if __name__ == "__main__":
    serve_viewers(Path(sys.argv[1]), int(sys.argv[2]))
