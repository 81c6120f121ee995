"""
What waits to be sent: bounded in bytes, the oldest leaves first, and what left is counted.

The request that is being sent is no longer in the queue: it is either
delivered or put back, and never both lost and delivered.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from threading import Condition

from nodescope.use.push.request import Encoded


@dataclass(slots=True)
class PushCounters:
    """Since the start; points, unless it says otherwise."""

    sent: int = 0
    requests: int = 0
    """Requests that were taken."""
    retries: int = 0
    """Requests that had to be sent again."""
    lost: Counter[str] = field(default_factory=Counter)
    """By reason: queue_full, refused, rejected, stopped."""
    missed_ticks: int = 0
    """Ticks that left the agent's ring before they were read."""


@dataclass(slots=True)
class PushQueue:
    most_bytes: int
    counters: PushCounters = field(default_factory=PushCounters)
    _waiting: deque[Encoded] = field(default_factory=deque)
    _bytes: int = 0
    _closed: bool = False
    _changed: Condition = field(default_factory=Condition)

    def put(self, request: Encoded) -> int:
        """Appends it; how many points had to leave for it."""
        with self._changed:
            self._waiting.append(request)
            self._bytes += len(request.body)
            lost = 0
            while self._bytes > self.most_bytes and self._waiting:
                lost += self._pop().points
            self.counters.lost["queue_full"] += lost
            self._changed.notify_all()
            return lost

    def take(self, timeout_seconds: float) -> Encoded | None:
        """The oldest; None when there is none for so long, or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout_seconds)
            return self._pop() if self._waiting else None

    def put_back(self, request: Encoded) -> None:
        """One that could not be sent yet: the oldest again, if there is still room for it."""
        with self._changed:
            if self._bytes + len(request.body) > self.most_bytes:
                self.counters.lost["queue_full"] += request.points
                return
            self._waiting.appendleft(request)
            self._bytes += len(request.body)

    def close(self) -> None:
        """Nobody waits any longer; what is there can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def drain(self, reason: str) -> int:
        """Gives up what is left; how many points that is."""
        with self._changed:
            points = sum(request.points for request in self._waiting)
            self._waiting.clear()
            self._bytes = 0
            self.counters.lost[reason] += points
            return points

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    @property
    def waiting_requests(self) -> int:
        return len(self._waiting)

    def _pop(self) -> Encoded:
        request = self._waiting.popleft()
        self._bytes -= len(request.body)
        return request
