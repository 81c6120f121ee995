"""The test control plane itself: a Deployment becomes a pod on a node, by the stock scheduler."""

from collections.abc import Iterator

import pytest
from tests.cluster.control_plane import ControlPlane, run_control_plane, wait_for

pytestmark = pytest.mark.real

SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaderElect: false}}
"""


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(
        tmp_path_factory.mktemp("plane"), "kube-scheduler", "kube-controller-manager"
    )


def test_a_deployment_becomes_a_pod_on_a_node(plane: ControlPlane) -> None:
    """The seed's Deployment, as it is."""
    config = plane.folder / "scheduler.yaml"
    config.write_text(SCHEDULER.format(kubeconfig=plane.kubeconfig("scheduler-token")))
    plane.start_scheduler(config)
    plane.start_controllers()
    plane.create_node("worker")
    labels = {"app": "nginx", "fpga-scheduling.io/enabled": "true"}
    container = {"name": "nginx", "image": "nginx:1.17.10", "ports": [{"containerPort": 80}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "nginx"}}, "template": template}
    with plane.client() as client:
        path = "/apis/apps/v1/namespaces/default/deployments"
        client.create(path, {"metadata": {"name": "nginx-deployment"}, "spec": spec})

        def placed() -> list[str]:
            pods = client.read("/api/v1/namespaces/default/pods")["items"]
            return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

        assert wait_for("the pod is placed", placed, 60) == ["worker"]
