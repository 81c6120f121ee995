"""
All connections of one server: how many there are, what they hold, and who gives way.

Three bounds hold whoever connects: the number of connections that have sent
nothing yet, the number of those being served, and the bytes of answers that
wait to be read. Each is shared fairly among addresses.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

from nodescope.serve.bounds.give_back import MemoryReturn
from nodescope.serve.bounds.places import Places, Strikes
from nodescope.serve.prometheus_text import MetricFamily, build_labelled, build_single

# Nothing has come from them: a socket and some hundred bytes each.
WAITING = 256
WAITING_EACH = 128
# More than any set of scrapers and schedulers keeps to one node.
CONNECTIONS = 100
CONNECTIONS_EACH = 64
# TLS handshakes under way at once.
HANDSHAKES = 16
# Bytes of answers that wait for their readers; above it no further answer is made ...
UNREAD_BYTES = 2 * 2**20
# ... but for an address that has none waiting and reads what it asks for.
UNREAD_BYTES_MOST = 6 * 2**20
# A reader that took nothing for so long gives way where others wait for the room.
GRACE_SECONDS = 0.5

# So many make a generation of strikes.
STRIKES = 4096

REASONS = ("silent", "no TLS", "handshake", "slow", "crowded", "stalled", "descriptors")


class OpenConnection(Protocol):
    """A connection whose first bytes have come."""

    @property
    def address(self) -> str: ...

    @property
    def unread_bytes(self) -> int: ...

    @property
    def stalled_seconds(self) -> float: ...

    @property
    def in_handshake(self) -> bool: ...

    @property
    def has_just_begun(self) -> bool:
        """Whether its handshake or its request is coming in, and had no time yet to be slow."""
        ...

    def rank(self) -> tuple[int, float] | None:
        """How readily it gives way to another; None while it is being answered."""
        ...

    def abort(self) -> None: ...


class Connections:
    """The connections of a server, and counters of those that were closed by it."""

    def __init__(self) -> None:
        self.waiting: Places[Any] = Places(WAITING, WAITING_EACH)
        self.served: Places[OpenConnection] = Places(CONNECTIONS, CONNECTIONS_EACH)
        self.writing: set[OpenConnection] = set()
        """Those with an answer that the other side has not read yet."""
        self.strikes = Strikes(STRIKES)
        self._memory = MemoryReturn()
        self.closed: Counter[str] = Counter()

    @property
    def unread_bytes(self) -> int:
        # A copy in one step: threads that render /status and /metrics ask, too.
        return sum(one.unread_bytes for one in self.writing.copy())

    def serve(self, one: OpenConnection) -> bool:
        """Whether there is a place for it; another one may have given way."""
        if not self.served.has_room(one.address):
            chosen = self.served.choose(one.address, self.strikes, partial(self._rank, one))
            if chosen is None:
                self.closed["crowded"] += 1
                return False
            self.end(chosen, "crowded")
        self.served.enter(one, one.address)
        return True

    def _rank(self, newcomer: OpenConnection, other: OpenConnection) -> tuple[int, float] | None:
        """
        Who is being answered stays, unless the newcomer's address is the better one.

        Who reads what they ask for has time to ask: where all others are being answered, theirs
        would be the one connection left to give way, to anybody.
        """
        theirs, new = self.strikes.count(other.address), self.strikes.count(newcomer.address)
        if theirs < min(0, new) and other.has_just_begun:
            return None
        return other.rank() or ((-1, 0.0) if theirs > new else None)

    def limit_handshakes(self, newcomer: OpenConnection) -> None:
        under_way = [one for one in self.served if one.in_handshake and one is not newcomer]
        if len(under_way) >= HANDSHAKES:
            counts = Counter(one.address for one in under_way)
            strikes = self.strikes.count
            self.end(max(under_way, key=lambda one: (strikes(one.address), counts[one.address])), "handshake")

    def end(self, one: OpenConnection, reason: str) -> None:
        self.strike(one.address, reason)
        self.forget(one)
        one.abort()

    def strike(self, address: str, reason: str) -> None:
        """A connection of this address is closed because of a bound."""
        self.closed[reason] += 1
        self.strikes.add(address)

    def forget(self, one: OpenConnection) -> None:
        self.writing.discard(one)
        if self.served.leave(one):
            self._memory.note_end()

    def has_room(self, address: str) -> bool:
        """Whether one more answer may be made for this address."""
        if not self.writing:
            return True
        unread = self.unread_bytes
        if unread <= UNREAD_BYTES:
            return True
        holds_some = any(one.address == address for one in self.writing)
        return not holds_some and self.strikes.count(address) < 0 and unread <= UNREAD_BYTES_MOST

    def describe(self) -> dict[str, Any]:
        """For /status: what connections hold now, and what was closed since the start."""
        return {
            "waiting": len(self.waiting),
            "served": len(self.served),
            "served_most": self.served.most,
            "unread_bytes": self.unread_bytes,
            "unread_bytes_most": UNREAD_BYTES,
            "closed": dict(self.closed),
        }

    def count_writing(self) -> Counter[str]:
        return Counter(one.address for one in self.writing)

    def cut_stalled(self) -> None:
        """Those that have read nothing for some time, until there is room again; the worst addresses first."""
        waited = {one: one.stalled_seconds for one in self.writing}
        stalled = [one for one, seconds in waited.items() if seconds >= GRACE_SECONDS]
        excess = self.unread_bytes - UNREAD_BYTES
        stalled.sort(key=lambda one: (self.strikes.count(one.address), waited[one]), reverse=True)
        for one in stalled:
            if excess <= 0:
                return
            excess -= one.unread_bytes
            self.end(one, "stalled")


def build_families(connections: Connections) -> Iterable[MetricFamily]:
    """What a server's /metrics says of its connections."""
    now = {"waiting": len(connections.waiting), "served": len(connections.served)}
    yield build_labelled("nodescope_http_connections", "Open connections, by state.", "state", now)
    unread = connections.unread_bytes
    yield build_single(
        "nodescope_http_unread_bytes", "Bytes of answers that clients have not read yet.", unread
    )
    closed = {reason: connections.closed[reason] for reason in REASONS}
    sentence = "Connections that the server closed because of a bound, by reason."
    yield build_labelled("nodescope_http_connections_closed_total", sentence, "reason", closed)
