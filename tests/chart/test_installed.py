"""The chart installed by helm on a real API server, its extender and its scheduler started as a kubelet would start them."""

import json
import re
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.chart.chart import CHART, run_helm
from tests.cluster.control_plane import ADMIN, ControlPlane, free_port, run_control_plane, wait_for
from tests.cluster.kubelet import Kubelet, can_mount
from tests.support import copy_node

from nodescope.base.clock import SystemClock
from nodescope.base.errors import KubernetesAway
from nodescope.fpga.state import KEY, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not can_mount(), reason="needs root and unshare: run it with sudo"),
]

NODES = ("worker-1", "worker-2", "worker-3")
LABELS = {"fpga-scheduling.io/enabled": "true", "fpga-scheduling.io/bitstream-identifier": "abc"}
YEAR_SECONDS = 365 * 86400
TOKEN = "a-token-for-people"  # noqa: S105
# As GKE and others have it: a pod of these classes needs a quota that names its class.
QUOTAS = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: ResourceQuota
    configuration:
      apiVersion: apiserver.config.k8s.io/v1
      kind: ResourceQuotaConfiguration
      limitedResources:
        - resource: pods
          matchScopes:
            - {scopeName: PriorityClass, operator: In, values: [system-node-critical, system-cluster-critical]}
