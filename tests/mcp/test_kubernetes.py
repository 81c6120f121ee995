"""Against a real API server: nodes come and go with their viewers' pods."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cluster.control_plane import ControlPlane, run_control_plane, wait_for
from tests.mcp.servers import nodescope
from tests.mcp.test_viewers import misbehaving
from tests.use.mcp.asking import Asker, connected

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mcp")]
LABELS = {"app.kubernetes.io/name": "nodescope", "app.kubernetes.io/component": "agent"}
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(tmp_path_factory.mktemp("mcp-plane"))


def make_pod(
    plane: ControlPlane, name: str, node: str, address: str, labels: dict[str, str] = LABELS
) -> None:
    """A viewer's pod on a node; its port is named, because here all share one address."""
    port = urlsplit(address).port
    ports = [{"name": "viewer", "containerPort": port}]
    container = {"name": "viewer", "image": "nodescope", "ports": ports}
    with plane.client() as client:
        content = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": node, "containers": [container]},
        }
        client.create(PODS, content)
    set_ready(plane, name, is_ready=True)


def set_ready(plane: ControlPlane, name: str, *, is_ready: bool) -> None:
    ready = {"type": "Ready", "status": "True" if is_ready else "False"}
    if not is_ready:
        ready["reason"] = "ContainersNotReady"
    status = {
        "phase": "Running",
        "podIP": "127.0.0.1",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [ready],
    }
    with plane.client() as client:
        client.patch(f"{PODS}/{name}/status", {"status": status})


def delete_pod(plane: ControlPlane, name: str) -> None:
    with plane.client() as client:
        client._ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": "0"})


def ready_nodes(asker: Asker) -> set[str]:
    result = asker.raw("list_nodes", {})
    return set() if result.is_error else {one["node"] for one in result.structured_content["findings"]}


def reasons(asker: Asker) -> dict[str, str]:
    answer: dict[str, Any] = asker.ask("list_nodes")
    return {one["node"]: one["reason"] for one in answer.get("nodes_not_answering", [])}


def test_nodes_come_and_go_with_their_pods(
    plane: ControlPlane, viewers: dict[str, str], tmp_path: Path
) -> None:
    """Appear, become unready, move, hang, vanish; the label decides, and a stranger's pod is not asked."""
    flags = ["--kubernetes", "--kubeconfig", str(plane.kubeconfig("admin-token")), "--namespace", "default"]
    with (
        nodescope("mcp", "--port", "0", "--deadline", "3s", *flags) as (address, _),
        connected(address) as asker,
    ):
        assert "no pod has the label" in asker.error("list_nodes")
        make_pod(plane, "scope-a", "worker-a", viewers["demo-1"])
        wait_for("worker-a appears", lambda: ready_nodes(asker) == {"worker-a"})
        make_pod(plane, "scope-b", "worker-b", viewers["demo-2"])
        make_pod(plane, "other", "worker-c", viewers["demo-2"], {"app": "other"})
        wait_for("worker-b appears", lambda: ready_nodes(asker) == {"worker-a", "worker-b"})
        top = asker.ask("top_containers", by="memory")
        assert {one["node"] for one in top["findings"]} == {"worker-a", "worker-b"}

        set_ready(plane, "scope-b", is_ready=False)
        wait_for("worker-b is not ready", lambda: ready_nodes(asker) == {"worker-a"})
        assert "ContainersNotReady" in reasons(asker)["worker-b"]
        assert "not ready" in asker.error("top_containers", node="worker-b")

        # A rollout: a second pod on the node is ready while the first is not.
        make_pod(plane, "scope-b2", "worker-b", viewers["demo-2"])
        wait_for("worker-b has a new pod", lambda: ready_nodes(asker) == {"worker-a", "worker-b"})

        with misbehaving(b"") as silent:
            make_pod(plane, "scope-d", "worker-d", silent)
            wait_for("worker-d is known", lambda: "worker-d" in reasons(asker))
            answer = asker.ask("top_containers", by="memory")
            assert {one["node"] for one in answer["findings"]} == {"worker-a", "worker-b"}
            assert [one["node"] for one in answer["nodes_not_answering"]] == ["worker-d"]
        delete_pod(plane, "scope-d")

        delete_pod(plane, "scope-a")
        wait_for("worker-a vanishes", lambda: ready_nodes(asker) == {"worker-b"})
        assert "no node" in asker.error("top_containers", node="worker-a")


def test_an_account_without_the_right_is_told(plane: ControlPlane) -> None:
    """Not an empty list: the API server's own words, in the error and on /readyz."""
    flags = ["--kubernetes", "--kubeconfig", str(plane.kubeconfig("nobody-token"))]
    with nodescope("mcp", "--port", "0", *flags) as (address, _), connected(address) as asker:
        wait_for("the refusal arrives", lambda: "forbidden" in asker.error("list_nodes").lower())
