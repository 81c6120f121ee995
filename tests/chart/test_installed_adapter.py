"""The adapter as helm installs it: behind a real API server, asked by a real HPA controller, fed by a real agent."""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.chart.chart import CHART, run_helm
from tests.cluster.control_plane import ADMIN, ControlPlane, free_port, run_control_plane, wait_for
from tests.cluster.kubelet import Kubelet, can_mount
from tests.cluster.programs import Agent, run_program
from tests.cluster.scaling import (
    PROXY,
    PlayedKubelet,
    ask_raw,
    create_autoscaler,
    make_aggregation,
    make_authority,
    per_pod,
    read_replicas,
    sign,
    wait_available,
)
from tests.support import copy_node

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not can_mount(), reason="needs root and unshare: run it with sudo"),
]

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods"
SUMS = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
WEB = "labelSelector=app%3Dweb"


class Scene:
    """The release, the agent of its one node, and a Deployment whose pods use what a test says."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.root = copy_node("cgroup2-systemd", folder / "root")
        self.kubelet = Kubelet(plane, "nodescope", folder)
        self.api, self.http, self.probes, self.agent = (free_port() for _ in range(4))
        self.pods = PlayedKubelet(plane, "worker-1", self.root, "app=web")
        self.values = (
            "adapter.enabled=true",
            "adapter.external=true",
            "kubernetes.names=false",
            f"adapter.port={self.api}",
            f"adapter.httpPort={self.http}",
            f"adapter.probePort={self.probes}",
            f"agent.ports.metrics={self.agent}",
        )

    def install(self) -> None:
        words = [word for value in self.values for word in ("--set", value)]
        where = ("--kubeconfig", str(self.plane.kubeconfig(ADMIN)), "-n", "nodescope")
        done = run_helm("install", "nodescope", str(CHART), *where, *words)
        assert done.returncode == 0, done.stderr
        # There is no network of Services here: the API server reaches the adapter by another name of this machine.
        named = {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}
        with self.plane.client() as client:
            client.patch("/api/v1/namespaces/nodescope/services/nodescope-adapter", {"spec": named})
        self.tell_agent_s_address("127.0.0.1")

    def tell_agent_s_address(self, address: str) -> None:
        """As a kubelet does once the agent's pod runs."""
        query = {"labelSelector": "app.kubernetes.io/component=agent"}
        path = "/api/v1/namespaces/nodescope/pods"
        with self.plane.client() as client:
            pods = wait_for("the agent's pod", lambda: client.read(path, query)["items"], 60)
            name = pods[0]["metadata"]["name"]
            if not pods[0]["spec"].get("nodeName"):
                # Nobody schedules here.
                binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "worker-1"}}
                client.create(f"{path}/{name}/binding", binding)
            status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
            client.patch(f"{path}/{name}/status", {"status": status})

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.probes}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def ask(self, path: str, **options: object) -> httpx.Response:
        """Past the API server."""
        url = f"https://127.0.0.1:{self.api}{path}"
        return httpx.get(url, timeout=10, **{"verify": False, **options})  # type: ignore[arg-type]

    def read(self, metric: str) -> dict[str, str]:
        """By pod, through the API server; empty while nothing is known."""
        done = self.plane.run_kubectl("get", "--raw", f"{PODS}/*/{metric}?{WEB}")
        if done.returncode:
            assert "NotFound" in done.stderr, done.stderr
            return {}
        items = json.loads(done.stdout)["items"]
        return {item["describedObject"]["name"]: item["value"] for item in items}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    folder = tmp_path_factory.mktemp("plane")
    flags = make_aggregation(folder)
    yield from run_control_plane(folder, "kube-controller-manager", "kubectl", api_flags=flags)


