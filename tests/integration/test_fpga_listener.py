"""The port that takes FPGA events and nothing else."""

import httpx
import pytest
from tests.cluster.control_plane import free_port
from tests.integration.agents import running_agent

pytestmark = pytest.mark.real


def test_events_are_taken_and_nothing_is_answered() -> None:
    port = free_port()
    with running_agent("--fpga-listen", f"127.0.0.1:{port}") as agent:
        url = f"http://127.0.0.1:{port}"
        event = {"timestamp_ms": "1", "duration_ms": "5"}
        for path in ("/", "/fpga/events"):
            taken = httpx.post(f"{url}{path}", data=event)
            assert (taken.status_code, taken.text) == (200, "ok")
        for path in ("/", "/metrics", "/status", "/window", "/live", "/healthz", "/nothing"):
            refused = httpx.get(f"{url}{path}")
            assert refused.status_code == 404, path
            assert "takes events alone" in refused.json()["detail"]
        assert httpx.post(f"{url}/metrics", data=event).status_code == 404
        assert agent.get("/metrics").status_code == 200
        # A Service's name is as good as an address there.
        named = httpx.post(f"{url}/", data=event, headers={"Host": "nodescope-fpga.nodescope.svc"})
        assert named.text == "ok"
