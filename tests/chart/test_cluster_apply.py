"""Every object of the chart on a real kube-apiserver: accepted, made into pods, and no right too many."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.chart import EVERYTHING, render, render_text
from tests.cluster.control_plane import ControlPlane, run_control_plane, wait_for

pytestmark = pytest.mark.real

NODES = ("worker-1", "worker-2", "worker-3")
VALUES = (*EVERYTHING, "namespace.create=true")
AGENT = "system:serviceaccount:nodescope:nodescope-agent"
EXTENDER = "system:serviceaccount:nodescope:nodescope-extender"
MCP = "system:serviceaccount:nodescope:nodescope-mcp"
CLUSTER = "system:serviceaccount:nodescope:nodescope-cluster"
PROMETHEUS = "system:serviceaccount:monitoring:prometheus"
MAY = [
    (AGENT, "list", "pods", "default"),
    (AGENT, "watch", "pods", "default"),
    (AGENT, "patch", "nodes", ""),
    (AGENT, "create", "events", "default"),
    (AGENT, "patch", "events", "default"),
    (EXTENDER, "list", "nodes", ""),
    (EXTENDER, "watch", "pods", "default"),
    (MCP, "list", "pods", "nodescope"),
    (CLUSTER, "list", "pods", "nodescope"),
    (CLUSTER, "watch", "pods", "nodescope"),
    (PROMETHEUS, "list", "pods", "nodescope"),
]
MAY_NOT = [
    (AGENT, "delete", "pods", "default"),
    (AGENT, "create", "pods", "nodescope"),
    (AGENT, "get", "secrets", "nodescope"),
    (AGENT, "update", "nodes", ""),
    (AGENT, "get", "nodes/proxy", ""),
    (AGENT, "list", "events", "default"),
    (AGENT, "delete", "events", "default"),
    (AGENT, "create", "pods/exec", "default"),
    (EXTENDER, "patch", "nodes", ""),
    (EXTENDER, "get", "secrets", "default"),
    (EXTENDER, "create", "pods/binding", "default"),
    (MCP, "list", "pods", "default"),
    (MCP, "list", "nodes", ""),
    (MCP, "get", "secrets", "nodescope"),
    (CLUSTER, "list", "pods", "default"),
    (CLUSTER, "list", "nodes", ""),
    (CLUSTER, "get", "secrets", "nodescope"),
    (CLUSTER, "delete", "pods", "nodescope"),
    (CLUSTER, "create", "pods/exec", "nodescope"),
    (PROMETHEUS, "list", "pods", "default"),
    (PROMETHEUS, "get", "nodes/proxy", ""),
]


def monitoring_kind(kind: str) -> dict[str, Any]:
    """The Prometheus operator's kinds, as far as the API server cares."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    group = "monitoring.coreos.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    folder = tmp_path_factory.mktemp("plane")
    yield from run_control_plane(folder, "kube-scheduler", "kube-controller-manager", "kubectl")


@pytest.fixture(scope="module")
def applied(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The chart with every feature, applied for good."""
    kinds = [monitoring_kind(kind) for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule")]
    folder = tmp_path_factory.mktemp("manifests")
    crds = folder / "crds.yaml"
    crds.write_text(yaml.safe_dump_all(kinds))
    plane.kubectl("apply", "--server-side", "-f", crds)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    runtime = folder / "runtime.yaml"
    runtime.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": "nvidia"},
                "handler": "nvidia",
            }
        )
    )
    plane.kubectl("apply", "-f", runtime)
    for node in NODES:
        plane.create_node(node)
    everything = folder / "everything.yaml"
    everything.write_text(render_text(*VALUES))
    # A dry run needs the namespaces that it would make.
    for name in ("nodescope", "monitoring"):
        plane.kubectl("create", "namespace", name)
    plane.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", everything)
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", everything)
    # The quota of the agents' class has a status.
    plane.start_controllers("resourcequota-controller")
    # Its extender is not there, which may not matter.
    plane.start_scheduler(plane.write_scheduler_config())
    return plane


def test_every_object_is_there(applied: ControlPlane) -> None:
    for thing in render(*VALUES):
        about = thing["metadata"]
        where = ("-n", about["namespace"]) if "namespace" in about else ()
        group = thing["apiVersion"].rpartition("/")[0]
        kind = f"{thing['kind']}.{thing['apiVersion'].rpartition('/')[2]}.{group}" if group else thing["kind"]
        applied.kubectl("get", kind, about["name"], *where)


def test_the_daemon_set_s_pods_are_on_every_node_as_the_chart_says(applied: ControlPlane) -> None:
    def placed() -> dict[str, Any]:
        with applied.client() as client:
            path = "/api/v1/namespaces/nodescope/pods?labelSelector=app.kubernetes.io/component%3Dagent"
            pods = client.read(path)["items"]
        found = {pod["spec"]["nodeName"]: pod for pod in pods if pod["spec"].get("nodeName")}
        return found if len(found) == len(NODES) else {}

    pods = wait_for("a pod on every node", placed, 90)
    assert sorted(pods) == sorted(NODES)
    for pod in pods.values():
        spec = pod["spec"]
        assert spec["hostPID"] is True
        assert not spec.get("hostNetwork")
        assert [container["name"] for container in spec["containers"]] == [
            "agent",
            "viewer",
            "consolidator",
            "pcm",
        ]
        agent = spec["containers"][0]["securityContext"]
        assert agent["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "PERFMON"]}
        assert agent["privileged"] is False
        writable = [
            mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"] if not mount.get("readOnly")
        ]
        assert sorted(writable) == ["/data", "/tmp"]  # noqa: S108 - a mount point in the pod


@pytest.mark.parametrize(("who", "verb", "what", "where"), MAY)
def test_an_account_may(applied: ControlPlane, who: str, verb: str, what: str, where: str) -> None:
    # The API server reads new roles by a watch of its own, which is late on a busy machine.
    wait_for("the right is known", lambda: ask(applied, who, verb, what, where) == "yes", 30)


@pytest.mark.parametrize(("who", "verb", "what", "where"), MAY_NOT)
def test_an_account_may_not(applied: ControlPlane, who: str, verb: str, what: str, where: str) -> None:
    assert ask(applied, who, verb, what, where) == "no"


def ask(plane: ControlPlane, who: str, verb: str, what: str, where: str) -> str:
    """What the authorizer says, the way kubectl auth can-i asks it."""
    resource, _, sub = what.partition("/")
    attributes = {"verb": verb, "resource": resource, "subresource": sub, "namespace": where}
    groups = ["system:serviceaccounts", "system:authenticated"]
    spec = {"user": who, "groups": groups, "resourceAttributes": attributes}
    with plane.client() as client:
        answer = client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return "yes" if answer["status"]["allowed"] else "no"


def test_uninstalling_leaves_nothing_behind(applied: ControlPlane, tmp_path: Path) -> None:
    """Last: what the chart made is what the chart's manifests remove."""
    everything = tmp_path / "everything.yaml"
    everything.write_text(render_text(*VALUES))
    applied.stop("kube-controller-manager")
    applied.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", everything)
    roles = "clusterroles,clusterrolebindings"
    assert applied.kubectl("get", roles, "-l", "app.kubernetes.io/part-of=nodescope", "-o", "name") == ""
    policies = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    assert applied.kubectl("get", policies, "-o", "name") == ""
