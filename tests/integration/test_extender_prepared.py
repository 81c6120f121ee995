"""The extender in a large cluster: costs are there before the first pod comes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.pod_list import KUBECONFIG, play_api_server
from tests.cluster.control_plane import free_port, wait_for
from tests.cluster.programs import Extender, run_extender

from nodescope.use.scheduler.standing import LEAST_NODES

pytestmark = pytest.mark.real

NAMES = [f"node-{number}" for number in range(LEAST_NODES + 1)]
LABELS = {"fpga-scheduling.io/enabled": "true"}


def list_nodes(path: str, query: dict[str, list[str]], pods: int) -> dict[str, Any]:
    """All on one page; each has a device."""
    del query, pods
    vendor = {"fpga-scheduling.io/fpga-vendor": "amd"}
    items = [{"metadata": {"name": name, "labels": vendor}} for name in NAMES]
    return {"metadata": {"resourceVersion": "1"}, "items": items if path.endswith("/nodes") else []}


@pytest.fixture
def extender(tmp_path: Path) -> Iterator[Extender]:
    with play_api_server(0, list_nodes) as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(port=api))
        with run_extender(kubeconfig, free_port(), tmp_path / "log") as made:
            yield made


def count(extender: Extender, who: str) -> float:
    return extender.metric(f'nodescope_extender_cost_renewals_total{{by="{who}"}}')


def test_a_pod_in_a_large_cluster_does_not_wait_for_costs(extender: Extender) -> None:
    wait_for("costs are prepared", lambda: count(extender, "thread") >= 1, 30)
    about = {"name": "p", "namespace": "d", "uid": "u", "labels": LABELS}
    body = {"Pod": {"metadata": about, "spec": {}}, "Nodes": None, "NodeNames": NAMES}
    answer = httpx.post(f"{extender.url}/prioritize", content=json.dumps(body), timeout=10)
    assert sorted(row["Host"] for row in answer.raise_for_status().json()) == sorted(NAMES)
    assert count(extender, "call") == 0
