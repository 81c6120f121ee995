"""Pods as the API server tells them, and the names that come of it."""

from typing import Any

import pytest
from tests.support import NODES

from nodescope.base.entity import Entity
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.live_containers import LiveContainer, LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.kubernetes import PodNames
from nodescope.kube.pod_owner import parse_owner

ID = "3f" * 32


def pod(uid: str = "u1", container_id: str = ID, **about: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "web-5d4f-x",
            "namespace": "shop",
            "uid": uid,
            "labels": {"app": "web"},
            **about,
        },
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "nginx:1.17.10",
                    "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
                }
            ]
        },
        "status": {
            "containerStatuses": [
                {
                    "name": "app",
                    "containerID": f"containerd://{container_id}",
                    "restartCount": 2,
                    "image": "x",
                },
                {"name": "waiting", "containerID": "", "restartCount": 0},
            ]
        },
    }


def make() -> tuple[PodNames, ContainerNames, LiveContainers]:
    names, live_containers = ContainerNames(NodeRoot(NODES / "bare" / "t0")), LiveContainers()
    return PodNames(names, live_containers), names, live_containers


def cgroup(container_id: str = ID, uid: str = "u1") -> CgroupName:
    return CgroupName(container_id=container_id, pod_uid=uid)


def test_a_container_has_all_that_the_server_knows() -> None:
    listener, names, _ = make()
    listener.replace([pod()])
    name = names.lookup(cgroup())
    assert (name.namespace, name.pod, name.container) == ("shop", "web-5d4f-x", "app")
    assert (name.image, name.restarts, name.source, name.labels) == ("nginx:1.17.10", "2", "kube", "app=web")
    assert (name.cpu_request, name.memory_request) == ("0.25", "67108864")


def test_a_sandbox_has_its_pod_s_name() -> None:
    """The server does not tell the sandbox's id."""
    listener, names, _ = make()
    listener.change(pod())
    name = names.lookup(cgroup("ab" * 32), is_sandbox=True)
    assert (name.pod, name.container, name.source) == ("web-5d4f-x", "", "kube")


def test_the_owner_of_a_replica_set_is_told_as_its_deployment() -> None:
    owners = [{"kind": "ReplicaSet", "name": "web-5d4f", "controller": True}]
    assert parse_owner(owners, {"pod-template-hash": "5d4f"}) == "Deployment/web"
    assert parse_owner(owners, {}) == "ReplicaSet/web-5d4f"
    assert parse_owner([{"kind": "Node", "name": "n"}], {}) == ""
    assert parse_owner(owners, {"rollouts-pod-template-hash": "5d4f"}) == "Rollout/web"


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (
            {"exitCode": 137, "reason": "OOMKilled", "containerID": f"containerd://{'4f' * 32}"},
            f"137 OOMKilled {'4f' * 6}",
        ),
        ({"exitCode": 0, "containerID": f"docker://{'4f' * 32}"}, f"0 Unknown {'4f' * 6}"),
        ({"exitCode": 1, "reason": "Error"}, ""),
        ({"exitCode": "1", "reason": "x y\x1b", "containerID": "containerd://4f"}, ""),
        (None, ""),
    ],
)
def test_how_the_run_before_ended_is_told_by_the_server(ended: dict[str, Any] | None, told: str) -> None:
    """Of which run it is must be known; what the server does not say is not known, and is not 0."""
    listener, names, _ = make()
    item = pod()
    item["status"]["containerStatuses"][0]["lastState"] = {"terminated": ended} if ended else {}
    listener.change(item)
    assert names.lookup(cgroup()).previous_exit == told


def test_a_request_that_is_no_quantity_is_no_request() -> None:
    listener, names, _ = make()
    item = pod()
    item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much", "memory": None}}
    listener.change(item)
    name = names.lookup(cgroup())
    assert (name.cpu_request, name.memory_request) == ("", "")


def test_a_pod_that_is_gone_is_forgotten_but_not_what_still_runs() -> None:
    """A name stays until the container's cgroup has ended."""
    listener, names, live_containers = make()
    listener.replace([pod("u1"), pod("u2", "77" * 32)])
    live_containers.replace((LiveContainer(Entity("container"), cgroup(), "", ""),))
    listener.replace([])
    assert names.lookup(cgroup()).pod == "web-5d4f-x"
    assert names.lookup(cgroup("77" * 32, "u2")).pod == ""
    assert listener.pods == {}


def test_a_pod_with_nothing_in_it_is_no_trouble() -> None:
    listener, names, _ = make()
    for item in ({}, {"metadata": None}, {"metadata": {"uid": "x"}, "status": {}, "spec": None}):
        listener.change(item)
        listener.remove(item)
    assert names.lookup(cgroup()).pod == ""