"""


class Installation:
    """The release, and where its programs listen."""

    extender: "subprocess.Popen[bytes]"

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        root = copy_node("cgroup2-systemd", folder / "node")
        self.data = root / "var/lib/nodescope"
        self.kubelet = Kubelet(plane, "nodescope", folder, root)
        self.running = ExitStack()
        self.verbs, self.http, self.probes, self.scheduler = (free_port() for _ in range(4))
        self.mcp, self.mcp_probes = free_port(), free_port()
        self.agent, self.agent_probes, self.events, more = (free_port() for _ in range(4))
        self.viewer, self.viewer_probes = free_port(), free_port()
        self.values = (
            "extender.enabled=true",
            "kubernetes.names=true",
            "kubernetes.annotate={fpga,window}",
            "security.tokenSecret=nodescope-token",
            f"extender.port={self.verbs}",
            f"extender.httpPort={self.http}",
            f"extender.probePort={self.probes}",
            f"scheduler.port={self.scheduler}",
            "mcp.enabled=true",
            f"mcp.port={self.mcp}",
            f"mcp.probePort={self.mcp_probes}",
            "fpga.enabled=true",
            f"fpga.port={self.events}",
            f"agent.ports.metrics={self.agent}",
            f"agent.ports.probes={self.agent_probes}",
            f"agent.ports.extra={{{more}}}",
            f"viewer.port={self.viewer}",
            f"viewer.probePort={self.viewer_probes}",
        )

    def start_extender(self) -> None:
        self.extender = self.running.enter_context(self.kubelet.run("nodescope-extender"))
        wait_for("the extender is ready", partial(answers, self.probes), 90)

    def helm(self, verb: str) -> None:
        words = [word for value in self.values for word in ("--set", value)]
        where = ("--kubeconfig", str(self.plane.kubeconfig(ADMIN)), "-n", "nodescope")
        done = run_helm(verb, "nodescope", str(CHART), *where, *words)
        assert done.returncode == 0, done.stderr

    def read_secret(self, name: str) -> dict[str, str]:
        with self.plane.client() as client:
            data: dict[str, str] = client.read(f"/api/v1/namespaces/nodescope/secrets/{name}")["data"]
        return data

    def read_annotation(self, deployment: str) -> str:
        """By which its pods are replaced when certificates are."""
        with self.plane.client() as client:
            found = client.read(f"/apis/apps/v1/namespaces/nodescope/deployments/{deployment}")
        said: str = found["spec"]["template"]["metadata"]["annotations"]["nodescope.io/certificate"]
        return said

    def ask(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.http}{path}", headers=headers, timeout=10)

    def metric(self, line: str) -> float:
        text = self.ask("/metrics", Authorization=f"Bearer {TOKEN}").text
        found = [row for row in text.splitlines() if row.startswith(f"{line} ")]
        return float(found[0].split()[-1]) if found else float("nan")


def answers(port: int, path: str = "/readyz") -> bool:
    """As a kubelet's probe sees it."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    folder = tmp_path_factory.mktemp("plane")
    quotas = folder / "admission.yaml"
    quotas.write_text(QUOTAS)
    flags = (f"--admission-control-config-file={quotas}",)
    yield from run_control_plane(
        folder, "kube-scheduler", "kube-controller-manager", "kubectl", api_flags=flags
    )


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One release for all tests: extender and scheduler run until the last."""
    made = Installation(plane, tmp_path_factory.mktemp("pods"))
    plane.kubectl("create", "namespace", "nodescope")
    plane.kubectl(
        "-n", "nodescope", "create", "secret", "generic", "nodescope-token", f"--from-literal=token={TOKEN}"
    )
    for node in NODES:
        plane.create_node(node)
    plane.start_controllers("resourcequota-controller")
    made.helm("install")
    with made.running:
        made.start_extender()
        made.running.enter_context(made.kubelet.run("nodescope-scheduler"))
        yield made


def write_state(plane: ControlPlane, node: str, took_ms: float, bitstream: str) -> None:
    tracker = FpgaTracker(SystemClock())
    now_ms = time.time_ns() // 10**6
    tracker.accept(FpgaEvent(now_ms, reconfiguration_ms=took_ms, bitstream=bitstream))
    plane.annotate(node, **{KEY: render_state(tracker.read())})


def test_the_chart_s_scheduler_places_by_the_extender_s_scores(installed: Installation) -> None:
    """By name, over TLS, with the certificates that helm made; the pod only says schedulerName: nodescope."""
    plane = installed.plane
    write_state(plane, "worker-1", 10_000, "def")
    write_state(plane, "worker-2", 10, "abc")
    fresh = 'nodescope_extender_annotations{annotation="fpga",state="fresh"}'
    wait_for("the annotations are known", lambda: installed.metric(fresh) == 2, 60)
    # What the other plugins think: worker-2 is the fullest.
    plane.create_pod("in-the-way", "worker-2")
    plane.submit_pod("asks", LABELS, schedulerName="nodescope")
    assert plane.wait_placed("asks") == "worker-2"
    token = {"Authorization": f"Bearer {TOKEN}"}
    explained = installed.ask("/explain?pod=default/asks", **token).json()
    assert explained["nodes"][0]["node"] == "worker-2"
    assert installed.metric('nodescope_extender_requests_total{verb="prioritize",outcome="ok"}') >= 1
    asked = 'nodescope_extender_pods_bound_total{asked="true"}'
    wait_for("it was bound, and we were asked", lambda: installed.metric(asked) == 1, 30)


def test_pods_of_another_scheduler_are_not_its_business(installed: Installation) -> None:
    """Nobody here places for default-scheduler: the pod waits, and no call is made."""
    calls = 'nodescope_extender_requests_total{verb="filter",outcome="ok"}'
    before = installed.metric(calls)
    installed.plane.submit_pod("plain", {})
    installed.plane.submit_pod("ours", {}, schedulerName="nodescope")
    assert installed.plane.wait_placed("ours") in NODES
    assert installed.metric(calls) == before + 1
    assert "plain" not in installed.plane.read_places()


def test_a_pod_that_was_placed_without_a_question_is_counted(installed: Installation) -> None:
    """As when the scheduler cannot reach the extender; the alert ExtenderNotAsked is made of this."""
    unasked = 'nodescope_extender_pods_bound_total{asked="false"}'
    before = installed.metric(unasked)
    installed.plane.create_pod("unasked", "worker-3", labels=LABELS)
    wait_for("it is counted", lambda: installed.metric(unasked) == before + 1, 30)


def test_only_the_scheduler_s_certificate_is_let_in(installed: Installation, tmp_path: Path) -> None:
    """Verbs need it; a token is no substitute, and on the port for people there are no verbs."""
    secret = installed.kubelet._read_volume({"secret": {"secretName": "nodescope-scheduler-tls"}})
    for name, content in secret.items():
        (tmp_path / name).write_bytes(content)
    call = {"Pod": {"metadata": {"name": "p", "labels": LABELS}}, "NodeNames": list(NODES)}
    url = f"https://127.0.0.1:{installed.verbs}/prioritize"
    anybody = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    anybody.check_hostname = False
    with pytest.raises(httpx.HTTPError):
        httpx.post(url, json=call, verify=anybody, headers={"Authorization": f"Bearer {TOKEN}"})
    anybody.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    assert len(httpx.post(url, json=call, verify=anybody).json()) == len(NODES)
    assert httpx.get(url.replace("prioritize", "metrics"), verify=anybody).status_code == 404
    token = {"Authorization": f"Bearer {TOKEN}"}
    plain = httpx.post(f"http://127.0.0.1:{installed.http}/prioritize", json=call, headers=token)
    assert plain.status_code == 403
    assert "--verbs-listen" in plain.json()["detail"]
    assert installed.ask("/explain?pod=default/asks").status_code == 401


def test_an_upgrade_keeps_the_certificates(installed: Installation) -> None:
    names = ("nodescope-extender-tls", "nodescope-scheduler-tls")
    before = [installed.read_secret(name) for name in names]
    installed.helm("upgrade")
    assert [installed.read_secret(name) for name in names] == before


def test_certificates_older_than_a_year_are_renewed_by_an_upgrade(installed: Installation) -> None:
    """All of both Secrets, and the scheduler's pods are replaced; the extender says when its own ends."""
    end = installed.metric("nodescope_certificate_end_timestamp_seconds")
    assert 9 * YEAR_SECONDS < end - time.time() < 11 * YEAR_SECONDS
    names = ("nodescope-extender-tls", "nodescope-scheduler-tls")
    made = [installed.read_secret(name) for name in names]

    def upgrade(age_years: float) -> tuple[list[dict[str, str]], str]:
        """With certificates of this age: what they are afterwards, and what the scheduler's pods are replaced by."""
        at = f"nodescope.io/made-at={int(time.time() - age_years * YEAR_SECONDS)}"
        for name in names:
            installed.plane.kubectl("-n", "nodescope", "annotate", "--overwrite", "secret", name, at)
        installed.helm("upgrade")
        return [installed.read_secret(name) for name in names], installed.read_annotation(
            "nodescope-scheduler"
        )

    young, before = upgrade(0.9)
    assert young == made
    renewed, after = upgrade(1.1)
    assert all(one[key] != other[key] for one, other in zip(made, renewed) for key in one)
    assert renewed[0]["ca.crt"] == renewed[1]["ca.crt"]
    assert before != after


