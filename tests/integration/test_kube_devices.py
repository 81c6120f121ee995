"""Whole devices, placed by the stock kube-scheduler with our extender: requests and ResourceClaims."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.control_plane import RBAC, ControlPlane, wait_for
from tests.cluster.programs import Extender, run_extender

pytestmark = pytest.mark.real

GPU = "nvidia.com/gpu"
DRIVER = "gpu.nvidia.com"
RESOURCES = "/apis/resource.k8s.io/v1"
NODES = ("a", "b", "c")


@pytest.fixture
def extender(plane: ControlPlane) -> Iterator[Extender]:
    """With the rights as shipped."""
    plane.clear()
    for name in ("namespace", "extender"):
        plane.kubectl("apply", "-f", RBAC / f"{name}.yaml")
    kubeconfig = plane.kubeconfig("extender-token")
    with run_extender(kubeconfig, plane.extender_port, plane.folder / "extender.log") as made:
        yield made


def create_gpu_nodes(plane: ControlPlane, extender: Extender) -> None:
    room = {"capacity": {GPU: "8"}, "allocatable": {GPU: "8"}}
    for name in NODES:
        plane.create_node(name)
        with plane.client() as client:
            client.patch(f"/api/v1/nodes/{name}/status", {"status": room})
    wait_for("the nodes are known", lambda: extender.metric("nodescope_extender_nodes") == len(NODES), 30)


def submit(plane: ControlPlane, name: str, gpus: int, **labels: str) -> str:
    wanted = [{"name": "app", "image": "x", "resources": {"limits": {GPU: str(gpus)}}}]
    plane.submit_pod(name, labels, containers=wanted)
    return plane.wait_placed(name)


def test_small_pods_leave_a_whole_node_to_a_large_one(plane: ControlPlane, extender: Extender) -> None:
    """
    Seven pods of one GPU, then two of eight, on three empty nodes of eight.

    kube-scheduler alone puts the seven on all three nodes, and the second large pod has no place.
    """
    create_gpu_nodes(plane, extender)
    # The first answer may come before the nodes' devices were listed: it is a tie then.
    places = Counter(submit(plane, f"small-{number}", 1) for number in range(7))
    assert len(places) == 1
    large = {submit(plane, f"large-{number}", 8) for number in range(2)}
    assert large == set(NODES) - set(places)
    told = {one["node"]: one for one in extender.explain("default/small-6")["nodes"]}
    (begun,) = places
    assert told[begun]["facts"][f"free_{GPU}"] == 2
    assert all(told[name]["terms_ms"]["stranded"] > told[begun]["terms_ms"]["stranded"] for name in large)


def test_pods_that_want_to_spread_are_spread(plane: ControlPlane, extender: Extender) -> None:
    create_gpu_nodes(plane, extender)
    label = {"nodescope.io/gpu-placement": "spread"}
    assert {submit(plane, f"wide-{number}", 1, **label) for number in range(3)} == set(NODES)


def create_claims(plane: ControlPlane, *counts: int) -> list[str]:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    exact = {"deviceClassName": DRIVER, "allocationMode": "ExactCount"}
    names = [f"claim-{number}" for number in range(len(counts))]
    with plane.client() as client:
        client.create(
            f"{RESOURCES}/deviceclasses", {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}
        )
        for node in NODES:
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": f"gpu-{number}"} for number in range(8)]
            spec: dict[str, Any] = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
            client.create(f"{RESOURCES}/resourceslices", {"metadata": {"name": node}, "spec": spec})
        for name, count in zip(names, counts):
            asked = {"requests": [{"name": "gpus", "exactly": {**exact, "count": count}}]}
            client.create(
                f"{RESOURCES}/namespaces/default/resourceclaims",
                {"metadata": {"name": name}, "spec": {"devices": asked}},
            )
    return names


def test_claims_are_packed_as_requests_are(plane: ControlPlane, extender: Extender) -> None:
    """kube-scheduler allocates the devices; we count them by the claims and slices alone."""
    for name in NODES:
        plane.create_node(name)
    counts = (1, 2, 1, 8, 8)
    names = create_claims(plane, *counts)
    lines = [
        f'nodescope_extender_watch_current{{resource="{name}"}}'
        for name in ("resourceclaims", "resourceslices")
    ]
    wait_for("claims are watched", lambda: all(extender.metric(line) == 1 for line in lines), 30)
    seen = 'nodescope_extender_watch_events_total{resource="resourceclaims"}'
    wait_for("the claims are known", lambda: extender.metric(seen) >= len(counts), 30)
    places = []
    for name in names:
        plane.submit_pod(
            f"uses-{name}",
            {},
            resourceClaims=[{"name": "gpus", "resourceClaimName": name}],
            containers=[{"name": "app", "image": "x", "resources": {"claims": [{"name": "gpus"}]}}],
        )
        places.append(plane.wait_placed(f"uses-{name}"))
    assert len(set(places[:3])) == 1
    assert {*places[3:]} == {*NODES} - {places[0]}
    told = extender.explain(f"default/uses-{names[2]}")
    assert told["kind"] == "claim"
    assert {one["node"]: one["facts"] for one in told["nodes"]}[places[0]][f"free_{DRIVER}"] == 5
