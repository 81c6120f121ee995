"""The client on the wire: TLS, kept connections, streams by the line, and a server that misbehaves."""

import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.cluster.control_plane import wait_for

from nodescope.base.clock import SystemClock
from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.kube.account import KubeAccount
from nodescope.kube.client import Client
from nodescope.kube.watch import ObjectWatch
from nodescope.serve.http_client import Endpoint

pytestmark = pytest.mark.real

Answer = Callable[[BaseHTTPRequestHandler], None]


class Wire:
    """A server that answers as a test says, over TLS with client certificates."""

    def __init__(self, folder: Path) -> None:
        self.connections = 0
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answer: Answer = lambda handler: write_json(handler, 200, {})
        certificate, key = folder / "tls.crt", folder / "tls.key"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ]
        names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:api.example"]
        subprocess.run(
            [*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True
        )
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                wire.connections += 1
                super().setup()

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                wire.requests.append((self.command, self.path, dict(self.headers), body))
                wire.answer(self)

            def log_message(self, *_: Any) -> None: ...

        for method in ("GET", "PATCH", "POST"):
            setattr(Handler, f"do_{method}", Handler.answer)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        tls.load_verify_locations(certificate)
        tls.verify_mode = ssl.CERT_REQUIRED
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        mine = ssl.create_default_context(cafile=str(certificate))
        mine.load_cert_chain(certificate, key)
        endpoint = Endpoint("127.0.0.1", self.server.server_port, mine, "/gate")
        self.account = KubeAccount(endpoint, "a test", "t0k")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def write_json(handler: BaseHTTPRequestHandler, status: int, content: object, **headers: str) -> None:
    body = json.dumps(content).encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def write_chunk(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    handler.wfile.flush()


def begin_stream(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    made = Wire(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def client(wire: Wire) -> Iterator[Client]:
    made = Client(wire.account)
    yield made
    made.close()


def test_requests_share_a_connection_and_show_who_we_are(wire: Wire, client: Client) -> None:
    """Bearer token, gateway prefix, merge-patch of just what is given."""
    client.read("/api/v1/nodes/n", {"limit": "1"})
    client.patch("/api/v1/nodes/n", {"metadata": {"annotations": {"a/b": None}}})
    (_, first, headers, _), (method, _, patch, body) = wire.requests
    assert (first, headers["Authorization"]) == ("/gate/api/v1/nodes/n?limit=1", "Bearer t0k")
    assert (method, patch["Content-Type"]) == ("PATCH", "application/merge-patch+json")
    assert json.loads(body) == {"metadata": {"annotations": {"a/b": None}}}
    assert wire.connections == 1


def test_a_kept_connection_that_the_server_closed_is_made_anew(wire: Wire, client: Client) -> None:
    def answer_and_close(handler: BaseHTTPRequestHandler) -> None:
        write_json(handler, 200, {})
        handler.close_connection = True

    wire.answer = answer_and_close
    client.read("/a")
    time.sleep(0.2)
    client.read("/b")
    assert wire.connections == 2


def test_a_busy_server_says_when_to_come_back(wire: Wire, client: Client) -> None:
    wire.answer = lambda handler: write_json(handler, 429, {"message": "too many"}, Retry_After="7")
    with pytest.raises(KubernetesAway, match="too many") as caught:
        client.read("/a")
    assert caught.value.retry_after_seconds == 7


def test_a_refusal_is_told_in_the_server_s_words(wire: Wire, client: Client) -> None:
    wire.answer = lambda handler: write_json(handler, 403, {"message": 'pods is forbidden: User "x"'})
    with pytest.raises(KubernetesRefused, match="403 pods is forbidden") as caught:
        client.read("/a")
    assert caught.value.status == 403


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"[" * 100_000, b"\xff"])
def test_what_is_no_object_is_no_answer(wire: Wire, client: Client, body: bytes) -> None:
    """A proxy's page, or a broken server: later, not a traceback."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    wire.answer = answer
    with pytest.raises(KubernetesAway):
        client.read("/a")


def test_nobody_there_is_away(wire: Wire) -> None:
    wire.server.shutdown()
    wire.server.server_close()
    with pytest.raises(KubernetesAway, match="does not answer"):
        Client(wire.account).read("/a")


def test_a_stream_comes_line_by_line_however_it_is_cut(wire: Wire, client: Client) -> None:
    """Chunks need not end where lines do; what breaks off is away, not an object."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        begin_stream(handler)
        for part in (b'{"n":', b'1}\n{"n":2}\n{"n"', b":3}\n"):
            write_chunk(handler, part)
        write_chunk(handler, b'{"n":4')
        handler.close_connection = True

    wire.answer = answer
    stream = client.stream("/w", {}, 5)
    assert [next(stream)["n"] for _ in range(3)] == [1, 2, 3]
    with pytest.raises(KubernetesAway):
        next(stream)


def test_silence_ends_a_stream(wire: Wire, client: Client) -> None:
    """A dead connection is noticed, not waited for."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        begin_stream(handler)
        time.sleep(2)

    wire.answer = answer
    with pytest.raises(KubernetesAway):
        list(client.stream("/w", {}, 0.3))


def test_a_waiting_watch_stops_at_once(wire: Wire) -> None:
    """An agent that is told to end does not wait for the server."""

    class Nobody:
        def replace(self, items: object) -> None: ...
        def change(self, item: object) -> None: ...
        def remove(self, item: object) -> None: ...

    over = Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "watch=1" not in handler.path:
            write_json(handler, 200, {"metadata": {"resourceVersion": "5"}, "items": []})
            return
        begin_stream(handler)
        assert over.wait(60)

    wire.answer = answer
    watch = ObjectWatch(Client(wire.account), "/pods", {}, Nobody(), SystemClock())
    watch.start()
    wait_for("the watch waits", lambda: watch.state.watches == 1 and watch.state.status == "current", 60)
    time.sleep(0.2)
    watch.stop()
    try:
        assert not watch.is_running
    finally:
        over.set()
