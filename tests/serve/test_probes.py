"""The listener of probes: real sockets on loopback, a crowd beside it, and no descriptor left."""

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest
from tests.support import TurnableClock

from nodescope.serve.probes import HUNG_SECONDS, LoopPulse, ProbeListener, judge_by_pulse
from nodescope.serve.server import open_socket

pytestmark = pytest.mark.real


class Health:
    """What is reported."""

    is_well = True

    def judge(self, path: str) -> tuple[bool, Mapping[str, object]]:
        return self.is_well, {"path": path}


@contextlib.contextmanager
def listening(health: Health) -> Iterator[int]:
    listener = open_socket("127.0.0.1:0")
    port: int = listener.getsockname()[1]
    with ProbeListener(listener, health.judge):
        yield port


def ask(port: int, path: str = "/healthz", method: str = "GET", source: str = "127.0.0.1") -> bytes:
    with socket.create_connection(("127.0.0.1", port), 20, (source, 0)) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_probes_and_nothing_else_is_answered() -> None:
    health = Health()
    with listening(health) as port:
        assert ask(port).startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'{"path": "/readyz"}' in ask(port, "/readyz?verbose")
        assert ask(port, "/metrics").startswith(b"HTTP/1.1 404")
        assert ask(port, method="POST").startswith(b"HTTP/1.1 405")
        assert ask(port, method="HEAD").endswith(b"\r\n\r\n")
        health.is_well = False
        assert ask(port).startswith(b"HTTP/1.1 503")


def test_a_crowd_of_other_addresses_does_not_keep_a_probe_waiting() -> None:
    """Silent, and slow ones; twenty times as many as there are places."""
    with listening(Health()) as port, contextlib.ExitStack() as crowd:
        for number in range(640):
            source = (f"127.0.2.{number % 100 + 1}", 0)
            one = crowd.enter_context(socket.create_connection(("127.0.0.1", port), 20, source))
            if number % 2:
                with contextlib.suppress(OSError):
                    one.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        assert ask(port, source="127.0.3.1").startswith(b"HTTP/1.1 200")


def test_without_a_free_descriptor_probes_are_answered() -> None:
    """Every descriptor of the process is taken: the listener has some of its own."""
    with listening(Health()) as port:
        client = socket.socket()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken: list[int] = []
        try:
            # Whatever other tests of this process have open: a few are left, which are taken next.
            highest = max(map(int, os.listdir("/dev/fd")))
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, highest + 16), hard))
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.dup(client.fileno()))
            client.settimeout(20)
            client.connect(("127.0.0.1", port))
            client.sendall(b"GET /readyz HTTP/1.1\r\n\r\n")
            answer = client.recv(65536)
        finally:
            for descriptor in taken:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            client.close()
        assert taken
        assert answer.startswith(b"HTTP/1.1 200")
        assert ask(port).startswith(b"HTTP/1.1 200")


def test_a_loop_that_hangs_is_not_live() -> None:
    """And is live again when it has come round; one that was never started is not judged."""
    clock = TurnableClock()
    pulse = LoopPulse(clock)
    assert judge_by_pulse(pulse, "/healthz")[0]
    loop = asyncio.new_event_loop()
    pulse.loop = loop
    assert judge_by_pulse(pulse, "/healthz")[0]
    clock.advance(round((HUNG_SECONDS + 1) * 1e9))
    is_well, said = judge_by_pulse(pulse, "/healthz")
    assert not is_well
    assert "has not come round for 31 s" in str(said["reason"])
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.sleep(0)))
    thread.start()
    thread.join()
    assert judge_by_pulse(pulse, "/healthz")[0]
    loop.close()
