"""
Accepting connections, at a cost that whoever connects cannot raise.

asyncio makes a transport, a protocol and, with TLS, an SSL object for every
connection at once. Here a connection is a socket in a bounded waiting room
until its first bytes have come: all of the client's hello where there is TLS.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from nodescope.base.log import Log
from nodescope.serve.bounds.places import STRIKES_EACH, name_address
from nodescope.serve.bounds.small_tls import RECORD_BYTES, RECORD_HEAD_BYTES, SmallTls, count_missing
from nodescope.serve.connections import Connections, OpenConnection

log = Log("server")

# The kernel's queue: what arrives while the loop is busy with an answer.
BACKLOG = 2048
# In one turn of the loop; answers go on in between.
ACCEPTED_AT_ONCE = 64
HELLOS_AT_ONCE = (4, 2, 1)
# To send the first byte, or the whole hello of TLS.
FIRST_SECONDS = 5.0
# A hello that came in part is looked at again after this long, then twice as long.
LOOK_SECONDS = 0.01
# Without descriptors nothing can be accepted; some may be free again then.
PAUSE_SECONDS = 0.1


class Newcomer:
    """A connection from which nothing, or no whole hello, has come."""

    __slots__ = ("address", "look_seconds", "since", "sock", "timer")

    def __init__(self, sock: socket.socket, address: str, since: float) -> None:
        self.sock = sock
        self.address = address
        self.since = since
        self.look_seconds = LOOK_SECONDS
        self.timer: asyncio.TimerHandle | None = None


class Receiver(OpenConnection, Protocol):
    """A protocol that a connection is handed to."""

    def hear_transport(self, raw: asyncio.Transport) -> None: ...

    def hear_pause(self, paused: bool) -> None: ...

    def hear_end(self, error: BaseException | None) -> None: ...


class Acceptor:
    """Accepts on all listeners of a server, which share its places."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        connections: Connections,
        make_protocol: Callable[[str], Receiver],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listeners = listeners
        self._connections = connections
        self._make_protocol = make_protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._handed: set[asyncio.Task[None]] = set()
        self._ready: tuple[deque[Newcomer], ...] = (deque(), deque(), deque())
        self._is_handing = False
        self._sweep: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        for listener in self._listeners:
            listener.listen(BACKLOG)
            listener.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        for listener in self._listeners:
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())

    def close(self) -> None:
        self._stop_listening()
        for timer in (self._sweep, self._pause):
            if timer:
                timer.cancel()
        for one in self._connections.waiting:
            self._close(one)

    async def wait_closed(self) -> None:
        """As asyncio's own servers have it."""

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._rest(error)
                return
            self._let_in(sock, name_address(peer))

    def _rest(self, error: OSError) -> None:
        """No descriptor is free: one that waits gives way, and the listeners rest for a moment."""
        log.warning("connections are not accepted", error=error.strerror or str(error))
        self._connections.closed["descriptors"] += 1
        oldest = self._connections.waiting.oldest()
        if oldest is not None:
            self._close(oldest)
        self._stop_listening()
        self._pause = self._loop.call_later(PAUSE_SECONDS, self._listen)

    def _let_in(self, sock: socket.socket, address: str) -> None:
        if not self._make_room(address):
            self._connections.strike(address, "crowded")
            sock.close()
            return
        sock.setblocking(False)
        one = Newcomer(sock, address, self._loop.time())
        self._connections.waiting.enter(one, address)
        self._loop.add_reader(sock.fileno(), self._look, one)
        if self._sweep is None:
            self._sweep = self._loop.call_later(FIRST_SECONDS, self._close_late)

    def _make_room(self, address: str) -> bool:
        """
        One that waits gives way to the newcomer.

        But for an address that had to be closed often lately: it would only displace others
        of its kind, and each costs as much as the one before.
        """
        waiting, strikes = self._connections.waiting, self._connections.strikes
        if waiting.has_room(address):
            return True
        if strikes.count(address) >= STRIKES_EACH:
            return False
        is_own = waiting.count(address) >= waiting.most_each
        chosen = waiting.choose(address, strikes) if is_own else waiting.choose_first(strikes)
        if chosen is not None:
            self._close(chosen, "crowded")
        return True

    def _close_late(self) -> None:
        """They came in this order, so the first that may stay ends the sweep."""
        self._sweep = None
        before = self._loop.time() - FIRST_SECONDS
        for one in self._connections.waiting:
            if one.since > before:
                self._sweep = self._loop.call_at(one.since + FIRST_SECONDS, self._close_late)
                return
            self._close(one, "silent")

    def _close(self, one: Newcomer, reason: str = "") -> None:
        if reason:
            self._connections.strike(one.address, reason)
        self._forget(one)
        one.sock.close()

    def _forget(self, one: Newcomer) -> None:
        self._connections.waiting.leave(one)
        self._loop.remove_reader(one.sock.fileno())
        if one.timer:
            one.timer.cancel()

    def _look(self, one: Newcomer) -> None:
        """Something has come, or the other side has left."""
        try:
            head = one.sock.recv(RECORD_HEAD_BYTES, socket.MSG_PEEK)
            if not head:
                self._close(one)
            elif self._tls is None:
                self._hand_over(one)
            else:
                self._judge_hello(one, head)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(one)

    def _judge_hello(self, one: Newcomer, head: bytes) -> None:
        available = len(one.sock.recv(RECORD_HEAD_BYTES + RECORD_BYTES, socket.MSG_PEEK))
        missing = count_missing(head, available)
        if missing is None:
            self._close(one, "no TLS")
        elif missing:
            # The socket stays readable: watching it would be a loop without a pause.
            self._loop.remove_reader(one.sock.fileno())
            one.timer = self._loop.call_later(one.look_seconds, self._look, one)
            one.look_seconds *= 2
        else:
            self._queue(one)

    def _queue(self, one: Newcomer) -> None:
        """
        A handshake costs a millisecond: a few in each turn of the loop.

        So those that have begun come round before they are displaced by new ones.
        """
        self._loop.remove_reader(one.sock.fileno())
        # Addresses that read what they ask for come first, those that had to be closed lately last.
        strikes = self._connections.strikes.count(one.address)
        self._ready[(strikes > 0) + (strikes >= 0)].append(one)
        if not self._is_handing:
            self._is_handing = True
            self._loop.call_soon(self._hand_over_some)

    def _hand_over_some(self) -> None:
        for ready, most in zip(self._ready, HELLOS_AT_ONCE, strict=True):
            handed = 0
            while ready and handed < most:
                one = ready.popleft()
                if one in self._connections.waiting:
                    self._hand_over(one)
                    handed += 1
        self._is_handing = any(self._ready)
        if self._is_handing:
            self._loop.call_soon(self._hand_over_some)

    def _hand_over(self, one: Newcomer) -> None:
        self._forget(one)
        protocol = self._make_protocol(one.address)
        if not self._connections.serve(protocol):
            one.sock.close()
            return
        task = self._loop.create_task(self._connect(one.sock, protocol))
        self._handed.add(task)
        task.add_done_callback(self._handed.discard)

    async def _connect(self, sock: socket.socket, protocol: Receiver) -> None:
        outer: Any = protocol
        if self._tls is not None:
            self._connections.limit_handshakes(protocol)
            outer = SmallTls(self._loop, protocol, self._tls, protocol.hear_pause, protocol.hear_end)
        try:
            raw, _ = await self._loop.connect_accepted_socket(lambda: outer, sock)
        except OSError:
            with suppress(OSError):
                sock.close()
            self._connections.forget(protocol)
            return
        protocol.hear_transport(raw)
