"""What the watcher finds, as Events in a real kube-apiserver, under the policy that we ship."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.control_plane import RBAC, ControlPlane, wait_for
from tests.cluster.programs import run_agent
from tests.nodes.pods import DATABASE, WEB
from tests.support import copy_node

from nodescope.base.errors import KubernetesRefused

pytestmark = pytest.mark.real

SHOP = WEB.namespace


def list_events(plane: ControlPlane) -> list[dict[str, Any]]:
    with plane.client() as client:
        found: list[dict[str, Any]] = client.read(f"/api/v1/namespaces/{SHOP}/events")["items"]
    return [one for one in found if one.get("reportingComponent") == "nodescope"]


def kill(root: Path, container: str) -> None:
    """One more process of the container was killed for memory."""
    (path,) = root.glob(f"sys/fs/cgroup/**/*{container}*/memory.events")
    lines = dict(line.split() for line in path.read_text().splitlines())
    lines["oom_kill"] = str(int(lines["oom_kill"]) + 1)
    path.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))


@pytest.fixture(scope="module")
def guarded(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shipped account and policy, two nodes, and the fixture's pods: one on each."""
    for name in ("namespace", "agent", "events-policy"):
        plane.kubectl("apply", "-f", RBAC / f"{name}.yaml")
    plane.kubectl("create", "namespace", SHOP)
    for node, pod in (("here", WEB), ("there", DATABASE)):
        plane.create_node(node)
        with plane.client() as client:
            spec = {"nodeName": node, "containers": [{"name": "app", "image": "nginx:1.17.10"}]}
            client.create(f"/api/v1/namespaces/{SHOP}/pods", {"metadata": {"name": pod.name}, "spec": spec})
    yield plane
    plane.kubectl("delete", "-f", RBAC / "events-policy.yaml")
    plane.kubectl("delete", "namespace", SHOP, "--wait=false")
    # After an outage it looks again later and later: the next tests would meet nodes that are gone.
    plane.stop("kube-scheduler")
    plane.start_scheduler(plane.write_scheduler_config())


@pytest.fixture(scope="module")
def own(guarded: ControlPlane) -> str:
    return guarded.issue_token("nodescope-agent", "here")


def write_event(plane: ControlPlane, token: str, pod: str, name: str = "nodescope-test", **other: Any) -> str:
    """What the server says to a forged Event; empty where it takes it."""
    event = {
        "metadata": {"name": name, "namespace": SHOP},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": SHOP, "name": pod},
        "reason": "Test",
        "type": "Normal",
        "message": "a test",
        "source": {"component": "nodescope", "host": "here"},
        "reportingComponent": "nodescope",
        "reportingInstance": "here",
        **other,
    }
    with plane.client(token) as client:
        try:
            client.create(f"/api/v1/namespaces/{SHOP}/events", event)
        except KubernetesRefused as error:
            return str(error)
    return ""


def test_an_agent_writes_events_about_pods_of_its_own_node_only(guarded: ControlPlane, own: str) -> None:
    """With a real token of the shipped account, bound to a pod on one of the nodes."""
    # Until the policy is in force they are taken: each has a name of its own.
    names = (f"nodescope-{number}" for number in count())
    said = wait_for(
        "the policy is in force", lambda: write_event(guarded, own, DATABASE.name, next(names)), 60
    )
    assert "pods of its own node only: this one is on here" in said
    assert write_event(guarded, own, WEB.name) == ""
    # One that was killed and is gone may still be told of.
    assert write_event(guarded, own, "gone-1", "nodescope-gone") == ""
    node = {"apiVersion": "v1", "kind": "Node", "namespace": SHOP, "name": "here"}
    assert "about pods, nothing else" in write_event(guarded, own, "", "nodescope-n", involvedObject=node)
    assert "own name only" in write_event(guarded, own, WEB.name, "nodescope-y", reportingInstance="there")
    assert "own name only" in write_event(guarded, own, WEB.name, "kubelet-y")
    assert "own name only" in write_event(
        guarded, own, WEB.name, "nodescope-z", source={"component": "kubelet"}
    )
    assert "1024 characters" in write_event(guarded, own, WEB.name, "nodescope-l", message="x" * 1025)
    bare = guarded.issue_token("nodescope-agent", None)
    assert "its token names none" in write_event(guarded, bare, WEB.name, "nodescope-b")
    with guarded.client(own) as client:
        path = f"/api/v1/namespaces/{SHOP}/events/nodescope-test"
        with pytest.raises(KubernetesRefused, match="not whom they are about"):
            client.patch(path, {"involvedObject": {"name": "gone-1"}})
        client.patch(path, {"count": 2})


def test_a_kill_is_an_event_of_its_pod_once_also_over_a_restart_and_an_outage(
    guarded: ControlPlane, own: str, tmp_path: Path
) -> None:
    """The server away while it happens, the agent started anew after: one Event for finding and state."""
    root = copy_node("cgroup2-systemd", tmp_path / "root")
    kubeconfig = guarded.kubeconfig(own)
    flags = ("--data", str(tmp_path / "data"), "--kubernetes-events")
    with run_agent(root, kubeconfig, "here", *flags) as agent:
        wait_for("the watcher looks", lambda: agent.get("/status").json()["watcher"]["looks"] > 0, 60)
        guarded.stop("kube-apiserver")
        try:
            kill(root, WEB.container("app"))
            found = wait_for("it is found", lambda: list_kills(agent.get("/findings").json()), 60)
            wait_for(
                "the server is missed",
                lambda: agent.get("/status").json()["kubernetes_events"]["failed"] >= 1,
                30,
            )
        finally:
            guarded.start_api()
        (event,) = wait_for("it is told", lambda: kills_of(guarded), 90)
        assert event["metadata"]["name"] == f"nodescope-{found[0]['id']}-confirmed"
        assert event["involvedObject"]["name"] == WEB.name
        assert event["involvedObject"]["uid"] == WEB.uid
        assert event["message"].startswith(found[0]["sentence"])
    with run_agent(root, kubeconfig, "here", *flags) as agent:
        wait_for("the watcher looks", lambda: agent.get("/status").json()["watcher"]["looks"] > 1, 60)
        assert agent.get("/status").json()["kubernetes_events"]["written"] == 0
        (again,) = kills_of(guarded)
        assert again["metadata"]["resourceVersion"] == event["metadata"]["resourceVersion"]
    shown = guarded.kubectl("get", "events", "-n", SHOP, "-o", "json")
    assert any(one["reason"] == "OOMKilled" for one in json.loads(shown)["items"])


def list_kills(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in content.get("findings", []) if one["kind"] == "oom_kill"]


def kills_of(plane: ControlPlane) -> list[dict[str, Any]]:
    return [one for one in list_events(plane) if one["reason"] == "OOMKilled"]
