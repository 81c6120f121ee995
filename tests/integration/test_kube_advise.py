"""nodescope advise in front of a real API server: Leases, annotations, pods and nodes as they are there."""

import json
import subprocess
import time
from typing import Any

import pytest
from tests.cluster.control_plane import RBAC, ControlPlane
from tests.cluster.programs import NODESCOPE, clean_environment

from nodescope.base.workload.pod_use import NodeWorkloads, PodUse
from nodescope.fpga.node_lease import LEASE_LABEL, path_leases
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.node_workloads import WORKLOADS_KEY, render_workloads

pytestmark = pytest.mark.real


def render_notes(util: float, contention: float, uses: dict[str, PodUse]) -> dict[str, str]:
    metrics = {"mean_cpu_util": util, "mean_cpu_contention": contention, "mean_mem_util": 0.3, "cpus": 8.0}
    now = time.time()
    return {
        WINDOW_KEY: render_load(NodeLoad(now, 20, 9.0, metrics)),
        WORKLOADS_KEY: render_workloads(NodeWorkloads(now, uses)),
    }


def run_advise(plane: ControlPlane, user: str, *flags: str) -> "subprocess.CompletedProcess[str]":
    command = [*NODESCOPE, "advise", "--kubeconfig", str(plane.kubeconfig(user)), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())


def read_versions(plane: ControlPlane) -> list[str]:
    """Of all that it could have changed; the control plane renews Leases of its own in other namespaces."""
    path = "jsonpath={.items[*].metadata.resourceVersion}"
    whole = plane.kubectl("get", "pods,nodes", "-A", "-o", path)
    return [whole, plane.kubectl("-n", "nodescope", "get", "leases", "-o", path)]


def test_a_pod_of_a_crowded_node_is_named_and_nothing_is_changed(plane: ControlPlane) -> None:
    plane.clear()
    for name in ("namespace", "extender"):
        plane.kubectl("apply", "-f", RBAC / f"{name}.yaml")
    for node in ("full", "roomy", "cordoned", "dark"):
        plane.create_node(node)
    plane.kubectl("cordon", "cordoned")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-66b6c48dd5",
        "uid": "1",
        "controller": True,
    }
    labels = {"pod-template-hash": "66b6c48dd5"}
    plane.create_pod("web-66b6c48dd5-abcde", "full", ownerReferences=[owner], labels=labels)
    plane.create_pod("alone", "full")
    uses = {"default/web": PodUse(1, 3.0), "default/alone": PodUse(1, 3.0)}
    plane.annotate("roomy", **render_notes(0.1, 0.0, {}))
    with plane.client() as client:
        for name, notes in (
            ("full", render_notes(0.97, 0.4, uses)),
            ("cordoned", render_notes(0.0, 0.0, {})),
        ):
            about: dict[str, Any] = {"name": f"node.{name}", "labels": {LEASE_LABEL: "true"}}
            client.create(path_leases("nodescope"), {"metadata": {**about, "annotations": notes}})
    try:
        before = read_versions(plane)
        # With the extender's rights: it may read, and nothing else.
        done = run_advise(plane, "extender-token", "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        (move,) = told["moves"]
        assert (move["pod"]["name"], move["source"], move["target"]) == (
            "web-66b6c48dd5-abcde",
            "full",
            "roomy",
        )
        assert any(line.startswith("dark: its agent writes no window") for line in told["unknown"])
        text = run_advise(plane, "extender-token").stdout
        assert "Move default/web (web-66b6c48dd5-abcde) from full to roomy: it uses 3 cores" in text
        assert read_versions(plane) == before
        refused = run_advise(plane, "nobody-token")
        assert refused.returncode == 1
        assert "cannot list resource" in refused.stderr
    finally:
        plane.kubectl("-n", "nodescope", "delete", "leases", "--selector", f"{LEASE_LABEL}=true")
