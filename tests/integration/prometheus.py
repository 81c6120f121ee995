"""A real Prometheus with the scrape configuration that we ship."""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.integration.agents import Agent, free_port, stop, wait_for
from tests.integration.conftest import need_tool

SHIPPED = Path(__file__).parents[2] / "deploy/prometheus/prometheus.yml"


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    client: httpx.Client
    folder: Path

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        parameters: dict[str, str | float] = {"query": expression}
        if at is not None:
            parameters["time"] = at
        answer = self.client.get("/api/v1/query", params=parameters).json()
        assert answer["status"] == "success", answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def list_targets(self, *agents: tuple[str, Agent]) -> None:
        content = [{"targets": [agent.address], "labels": {"node": name}} for name, agent in agents]
        # Prometheus watches the folder: a file must appear whole.
        whole = self.folder / "nodes" / "new"
        whole.write_text(json.dumps(content))
        whole.rename(self.folder / "nodes" / "agents.yml")


def write_configuration(folder: Path) -> Path:
    """What we ship, but for the targets of this machine and the pace."""
    shipped = SHIPPED.read_text()
    quick = re.sub(r"_interval: 10s", "_interval: 1s", shipped)
    mine, count = re.subn(r"    static_configs:\n +- targets: .*\n", "", quick)
    assert count == 1
    (folder / "nodes").mkdir()
    path = folder / "prometheus.yml"
    path.write_text(mine)
    return path


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


@contextlib.contextmanager
def running_prometheus(folder: Path) -> Iterator[Prometheus]:
    """A server without targets, in a folder of its own; stopped and reaped on the way out."""
    binary = need_tool("prometheus")
    port = free_port()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [
                binary,
                f"--config.file={write_configuration(folder)}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            wait_for(lambda: is_up(client), "a Prometheus that is ready")
            yield Prometheus(client, folder)
    finally:
        stop(process)
