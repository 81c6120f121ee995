"""The agent and its commands as processes."""

import json
import signal
import time

import httpx
import pytest
from tests.integration.agents import run_nodescope, running_agent, wait_for
from tests.integration.exposition import find, series

pytestmark = pytest.mark.real

# Promised; a machine that is busy elsewhere gets as much again.
STOP_SECONDS = 5.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_that_is_told_to_stop_does_so_within_five_seconds(number: signal.Signals) -> None:
    """It leaves with 0, says that it stopped, and prints no traceback."""
    with running_agent() as agent:
        told = time.monotonic()
        agent.process.send_signal(number)
        code = agent.process.wait(timeout=2 * STOP_SECONDS)
        assert time.monotonic() - told < STOP_SECONDS + 1
        assert code == 0, agent.printed()
        assert "agent stopped" in agent.printed()
        assert "Traceback" not in agent.printed()


def test_an_agent_stops_although_a_client_keeps_its_connection() -> None:
    """An idle keep-alive connection does not hold the exit."""
    with running_agent() as agent:
        assert agent.get("/metrics").status_code == 200
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(timeout=2 * STOP_SECONDS) == 0


def test_up_prints_where_to_look_and_answers_there() -> None:
    """Every address of the banner answers 200."""
    with running_agent("--node", "here", command="up") as agent:
        banner = wait_for(lambda: agent.printed() if "Ctrl-C" in agent.printed() else None, "a banner")
        assert banner.startswith("nodescope ")
        assert " on here: " in banner
        # A source's reason may name an address, too; these two are promises.
        lines = dict(line.split(maxsplit=1) for line in banner.splitlines() if line.startswith("  "))
        addresses = [lines[name] for name in ("viewer", "metrics") if name in lines]
        assert len(addresses) == 2, banner
        for address in addresses:
            answer = httpx.get(address, timeout=30)
            assert (answer.status_code, bool(answer.content)) == (200, True), address


def test_sample_prints_one_tick_that_prometheus_can_read() -> None:
    """Rates are there too: it looks twice."""
    done = run_nodescope("sample", "--seconds", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert find(done.stdout, "node_load1")
    assert find(done.stdout, "node_cpu_utilization_ratio")
    assert len(list(series(done.stdout))) > 200


def test_sample_as_json_has_every_table_and_no_nan() -> None:
    done = run_nodescope("sample", "--seconds", "1", "--format", "json", "--node", "here")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert content["node"] == "here"
    assert {"cpu", "memory", "process"} <= set(content["tables"])


def test_sources_says_of_each_whether_and_why() -> None:
    """State ok, absent or failed; whatever is not ok has a reason."""
    done = run_nodescope("sources", "--json", "--seconds", "1")
    assert done.returncode == 0, done.stderr
    sources = json.loads(done.stdout)["sources"]
    assert {"cpu", "memory", "container", "process"} <= {row["source"] for row in sources}
    for row in sources:
        assert row["state"] in ("ok", "absent", "failed")
        assert bool(row["reason"]) == (row["state"] != "ok")


def test_settings_lists_every_setting_with_its_origin() -> None:
    done = run_nodescope("settings", "--json", environment={"NODESCOPE_RING_SECONDS": "5m"})
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    ring = content["ring_seconds"]
    assert (ring["value"], ring["origin"]) == (300.0, "NODESCOPE_RING_SECONDS")
    assert ring["meaning"].startswith("How far back windows reach.")
    assert (content["ring_bytes"]["value"], content["ring_bytes"]["origin"]) == (64 * 2**20, "default")
