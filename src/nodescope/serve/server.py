"""Listening: uvicorn on as many addresses as asked, bounded in headers, time and connections."""

import asyncio
import errno
import fcntl
import os
import socket
import ssl
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from nodescope.base.errors import SettingsRejected
from nodescope.base.log import Log
from nodescope.base.settings import Settings
from nodescope.serve.bounds.acceptor import BACKLOG, Acceptor
from nodescope.serve.bounds.write_buffer import TLS_PIECE_BYTES, JoinedTransport, Listening
from nodescope.serve.connections import GRACE_SECONDS, Connections
from nodescope.serve.gate import is_local
from nodescope.serve.probes import Judge, LoopPulse, ProbeListener
from nodescope.serve.turns import REQUESTER, REQUESTER_KEY, Requester, find_requester

log = Log("server")

HEADER_BYTES = 16384
# A client that has not finished its headers by then is broken, or hostile.
HEADER_SECONDS = 10.0
IDLE_SECONDS = 30
# The kernel takes twice as much.
SOCKET_BYTES = 128 * 1024
STOP_SECONDS = 3

# For a handshake, and for a request: some round trips on a busy machine.
BEGIN_SECONDS = 1.0

# In the scope of a request: the name in the certificate that the client showed and whose authority
# is one of ours; None where it showed none.
PEER_KEY = "nodescope.peer"

# In the order in which connections give way to others.
ANSWERED, SHAKING, RECEIVING, IDLE, STALLED, CLOSING = range(6)


