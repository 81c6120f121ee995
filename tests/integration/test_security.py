"""Token, TLS, floods and slow clients against a real listener."""

import contextlib
import hmac
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.agents import Agent, TurnableClock, make_parts, running_agent, serving, tick, wait_for
from tests.integration.exposition import find

from nodescope.publish.agent_http import QUERY_CHARACTERS
from nodescope.serve import token
from nodescope.serve.server import HEADER_BYTES, HEADER_SECONDS

pytestmark = pytest.mark.real

PROBES = ("/healthz", "/health", "/readyz")
GUARDED = ("/metrics", "/metrics?window_seconds=1", "/window", "/status", "/live", "/", "/nothing")


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with running_agent() as running:
        yield running


# -- token ---------------------------------------------------------------------


def test_without_the_token_only_the_probes_answer(tmp_path: Path) -> None:
    """401 names the header to send; a rotated file counts from the next request on."""
    secret = tmp_path / "token"
    secret.write_text("first-secret\n")
    with running_agent("--token-file", str(secret)) as agent:
        for path in PROBES:
            assert agent.get(path).status_code == 200, path
        for path in GUARDED:
            refused = agent.get(path)
            assert refused.status_code == 401, path
            assert "Authorization: Bearer" in refused.json()["detail"]
            assert refused.headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer wrong", "Bearer first-secre", "Basic first-secret", "first-secret", "Bearer"):
            assert agent.get("/metrics", authorization=wrong).status_code == 401, wrong
        assert agent.get("/metrics", authorization="Bearer first-secret").status_code == 200
        status = agent.get("/status", authorization="Bearer first-secret").text
        assert "first-secret" not in status
        assert str(secret) not in status

        secret.write_text("second-secret")
        assert agent.get("/metrics", authorization="Bearer second-secret").status_code == 200
        assert agent.get("/metrics", authorization="Bearer first-secret").status_code == 401

        # A secret being replaced is briefly not there: the last one holds.
        secret.unlink()
        assert agent.get("/metrics", authorization="Bearer second-secret").status_code == 200
        assert "secret" not in agent.printed().replace(str(secret), "")


def test_tokens_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Every decision goes through hmac.compare_digest, with the whole secret.

    Time itself is not measured: what is promised is the function that is used.
    """
    compared: list[bytes] = []
    real = hmac.compare_digest

    def watch(given: bytes, secret: bytes) -> bool:
        compared.append(secret)
        return real(given, secret)

    monkeypatch.setattr(hmac, "compare_digest", watch)
    (tmp_path / "token").write_text("secret")
    guard = token.Token(tmp_path / "token")
    verdicts = [guard.admits(header) for header in ("Bearer secret", "Bearer s", "Basic secret", "")]
    assert verdicts == [True, False, False, False]
    assert compared == [b"secret"] * 4


# -- TLS -------------------------------------------------------------------------


class Certificates:
    """An authority and what it signed, made by openssl."""

    def __init__(self, openssl: str, folder: Path) -> None:
        self._openssl = openssl
        self._folder = folder
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        self.authority = folder / "authority.pem"

    def _run(self, *words: str) -> None:
        names = ("-keyout", "authority.key", "-out", "authority.pem", "-days", "2", "-subj", "/CN=authority")
        self._call(*words, *names)

    def _call(self, *words: str) -> None:
        subprocess.run([self._openssl, *words], cwd=self._folder, check=True, capture_output=True)

    def sign(self, name: str) -> tuple[str, str]:
        """Certificate and key of a name, valid for 127.0.0.1."""
        (self._folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        request = ("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self._call("req", *curve, *request)
        signer = ("-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2")
        made = ("-in", f"{name}.csr", "-out", f"{name}.pem", "-extfile", "extensions")
        self._call("x509", "-req", *signer, *made)
        return str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key")


@pytest.fixture
def certificates(openssl: str, tmp_path: Path) -> Certificates:
    return Certificates(openssl, tmp_path)


def test_with_a_certificate_the_agent_speaks_https_only(certificates: Certificates) -> None:
    """A client that knows the authority is served; plain HTTP is not."""
    certificate, key = certificates.sign("server")
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    flags = ("--tls-cert", certificate, "--tls-key", key)
    with running_agent(*flags, scheme="https", client_options={"verify": trusting}) as agent:
        assert agent.get("/metrics").status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://{agent.address}/metrics", timeout=5)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://{agent.address}/metrics", timeout=5)


def test_with_a_client_authority_strangers_are_not_served(
    certificates: Certificates, openssl: str, tmp_path: Path
) -> None:
    """No certificate, or one of another authority: no answer. The right one: 200."""
    certificate, key = certificates.sign("server")
    ours = certificates.sign("scheduler")
    (tmp_path / "other").mkdir()
    strange = Certificates(openssl, tmp_path / "other").sign("stranger")

    def trusting(chain: tuple[str, str] | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(certificates.authority))
        if chain:
            context.load_cert_chain(*chain)
        return context

    flags = ("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", str(certificates.authority))
    with running_agent(*flags, scheme="https", client_options={"verify": trusting(ours)}) as agent:
        assert agent.get("/metrics").status_code == 200
        for chain in (None, strange):
            with pytest.raises(httpx.TransportError):
                httpx.get(f"https://{agent.address}/metrics", verify=trusting(chain), timeout=5)
        assert agent.get("/readyz").status_code == 200


# -- bounds ------------------------------------------------------------------------


def connect(agent: Agent) -> socket.socket:
    return socket.create_connection(("127.0.0.1", agent.port), timeout=3 * HEADER_SECONDS)


def read_to_end(connection: socket.socket) -> bytes:
    """Everything until the other side closes; TimeoutError when it does not."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_a_flood_of_headers_is_refused_and_the_connection_closed(agent: Agent) -> None:
    """More than 16 KiB of headers get 400; the agent goes on."""
    with connect(agent) as connection:
        line = b"X-Flood: " + b"x" * 1000 + b"\r\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(
                b"GET /metrics HTTP/1.1\r\nHost: a\r\n" + line * (4 * HEADER_BYTES // len(line))
            )
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 400") or answer == b""
    assert agent.get("/metrics").status_code == 200


