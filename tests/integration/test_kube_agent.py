"""Names and annotations against a real kube-apiserver: nothing of it is imitated."""

import base64
import json
import subprocess
import time
from pathlib import Path

import pytest
from tests.cluster.control_plane import ControlPlane, wait_for
from tests.cluster.programs import NODESCOPE, clean_environment, run_agent
from tests.cluster.trials import check_flood, check_outage, read_state
from tests.fpga.test_state import VERSION_1
from tests.nodes.pods import DATABASE, WEB
from tests.support import WALL_NS, copy_node

from nodescope.base.clock import SystemClock
from nodescope.fpga.state import KEY, STATE_BYTES
from nodescope.kube.watch import ObjectWatch

pytestmark = pytest.mark.real

AGENT = "agent-token"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with containers, in a folder of the test's own."""
    return copy_node("cgroup2-systemd", tmp_path / "root")


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
        workload = ("workload", "workload_kind", "workload_known_by")
        assert [found[key] for key in workload] == ["shop", "Deployment", "api"]
        # A pod of another node is none of our business.
        assert agent.container(DATABASE.container("postgres"))["name_source"] == "logs"
        wait_for("the source says so", lambda: agent.source()["state"] == "ok", 15)
        published = agent.get("/metrics").text
        assert 'pod="shop"' in published
        assert 'workload="shop",workload_kind="Deployment"' in published


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
        assert agent.container(WEB.container("app"))["name_source"] == "bundle"
        notes = wait_for("so is the other one", lambda: agent.get("/status").json()["annotations"], 10)
        assert notes["keys"] == [KEY]
        assert notes["written"] == 0
        assert "needs get and patch on nodes" in notes["reason"]


def test_a_token_that_the_server_does_not_know_is_a_failure_that_names_it(
    plane: ControlPlane, root: Path
) -> None:
    """Expired, or of another cluster: both look alike to who holds it."""
    kubeconfig = plane.kubeconfig("expired-token")
    with run_agent(root, kubeconfig, "names") as agent:
        source = wait_for("it is told", lambda: "401" in (one := agent.source())["reason"] and one, 30)
        assert source["state"] == "failed"
        assert f"kubeconfig {kubeconfig} is not accepted" in source["reason"]
        assert "expired" in agent.get("/status").json()["annotations"]["reason"]


@pytest.mark.parametrize(
    ("token", "node", "said"),
    [
        (AGENT, "told", "may be written to node told"),
        (AGENT, "tolld", "refused: 404"),
        ("nobody-token", "told", "needs get and patch on nodes"),
        ("expired-token", "told", "has expired, or is of another cluster"),
    ],
)
def test_who_asks_beforehand_is_told_whether_annotations_could_be_written(
    plane: ControlPlane, root: Path, token: str, node: str, said: str
) -> None:
    """`nodescope sources` rehearses the write: one line, no traceback, and nothing changes."""
    if "told" not in plane.kubectl("get", "nodes", "-o", "name"):
        plane.create_node("told")
    command = [*NODESCOPE, "sources", "--root", str(root), "--node", node]
    command += ["--kubeconfig", str(plane.kubeconfig(token))]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment())
    (line,) = [line for line in found.stdout.splitlines() if line.startswith("annotations:")]
    assert said in line
    assert "Traceback" not in found.stdout + found.stderr
    assert plane.read_annotations("told") == {}


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


def date_blob(text: str, seconds: int) -> str:
    """Go's blob with its times moved: eight bytes of seconds behind a version byte and a length."""
    blob = bytearray(base64.b64decode(text))
    at = blob.find(b"\x0f\x01\x00\x00\x00\x0e")
    while at >= 0:
        moved = int.from_bytes(blob[at + 2 : at + 10], "big") + seconds
        blob[at + 2 : at + 10] = moved.to_bytes(8, "big")
        at = blob.find(b"\x0f\x01\x00\x00\x00\x0e", at + 10)
    return base64.b64encode(bytes(blob)).decode()


