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

from nodescope.base.clock import SystemClock
from nodescope.base.fpga_state import KEY, STATE_BYTES
from nodescope.kube.watch import Watch

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
    command += ["--node", node, "--kubeconfig", str(kubeconfig), "--no-archive", *flags]
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
        wait_for("the source says so", lambda: agent.source()["state"] == "ok", 15)
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
    with plane.client() as client:
        client.patch("/api/v1/nodes/fpga", {"metadata": {"annotations": {"human": "here"}}})
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
    with plane.client() as client:
        client.patch("/api/v1/nodes/original", change)
    with run_agent(root, plane.kubeconfig(AGENT), "original"):
        found = wait_for(
            "version 2 is written", lambda: (one := read_state(plane, "original"))["version"] == 2 and one, 20
        )
    assert found["recentUsage"] == pytest.approx(6000, rel=0.1)
    assert found["recentBitstreamIdentifiers"] == {"def": {}}
    assert "UsageState" not in found
    assert len(json.dumps(found)) <= STATE_BYTES


def test_writers_of_one_node_never_lose_each_other_s_keys(plane: ControlPlane, root: Path) -> None:
    """An agent with both notes and a human who patches a hundred keys meanwhile."""
    plane.create_node("shared")
    with run_agent(root, plane.kubeconfig(AGENT), "shared", "--annotate", "fpga,window") as agent:
        agent.post(duration_ms="500", bitstream_identifier="abc")
        with plane.client() as client:
            for number in range(100):
                change = {"metadata": {"annotations": {f"human/{number}": "here"}}}
                client.patch("/api/v1/nodes/shared", change)
        wait_for("both notes are written", lambda: len(plane.read_annotations("shared")) == 102, 30)
    found = plane.read_annotations("shared")
    load = json.loads(found["nodescope.io/window"])
    assert (load["version"], load["windowSeconds"]) == (1, 20)
    assert json.loads(found[KEY])["recentUsage"] == 500


def test_a_flood_of_events_is_counted_and_written_seldom(plane: ControlPlane, root: Path) -> None:
    """As many as one sender can post in 20 s, of a hundred bitstreams: at most 3 writes of at most 1 KiB."""
    plane.create_node("flood")
    with run_agent(root, plane.kubeconfig(AGENT), "flood") as agent, httpx.Client() as sender:
        until, sent = time.monotonic() + 20, 0
        while time.monotonic() < until:
            body = {"timestamp_ms": str(time.time_ns() // 10**6), "duration_ms": "2.5"}
            body["bitstream_identifier"] = f"bitstream-{sent % 100}"
            assert sender.post(f"{agent.url}/", data=body).text == "ok"
            sent += 1
        time.sleep(2)
        text = agent.get("/metrics").text
        assert f'fpga_events_total{{timestamp="window"}} {sent}\n' in text
        written = next(line for line in text.splitlines() if 'syncs_total{outcome="written"}' in line)
        assert 1 <= int(written.split()[-1]) <= 3
    assert len(plane.read_annotations("flood")[KEY].encode()) <= STATE_BYTES


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
        wait_for("the source says so", lambda: agent.source()["state"] == "ok", 15)


class Nobody:
    """A listener that does not care."""

    def replace(self, items: object) -> None: ...

    def change(self, item: object) -> None: ...

    def remove(self, item: object) -> None: ...


def test_a_version_that_the_server_forgot_is_listed_anew(plane: ControlPlane) -> None:
    """A server that has just started knows nothing of the time before: 410, and the watch goes on."""
    plane.stop("kube-apiserver")
    plane.start_api()
    watch = Watch(plane.client(), "/api/v1/nodes", {}, Nobody(), SystemClock())
    watch._version = "1"
    watch.start()
    try:
        wait_for("all is listed", lambda: watch.state.lists == 1, 30)
        wait_for("and watched", lambda: watch.state.watches >= 2 and watch.state.status == "current", 30)
    finally:
        watch.stop()
