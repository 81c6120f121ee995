"""Names and annotations against a real kube-apiserver: nothing of it is imitated."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cluster.control_plane import ControlPlane, free_port, run_control_plane, wait_for
from tests.nodes.make_nodes import DATABASE, WEB
from tests.support import NODES

from nodescope.base.errors import KubernetesRefused
from nodescope.publish.fpga_state import KEY, STATE_BYTES

pytestmark = pytest.mark.real

AGENT = "agent-token"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    for made in run_control_plane(tmp_path_factory.mktemp("plane")):
        made.allow_agent()
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with containers, in a folder of the test's own."""
    target = tmp_path / "root"
    shutil.copytree(NODES / "cgroup2-systemd" / "t0", target, symlinks=True)
    return target


class Agent:
    """The agent as a process."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=10)

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


@contextmanager
def run_agent(root: Path, kubeconfig: Path, node: str, *flags: str) -> Iterator[Agent]:
    port = free_port()
    command = [sys.executable, "-m", "nodescope", "agent", "--root", str(root), "--port", str(port)]
    command += ["--node", node, "--kubeconfig", str(kubeconfig), *flags]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NODESCOPE_")}
    with (root.parent / f"agent-{port}.log").open("wb") as log:
        program = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        agent = Agent(f"http://127.0.0.1:{port}")
        wait_for("the agent answers", lambda: answers(agent), 60)
        yield agent
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait(20)


def answers(agent: Agent) -> bool:
    try:
        return agent.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def read_state(plane: ControlPlane, node: str) -> dict[str, Any]:
    text = plane.read_annotations(node).get(KEY)
    return json.loads(text) if text else {}


def test_a_container_is_named_by_the_api_server(plane: ControlPlane, root: Path) -> None:
    """Pod, container, image, restarts, labels and owner; the layer that said so is told."""
    plane.create_node("names")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "shop-5d4f",
        "uid": "1",
        "controller": True,
    }
    labels = {"app": "shop", "pod-template-hash": "5d4f"}
    plane.create_pod("shop", "names", WEB.container("app"), labels=labels, ownerReferences=[owner])
    plane.create_pod("elsewhere", "other", DATABASE.container("postgres"))
    with run_agent(root, plane.kubeconfig(AGENT), "names") as agent:
        found = wait_for(
            "the name arrives",
            lambda: (one := agent.container(WEB.container("app"))).get("name_source") == "kube" and one,
            30,
        )
        assert (found["namespace"], found["pod"], found["container"]) == ("default", "shop", "app")
        assert (found["image"], found["restarts"]) == ("nginx:1.17.10", "2")
        assert (found["owner"], found["labels"]) == ("Deployment/shop", "app=shop,pod-template-hash=5d4f")
        # A pod of another node is none of our business.
        assert agent.container(DATABASE.container("postgres"))["name_source"] == "logs"
        assert agent.source()["state"] == "ok"
        assert 'pod="shop"' in agent.get("/metrics").text


def test_a_pod_that_starts_later_is_named_within_seconds(plane: ControlPlane, root: Path) -> None:
    """By the watch, without another list."""
    plane.create_node("later")
    with run_agent(root, plane.kubeconfig(AGENT), "later") as agent:
        wait_for("the watch is current", lambda: agent.source()["state"] == "ok", 30)
        plane.create_pod("late", "later", WEB.container("app"))
        wait_for("the name arrives", lambda: agent.container(WEB.container("app"))["pod"] == "late", 10)
        assert "nodescope_kubernetes_lists_total 1\n" in agent.get("/metrics").text


def test_an_account_without_the_right_is_absent_with_the_remedy(plane: ControlPlane, root: Path) -> None:
    """Names stay those of the node's own files; nothing fails."""
    with run_agent(root, plane.kubeconfig("nobody-token"), "names") as agent:
        source = wait_for(
            "the refusal is told", lambda: "forbidden" in (one := agent.source())["reason"] and one, 30
        )
        assert source["state"] == "absent"
        assert "get, list and watch on pods" in source["reason"]
        assert agent.container(WEB.container("app"))["name_source"] == "logs"