@pytest.fixture(scope="module")
def scene(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(plane, tmp_path_factory.mktemp("pods"))
    plane.kubectl("create", "namespace", "nodescope")
    plane.create_node("worker-1")
    plane.start_controllers("horizontal-pod-autoscaler-controller")
    flags = ("--node", "worker-1", "--no-archive", "--no-kubernetes", "--port", str(made.agent))
    with run_program(["agent", "--root", str(made.root), *flags], made.folder / "agent.log") as process:
        agent = Agent(f"http://127.0.0.1:{made.agent}", process)
        wait_for("the agent answers", agent.is_ready, 60)
        made.install()
        with made.kubelet.run("nodescope-adapter"), made.pods:
            wait_for("the adapter is ready", made.is_ready, 90)
            wait_available(plane)
            plane.kubectl("create", "deployment", "web", "--image=nginx")
            yield made


def test_a_pod_s_last_seconds_are_its_metrics(scene: Scene) -> None:
    """Two cores, through the API server, the adapter and the agent, from the files of a cgroup."""
    scene.pods.cores = 2.0
    wait_for("two cores", lambda: any(value.startswith("2") for value in scene.read("cpu_max").values()), 60)
    found = ask_raw(scene.plane, f"{PODS}/*/memory?{WEB}")
    assert found["kind"] == "MetricValueList"
    assert all(int(item["value"]) > 2**20 and item["windowSeconds"] == 20 for item in found["items"])

    def is_sum() -> bool:
        (total,) = ask_raw(scene.plane, f"{SUMS}/memory?{WEB}")["items"]
        return int(total["value"]) == sum(map(int, scene.read("memory").values()))

    wait_for("the sum over the pods", is_sum, 60)
    node = ask_raw(scene.plane, "/apis/custom.metrics.k8s.io/v1beta2/nodes/worker-1/mem_util")
    assert node["items"][0]["describedObject"] == {"kind": "Node", "name": "worker-1", "apiVersion": "/v1"}


def test_the_cluster_lists_what_can_be_asked_for(scene: Scene) -> None:
    found = ask_raw(scene.plane, "/apis/custom.metrics.k8s.io/v1beta2")
    assert {"pods/cpu", "pods/cpu_contention_p95", "nodes/mem_bw_max"} <= {
        one["name"] for one in found["resources"]
    }


def test_an_autoscaler_scales_by_it_and_not_on_missing_data(scene: Scene) -> None:
    """Load: up. The agent gone: the size stays, although nothing is told any more."""
    scene.pods.cores = 0.1
    create_autoscaler(scene.plane, "web", per_pod("cpu", "500m"))
    scene.pods.cores = 2.0
    wait_for("more pods", lambda: read_replicas(scene.plane, "web") > 1, 120)
    before = read_replicas(scene.plane, "web")
    scene.tell_agent_s_address("127.0.0.2")
    scene.pods.cores = 0.0
    wait_for("old values are withheld", lambda: not scene.read("cpu"), 120)

    wait_for(
        "the HPA says that it knows nothing",
        lambda: "FailedGetPodsMetric" in scene.plane.kubectl("get", "hpa", "web", "-o", "yaml"),
        60,
    )
    assert read_replicas(scene.plane, "web") >= before
    scene.tell_agent_s_address("127.0.0.1")


def test_who_is_not_the_api_server_is_not_believed(scene: Scene, tmp_path: Path) -> None:
    """The headers of the aggregation layer count with its certificate only."""
    masters = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert scene.ask("/apis", headers=masters).status_code == 401
    make_authority(tmp_path, "other-ca")
    sign(tmp_path, "other-ca", PROXY, usage="clientAuth")
    with pytest.raises(httpx.HTTPError):
        scene.ask("/apis", headers=masters, verify=make_context(tmp_path, PROXY))
    # Of the right authority, but with another name.
    sign(scene.plane.folder, "front-proxy-ca", "somebody", usage="clientAuth")
    other = make_context(scene.plane.folder, "somebody")
    assert scene.ask("/apis", headers=masters, verify=other).status_code == 401
    right = make_context(scene.plane.folder, PROXY)
    assert scene.ask("/apis", headers=masters, verify=right).status_code == 200
    nobody = {"X-Remote-User": "nobody"}
    assert scene.ask(f"{PODS}/*/cpu?{WEB}", headers=nobody, verify=right).status_code == 403


def make_context(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context


def test_a_token_is_reviewed_and_so_is_what_it_may(scene: Scene) -> None:
    """As KEDA's metrics-api asks, past the API server."""

    def ask(token: str) -> int:
        return scene.ask(f"{SUMS}/memory?{WEB}", headers={"Authorization": f"Bearer {token}"}).status_code

    assert (ask("not-a-token"), ask("nobody-token")) == (401, 403)
    wait_for("its agent is there again", lambda: ask(ADMIN) == 200, 60)
