"""
A crowd of hostile clients in one process: python -m tests.torture.hostile PORT COUNT SECONDS PACE TLS.

It keeps COUNT connections to 127.0.0.1:PORT, from two hundred addresses of
loopback. One that the server closes is replaced, PACE a second at most. Prints
one line of JSON when it ends: how many connections were made, in which manners.
"""

import itertools
import json
import os
import resource
import select
import socket
import ssl
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

ADDRESSES = 200
CONNECT_AT_ONCE = 64
# What a client sends first; made once, by a real client's TLS.
HELLO_PART = 60
SLOW_SECONDS = 1.0
PIPELINED = 20
GONE = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR  # type: ignore[attr-defined,unused-ignore]


def make_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    client = make_context().wrap_bio(ssl.MemoryBIO(), outgoing)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def make_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def make_old_context() -> ssl.SSLContext:
    """Without tickets it is the server that keeps a session."""
    context = make_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    return context


def render_request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n\r\n".encode()


# How a client misbehaves, and its share of the crowd in percent.
# "old TLS" makes a session of TLS 1.2 that the server has to remember, and leaves.
MANNERS = {
    "silent": 35,
    "slow hello": 15,
    "half TLS": 20,
    "slow request": 10,
    "not reading": 15,
    "old TLS": 5,
}
# Without TLS there is no hello to be slow with.
PLAIN_MANNERS = {"silent": 50, "slow request": 25, "not reading": 25}


@dataclass(slots=True, eq=False)
class Client:
    """One connection, and what it does next."""

    manner: str
    sock: socket.socket
    tls: ssl.SSLSocket | None = None
    is_connected: bool = False
    next_byte: int = 0


class Crowd:
    """Keeps as many connections as were asked for, all of them hostile."""

    def __init__(self, port: int, count: int, pace: float, *, with_tls: bool) -> None:
        self._place = ("127.0.0.1", port)
        self._wanted = count
        self._pace = pace
        self._with_tls = with_tls
        self._context, self._old_context = make_context(), make_old_context()
        self._hello = make_hello()
        self._poll = select.epoll()  # type: ignore[attr-defined,unused-ignore]
        self._clients: dict[int, Client] = {}
        self._slow: deque[tuple[float, Client]] = deque()
        shares = MANNERS if with_tls else PLAIN_MANNERS
        self._manners = itertools.cycle([name for name, share in shares.items() for _ in range(share)])
        self._sources = itertools.cycle(range(1, ADDRESSES + 1))
        self.made: Counter[str] = Counter()
        self.most = 0

    def run(self, seconds: float) -> None:
        began = time.monotonic()
        allowed = float(self._wanted)
        last = began
        while (now := time.monotonic()) < began + seconds:
            allowed = min(self._wanted, allowed + (now - last) * self._pace)
            last = now
            for _ in range(min(CONNECT_AT_ONCE, int(allowed), self._wanted - len(self._clients))):
                self._connect()
                allowed -= 1
            for descriptor, event in self._poll.poll(0.02, 512):
                client = self._clients.get(descriptor)
                if client:
                    self._act(client, event)
            self._send_slowly(now)
            self.most = max(self.most, len(self._clients))

    def _connect(self) -> None:
        sock = socket.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            sock.bind((f"127.0.1.{next(self._sources)}", 0))
            sock.connect_ex(self._place)
        except OSError:
            sock.close()
            return
        client = Client(next(self._manners), sock)
        self.made[client.manner] += 1
        self._clients[sock.fileno()] = client
        self._poll.register(sock, select.EPOLLOUT | GONE)  # type: ignore[attr-defined,unused-ignore]

    def _act(self, client: Client, event: int) -> None:
        try:
            if event & GONE:
                self._leave(client)
            elif not client.is_connected:
                client.is_connected = True
                self._begin(client)
            elif client.tls is not None:
                self._shake(client)
        except (OSError, ValueError):
            self._leave(client)

    def _begin(self, client: Client) -> None:
        self._poll.modify(client.sock, GONE)
        if client.manner == "slow hello":
            client.sock.send(self._hello[:HELLO_PART])
            self._slow.append((time.monotonic(), client))
        elif client.manner == "half TLS":
            client.sock.send(self._hello)
        elif client.manner != "silent" and self._with_tls:
            context = self._old_context if client.manner == "old TLS" else self._context
            client.tls = context.wrap_socket(client.sock, do_handshake_on_connect=False)
            client.sock = client.tls
            self._shake(client)
        elif client.manner != "silent":
            self._ask(client, client.sock.send)

    def _shake(self, client: Client) -> None:
        assert client.tls is not None
        try:
            client.tls.do_handshake()
        except ssl.SSLWantReadError:
            self._poll.modify(client.tls, select.EPOLLIN | GONE)  # type: ignore[attr-defined,unused-ignore]
        except ssl.SSLWantWriteError:
            self._poll.modify(client.tls, select.EPOLLOUT | GONE)  # type: ignore[attr-defined,unused-ignore]
        else:
            self._poll.modify(client.tls, GONE)
            if client.manner == "old TLS":
                self._leave(client)
            else:
                self._ask(client, client.tls.send)

    def _ask(self, client: Client, send: Callable[[bytes], int]) -> None:
        if client.manner == "slow request":
            send(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            self._slow.append((time.monotonic(), client))
        else:
            paths = itertools.islice(itertools.cycle(["/metrics", "/live?since=x-1", "/status"]), PIPELINED)
            send(b"".join(map(render_request, paths)))

    def _send_slowly(self, now: float) -> None:
        while self._slow and self._slow[0][0] + SLOW_SECONDS < now:
            _, client = self._slow.popleft()
            if self._clients.get(client.sock.fileno()) is not client:
                continue
            position = HELLO_PART + client.next_byte
            data = self._hello[position : position + 1] if client.manner == "slow hello" else b"x"
            client.next_byte += 1
            with suppress(OSError, ValueError):
                client.sock.send(data)
            self._slow.append((now, client))

    def _leave(self, client: Client) -> None:
        self._clients.pop(client.sock.fileno(), None)
        client.sock.close()


def main() -> None:
    port, count, seconds, pace, with_tls = sys.argv[1:]
    # A crowd has machines of its own; here it must not take the server's.
    os.nice(15)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = Crowd(int(port), int(count), float(pace), with_tls=with_tls == "tls")
    crowd.run(float(seconds))
    found = {"made": dict(crowd.made), "at_once": crowd.most, "cpu_seconds": round(time.process_time(), 1)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
