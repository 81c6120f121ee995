"""A proxy that counts the bytes which programs behind it fetch: HTTPS by CONNECT, nothing is decrypted."""

import socket
import socketserver
import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

PIECE_BYTES = 65536
CONNECT_SECONDS = 30
CONNECT_PAUSES = (0.5, 1.0, 2.0, 4.0)
END_SECONDS = 10


class Tunnel(socketserver.StreamRequestHandler):
    """One CONNECT: bytes are passed on in both directions until one side ends."""

    server: "CountingServer"

    def handle(self) -> None:
        method, place, _ = self.rfile.readline().decode("latin-1").split(" ", 2)
        while self.rfile.readline().strip():
            pass
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return
        host, _, port = place.rpartition(":")
        far = connect(host.strip("[]"), int(port))
        if far is None:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with far:
            far.settimeout(None)
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            up = threading.Thread(target=pump, args=(self.connection, far), daemon=True)
            up.start()
            self.server.add(host, 0, 1)
            self.server.add(host, pump(far, self.connection), -1)
            up.join()


def connect(host: str, port: int) -> socket.socket | None:
    """A name server of a busy machine does not always answer at once."""
    for pause_seconds in CONNECT_PAUSES:
        try:
            return socket.create_connection((host, port), CONNECT_SECONDS)
        except OSError:
            time.sleep(pause_seconds)
    return None


def pump(source: socket.socket, target: socket.socket) -> int:
    """Passes everything on; how many bytes that were."""
    count = 0
    try:
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
            count += len(piece)
    except OSError:
        pass
    for side in (source, target):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    return count


class CountingServer(socketserver.ThreadingTCPServer):
    """Counts what came back."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.fetched: Counter[str] = Counter()
        self.open = 0
        self._lock = threading.Lock()

    def add(self, host: str, count: int, connections: int) -> None:
        with self._lock:
            self.fetched[host] += count
            self.open += connections


class CountingProxy:
    """While the context lasts, `environment` sends programs through it."""

    def __enter__(self) -> Self:
        self._server = CountingServer()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        address = f"http://127.0.0.1:{self._server.server_address[1]}"
        return {"HTTPS_PROXY": address, "https_proxy": address, "HTTP_PROXY": address, "http_proxy": address}

    def await_quiet(self) -> Counter[str]:
        """Bytes by host, once every connection has ended, or a few seconds later."""
        deadline = time.monotonic() + END_SECONDS
        while self._server.open and time.monotonic() < deadline:
            time.sleep(0.05)
        return Counter(self._server.fetched)
