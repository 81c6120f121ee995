"""Asking a server that is slow, talkative, gone, or somebody else."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import HttpFailed
from nodescope.serve.http_client import Endpoint, HttpClient, TimedConnection, TimedReader, parse_endpoint

real = pytest.mark.real

# -- without a network -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "rendered"),
    [
        ("http://localhost", "http://localhost:80"),
        ("http://[::1]:9100/", "http://[::1]:9100"),
        ("https://node.example/nodescope/", "https://node.example:443/nodescope"),
    ],
)
def test_an_address_may_leave_out_its_port(url: str, rendered: str) -> None:
    assert parse_endpoint(url).render() == rendered


@pytest.mark.parametrize("url", ["localhost:9100", "ftp://a", "http://", "http://a:b", "http://[::1", ""])
def test_another_address_is_refused_with_what_is_accepted(url: str) -> None:
    with pytest.raises(HttpFailed, match="accepted: http://HOST:PORT") as caught:
        parse_endpoint(url)
    assert (caught.value.address, caught.value.status) == (url, 0)


def test_every_read_gets_the_time_that_is_left() -> None:
    """A byte now and then does not prolong the deadline: after it, not even a byte that is there is read."""
    clock = TurnableClock()
    ours, theirs = socket.socketpair()
    connection = TimedConnection(HttpClient(Endpoint("unused", 1), 10, 100, clock=clock))
    connection.until_mono_ns = clock.mono_ns() + 10_000_000_000
    reader = TimedReader(ours, connection)
    with ours, theirs:
        for left_seconds in (10, 6, 2):
            theirs.send(b"x")
            assert reader.read(1) == b"x"
            assert ours.gettimeout() == left_seconds
            clock.advance(4_000_000_000)
        theirs.send(b"x")
        with pytest.raises(TimeoutError):
            reader.read(1)
        reader.close()


# -- against a server --------------------------------------------------------------------

Act = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers as a test says; over TLS where it has a certificate."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self.clients: list[HttpClient] = []
        self.paths: list[str] = []
        self.act: Act = lambda handler: write_body(handler, b"ok")
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def do_GET(self) -> None:
                server.paths.append(self.path)
                server.act(self)

            def log_message(self, *_: Any) -> None: ...

        Handler.do_POST = Handler.do_GET  # type: ignore[attr-defined]
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def client(self, tls: ssl.SSLContext | None = None, **options: Any) -> HttpClient:
        endpoint = Endpoint("127.0.0.1", self.http.server_port, tls, server_name=options.pop("name", ""))
        made = HttpClient(endpoint, **{"deadline_seconds": 10, "answer_bytes": 1000, **options})
        self.clients.append(made)
        return made

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.http.shutdown()
        self.http.server_close()


def write_head(handler: BaseHTTPRequestHandler, length: int, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(length), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()


def write_body(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    write_head(handler, len(body), status, **headers)
    handler.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def drip_head(handler: BaseHTTPRequestHandler) -> None:
    """Never silent for long, never done with its first header."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    drip(handler)


def drip_body(handler: BaseHTTPRequestHandler) -> None:
    write_head(handler, 1000)
    drip(handler)


def drip(handler: BaseHTTPRequestHandler) -> None:
    try:
        for _ in range(100):
            handler.wfile.write(b"x")
            time.sleep(0.1)
    except OSError:
        handler.close_connection = True


@real
@pytest.mark.parametrize("act", [drip_head, drip_body])
def test_a_server_that_drips_is_cut_at_the_deadline(server: Server, act: Act) -> None:
    """Its hundred bytes would take ten seconds, none of them later than the one before."""
    server.act = act
    began = time.monotonic()
    with pytest.raises(HttpFailed, match="timed out") as caught:
        server.client(deadline_seconds=0.5).read("/")
    assert caught.value.timed_out
    # The promise is half a second; the rest is for a busy machine.
    assert time.monotonic() - began < 5


@real
def test_an_answer_beyond_the_bound_is_refused(server: Server) -> None:
    """Whether its length is said beforehand, or it comes in chunks without end."""

    def chunks(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b"64\r\n" + b"x" * 100 + b"\r\n")

    client = server.client()
    for act in (lambda handler: write_body(handler, b"x" * 1001), chunks):
        server.act = act
        with pytest.raises(HttpFailed, match="more than 1000 bytes"):
            client.read("/")
    server.act = lambda handler: write_body(handler, b"x" * 1000)
    assert len(client.read("/").body) == 1000


