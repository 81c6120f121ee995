"""
Asking an HTTP server: kept connections, bounded answers, one deadline for a whole answer.

    client = HttpClient(parse_endpoint("http://127.0.0.1:9100"), deadline_seconds=2, answer_bytes=2**20)
    answer = client.request("GET", "/status", {"Authorization": f"Bearer {token}"})

Connecting, sending and reading share the deadline: the time that is left is
set before every call of the socket, so a server that sends a byte now and
then is cut like one that sends nothing. Redirects are not followed (a token
must not reach a server that nobody named), proxies of the environment are not
used. Resolving a name has the resolver's own time. Threads may share a client:
each request has a connection to itself.

Standard library only: the agent asks with it, too.
"""

import http.client
import io
import math
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from nodescope import __version__
from nodescope.base.clock import Clock, SystemClock
from nodescope.base.errors import HttpFailed

# How a server ends a kept connection, seen when the next request is sent on it.
CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
NOT_HTTP = "not an address; accepted: http://HOST:PORT or https://HOST:PORT"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and how it is spoken to."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    """None for plain HTTP."""
    path: str = ""
    """Before the path of every request, where the server is behind a gateway."""
    server_name: str = ""
    """The name that the server's certificate must carry; empty means the host."""

    def render(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"


def parse_endpoint(url: str, tls: ssl.SSLContext | None = None, port: int = 0) -> Endpoint:
    """An address with an optional path; HttpFailed for one of another kind."""
    try:
        parts = urlsplit(url)
        port = parts.port or port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise HttpFailed(url, NOT_HTTP) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise HttpFailed(url, NOT_HTTP)
    if parts.scheme == "https":
        tls = tls or ssl.create_default_context()
    return Endpoint(parts.hostname, port, tls if parts.scheme == "https" else None, parts.path.rstrip("/"))


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer, whatever its status."""

    status: int
    reason: str
    headers: http.client.HTTPMessage
    body: bytes = b""


@dataclass(slots=True)
class HttpClient:
    """Asks one server; connects when it has to."""

    endpoint: Endpoint
    deadline_seconds: float
    """For the whole answer, connecting included."""
    answer_bytes: int
    """A longer body is refused."""
    connect_seconds: float = math.inf
    """Of the deadline, at most this much for connecting."""
    silence_seconds: float = math.inf
    """And at most this much for a single read."""
    kept: int = 1
    """Idle connections that stay open."""
    clock: Clock = field(default_factory=SystemClock)
    _lock: Lock = field(default_factory=Lock)
    _idle: list["TimedConnection"] = field(default_factory=list)
    _busy: set["TimedConnection"] = field(default_factory=set)

    def read(self, target: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """GET; HttpFailed for every status but 200."""
        answer = self.request("GET", target, headers)
        if answer.status != 200:
            raise HttpFailed(self.endpoint.render(), f"it says {answer.status}", answer.status)
        return answer

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        idempotent: bool | None = None,
    ) -> HttpAnswer:
        """
        The answer, whatever its status; HttpFailed when there is none.

        A kept connection that the server closed meanwhile is opened again,
        once, if the request may be sent twice: GET and HEAD unless said.
        """
        again = method in ("GET", "HEAD") if idempotent is None else idempotent
        with self._exchange(method, target, headers, body, again) as (connection, response):
            answer = self._read_whole(response)
            connection.is_kept = response.isclosed() and not response.will_close
            return answer

    def stream(
        self, target: str, headers: Mapping[str, str] | None, silence_seconds: float, line_bytes: int
    ) -> tuple[HttpAnswer, Iterator[bytes]]:
        """
        GET an answer that comes line by line: its head, and the lines.

        The head has the deadline; from then on no read may take longer than
        `silence_seconds`. An answer of another status than 200 is read whole.
        """
        with ExitStack() as stack:
            connection, response = stack.enter_context(self._exchange("GET", target, headers, None, True))
            if response.status != 200:
                return self._read_whole(response), iter(())
            connection.until_mono_ns, connection.silence_seconds = math.inf, silence_seconds
            head = HttpAnswer(response.status, response.reason, response.headers)
            return head, read_lines(response, line_bytes, stack.pop_all())

    def interrupt(self) -> None:
        """From another thread: every request under way fails at once."""
        with self._lock:
            busy = list(self._busy)
        for connection in busy:
            connection.interrupt()

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _exchange(
        self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None, again: bool
    ) -> Iterator[tuple["TimedConnection", http.client.HTTPResponse]]:
        """The head of the answer, and the connection that the rest comes on; closed at the end unless kept."""
        until_mono_ns = self.clock.mono_ns() + round(self.deadline_seconds * 1e9)
        named = {"User-Agent": f"nodescope/{__version__}", **(headers or {})}
        connection, was_kept = self._take()
        send = partial(connection.exchange, method, self.endpoint.path + target, named, body, until_mono_ns)
        try:
            try:
                response = send()
            except CLOSED:
                if not (again and was_kept):
                    raise
                connection.close()
                response = send()
            with response:
                yield connection, response
        except (OSError, http.client.HTTPException, ValueError) as error:
            timed_out = isinstance(error, TimeoutError)
            raise HttpFailed(self.endpoint.render(), describe(error), timed_out=timed_out) from error
        finally:
            self._release(connection)

    def _read_whole(self, response: http.client.HTTPResponse) -> HttpAnswer:
        # Of a length that is said beforehand not a byte is read in vain.
        too_long = (response.length or 0) > self.answer_bytes
        body = b"" if too_long else response.read(self.answer_bytes + 1)
        if too_long or len(body) > self.answer_bytes:
            raise http.client.HTTPException(f"an answer of more than {self.answer_bytes} bytes")
        if response.length:
            raise http.client.IncompleteRead(body, response.length)
        return HttpAnswer(response.status, response.reason, response.headers, body)

    def _take(self) -> tuple["TimedConnection", bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            was_kept = bool(self._idle)
            connection = self._idle.pop() if was_kept else TimedConnection(self)
            connection.is_kept = False
            self._busy.add(connection)
            return connection, was_kept

    def _release(self, connection: "TimedConnection") -> None:
        with self._lock:
            self._busy.discard(connection)
            if connection.is_kept and len(self._idle) < self.kept:
                self._idle.append(connection)
                return
        connection.close()


class TimedConnection(http.client.HTTPConnection):
    """A connection that knows how long its socket may still wait."""

    until_mono_ns: float = 0
    is_kept = False
    """Whether its answer was read to the end, and the next request may follow."""

    def __init__(self, client: HttpClient) -> None:
        super().__init__(client.endpoint.host, client.endpoint.port)
        self.silence_seconds = client.silence_seconds
        self._client = client

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, until_mono_ns: int
    ) -> http.client.HTTPResponse:
        self.until_mono_ns = until_mono_ns
        self.request(method, target, body, headers)
        return self.getresponse()

    def connect(self) -> None:
        endpoint = self._client.endpoint
        sock = self._open_socket()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.tls:
            sock.settimeout(self.left_seconds())
            sock = endpoint.tls.wrap_socket(sock, server_hostname=endpoint.server_name or endpoint.host)
        self.sock = TimedSocket(sock, self)

    def _open_socket(self) -> socket.socket:
        """To the first of the host's addresses that answers; they share the time, too."""
        addresses = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, address) in enumerate(addresses, 1):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(min(self.left_seconds(), self._client.connect_seconds))
                sock.connect(address)
            except OSError:
                sock.close()
                if number == len(addresses):
                    raise
            else:
                return sock
        raise OSError("a name without an address")

    def left_seconds(self) -> float:
        left_seconds = (self.until_mono_ns - self._client.clock.mono_ns()) / 1e9
        if left_seconds <= 0:
            raise TimeoutError("timed out")
        return min(left_seconds, self.silence_seconds)

    def interrupt(self) -> None:
        # It may have been closed meanwhile.
        with suppress(OSError):
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)


class TimedSocket:
    """What http.client wants of a socket; the time that is left is set before every call."""

    def __init__(self, sock: socket.socket, connection: TimedConnection) -> None:
        self._sock = sock
        self._connection = connection
        self.shutdown = sock.shutdown
        self.close = sock.close

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._sock.settimeout(self._connection.left_seconds())
            rest = rest[self._sock.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        del mode
        return io.BufferedReader(TimedReader(self._sock, self._connection))


class TimedReader(io.RawIOBase):
    """The bytes of a socket; the time that is left is set before every read."""

    def __init__(self, sock: socket.socket, connection: TimedConnection) -> None:
        self._sock = sock
        self._connection = connection
        # The socket stays open until this file is closed, too.
        self._file = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._connection.left_seconds())
        return self._file.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._file.close()


def read_lines(response: http.client.HTTPResponse, line_bytes: int, stack: ExitStack) -> Iterator[bytes]:
    with stack:
        while line := response.readline(line_bytes):
            yield line


def describe(error: Exception) -> str:
    """In the operating system's words where it has some, without the number before them."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    if isinstance(error, ValueError):
        # Its text may hold the token.
        return "the address or a header has characters that HTTP does not take"
    return str(error) or type(error).__name__
