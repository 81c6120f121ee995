"""
A real Prometheus scrapes two agents with the scrape configuration that we ship.

The second agent is added when the first has been scraped, as an operator adds
a node: so there is an instant with one node and an instant with two.
"""

import json
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agents import running_agent, wait_for
from tests.integration.prometheus import SHIPPED, Prometheus, running_prometheus

pytestmark = pytest.mark.real

NODES = ("left", "right")
RATES = "sum by (node) (rate(cpu_process_cpu_seconds_total[1m]))"

# The examples of the node agent's requirement document, word for word.
EXAMPLES = (
    "cpu_load_1m",
    "node_health_score",
    "node_cpu_utilization_ratio",
    "node_cpu_pressure_avg10",
    "node_memory_pressure_avg10",
    "node_memory_available_bytes / node_memory_total_bytes",
    "sort_desc(node_health_score)",
    "avg by (node) (node_memory_available_bytes / node_memory_total_bytes)",
    RATES,
    "topk(5, cpu_process_rss_bytes)",
    "topk(5, cpu_process_cpu_seconds_total)",
    "topk(5, rate(cpu_process_cpu_seconds_total[1m]))",
)
# scalar() of two nodes' memory is NaN by PromQL's own definition: this one
# is an example for one node.
ONE_NODE = "topk(5, 100 * cpu_process_rss_bytes / scalar(node_memory_total_bytes))"
# The same question to any number of nodes.
ONE_NODE_FOR_MANY = "topk(5, 100 * cpu_process_rss_bytes / on (node) group_left node_memory_total_bytes)"


@dataclass(frozen=True)
class Pair:
    """A server that has scraped one node, then two."""

    server: Prometheus
    one_node_at: float


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        tempfile.TemporaryDirectory(prefix="nodescope-prometheus-") as name,
        running_agent("--node", NODES[0]) as left,
        running_agent("--node", NODES[1]) as right,
        running_prometheus(Path(name)) as server,
    ):
        server.list_targets((NODES[0], left))
        # Two scrapes make a rate.
        wait_for(lambda: server.query(EXAMPLES[-1]), "rates of one node")
        one_node_at = time.time()
        server.list_targets((NODES[0], left), (NODES[1], right))
        wait_for(lambda: len(server.query(RATES)) == len(NODES), "rates of both nodes")
        yield Pair(server, one_node_at)


@pytest.fixture
def prometheus(pair: Pair) -> Prometheus:
    return pair.server


def numbers(result: list[dict[str, Any]]) -> list[float]:
    return [float(row["value"][1]) for row in result]


def test_the_shipped_scrape_configuration_is_valid(promtool: str) -> None:
    checked = subprocess.run(
        [promtool, "check", "config", str(SHIPPED)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("expression", EXAMPLES)
def test_every_example_of_the_requirements_has_data_of_both_nodes(
    prometheus: Prometheus, expression: str
) -> None:
    """Data, of both nodes where it is not a choice of five, and no NaN."""
    result = prometheus.query(expression)
    assert result
    assert not any(map(math.isnan, numbers(result)))
    if expression.startswith("topk"):
        assert len(result) == 5
    else:
        assert {row["metric"]["node"] for row in result} == set(NODES)
    if " by (node)" in expression:
        assert sorted(row["metric"]["node"] for row in result) == sorted(NODES)


def test_the_example_for_one_node_has_data_of_one_node(pair: Pair) -> None:
    """Asked for the instant at which one node was scraped; the form for many is asked for now."""
    alone = pair.server.query(ONE_NODE, pair.one_node_at)
    assert len(alone) == 5
    assert all(0 < number <= 100 for number in numbers(alone))
    many = pair.server.query(ONE_NODE_FOR_MANY)
    assert len(many) == 5
    assert all(0 < number <= 100 for number in numbers(many))


def test_both_nodes_are_up_and_lose_no_sample(prometheus: Prometheus) -> None:
    """Every line of a scrape becomes a series: none is a duplicate, none out of order."""
    assert numbers(prometheus.query("up")) == [1.0, 1.0]
    scraped = prometheus.query("scrape_samples_scraped")
    kept = prometheus.query("scrape_samples_post_metric_relabeling")
    assert numbers(scraped) == numbers(kept)
    log = (prometheus.folder / "output").read_text()
    for trouble in ("Error on ingesting", "duplicate", "append failed"):
        assert trouble not in log


def test_a_target_without_a_name_is_called_by_its_address(prometheus: Prometheus) -> None:
    """
    Relabelling fills `node` only where the list of targets left it out.

    The last test of this file: the third node stays in the last minute's rates.
    """
    with running_agent() as agent:
        path = prometheus.folder / "nodes" / "nameless.yml"
        path.write_text(json.dumps([{"targets": [agent.address]}]))
        wait_for(lambda: prometheus.query(f'up{{node="{agent.address}"}} == 1'), "a target by its address")