def test_an_event_is_in_the_annotation_within_ten_seconds(plane: ControlPlane, root: Path) -> None:
    """The seed's line, and a human's own annotation beside it that stays."""
    plane.create_node("fpga")
    plane.client().patch("/api/v1/nodes/fpga", {"metadata": {"annotations": {"human": "here"}}})
    with run_agent(root, plane.kubeconfig(AGENT), "fpga") as agent:
        assert agent.post(reconfiguration_ms="10000", bitstream_identifier="def").text == "ok"
        state = wait_for("the annotation appears", lambda: read_state(plane, "fpga"), 10)
    assert state["recentReconfigurationTime"] == 10_000
    assert state["recentBitstreamIdentifiers"] == {"def": {}}
    assert abs(state["updatedAt"] - time.time()) < 30
    assert plane.read_annotations("fpga")["human"] == "here"


def test_a_restart_keeps_the_window(plane: ControlPlane, root: Path) -> None:
    """What the first run was told is still there for the second, with what it is told itself."""
    plane.create_node("restart")
    with run_agent(root, plane.kubeconfig(AGENT), "restart") as agent:
        agent.post(duration_ms="3042.325197", bitstream_identifier="abc")
        wait_for("the annotation appears", lambda: read_state(plane, "restart"), 10)
    with run_agent(root, plane.kubeconfig(AGENT), "restart") as agent:
        wait_for(
            "the window is restored",
            lambda: "fpga_recent_usage_seconds 3.04" in agent.get("/metrics").text,
            15,
        )
        assert 'fpga_bitstream_info{bitstream="abc"} 1' in agent.get("/metrics").text
        agent.post(duration_ms="1000")
        wait_for("both are written", lambda: read_state(plane, "restart")["recentUsage"] > 4000, 20)


def test_the_annotation_of_the_original_collector_is_taken_over(plane: ControlPlane, root: Path) -> None:
    """Version 1 with its Go blobs becomes version 2 with its sums."""
    plane.create_node("original")
    state = {
        "recentUsage": 6000.0,
        "recentReconfigurationTime": 10000.0,
        "recentBitstreamIdentifiers": {"def": {}},
        "version": 1,
        "UsageState": "Dv+BAwEC/4IAAf+DAQIAAP+EAAH/gwAB",
        "ReconfigurationState": "Dv+BAwEC/4IAAf+DAQIAAA==",
        "BitstreamState": "DP+FAgEC/4YAAQwAAA==",
    }
    change = {"metadata": {"annotations": {KEY: json.dumps(state)}}}
    plane.client().patch("/api/v1/nodes/original", change)
    with run_agent(root, plane.kubeconfig(AGENT), "original"):
        found = wait_for(
            "version 2 is written", lambda: (one := read_state(plane, "original"))["version"] == 2 and one, 20
        )
    assert found["recentUsage"] == pytest.approx(6000, rel=0.1)
    assert found["recentBitstreamIdentifiers"] == {"def": {}}
    assert "UsageState" not in found
    assert len(json.dumps(found)) <= STATE_BYTES


def test_an_old_version_is_answered_as_gone(plane: ControlPlane) -> None:
    """What the watch takes as: list again."""
    client = plane.client()
    query = {"watch": "1", "resourceVersion": "1", "timeoutSeconds": "2"}
    try:
        codes = [event["object"].get("code") for event in client.stream("/api/v1/nodes", query, 10)]
    except KubernetesRefused as error:
        codes = [error.status]
    assert codes == [410]


def test_while_the_api_server_is_away_names_stay_and_then_catch_up(plane: ControlPlane, root: Path) -> None:
    """Ticks go on; what happened meanwhile is there when the server is back."""
    plane.create_node("outage")
    plane.create_pod("before", "outage", WEB.container("app"))
    with run_agent(root, plane.kubeconfig(AGENT), "outage") as agent:
        wait_for("the name arrives", lambda: agent.container(WEB.container("app"))["pod"] == "before", 30)
        plane.stop("kube-apiserver")
        wait_for("the outage is told", lambda: agent.source()["state"] == "failed", 30)
        assert agent.post(duration_ms="500", bitstream_identifier="xyz").text == "ok"
        ticks = agent.get("/status").json()["ticks"]["taken"]
        time.sleep(5)
        status = agent.get("/status").json()
        assert status["ticks"]["taken"] >= ticks + 4
        assert agent.container(WEB.container("app"))["pod"] == "before"
        plane.start_api()
        wait_for("the annotation catches up", lambda: read_state(plane, "outage"), 60)
        plane.create_pod("after", "outage", DATABASE.container("postgres"))
        wait_for(
            "the watch goes on", lambda: agent.container(DATABASE.container("postgres"))["pod"] == "after", 60
        )
        assert agent.source()["state"] == "ok"
