"""Listening: uvicorn on as many addresses as asked, bounded in headers, time and connections."""

import asyncio
import errno
import os
import socket
import ssl
from email.utils import formatdate
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nodescope.base.errors import SettingsRejected
from nodescope.base.settings import Settings
from nodescope.serve.write_buffer import JoinedTransport

# More connections than any set of scrapers and schedulers keeps to one node.
CONNECTIONS = 100
HEADER_BYTES = 16384
# A client that has not finished its headers by then is broken, or hostile.
HEADER_SECONDS = 10.0
IDLE_SECONDS = 30
STOP_SECONDS = 3


class BoundedProtocol(H11Protocol):
    """
    uvicorn's own, closing the connections of slow senders.

    A request, its body included, must be complete HEADER_SECONDS after its
    first byte (the first request of a connection: after connecting), so a
    client that sends a byte now and then cannot keep a connection.
    """

    _joined: JoinedTransport
    _patience: asyncio.TimerHandle | None = None
    _is_first = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joined = JoinedTransport(transport, self.loop)
        super().connection_made(self._joined)  # type: ignore[arg-type]
        self._watch_request()

    def data_received(self, data: bytes) -> None:
        self.server_state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        super().data_received(data)
        self._watch_request()

    def on_response_complete(self) -> None:
        self._joined.flush()
        self._is_first = False
        super().on_response_complete()
        self._watch_request()

    def _watch_request(self) -> None:
        """The timer runs only while a request is being received."""
        begun = self._is_first or bool(self.conn.trailing_data[0])
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and begun):
            if self._patience is None:
                self._patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)
        elif self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT, [::1]:PORT or :PORT for all addresses."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise SettingsRejected(
            f"listen = {text!r} is not accepted; accepted: HOST:PORT such as 127.0.0.1:9100"
        )
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - asked for by leaving the host out


def open_socket(address: str) -> socket.socket:
    host, port = parse_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said outright: asyncio turns Nagle's algorithm off only for sockets that
    # name TCP, and with it every answer on a kept connection takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsRejected(
                f"{host}:{port} is in use by another program; choose another with --port or --listen, or stop the other one"
            ) from error
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise SettingsRejected(f"cannot listen on {host}:{port}: {reason}") from error
    listener.listen(CONNECTIONS)
    listener.setblocking(False)
    return listener


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

    async def main_loop(self) -> None:
        self._leave = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            if not self.should_exit:
                await self._leave.wait()
        finally:
            self._loop = None


def build_server(app: ASGIApp, settings: Settings) -> Server:
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
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
    return Server(config)
