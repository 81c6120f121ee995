"""
Queries of other people's dashboards and rules, asked of a real Prometheus that scrapes all three exporters.

The lists are sample data (`NODESCOPE_SAMPLES`); `python -m tools.eval_foreign` prints the whole table.
"""

import os

import pytest
from tests.cgroups import why_not
from tests.integration.conftest import need_tool
from tests.integration.peers.binaries import PeerMissing, peer_binary
from tests.samples import find_samples
from tools.eval_foreign import SIDES, Answers, add_labels, read_lists, running_bed

pytestmark = pytest.mark.real

# Of what node_exporter and cAdvisor answer on the same machine.
WANTED_SHARE = 0.97


def find_missing() -> str | None:
    try:
        for peer in ("node_exporter", "cadvisor"):
            peer_binary(peer)
    except PeerMissing as missing:
        return str(missing)
    return None


def refuse(reason: str | None) -> None:
    """Skips here, fails where a missing part is a broken set-up."""
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


def test_what_the_peers_answer_is_answered() -> None:
    """Every list but those about GPUs, under the jobs that the rules name."""
    lists = find_samples("foreign")
    need_tool("prometheus")
    refuse(why_not() or find_missing())
    queries = [query for query in read_lists(lists) if not query.list_name.startswith("gpu-")]
    assert len(queries) > 500
    with running_bed() as client:
        asked = Answers(client)
        answered = {side: {query for query in queries if asked.answers(query, side)} for side in SIDES}
    theirs = answered["peers"]
    lost = sorted(f"{query.list_name}: {query.title}" for query in theirs - answered["nodescope"])
    assert len(theirs) > 250
    assert len(lost) <= (1 - WANTED_SHARE) * len(theirs), lost


def test_a_selector_is_asked_under_the_job_of_its_exporter() -> None:
    assert add_labels("node_load1", "peers") == 'node_load1{side="peers",job="node-exporter"}'
    assert add_labels('container_cpu{image!=""}', "nodescope") == (
        'container_cpu{side="nodescope",job="kubelet",metrics_path="/metrics/cadvisor",image!=""}'
    )
