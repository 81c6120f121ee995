"""The page of the cluster as the chart installs it: the rendered Deployment, under the rendered Role of a real API server."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.cluster_nodes import NodePlan, write_node
from tests.chart.chart import CHART, run_helm
from tests.cluster.control_plane import ADMIN, ControlPlane, run_control_plane, wait_for
from tests.cluster.kubelet import Kubelet, can_mount
from tests.integration.agents import free_port
from tests.web.browsing import Running, running_viewer
from tests.web.test_cluster import hanging

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not can_mount(), reason="files are put in place by mounts: root is needed"),
]

TOKEN = "a-long-enough-secret"  # noqa: S105 - of a test
END_MS = 1_772_366_400_000
PODS = "/api/v1/namespaces/nodescope/pods"
# A slow machine starts viewers late; nobody measures here.
PATIENCE = 120


class ClusterPage:
    """The release, the pods of nodes' viewers, and what the page's API says."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.kubelet = Kubelet(plane, "nodescope", folder)
        self.port, self.probes = free_port(), free_port()
        self.running = ExitStack()

    def install(self) -> None:
        values = (
            "clusterViewer.enabled=true",
            f"clusterViewer.port={self.port}",
            f"clusterViewer.probePort={self.probes}",
            "clusterViewer.deadline=2s",
            "security.tokenSecret=nodescope-token",
        )
        words = [word for value in values for word in ("--set", value)]
        where = ("--kubeconfig", str(self.plane.kubeconfig(ADMIN)), "-n", "nodescope")
        done = run_helm("install", "nodescope", str(CHART), *where, *words)
        assert done.returncode == 0, done.stderr

    def serve_node(self, node: str) -> Running:
        """A node's viewer, which asks for the token, over an hour of a made-up node."""
        data, token = self.folder / node, self.folder / f"{node}.token"
        token.write_text(TOKEN)
        write_node(NodePlan(data, 1, 4, END_MS - 3_600_000, END_MS, name=node))
        output = self.folder / f"{node}.log"
        return self.running.enter_context(running_viewer(data, output, "--token-file", str(token)))

    def place_pod(self, node: str, url: str, *, is_ready: bool = True) -> None:
        """The DaemonSet's pod on a node, with its own labels; its port is the test's, as all share one address."""
        path = "/apis/apps/v1/namespaces/nodescope/daemonsets/nodescope"
        with self.plane.client() as client:
            labels = client.read(path)["spec"]["template"]["metadata"]["labels"]
            port = {"name": "viewer", "containerPort": int(url.rsplit(":", 1)[1])}
            container = {"name": "viewer", "image": "nodescope", "ports": [port]}
            about = {"name": f"nodescope-{node}", "labels": labels}
            client.create(PODS, {"metadata": about, "spec": {"nodeName": node, "containers": [container]}})
            ready = {"type": "Ready", "status": str(is_ready), "reason": "" if is_ready else "Unhealthy"}
            addresses = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
            status = {"phase": "Running", "conditions": [ready], **addresses}
            client.patch(f"{PODS}/nodescope-{node}/status", {"status": status})

    def delete_pod(self, node: str) -> None:
        with self.plane.client() as client:
            client._ask("DELETE", f"{PODS}/nodescope-{node}", {"gracePeriodSeconds": "0"})

    def ask(self, path: str, token: str = TOKEN) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=headers, timeout=60)

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.probes}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def wall(self) -> dict[str, Any]:
        content: dict[str, Any] = self.ask("/api/cluster/wall?range=1h").raise_for_status().json()
        return content

    def rows(self) -> dict[str, tuple[str, str]]:
        """By node: its state, and the reason where it is away."""
        return {row["node"]: (row["state"], row["reason"]) for row in self.wall()["nodes"]}

    def wait_for_row(self, node: str, state: str, said: str = "") -> None:
        def look() -> bool:
            found, reason = self.rows().get(node, ("", ""))
            return found == state and said in reason

        wait_for(f"{node} is {state} {said}", look, PATIENCE)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPage]:
    folder = tmp_path_factory.mktemp("plane")
    for plane in run_control_plane(folder, "kubectl"):
        plane.kubectl("create", "namespace", "nodescope")
        token = f"--from-literal=token={TOKEN}"
        plane.kubectl("-n", "nodescope", "create", "secret", "generic", "nodescope-token", token)
        made = ClusterPage(plane, tmp_path_factory.mktemp("pods"))
        made.install()
        with made.running:
            made.running.enter_context(made.kubelet.run("nodescope-cluster"))
            wait_for("the page is ready", made.is_ready, PATIENCE)
            yield made


def test_nodes_come_hang_and_vanish_with_their_pods(page: ClusterPage) -> None:
    """A hung node is grey with its reason and costs only itself; one that goes stays grey, or leaves nothing."""
    wait_for("no pod yet is said", lambda: "no pod has the label" in page.wall()["trouble"], PATIENCE)
    with hanging() as hung:
        page.place_pod("worker-1", page.serve_node("worker-1").url)
        page.place_pod("worker-2", page.serve_node("worker-2").url)
        page.place_pod("worker-3", hung)
        page.place_pod("worker-4", hung, is_ready=False)
        for node in ("worker-1", "worker-2"):
            page.wait_for_row(node, "ok")
        page.wait_for_row("worker-3", "away", "did not answer in time")
        page.wait_for_row("worker-4", "away", "nodescope-worker-4 is not ready: Unhealthy")
        wall = page.wall()
        assert "trouble" not in wall or wall["trouble"] == ""
        assert {row["node"] for row in wall["nodes"] if row["containers"] == 4} == {"worker-1", "worker-2"}
        # Down to the second of a node, by its name, through this page alone.
        series = page.ask("/api/timeseries?node=worker-2&metric=memory&range=5m").raise_for_status().json()
        assert {one["node"] for one in series["series"]} == {"worker-2"}

        page.delete_pod("worker-2")
        page.wait_for_row("worker-2", "away", "not listed any more")
        page.delete_pod("worker-4")
        wait_for("a node that never answered leaves nothing", lambda: "worker-4" not in page.rows(), PATIENCE)
        page.wait_for_row("worker-1", "ok")


def test_its_token_is_asked_for_and_its_role_was_enough(page: ClusterPage) -> None:
    """What it found, it found with rights to list and watch pods of its own namespace, and no other."""
    assert page.ask("/api/cluster/wall", token="").status_code == 401
    assert page.ask("/cluster").status_code == 200
    assert "forbidden" not in page.kubelet.read_log("nodescope-cluster")
    account = "--as=system:serviceaccount:nodescope:nodescope-cluster"

    def may(*words: str) -> bool:
        return page.plane.run_kubectl("auth", "can-i", *words, account).stdout.strip() == "yes"

    assert may("list", "pods", "-n", "nodescope")
    assert may("watch", "pods", "-n", "nodescope")
    for words in (
        ("get", "secrets", "-n", "nodescope"),
        ("list", "pods", "-n", "default"),
        ("list", "nodes"),
    ):
        assert not may(*words), words
