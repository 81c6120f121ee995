"""
Wishes: what somebody asked to be measured for a while, beyond what always is.

A reader of windows wishes, a source fulfils what its budget allows. A wish ends
by itself: whoever still wants it wishes again.
"""

import threading
from dataclasses import dataclass, field

from nodescope.base.clock import Clock, SystemClock

# A scheduler that asks every 20 s keeps its wish alive through two failures.
WISH_SECONDS = 60.0
# More than anybody compares at once; the one that would end first leaves.
WISHES = 64


@dataclass(slots=True)
class Wishes:
    """Patterns of names, each until an instant; safe from any thread."""

    clock: Clock = field(default_factory=SystemClock)
    _until_mono_ns: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, pattern: str) -> None:
        with self._lock:
            self._until_mono_ns.pop(pattern, None)
            self._until_mono_ns[pattern] = self.clock.mono_ns() + round(WISH_SECONDS * 1e9)
            while len(self._until_mono_ns) > WISHES:
                self._until_mono_ns.pop(next(iter(self._until_mono_ns)))

    def current(self) -> tuple[str, ...]:
        """In the order in which they were last wished."""
        now_mono_ns = self.clock.mono_ns()
        with self._lock:
            ended = [pattern for pattern, until in self._until_mono_ns.items() if until <= now_mono_ns]
            for pattern in ended:
                del self._until_mono_ns[pattern]
            return tuple(self._until_mono_ns)
