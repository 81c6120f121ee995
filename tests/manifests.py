"""The rendered DaemonSet, for what runs or measures its containers without a cluster."""

from pathlib import Path
from typing import Any

import yaml

from nodescope.base.quantity import parse_bytes

DAEMONSET = Path(__file__).parents[1] / "deploy/manifests/daemonset-cpu.yaml"


def read_pod() -> dict[str, Any]:
    """The pod's spec."""
    documents = yaml.safe_load_all(DAEMONSET.read_text())
    (found,) = (one for one in documents if one and one["kind"] == "DaemonSet")
    pod: dict[str, Any] = found["spec"]["template"]["spec"]
    return pod


def parse_cores(text: str) -> float:
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def parse_memory(text: str) -> int:
    """Kubernetes leaves out the B of MiB."""
    return parse_bytes(f"{text}B")
