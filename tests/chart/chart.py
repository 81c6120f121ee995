"""Rendering the chart as an installation would."""

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "chart"
# Every feature at once: the most that can be applied.
EVERYTHING = (
    "kubernetes.names=true",
    "kubernetes.annotate={fpga,window}",
    "kubernetes.events=true",
    "alertmanager.urls={https://alertmanager.monitoring:9093}",
    "alertmanager.credentialsSecret=alertmanager-token",
    "alertmanager.caSecret=alertmanager-ca",
    "fpga.enabled=true",
    "mcp.enabled=true",
    "clusterViewer.enabled=true",
    "extender.enabled=true",
    "adapter.enabled=true",
    "adapter.external=true",
    "pcm.enabled=true",
    "gpu.nvidia.enabled=true",
    "gpu.amd.enabled=true",
    "monitoring.podMonitor=true",
    "monitoring.serviceMonitor=true",
    "monitoring.rules=true",
    "monitoring.dashboards=true",
    "prometheus.enabled=true",
    "security.tokenSecret=nodescope-token",
    "security.tlsSecret=nodescope-tls",
    "agent.perfmon=true",
)
Thing = dict[str, Any]


@cache
def find_program(name: str) -> str:
    """helm or kubeconform; built on CI, skipped with one line where they are not there."""
    done = subprocess.run([ROOT / "tools/go-tools", "chart"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return str(Path(done.stdout.strip()) / name)
    message = done.stderr.strip().splitlines()[-1]
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def run_helm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find_program("helm"), *words], capture_output=True, text=True, check=False, cwd=ROOT
    )


def render_text(*values: str, kube_version: str = "1.35.0") -> str:
    settings = [word for value in values for word in ("--set", value)]
    done = run_helm(
        "template", "nodescope", str(CHART), "-n", "nodescope", "--kube-version", kube_version, *settings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(*values: str, kube_version: str = "1.35.0") -> list[Thing]:
    return [thing for thing in yaml.safe_load_all(render_text(*values, kube_version=kube_version)) if thing]


def of_kind(things: list[Thing], kind: str) -> list[Thing]:
    return [thing for thing in things if thing["kind"] == kind]