class BoundedProtocol(H11Protocol):
    """
    uvicorn's own, closing the connections of slow senders and of those who do not read.

    A request, its body included, must be complete HEADER_SECONDS after its
    first byte (the first request of a connection: after connecting), so a
    client that sends a byte now and then cannot keep a connection. A further
    request of the same connection waits until the answer before it has been read.
    """

    _joined: JoinedTransport
    _patience: asyncio.TimerHandle | None = None
    _is_first = True
    _raw: asyncio.Transport | None = None
    _is_full = False
    _is_held_back = False
    _is_ended = False
    _peer: str | None = None

    def __init__(self, address: str, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.address = address
        self._requester = Requester(address)
        self._all = connections
        self._since = self.loop.time()

    # -- what the others of the server may know and do ------------------------------

    @property
    def unread_bytes(self) -> int:
        return self._joined.unread_bytes

    @property
    def stalled_seconds(self) -> float:
        return self._joined.stalled_seconds

    @property
    def in_handshake(self) -> bool:
        return self.transport is None

    @property
    def has_just_begun(self) -> bool:
        is_beginning = self._find_state() in (SHAKING, RECEIVING)
        return is_beginning and self.loop.time() - self._since < BEGIN_SECONDS

    def rank(self) -> tuple[int, float] | None:
        state = self._find_state()
        return None if state == ANSWERED else (state, self.loop.time() - self._since)

    def _find_state(self) -> int:
        if self.transport is None:
            return SHAKING if self._raw else ANSWERED
        if self.stalled_seconds >= GRACE_SECONDS:
            return STALLED
        if self.unread_bytes:
            # Closed now, the reader would get less than all of the answer.
            return ANSWERED
        if self.transport.is_closing():
            return CLOSING
        if self._is_receiving():
            return RECEIVING
        return IDLE if self.conn.their_state is h11.IDLE else ANSWERED

    def abort(self) -> None:
        self._is_ended = True
        if self._raw is not None:
            self._raw.abort()

    def hear_transport(self, raw: asyncio.Transport) -> None:
        self._raw = raw
        if self._is_ended:
            # It gave way to another before it was connected.
            raw.abort()
        if self.config.is_ssl:
            # There are more buffers above it.
            raw.set_write_buffer_limits(high=TLS_PIECE_BYTES)

    def hear_pause(self, paused: bool) -> None:
        """The socket takes no more, or some more again."""
        if self.transport is not None:
            self._joined.hear_pause(paused)

    def hear_end(self, error: BaseException | None) -> None:
        """Before the socket is closed."""
        if error is None:
            self._give_credit()
        self._all.forget(self)

    def _give_credit(self) -> None:
        """An answer that was read speaks for the address."""
        if not self._is_first and self._raw is not None and is_all_taken(self._raw):
            self._all.strikes.forgive(self.address)

    def _hear_full(self, full: bool) -> None:
        self._is_full = full
        if full:
            self.flow.pause_writing()
            return
        self.flow.resume_writing()
        if self._is_held_back:
            self._is_held_back = False
            self._end_response()

    def _hear_unread(self, unread: bool) -> None:
        if unread:
            self._all.writing.add(self)
        else:
            self._all.writing.discard(self)

    def _hear_stall(self) -> None:
        self._all.end(self, "stalled")

    # -- asyncio's side -------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        listening = Listening(self._hear_full, self._hear_unread, self._hear_stall)
        self._joined = JoinedTransport(transport, self.loop, self._raw, listening)
        self._peer = name_peer(transport.get_extra_info("peercert"))
        super().connection_made(self._joined)  # type: ignore[arg-type]
        self._watch_request()

    def pause_writing(self) -> None:
        # With TLS, what counts is the socket below.
        if self.scheme == "http":
            self.hear_pause(True)

    def resume_writing(self) -> None:
        if self.scheme == "http":
            self.hear_pause(False)

    def data_received(self, data: bytes) -> None:
        self.server_state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        if self._find_state() == IDLE:
            self._give_credit()
        super().data_received(data)
        self._watch_request()

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not None:
            self.scope[REQUESTER_KEY] = self._requester  # type: ignore[literal-required]
            self.scope[PEER_KEY] = self._peer  # type: ignore[literal-required]

    def on_response_complete(self) -> None:
        self._joined.flush()
        self._is_first = False
        self._since = self.loop.time()
        if self._is_full:
            self._is_held_back = True
        else:
            self._end_response()

    def _end_response(self) -> None:
        super().on_response_complete()
        self._watch_request()

    def _is_receiving(self) -> bool:
        begun = self._is_first or bool(self.conn.trailing_data[0])
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and begun)

    def _watch_request(self) -> None:
        """The timer runs only while a request is being received."""
        if self._is_receiving():
            if self._patience is None:
                self._since = self.loop.time()
                self._patience = self.loop.call_later(HEADER_SECONDS, self._end_slow)
        elif self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _end_slow(self) -> None:
        self._all.strike(self.address, "slow")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._joined.detach()
        if self.scheme == "http":
            self.hear_end(exc)
        super().connection_lost(exc)
        self._requester.leave()
        # Without these references in a circle it is freed at once. The collector
        # comes round after thousands of objects, each of which may hold a TLS state.
        self._unset_keepalive_if_required()
        self.cycle = None  # type: ignore[assignment]
        self._raw = None


def name_peer(certificate: dict[str, Any] | None) -> str | None:
    """The common name of a client's certificate, as ssl.getpeercert tells it; None where there is none."""
    if not certificate:
        return None
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return str(names[0]) if names else ""


def is_all_taken(transport: asyncio.Transport) -> bool:
    """Whether the other side has all that was sent to it, as far as the kernel can tell."""
    sock = transport.get_extra_info("socket")
    if transport.get_write_buffer_size() or sock is None:
        return False
    try:
        queued = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return False
    return int.from_bytes(queued, sys.byteorder) == 0


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT, [::1]:PORT or :PORT for all addresses."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise SettingsRejected(
            f"listen = {text!r} is not accepted; accepted: HOST:PORT such as 127.0.0.1:9100"
        )
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - asked for by leaving the host out


def open_socket(address: str, flag: str = "--port or --listen") -> socket.socket:
    """flag: what chooses another address, for the one clear line where this one is taken."""
    host, port = parse_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said outright: asyncio turns Nagle's algorithm off only for sockets that
    # name TCP, and with it every answer on a kept connection takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections have the same. Without it the kernel takes up to 4 MiB of an answer that
    # nobody reads, which counts as memory of the container.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsRejected(
                f"{host}:{port} is in use by another program; choose another with {flag}, or stop the other one"
            ) from error
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise SettingsRejected(f"cannot listen on {host}:{port}: {reason}") from error
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def adopt_socket(descriptor: object) -> socket.socket | None:
    """A listener that an earlier program of this process opened; None where there is none."""
    if not isinstance(descriptor, int):
        return None
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError:
        return None
    listener.set_inheritable(False)
    listener.setblocking(False)
    return listener


