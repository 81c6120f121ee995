"""
The two clocks, handed in wherever time matters.

Wall time is for files and people; monotonic time is for windows, rates and
deadlines. No other module asks the operating system for the time.
"""

import time
from dataclasses import dataclass
from threading import Event
from typing import Protocol


class Clock(Protocol):
    """What the sampler needs of time; tests hand in one they can turn."""

    def wall_ns(self) -> int: ...

    def mono_ns(self) -> int: ...

    def wait_until(self, deadline_mono_ns: int, stop: Event) -> bool:
        """Sleep until the deadline; True when told to stop meanwhile."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    def wall_ns(self) -> int:
        return time.time_ns()

    def mono_ns(self) -> int:
        return time.monotonic_ns()

    def wait_until(self, deadline_mono_ns: int, stop: Event) -> bool:
        left_ns = deadline_mono_ns - time.monotonic_ns()
        if left_ns <= 0:
            return stop.is_set()
        return stop.wait(left_ns / 1e9)


def thread_cpu_ns() -> int:
    """CPU time of the calling thread: what a source costs, not what it waits."""
    return time.thread_time_ns()


def process_cpu_seconds() -> float:
    return time.process_time()


def stopwatch_seconds() -> float:
    """For how long something took: only differences mean anything."""
    return time.perf_counter()


def read_boot_id() -> str:
    """Which start of the machine the monotonic clock counts from; empty where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return ""
