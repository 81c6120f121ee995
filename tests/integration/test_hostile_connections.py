"""Connections that mean harm, against a real agent with real TLS: each way bounded in count and time."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.agents import Agent, clean_environment, free_port, running_agent, wait_for
from tests.torture.connections import Target, run, running_target
from tests.torture.hostile import make_hello, render_request

from nodescope.serve.connections import CONNECTIONS, CONNECTIONS_EACH, WAITING, WAITING_EACH

pytestmark = pytest.mark.real

MIB = 2**20
# Where the crowd comes from: a hundred addresses of loopback.
CROWD = "127.0.4"


@pytest.fixture(scope="module")
def target(openssl_installed: str) -> Iterator[Target]:
    del openssl_installed
    with running_target() as made:
        yield made


@pytest.fixture(scope="module")
def openssl_installed() -> str:
    from tests.integration.conftest import need_tool

    return need_tool("openssl")


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with running_agent() as running:
        yield running


def connect(port: int, number: int) -> socket.socket:
    source = (f"{CROWD}.{number % 100 + 1}", 0)
    connection = socket.create_connection(("127.0.0.1", port), 20, source)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return connection


@contextlib.contextmanager
def crowd(port: int, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(connect(port, number)) for number in range(count)]
        for one in made:
            with contextlib.suppress(OSError):
                one.sendall(first)
        yield made


@pytest.mark.parametrize(
    "first", [b"", make_hello()[:100], make_hello()], ids=["silent", "part of a hello", "half TLS"]
)
def test_connections_that_do_not_finish_their_hello_cost_next_to_nothing(
    target: Target, first: bytes
) -> None:
    """1,500 of them were some 450 MiB; now they share bounded places, and a scrape and probes go on."""
    before = target.resident_bytes()
    with crowd(target.port, 1500, first):
        assert target.scrape() < 30
        assert target.probe("/readyz") < 30
        status = target.read_status()["connections"]
        assert status["waiting"] <= WAITING
        assert status["served"] <= CONNECTIONS
        assert target.resident_bytes() - before < 40 * MIB
    assert target.process.poll() is None


def test_those_who_pipeline_and_do_not_read_hold_no_turn_and_little_memory(target: Target) -> None:
    """Eighty, each with twenty questions of megabytes: 724 MiB once, and nobody else was answered."""
    before = target.resident_bytes()
    asked = b"".join(render_request(path) for path in ("/metrics", "/live?since=x-1") * 10)
    with contextlib.ExitStack() as stack:
        for number in range(80):
            one = stack.enter_context(connect(target.port, number))
            with contextlib.suppress(OSError):
                one = stack.enter_context(target.context.wrap_socket(one))
                one.sendall(asked)
        for _ in range(5):
            assert target.scrape() < 30
        assert target.probe("/healthz") < 30
        # Two hundred would be held without a bound: 80 answers of 2 MB, and each one's next.
        assert target.resident_bytes() - before < 100 * MIB
    wait_for(lambda: not target.read_status()["connections"]["unread_bytes"], "nothing unread")


def test_idle_connections_give_way_and_probes_stay_well(agent: Agent) -> None:
    """Ninety-nine that ask once and stay: /healthz was 503 then, and the kubelet killed the agent."""
    with crowd(agent.port, 2 * CONNECTIONS, render_request("/healthz")):
        for path in ("/healthz", "/readyz", "/metrics"):
            with httpx.Client(base_url=f"http://{agent.address}", timeout=30) as fresh:
                assert fresh.get(path).status_code == 200, path
        connections = agent.get("/status").json()["connections"]
    assert connections["served"] <= CONNECTIONS
    assert connections["closed"]["crowded"] >= CONNECTIONS


def test_one_address_has_its_share_and_no_more(agent: Agent) -> None:
    """However many it opens: the others' places are the others'."""
    with contextlib.ExitStack() as stack:
        for _ in range(2 * CONNECTIONS_EACH):
            source = ("127.0.5.1", 0)
            one = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port), 20, source))
            with contextlib.suppress(OSError):
                one.sendall(render_request("/healthz"))
        assert agent.get("/metrics").status_code == 200
        connections = agent.get("/status").json()["connections"]
        assert connections["served"] <= CONNECTIONS_EACH + 2
        assert connections["waiting"] <= WAITING_EACH


def test_connections_are_on_the_agent_s_own_metrics(agent: Agent) -> None:
    text = agent.scrape()
    for line in (
        'nodescope_http_connections{state="served"} ',
        "nodescope_http_unread_bytes ",
        'nodescope_http_connections_closed_total{reason="crowded"} ',
        "nodescope_log_lines_left_out_total ",
    ):
        assert line in text, line


def test_without_descriptors_the_log_stays_small_and_probes_are_answered(tmp_path: Path) -> None:
    """An agent that may open few files, and more clients than that: 134 MB of tracebacks once."""
    import resource
    import subprocess

    from tests.integration.agents import NODESCOPE, stop

    port, probes = free_port(), free_port()
    words = ["agent", "--port", str(port), "--probe-listen", f"127.0.0.1:{probes}", "--no-archive"]
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*NODESCOPE, *words],
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={"XDG_STATE_HOME": str(tmp_path), **clean_environment()},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160)),  # noqa: PLW1509
        )

    def probe(path: str) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{probes}{path}", timeout=20).status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_for(lambda: probe("/healthz"), "an agent that lives", 60)
        for _ in range(3):
            with crowd(port, 600, render_request("/metrics")):
                assert all(probe("/healthz") for _ in range(5))
        assert process.poll() is None
        assert log.stat().st_size < 200_000, log.read_text()[-2000:]
    finally:
        stop(process)


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_a_web_page_can_neither_post_events_nor_read_by_a_name_of_its_own(agent: Agent) -> None:
    body = b"timestamp_ms=1690000000000&reconfiguration_ms=5"
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ):
        refused = agent.client.post("/fpga/events", content=body, headers={**FORM, **headers})
        assert refused.status_code == 403, headers
    assert agent.client.post("/fpga/events", content=body, headers=FORM).status_code == 200
    for path in ("/status", "/metrics", "/live"):
        rebound = agent.client.get(path, headers={"Host": f"evil.example:{agent.port}"})
        assert rebound.status_code == 421, path
        assert "--allow-host" in rebound.json()["hint"]


def free_everywhere() -> int:
    """A port that is free on every address: other tests have connections of their own from loopback."""
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104 - bound for a moment, and closed
        return int(server.getsockname()[1])


def test_an_open_address_without_a_token_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    address = f"0.0.0.0:{free_everywhere()}"
    with running_agent("--listen", address) as agent:
        assert "anybody who can connect may read" in agent.printed()
        assert f"listen={address}" in agent.printed()
    address = f"0.0.0.0:{free_everywhere()}"
    with running_agent("--listen", address, "--token-file", str(tmp_path / "token")) as agent:
        assert "anybody who can connect" not in agent.printed()


def test_a_window_of_no_length_is_refused_with_the_range(agent: Agent) -> None:
    for seconds in ("1e-320", "1e-9", "0", "-1", "nan"):
        refused = agent.get(f"/metrics?window_seconds={seconds}")
        assert refused.status_code == 400, seconds
        assert "accepted" in refused.json()["detail"]


def test_an_answer_over_tls_arrives_whole_for_a_slow_reader(target: Target) -> None:
    """Pieces of it wait until they are read; the bytes and their number are right."""
    with socket.create_connection(("127.0.0.1", target.port), 20) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with target.context.wrap_socket(plain) as connection:
            connection.sendall(
                b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept-Encoding: identity\r\n\r\n"
            )
            head, _, body = read_all(connection).partition(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    assert len(body) == int(length.split(b":")[1]) > 1_000_000
    assert body.endswith(b"\n")


def read_all(connection: ssl.SSLSocket) -> bytes:
    parts = []
    pause = threading.Event()
    while part := connection.recv(16384):
        parts.append(part)
        if len(parts) % 40 == 0:
            pause.wait(0.01)
    return b"".join(parts)


def test_the_short_form_of_the_torture() -> None:
    """Two hundred of all manners for some seconds. How long a scrape takes is for the long form."""
    rows = {row.figure: row for row in run(0.02)}
    for figure in ("memory afterwards", "probes", "log"):
        assert rows[figure].met, rows[figure].render()
    assert not rows["slowest scrape"].found.startswith("inf"), rows["slowest scrape"].render()
