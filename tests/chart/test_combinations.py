"""
Features of the chart together: every pair of them, on and off, installed by helm on a real API server.

All combinations would be four thousand. A fault of two features that do not go together is in one of a
dozen that hold every pair of values; of each the programs' own arguments are checked, and whether
Services, accounts and Secrets that a pod names are there.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest
import yaml
from tests.chart.chart import CHART, EVERYTHING, of_kind, render, run_helm
from tests.chart.test_cluster_apply import monitoring_kind
from tests.cluster.control_plane import ADMIN, ControlPlane, run_control_plane
from tests.cluster.kubelet import derive_service_links

from nodescope.base.settings_load import read_settings
from nodescope.cli import COMMANDS, build_parser

# helm is one of the programs that real tests have.
pytestmark = pytest.mark.real

# What a person turns on or off, one value each.
FEATURES = (
    "kubernetes.names=true",
    "kubernetes.annotate={fpga,window,workloads}",
    "fpga.enabled=true",
    "viewer.enabled=false",
    "mcp.enabled=true",
    "clusterViewer.enabled=true",
    "extender.enabled=true",
    "scheduler.enabled=false",
    "extender.tls.from=off",
    "adapter.enabled=true",
    "adapter.external=true",
    "pcm.enabled=true",
    "gpu.nvidia.enabled=true",
    "gpu.amd.enabled=true",
    "monitoring.podMonitor=true",
    "monitoring.rules=true",
    "prometheus.enabled=true",
    "security.tokenSecret=nodescope-token",
    "security.tlsSecret=nodescope-tls",
    "networkPolicy.enabled=true",
    "agent.perfmon=true",
)


# Together they would be a scheduler whose calls are all refused, and helm says so.
REFUSED = tuple(
    {"extender.enabled=true", "extender.tls.from=off", guard}
    for guard in ("security.tokenSecret=nodescope-token", "security.tlsSecret=nodescope-tls")
)


def cover_pairs() -> list[tuple[str, ...]]:
    """
    forall features a, b and values on, off: some row has them so. None has what is refused.

    Greedy: a row takes the value that covers most of what is left.
    """
    left = {
        ((one, first), (other, second))
        for one, other in combinations(FEATURES, 2)
        for first, second in product((True, False), repeat=2)
    }
    rows = []
    while left:
        row: dict[str, bool] = {}
        (begun, *_) = sorted(left)
        row.update(dict(begun))
        for feature in FEATURES:
            if feature not in row:
                on = {one for one, is_on in row.items() if is_on} | {feature}
                values = (False,) if any(together <= on for together in REFUSED) else (True, False)
                row[feature] = max(values, key=lambda value: count_new(left, row, feature, value))
        left -= set(list_pairs(row))
        rows.append(tuple(feature for feature in FEATURES if row[feature]))
    return rows


def list_pairs(row: dict[str, bool]) -> Iterator[Any]:
    return ((((one, row[one]), (other, row[other]))) for one, other in combinations(FEATURES, 2))


def count_new(left: set[Any], row: dict[str, bool], feature: str, value: bool) -> int:
    return sum(
        pair in left or pair[::-1] in left
        for other, known in row.items()
        for pair in [((other, known), (feature, value))]
    )


ROWS = cover_pairs()


def test_the_rows_hold_every_pair() -> None:
    assert len(ROWS) <= 24
    for one, other in combinations(FEATURES, 2):
        found = {(one in row, other in row) for row in ROWS}
        assert found == {(True, True), (True, False), (False, True), (False, False)}, (one, other)


def list_pods(things: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for thing in things:
        if thing["kind"] in ("Deployment", "DaemonSet", "StatefulSet"):
            yield thing["metadata"]["name"], thing["spec"]["template"]["spec"]


def check_program(words: list[str], environment: dict[str, str]) -> None:
    """Its options are accepted, and so is what a kubelet puts into its environment."""
    build_parser(words[0]).parse_args(words)
    read_settings({}, None, environment, {})


@pytest.mark.parametrize("row", [(), *ROWS, EVERYTHING], ids=range(len(ROWS) + 2))
def test_what_pods_name_is_there_and_what_they_are_told_is_accepted(row: tuple[str, ...]) -> None:
    things = render(*row)
    accounts = {thing["metadata"]["name"] for thing in of_kind(things, "ServiceAccount")}
    secrets = {thing["metadata"]["name"] for thing in of_kind(things, "Secret")}
    # Those that are somebody's own.
    secrets |= {"nodescope-token", *(value.partition("=")[2] for value in row if "ecret=" in value)}
    maps = {thing["metadata"]["name"] for thing in of_kind(things, "ConfigMap")}
    links = derive_service_links(of_kind(things, "Service"))
    ports: dict[str, set[Any]] = {}
    for name, pod in list_pods(things):
        assert pod["serviceAccountName"] in accounts
        assert pod["enableServiceLinks"] is False
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for volume in pod.get("volumes", []):
            assert volume.get("secret", {}).get("secretName", "nodescope-token") in secrets
            assert volume.get("configMap", {}).get("name") in {None, *maps}
        numbers: list[int] = []
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
            numbers += [port["containerPort"] for port in container.get("ports", [])]
            ports.setdefault(name, set()).update(port["name"] for port in container.get("ports", []))
            if not container.get("command") and container.get("args", [""])[0] in COMMANDS:
                check_program(container["args"], links)
        assert len(numbers) == len(set(numbers)), f"{name}: two listeners have one port"
        probes = [one.get(kind) for one in pod["containers"] for kind in ("livenessProbe", "readinessProbe")]
        for probe in probes:
            if probe and "httpGet" in probe and isinstance(probe["httpGet"]["port"], str):
                assert probe["httpGet"]["port"] in ports[name]
    named = {port for found in ports.values() for port in found}
    for service in of_kind(things, "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    yield from run_control_plane(tmp_path_factory.mktemp("plane"), "kubectl")


def test_every_pair_is_installed_by_helm_over_the_one_before(plane: ControlPlane) -> None:
    """A fresh installation, upgrades from each row to the next, and nothing is left at the end."""
    kinds = plane.folder / "kinds.yaml"
    monitoring = [monitoring_kind(kind) for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule")]
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}}
    kinds.write_text(yaml.safe_dump_all([*monitoring, {**runtime, "handler": "nvidia"}]))
    plane.kubectl("apply", "--server-side", "-f", kinds)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    plane.kubectl("create", "namespace", "nodescope")
    where = ("--kubeconfig", str(plane.kubeconfig(ADMIN)), "-n", "nodescope")
    for number, row in enumerate((*ROWS, EVERYTHING)):
        # A namespace that is removed takes its time to go.
        own = f"prometheus.namespace=monitoring-{number}"
        words = [word for value in (*row, own) for word in ("--set", value)]
        done = run_helm("upgrade", "--install", "nodescope", str(CHART), *where, *words)
        assert done.returncode == 0, (row, done.stderr)
    assert run_helm("uninstall", "nodescope", *where, "--wait=false").returncode == 0
    left = plane.kubectl("get", "clusterroles,clusterrolebindings,apiservices", "-o", "name")
    assert "nodescope" not in left
