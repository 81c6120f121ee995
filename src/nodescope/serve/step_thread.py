"""
Work in steps on a thread of its own, mostly with a server: a step tells how long to wait before the next one.

    def step(self) -> float:
        try:
            self._send()
        except HttpFailed:
            return self._pause.grow(LONGEST_SECONDS)     # 1, 2, 4, 8 ... s, each with jitter
        self._pause.reset()
        return LOOK_SECONDS

    StepThread("alerts", self.step, self.client, self.clock)
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from nodescope.base.clock import Clock

# A thread that hangs in a system call does not keep its process from ending.
JOIN_SECONDS = 5.0
MOST_DOUBLINGS = 10


class Interruptible(Protocol):
    """A client whose request can be cut off from another thread."""

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class StepThread:
    name: str
    step: Callable[[], float]
    client: Interruptible | None
    """None for steps that ask no server."""
    clock: Clock
    begin: Callable[[], None] | None = None
    """Before the first step, on the thread."""
    stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The request in flight is cut off, and the thread ends."""
        self.stopped.set()
        if self.client is not None:
            self.client.interrupt()
        if self._thread is not None:
            self._thread.join(timeout=JOIN_SECONDS)

    def run(self) -> None:
        if self.begin is not None:
            self.begin()
        while not self.stopped.is_set():
            pause_ns = round(self.step() * 1e9)
            if pause_ns:
                self.clock.wait_until(self.clock.mono_ns() + pause_ns, self.stopped)
        if self.client is not None:
            self.client.close()


@dataclass(slots=True)
class GrowingPause:
    """Doubles with each failure, with jitter: a thousand agents must not return at the same instant."""

    first_seconds: float
    chance: Callable[[], float] = random.random
    _failures: int = 0

    def grow(self, longest_seconds: float) -> float:
        """How long to wait after one more failure: between half and all of the doubled time."""
        seconds = min(longest_seconds, self.first_seconds * (1 << min(self._failures, MOST_DOUBLINGS)))
        self._failures += 1
        return seconds * (0.5 + self.chance() / 2)

    def reset(self) -> None:
        self._failures = 0
