"""Two replicas of the extender: whichever is asked tells what either decided."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.cluster.control_plane import free_port, wait_for
from tests.cluster.programs import Extender, run_program

pytestmark = pytest.mark.real

LABELS = {"fpga-scheduling.io/enabled": "true"}


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[list[Extender]]:
    ports = free_port(), free_port()
    flags = [
        "extender",
        "--no-kubernetes",
        *(word for port in ports for word in ("--peers", f"127.0.0.1:{port}")),
    ]
    with (
        run_program([*flags, "--port", str(ports[0])], tmp_path / "a") as one,
        run_program([*flags, "--port", str(ports[1])], tmp_path / "b") as other,
    ):
        made = [Extender(f"http://127.0.0.1:{port}", process) for port, process in zip(ports, (one, other))]
        for replica in made:
            wait_for("a replica is ready", replica.is_ready, 60)
        yield made


def decide(replica: Extender, pod: str) -> None:
    nodes = {"items": [{"metadata": {"name": name}} for name in ("n1", "n2")]}
    about = {"name": pod, "namespace": "d", "uid": pod, "labels": LABELS}
    body = {"Pod": {"metadata": about}, "Nodes": nodes, "NodeNames": None}
    httpx.post(f"{replica.url}/prioritize", content=json.dumps(body), timeout=10).raise_for_status()


def test_any_replica_explains_what_one_decided(replicas: list[Extender]) -> None:
    one, other = replicas
    decide(one, "web")
    assert other.get("/explain?pod=d/web").json()["pod"] == "d/web"
    # Asked by a replica it answers for itself alone: no question goes round in circles.
    assert other.get("/explain?pod=d/web&here=1").status_code == 404
    assert other.get("/explain?pod=d/nobody").status_code == 404


def test_the_newer_decision_is_told(replicas: list[Extender]) -> None:
    one, other = replicas
    decide(one, "web")
    decide(other, "web")
    newest = other.get("/explain?pod=d/web&here=1").json()["at"]
    assert one.get("/explain?pod=d/web").json()["at"] == newest


def test_a_replica_that_is_gone_takes_nothing_away(replicas: list[Extender]) -> None:
    one, other = replicas
    decide(one, "web")
    other.process.kill()
    other.process.wait()
    assert one.get("/explain?pod=d/web").status_code == 200