def warn_if_open(addresses: Sequence[str], settings: Settings) -> None:
    """Said at the start: whoever reaches the port may ask."""
    reachable = [address for address in addresses if not is_local(parse_address(address)[0])]
    if reachable and not settings.token_file and not settings.tls_client_ca:
        log.warning(
            "anybody who can connect may read; --token-file or --tls-client-ca restricts it",
            listen=",".join(reachable),
        )


@contextmanager
def answer_probes(address: str, judge: Judge, listener: socket.socket | None = None) -> Iterator[None]:
    """
    While the context lasts, probes are answered on a listener of their own; on none where the address is empty.

    listener: one that listens on the address already.
    """
    if not address:
        yield
        return
    with ProbeListener(listener or open_socket(address), judge):
        yield


def build_tls(settings: Settings) -> dict[str, Any]:
    """Uvicorn's options for HTTPS; empty for plain HTTP."""
    if not settings.tls_cert and not settings.tls_key:
        if settings.tls_client_ca:
            raise SettingsRejected("tls_client_ca needs tls_cert and tls_key")
        return {}
    if not (settings.tls_cert and settings.tls_key):
        raise SettingsRejected("tls_cert and tls_key go together; one of them is missing")
    for key in ("tls_cert", "tls_key", "tls_client_ca"):
        path = getattr(settings, key)
        if path and not path.is_file():
            raise SettingsRejected(f"{key} = {path}: no such file")
    options: dict[str, Any] = {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key)}
    if settings.tls_client_ca:
        options |= {"ssl_ca_certs": str(settings.tls_client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return options


class Server(uvicorn.Server):
    """
    Stops on SIGINT and SIGTERM without printing tracebacks.

    uvicorn wakes ten times a second to see whether it should stop and to
    renew the date that it sends. Here setting should_exit wakes it, and the
    date is made for each request.
    """

    connections: Connections
    pulse: LoopPulse
    _loop: asyncio.AbstractEventLoop | None = None
    _leave: asyncio.Event
    _should_exit = False

    @property
    def should_exit(self) -> bool:
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        """From a signal's handler or another thread."""
        self._should_exit = value
        if value and self._loop:
            self._loop.call_soon_threadsafe(self._leave.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens with bounds, where uvicorn's own takes whoever comes."""
        loop = asyncio.get_running_loop()
        given = {"config": self.config, "server_state": self.server_state, "app_state": {}, "_loop": loop}

        def make_protocol(address: str) -> BoundedProtocol:
            return BoundedProtocol(address, self.connections, **given)

        acceptor = Acceptor(sockets or [], self.connections, make_protocol, self.config.ssl)
        acceptor.start()
        self.pulse.loop = loop
        # It has what uvicorn asks of a server of asyncio's: to be closed.
        self.servers = [acceptor]  # type: ignore[list-item]
        self.started = True

    def stop_accepting(self) -> None:
        """Who connects from now on waits in the kernel's queue."""
        for acceptor in self.servers:
            acceptor.close()

    async def main_loop(self) -> None:
        self._leave = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            if not self.should_exit:
                await self._leave.wait()
        finally:
            self._loop = None


def name_requester(app: ASGIApp) -> ASGIApp:
    """The same application; who asks is known wherever the answer is made."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        REQUESTER.set(find_requester(scope))
        await app(scope, receive, send)

    return answer


def build_server(app: ASGIApp, settings: Settings, connections: Connections | None = None) -> Server:
    connections = connections or Connections()
    config = uvicorn.Config(
        name_requester(app),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        h11_max_incomplete_event_size=HEADER_BYTES,
        **build_tls(settings),
    )
    try:
        config.load()
    except ssl.SSLError as error:
        raise SettingsRejected(
            f"tls_cert, tls_key or tls_client_ca cannot be used: {error.reason or error}"
        ) from error
    server = Server(config)
    server.connections = connections
    server.pulse = LoopPulse()
    return server