def dribble(connection: socket.socket, stop: threading.Event) -> None:
    """One byte of a header line now and then: never silent, never done."""
    with contextlib.suppress(OSError):
        while not stop.wait(0.5):
            connection.sendall(b"x")


SLOW = {
    "says nothing": b"",
    "never ends its headers": b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow: ",
    "is quick once, then slow": b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /metrics HTTP/1.1\r\nX-Slow: ",
    "never ends its body": b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
}


def test_slow_clients_are_closed_and_others_served_meanwhile(agent: Agent) -> None:
    """
    Four ways to be slow, all at once: each is closed within the header time.

    What is promised is HEADER_SECONDS; a busy machine gets half as much again.
    """
    stop = threading.Event()
    closed: dict[str, float] = {}

    def be_slow(manner: str, first: bytes) -> None:
        with connect(agent) as connection:
            connection.sendall(first)
            began = time.monotonic()
            dribbling = threading.Thread(target=dribble, args=(connection, stop), daemon=True)
            if first:
                dribbling.start()
            with contextlib.suppress(TimeoutError):
                read_to_end(connection)
                closed[manner] = time.monotonic() - began
            if first:
                connection.close()
                dribbling.join()

    threads = [threading.Thread(target=be_slow, args=item, daemon=True) for item in SLOW.items()]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert agent.get("/metrics").status_code == 200
            assert agent.get("/healthz").status_code == 200
        for thread in threads:
            thread.join(timeout=4 * HEADER_SECONDS)
    finally:
        stop.set()
    assert set(closed) == set(SLOW)
    late = {manner: seconds for manner, seconds in closed.items() if seconds > 1.5 * HEADER_SECONDS}
    assert late == {}
    assert agent.get("/metrics").status_code == 200


def test_a_query_that_is_too_long_is_414(agent: Agent) -> None:
    fits = agent.get(f"/metrics?source=cpu&x={'x' * (QUERY_CHARACTERS - 13)}")
    assert fits.status_code == 200
    refused = agent.get(f"/metrics?source=cpu&x={'x' * QUERY_CHARACTERS}")
    assert refused.status_code == 414
    assert str(QUERY_CHARACTERS) in refused.json()["detail"]


def test_an_unknown_path_is_404_with_the_nearest(agent: Agent) -> None:
    answer = agent.get("/metric")
    assert answer.status_code == 404
    assert answer.json()["hint"] == "did you mean /metrics?"
    assert "/status" in answer.json()["detail"]
    assert agent.get("/%00%ff<script>").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_another_method_is_405_with_the_accepted(agent: Agent, method: str) -> None:
    answer = agent.client.request(method, "/metrics", content=b"x")
    assert answer.status_code == 405
    assert "accepted: GET" in answer.json()["detail"]
    assert "GET" in answer.headers["allow"]


def test_tenants_text_cannot_break_the_exposition() -> None:
    """A process may call itself anything; the scrape stays one line per series."""
    name = 'a"b\\\n#{} '
    code = "import ctypes, sys, time; ctypes.CDLL(None).prctl(15, sys.argv[1].encode()); time.sleep(60)"
    hostile = subprocess.Popen(["python3", "-c", code, name])
    try:
        # An interpreter may be started through others first, each with its own name.
        comm = Path(f"/proc/{hostile.pid}/comm")
        wait_for(lambda: '"' in comm.read_text(), "the new name")
        parts = make_parts(TurnableClock(), process_top=1000)
        with serving(parts) as client:
            tick(parts, 2)
            text = client.get("/metrics").text
        mine = find(text, "cpu_process_rss_bytes", pid=str(hostile.pid))
        assert len(mine) == 1
        assert mine[0].labels["name"].startswith('a"b\\')
        assert "\n" not in mine[0].labels["name"]
    finally:
        hostile.kill()
        hostile.wait()
