"""
Child processes that end when we end.

Each has its own process group, so that Ctrl-C reaches us alone and they are
stopped in order; the kernel ends them when we are killed (Linux). A child that
dies is started again, after a longer pause each time it dies soon.
"""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nodescope.base.clock import SystemClock

PR_SET_PDEATHSIG = 1
# A child that lived so long starts with the shortest pause again.
STEADY_SECONDS = 60.0
PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
STOP_SECONDS = 10.0
STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
WATCHED = STOP_SIGNALS | {signal.SIGCHLD, signal.SIGALRM}


@dataclass(slots=True)
class Child:
    """One program and its process, if it runs."""

    name: str
    words: Sequence[str]
    quiet: bool = False
    """Its output is for a log, not for this terminal."""
    process: subprocess.Popen[bytes] | None = None
    started_ns: int = 0
    deaths: int = 0
    """In a row, each soon after its start."""
    due_ns: int = 0
    """When it is to be started again."""


def prepare_child() -> None:
    """Runs in the child before its program: die with the parent, unblock signals."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Children:
    """Started in order, watched, stopped in the opposite order."""

    say: Callable[[str], None]
    clock: SystemClock = field(default_factory=SystemClock)
    members: list[Child] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Blocked, then waited for: no handler runs between two lines of ours.
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)

    def start(self, child: Child) -> None:
        if child not in self.members:
            self.members.append(child)
        # The parent has one thread: nothing can hold a lock between fork and exec.
        child.process = subprocess.Popen(  # noqa: S603 - our own program
            child.words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if child.quiet else None,
            process_group=0,
            preexec_fn=prepare_child,  # noqa: PLW1509
        )
        child.started_ns = self.clock.mono_ns()

    def watch(self) -> int:
        """Until a signal to stop: 0. Children that die are started again."""
        while True:
            self._set_alarm()
            number = signal.sigwait(WATCHED)
            if number in STOP_SIGNALS:
                return 0
            self.look()

    def is_stopped(self, seconds: float) -> bool:
        """Waits a moment; whether a signal to stop came meanwhile."""
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return signal.sigwait(WATCHED) in STOP_SIGNALS

    def look(self) -> None:
        """Notes the children that died; starts those that are due."""
        now_ns = self.clock.mono_ns()
        for child in self.members:
            if child.process is not None and child.process.poll() is not None:
                self._note_death(child, child.process.returncode, now_ns)
            if child.process is None and child.due_ns <= now_ns:
                self.start(child)

    def _note_death(self, child: Child, code: int, now_ns: int) -> None:
        child.process = None
        lived_seconds = (now_ns - child.started_ns) / 1e9
        child.deaths = 1 if lived_seconds >= STEADY_SECONDS else child.deaths + 1
        pause = PAUSES_SECONDS[min(child.deaths, len(PAUSES_SECONDS)) - 1]
        child.due_ns = now_ns + round(pause * 1e9)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        self.say(f"the {child.name} {how} after {lived_seconds:.0f} s; it is started again in {pause:g} s")

    def _set_alarm(self) -> None:
        due = [child.due_ns for child in self.members if child.process is None]
        left_seconds = (min(due) - self.clock.mono_ns()) / 1e9 if due else 0.0
        signal.setitimer(signal.ITIMER_REAL, max(0.01, left_seconds) if due else 0.0)

    def stop(self) -> None:
        """The last first, so that none asks one that is gone; one that does not end is killed."""
        for child in reversed(self.members):
            process, child.process = child.process, None
            if process is None:
                continue
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.say(f"the {child.name} did not end within {STOP_SECONDS:g} s and was killed")
                process.kill()
                process.wait()
