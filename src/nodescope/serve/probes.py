"""
A listener of its own for liveness and readiness, which other requests cannot starve.

A probe that waits behind a thousand hostile connections fails, and the kubelet
then kills a server that works. So probes have a port, a thread, places and
spare descriptors of their own: GET /healthz and /readyz, plain HTTP, nothing else.
"""

import asyncio
import errno
import os
import selectors
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from types import TracebackType
from typing import Self

from nodescope.base.clock import Clock, SystemClock
from nodescope.serve.bounds.places import Places, Strikes, name_address
from nodescope.serve.gate import PROBES
from nodescope.serve.json_text import render_json

# The kubelet has one or two under way; the others share the rest.
PLACES = 32
PLACES_EACH = 8
REQUEST_BYTES = 4096
# A probe's own time limit is some seconds.
REQUEST_SECONDS = 3.0
# Kept for the time when there are no descriptors left.
SPARE_DESCRIPTORS = 4
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
PAUSE_SECONDS = 0.05
BACKLOG = 128
# A loop that has not come round for so long hangs.
HUNG_SECONDS = 30.0
PHRASES = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

Judge = Callable[[str], tuple[bool, Mapping[str, object]]]
"""By path: whether all is well, and what to say."""


@dataclass(slots=True)
class LoopPulse:
    """
    Whether an event loop still runs, asked from another thread.

    Each question leaves a callback in the loop; while it has not been run, the
    next questions get to know for how long. Between questions it costs nothing.
    """

    clock: Clock = field(default_factory=SystemClock)
    loop: asyncio.AbstractEventLoop | None = None
    longest_seconds: float = HUNG_SECONDS
    _asked_mono_ns: int | None = None

    def hung_seconds(self) -> float:
        now_mono_ns = self.clock.mono_ns()
        if self._asked_mono_ns is not None:
            return (now_mono_ns - self._asked_mono_ns) / 1e9
        if self.loop is not None:
            self._asked_mono_ns = now_mono_ns
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._answer)
        return 0.0

    def _answer(self) -> None:
        self._asked_mono_ns = None

    def describe(self) -> str:
        """Why the server is not live; empty while it is."""
        hung = self.hung_seconds()
        return f"the server's loop has not come round for {hung:.0f} s" if hung > self.longest_seconds else ""


def judge_by_pulse(pulse: LoopPulse, path: str) -> tuple[bool, Mapping[str, object]]:
    """For servers whose readiness is that they answer."""
    del path
    reason = pulse.describe()
    return not reason, {"live": not reason, "ready": not reason, "reason": reason or "ok"}


class Prober:
    """A connection to the listener of probes."""

    __slots__ = ("address", "received", "since_ns", "sock")

    def __init__(self, sock: socket.socket, address: str, since_ns: int) -> None:
        self.sock = sock
        self.address = address
        self.since_ns = since_ns
        self.received = b""


class ProbeListener:
    """Answers probes on a thread of its own until it is stopped."""

    def __init__(self, listener: socket.socket, judge: Judge, clock: Clock | None = None) -> None:
        self._listener = listener
        self._judge = judge
        self._clock = clock or SystemClock()
        self._places: Places[Prober] = Places(PLACES, PLACES_EACH)
        self._strikes = Strikes(PLACES)
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._stop = Event()
        self._spare: list[int] = []
        self._thread = Thread(target=self._run, name="probes", daemon=True)

    def __enter__(self) -> Self:
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self._keep_spare()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._woken, selectors.EVENT_READ, self._stop.set)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._wake.send(b"x")
        self._thread.join(REQUEST_SECONDS)
        for one in self._places:
            self._close(one)
        for descriptor in self._spare:
            os.close(descriptor)
        self._selector.close()
        for sock in (self._wake, self._woken, self._listener):
            sock.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(self._close_late()):
                if isinstance(key.data, Prober):
                    self._receive(key.data)
                else:
                    key.data()

    def _close_late(self) -> float | None:
        """Seconds until the next one is late; None while nobody is there."""
        for one in self._places:
            left = REQUEST_SECONDS - (self._clock.mono_ns() - one.since_ns) / 1e9
            if left > 0:
                return left
            self._strikes.add(one.address)
            self._close(one)
        return None

    def _accept(self) -> None:
        try:
            sock, peer = self._listener.accept()
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                self._give_spare()
            return
        sock.setblocking(False)
        address = name_address(peer)
        if not self._places.has_room(address) and (chosen := self._places.choose(address, self._strikes)):
            self._close(chosen)
        one = Prober(sock, address, self._clock.mono_ns())
        self._places.enter(one, address)
        self._selector.register(sock, selectors.EVENT_READ, one)

    def _give_spare(self) -> None:
        """The listener stays readable: with a descriptor given up, the next turn accepts."""
        if self._spare:
            os.close(self._spare.pop())
        elif (oldest := self._places.oldest()) is not None:
            self._close(oldest)
        else:
            self._stop.wait(PAUSE_SECONDS)

    def _keep_spare(self) -> None:
        with suppress(OSError):
            while len(self._spare) < SPARE_DESCRIPTORS:
                self._spare.append(os.dup(self._listener.fileno()))

    def _receive(self, one: Prober) -> None:
        try:
            part = one.sock.recv(REQUEST_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            part = b""
        one.received += part
        if b"\r\n\r\n" in one.received:
            with suppress(OSError):
                one.sock.send(self._answer(one.received))
                one.sock.shutdown(socket.SHUT_WR)
        elif part and len(one.received) <= REQUEST_BYTES:
            return
        self._close(one)

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return render_answer(405, {"error": "method not allowed", "detail": "accepted: GET"})
        if path not in PROBES:
            detail = f"there are: {' '.join(sorted(PROBES))}"
            return render_answer(404, {"error": "not found", "detail": detail})
        is_well, content = self._judge(path)
        return render_answer(200 if is_well else 503, content, with_body=method == b"GET")

    def _close(self, one: Prober) -> None:
        if self._places.leave(one):
            self._selector.unregister(one.sock)
            one.sock.close()
            self._keep_spare()


def render_answer(status: int, content: Mapping[str, object], *, with_body: bool = True) -> bytes:
    body = render_json(content)
    head = (
        f"HTTP/1.1 {status} {PHRASES[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