@real
def test_an_answer_that_is_cut_is_no_answer(server: Server) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        write_head(handler, 100)
        handler.wfile.write(b"half")
        handler.close_connection = True

    server.act = cut
    with pytest.raises(HttpFailed, match="4 bytes read, 96 more expected"):
        server.client().read("/")


@real
def test_a_connection_is_kept_and_opened_again_when_the_server_closed_it(server: Server) -> None:
    """Once, and only for what may be sent twice: a POST fails instead."""

    def close(handler: BaseHTTPRequestHandler) -> None:
        write_body(handler, b"ok")
        handler.close_connection = True

    client = server.client()
    for path in ("/1", "/2"):
        assert client.read(path).body == b"ok"
    assert server.connections == 1
    server.act = close
    client.read("/3")
    time.sleep(0.2)
    assert client.read("/4").body == b"ok"
    assert server.connections == 2
    time.sleep(0.2)
    with pytest.raises(HttpFailed):
        client.request("POST", "/5", body=b"x")
    assert server.paths == ["/1", "/2", "/3", "/4"]
    assert client.request("POST", "/6", body=b"x").body == b"ok"


@real
def test_threads_share_a_client_and_no_connection(server: Server) -> None:
    """Of five that ask at once two are kept."""
    barrier = threading.Barrier(5)

    def together(handler: BaseHTTPRequestHandler) -> None:
        barrier.wait(10)
        write_body(handler, handler.path.encode())

    server.act = together
    client = server.client(kept=2)
    bodies: list[bytes] = []
    threads = [
        threading.Thread(target=lambda path=f"/{number}": bodies.append(client.read(path).body))
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(bodies) == [b"/0", b"/1", b"/2", b"/3", b"/4"]
    assert len(client._idle) == 2
    assert not client._busy


@real
def test_a_redirect_is_an_answer_and_not_followed(server: Server) -> None:
    """Else a token would reach a server that nobody named."""
    server.act = lambda handler: write_body(handler, b"", 302, Location="/elsewhere")
    client = server.client()
    assert client.request("GET", "/").headers["Location"] == "/elsewhere"
    with pytest.raises(HttpFailed, match="it says 302") as caught:
        client.read("/")
    assert caught.value.status == 302
    assert server.paths == ["/", "/"]


@real
def test_silence_ends_a_stream_and_lines_do_not(server: Server) -> None:
    """A stream may last longer than the deadline, which is that of its head."""

    def write_lines(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for number in range(6):
            handler.wfile.write(b"%d\n" % number)
            handler.wfile.flush()
            time.sleep(0.2)
        time.sleep(5)

    server.act = write_lines
    head, lines = server.client(deadline_seconds=1).stream("/", None, 1, 1000)
    assert head.status == 200
    assert [next(lines) for _ in range(6)] == [b"%d\n" % number for number in range(6)]
    with pytest.raises(HttpFailed, match="timed out"):
        next(lines)


@real
def test_what_is_under_way_can_be_interrupted(server: Server) -> None:
    waiting, stop = threading.Event(), threading.Event()

    def wait(handler: BaseHTTPRequestHandler) -> None:
        waiting.set()
        stop.wait(20)
        handler.close_connection = True

    server.act = wait
    client = server.client(deadline_seconds=20)

    def interrupt() -> None:
        waiting.wait(10)
        client.interrupt()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(HttpFailed) as caught:
        client.read("/")
    assert not caught.value.timed_out
    stop.set()


@real
def test_nobody_there_and_a_token_that_cannot_be_sent() -> None:
    """The reason is the system's; the token is in no message."""
    with pytest.raises(HttpFailed, match="Connection refused"):
        HttpClient(Endpoint("127.0.0.1", 9), 5, 100).read("/")
    with pytest.raises(HttpFailed, match="characters that HTTP does not take") as caught:
        HttpClient(Endpoint("127.0.0.1", 9), 5, 100).read("/", {"Authorization": "Bearer s3cr\net"})
    assert "s3cr" not in str(caught.value)


@real
def test_the_server_s_certificate_must_be_of_its_name(tmp_path: Path) -> None:
    """Trusted and named: served. Of an unknown authority, or in another name: not."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=test",
    ]
    names = ["-addext", "subjectAltName=DNS:api.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words, *names], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server = Server(tls)
    trusting = ssl.create_default_context(cafile=str(certificate))
    try:
        assert server.client(trusting, name="api.example").read("/").body == b"ok"
        for options in ({"tls": trusting}, {"tls": ssl.create_default_context(), "name": "api.example"}):
            with pytest.raises(HttpFailed, match="CERTIFICATE_VERIFY_FAILED"):
                server.client(**options).read("/")
    finally:
        server.close()
