"""The shipped PodMonitor as a scrape configuration of a plain Prometheus, and the peers beside it."""

import re
from pathlib import Path
from typing import Any

import yaml

RECIPE = Path(__file__).parents[3] / "deploy/prometheus/kube-prometheus.yaml"


def read_endpoint() -> dict[str, Any]:
    document = yaml.safe_load(RECIPE.read_text())
    endpoint: dict[str, Any] = document["spec"]["podMetricsEndpoints"][0]
    return endpoint


def say_in_snake_case(rule: dict[str, Any]) -> dict[str, Any]:
    """sourceLabels of the operator is source_labels of Prometheus."""
    return {
        re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", key): value for key, value in rule.items()
    }


def build_job(address: str, node: str, interval: str) -> dict[str, Any]:
    """What the operator makes of the PodMonitor for one pod."""
    endpoint = read_endpoint()
    found = {"__meta_kubernetes_pod_node_name": node, "side": "nodescope"}
    return {
        "job_name": "podMonitor/nodescope/nodescope-drop-in/0",
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "metrics_path": endpoint["path"],
        "static_configs": [{"targets": [address], "labels": found}],
        "relabel_configs": [say_in_snake_case(rule) for rule in endpoint["relabelings"]],
        "metric_relabel_configs": [say_in_snake_case(rule) for rule in endpoint["metricRelabelings"]],
    }


def build_node_exporter_job(address: str, node: str, interval: str) -> dict[str, Any]:
    return {
        "job_name": "node-exporter",
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "static_configs": [{"targets": [address], "labels": {"side": "peers", "instance": node}}],
    }


def build_cadvisor_job(
    address: str, node: str, interval: str, names: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """cAdvisor as kubelet runs it: with the labels that kubelet knows of each container, by its id."""
    rules = [
        {
            "source_labels": ["id"],
            "regex": f".*{container}.*",
            "target_label": label,
            "replacement": value,
        }
        for container, labels in names.items()
        for label, value in labels.items()
    ]
    path = {"target_label": "metrics_path", "replacement": "/metrics/cadvisor"}
    return {
        "job_name": "kubelet",
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "static_configs": [{"targets": [address], "labels": {"side": "peers", "node": node}}],
        "metric_relabel_configs": [path, *rules],
    }