def ask_mcp(port: int, tool: str) -> dict[str, Any]:
    """One call of a tool, as an agent makes it over HTTP; nothing where it is refused."""
    params = {"name": tool, "arguments": {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    found = httpx.post(f"http://127.0.0.1:{port}/mcp", json=call, headers=headers, timeout=60)
    lines = [line.removeprefix("data: ") for line in found.text.splitlines() if "jsonrpc" in line]
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def test_the_agents_pod_and_the_server_for_agents_run_as_rendered(installed: Installation) -> None:
    """
    The pod that the DaemonSet's controller made for a node, all its containers, with its own token.

    No root but with what the chart adds to it, a root file system that nobody can write, the node's paths, and a
    policy that lets its token write its own node alone. The MCP server finds its viewer by its own account.
    """
    plane, people = installed.plane, {"Authorization": f"Bearer {TOKEN}"}
    with installed.kubelet.run_agent_pod("worker-1") as running:
        assert {"agent", "viewer", "consolidator"} == set(running)
        wait_for("the agent is ready", partial(answers, installed.agent_probes), 90)
        wait_for("the viewer is ready", partial(answers, installed.viewer_probes), 90)
        agent = f"http://127.0.0.1:{installed.agent}"
        assert httpx.get(f"{agent}/metrics").status_code == 401

        def read_status() -> dict[str, Any]:
            found: dict[str, Any] = httpx.get(f"{agent}/status", headers=people, timeout=30).json()
            return found

        wait_for(
            "names come from the API", lambda: read_status()["sources"]["kubernetes"]["state"] == "ok", 60
        )
        # Events have a port of their own, which answers nothing else.
        events = f"http://127.0.0.1:{installed.events}"
        assert httpx.get(f"{events}/metrics", headers=people).status_code == 404
        at_ms = str(time.time_ns() // 10**6)
        event = {"timestamp_ms": at_ms, "duration_ms": "500", "bitstream_identifier": "of-the-agent"}
        assert httpx.post(events, data=event, headers=people).text == "ok"
        wait_for("it is told", lambda: "of-the-agent" in plane.read_annotations("worker-1").get(KEY, ""), 60)
        lease = ("-n", "nodescope", "get", "lease", "node.worker-1", "-o", "name")
        wait_for("so is its window", lambda: plane.run_kubectl(*lease).returncode == 0, 60)
        assert read_status()["annotations"]["reason"] == ""
        # The viewer is another user: it reads what the agent writes by its group alone.
        viewer = f"http://127.0.0.1:{installed.viewer}"
        assert httpx.get(f"{viewer}/api/containers").status_code == 401

        def count_containers() -> int:
            found = httpx.get(f"{viewer}/api/containers", headers=people, timeout=60)
            return len(found.json()["containers"]) if found.status_code == 200 else 0

        wait_for("the viewer shows containers", count_containers, 90)
        assert any(installed.data.iterdir())
        with installed.kubelet.run("nodescope-mcp"):
            wait_for("the MCP server lives", partial(answers, installed.mcp_probes, "/healthz"), 90)
            assert httpx.post(f"http://127.0.0.1:{installed.mcp}/mcp", json={}).status_code == 401
            wait_for("it knows the node", lambda: "worker-1" in str(ask_mcp(installed.mcp, "list_nodes")), 90)
        assert all(process.poll() is None for process in running.values())
    for name in ("agent", "viewer", "consolidator", "nodescope-mcp"):
        log = installed.kubelet.read_log(name)
        assert not re.search("forbidden|denied|Read-only|Traceback", log), log


def test_a_frozen_extender_is_restarted_within_ten_seconds(installed: Installation) -> None:
    """
    Stopped as by a hanging disk or a debugger; probed by the probe that the API server holds.

    Pods are placed meanwhile. A stopped process hears no SIGTERM: with the usual grace of 30 s it
    would be in the way for 38 s.
    """
    installed.extender.send_signal(signal.SIGSTOP)
    installed.plane.submit_pod("meanwhile", LABELS, schedulerName="nodescope")
    seconds = installed.kubelet.await_restart("nodescope-extender", installed.probes, installed.extender)
    assert seconds <= 10
    assert installed.plane.wait_placed("meanwhile") in NODES
    installed.start_extender()


def test_agents_are_admitted_where_their_class_needs_a_quota(installed: Installation) -> None:
    """And are not without it."""

    def count() -> int:
        with installed.plane.client() as client:
            path = "/api/v1/namespaces/nodescope/pods?labelSelector=app.kubernetes.io/component%3Dagent"
            return len(client.read(path)["items"])

    wait_for("an agent on every node", lambda: count() == len(NODES), 60)
    pod: dict[str, Any] = {
        "metadata": {"name": "critical"},
        "spec": {"priorityClassName": "system-node-critical", "containers": [{"name": "a", "image": "a"}]},
    }
    with installed.plane.client() as client, pytest.raises(KubernetesAway, match="insufficient quota"):
        client.create("/api/v1/namespaces/default/pods", pod)


def test_the_configuration_is_what_a_stock_scheduler_takes(installed: Installation) -> None:
    with installed.plane.client() as client:
        found = client.read("/api/v1/namespaces/nodescope/configmaps/nodescope-scheduler")
    config = yaml.safe_load(found["data"]["config.yaml"])
    (extender,) = config["extenders"]
    assert extender["ignorable"]
    assert "percentageOfNodesToScore" in config
    log = installed.kubelet.read_log("nodescope-scheduler")
    assert '"Successfully acquired lease" lock="nodescope/nodescope-scheduler"' in log
