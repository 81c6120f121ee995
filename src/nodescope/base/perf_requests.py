"""
Containers whose hardware counters a client asked for, beyond those that settings name.

A reader of windows requests them, and the source reads what its budget allows.
A request expires; a client that still needs it repeats it.
"""

import threading
from dataclasses import dataclass, field

from nodescope.base.clock import Clock, SystemClock

# A scheduler that asks every 20 s may fail twice before its request expires.
REQUEST_SECONDS = 60.0
# More than anybody compares at once; the one that expires first is dropped.
MOST_REQUESTS = 64


@dataclass(slots=True)
class PerfRequests:
    """Patterns of container names, each with its expiry; safe from any thread."""

    clock: Clock = field(default_factory=SystemClock)
    _until_mono_ns: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, pattern: str) -> None:
        with self._lock:
            self._until_mono_ns.pop(pattern, None)
            self._until_mono_ns[pattern] = self.clock.mono_ns() + round(REQUEST_SECONDS * 1e9)
            while len(self._until_mono_ns) > MOST_REQUESTS:
                self._until_mono_ns.pop(next(iter(self._until_mono_ns)))

    def current(self) -> tuple[str, ...]:
        """In the order of their last request."""
        now_mono_ns = self.clock.mono_ns()
        with self._lock:
            expired = [pattern for pattern, until in self._until_mono_ns.items() if until <= now_mono_ns]
            for pattern in expired:
                del self._until_mono_ns[pattern]
            return tuple(self._until_mono_ns)