def test_the_annotation_of_the_original_collector_is_taken_over(plane: ControlPlane, root: Path) -> None:
    """Version 1 with its Go blobs becomes version 2: every event at its own time."""
    plane.create_node("original")
    later = int(time.time()) - WALL_NS // 10**9
    blobs = {
        key: date_blob(str(VERSION_1[key]), later)
        for key in ("UsageState", "ReconfigurationState", "BitstreamState")
    }
    plane.annotate("original", **{KEY: json.dumps({**VERSION_1, **blobs})})
    with run_agent(root, plane.kubeconfig(AGENT), "original"):
        found = wait_for(
            "version 2 is written", lambda: (one := read_state(plane, "original"))["version"] == 2 and one, 20
        )
    assert found["recentUsage"] == pytest.approx(4542.325, rel=1e-4)
    assert found["recentReconfigurationTime"] == pytest.approx(10_020.5, rel=1e-4)
    assert found["recentBitstreamIdentifiers"] == {"abc": {}}
    # Two sessions of the last seconds, and one 200 s old: a third into the window.
    assert sum(found["state"]["usage"][20:]) == pytest.approx(330, abs=5)
    assert sum(found["state"]["usage"][:15]) == pytest.approx(669, abs=5)
    assert found["state"]["sessions"] == 3
    assert found["state"]["bitstreams"][0][1] == 20.5
    assert "UsageState" not in found
    assert len(json.dumps(found)) <= STATE_BYTES


def test_writers_of_one_node_never_lose_each_other_s_keys(plane: ControlPlane, root: Path) -> None:
    """Two agents, one a note each, and a human who patches a hundred keys meanwhile."""
    plane.create_node("shared")
    kubeconfig = plane.kubeconfig(AGENT)
    with (
        run_agent(root, kubeconfig, "shared", "--annotate", "fpga") as first,
        run_agent(root, kubeconfig, "shared", "--annotate", "window", "--no-lease") as second,
    ):
        first.post(duration_ms="500", bitstream_identifier="abc")
        with plane.client() as client:
            for number in range(100):
                change = {"metadata": {"annotations": {f"human/{number}": "here"}}}
                client.patch("/api/v1/nodes/shared", change)
        wait_for("both notes are written", lambda: len(plane.read_annotations("shared")) == 102, 30)
        written = 'nodescope_annotation_syncs_total{outcome="written"}'
        assert first.metric(written) >= 1
        assert second.metric(written) >= 1
    found = plane.read_annotations("shared")
    assert {f"human/{number}" for number in range(100)} < set(found)
    load = json.loads(found["nodescope.io/window"])
    assert (load["version"], load["windowSeconds"]) == (1, 20)
    assert json.loads(found[KEY])["recentUsage"] == 500


def test_a_flood_of_events_is_counted_and_written_seldom(plane: ControlPlane, root: Path) -> None:
    """3,000 events of a hundred bitstreams in some 12 s: at most 2 writes of at most 1 KiB."""
    check_flood(plane, root, "flood", 3000, 12)


def test_while_the_api_server_is_away_names_stay_and_then_catch_up(plane: ControlPlane, root: Path) -> None:
    """Ticks go on; what happened meanwhile is there when the server is back."""
    check_outage(plane, root, "outage", 5)


class Nobody:
    """A listener that does not care."""

    def replace(self, items: object) -> None: ...

    def change(self, item: object) -> None: ...

    def remove(self, item: object) -> None: ...


def test_a_version_that_the_server_forgot_is_listed_anew(plane: ControlPlane) -> None:
    """A server that has just started knows nothing of the time before: 410, and the watch goes on."""
    plane.stop("kube-apiserver")
    plane.start_api()
    watch = ObjectWatch(plane.client(), "/api/v1/nodes", {}, Nobody(), SystemClock())
    watch._version = "1"
    watch.start()
    try:
        wait_for("all is listed", lambda: watch.state.lists == 1, 30)
        wait_for("and watched", lambda: watch.state.watches >= 2 and watch.state.status == "current", 30)
    finally:
        watch.stop()


def test_bookmarks_of_the_server_move_a_quiet_watch_on(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing happens on this node, the version stays one that the server still knows."""
    # The server sends a bookmark two seconds before a watch ends, and every minute.
    monkeypatch.setattr("nodescope.kube.watch.WATCH_SECONDS", 8)
    watch = ObjectWatch(
        plane.client(), "/api/v1/pods", {"fieldSelector": "spec.nodeName=quiet"}, Nobody(), SystemClock()
    )
    watch.start()
    try:
        wait_for("all is listed", lambda: watch.state.watches == 1, 30)
        listed, told = int(watch._version), watch.state.events
        plane.create_pod("on-another-node", "busy")
        wait_for("a bookmark", lambda: int(watch._version) > listed, 30)
        assert watch.state.events > told
        assert (watch.state.lists, watch.state.errors) == (1, 0)
    finally:
        watch.stop()
