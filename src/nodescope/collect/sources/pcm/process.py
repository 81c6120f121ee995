"""
A pcm process: started, drained without ever blocking the tick, stopped gently.

    pcm 1 -csv -f            from 202211 on; -f flushes every row
    stdbuf -o0 pcm 1 -csv    before: rows would come in bursts of 4 KiB

-o0, not -oL: rows are written newline first, so line buffering would hold
each row back until the next begins. Never -silent, which hides the only
diagnosis, and never -r, which takes the counters away from others.

SIGTERM lets pcm give the counters and the NMI watchdog back; SIGKILL does not,
and is the last resort. Both pipes are drained always: a full one would stall
pcm's own loop.
"""

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, cast

from nodescope.base.clock import Clock, SystemClock
from nodescope.base.errors import SourceFailed
from nodescope.collect.sources.pcm.csv_stream import PcmRow, PcmStream

# Where distributions put it; /usr/sbin is in no ordinary user's PATH.
FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/pcm/bin")
FLUSHING_VERSION = 202211
PROBE_SECONDS = 5.0
# A row larger than a pipe's buffer comes in pieces, microseconds apart; an
# open line is looked at when nothing has come for this long.
QUIET_SECONDS = 0.02
# Start-up programs every core's counters: seconds on large machines.
FIRST_ROW_SECONDS = 15.0
STALL_INTERVALS = 5.0
STOP_SECONDS = 5.0
# pcm's banner and diagnosis are below 1 KiB; both ends of more are kept.
KEPT_BYTES = 4096
READ_BYTES = 65536
_VERSION = re.compile(r"\((\d{6})")


def find_program(command: Sequence[str]) -> str | None:
    """The program's path, also where PATH does not lead."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    return shutil.which(command[0], path=path)


def read_version(program: Sequence[str]) -> int | None:
    """YYYYMM of `pcm --version`; None when it does not tell."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own command
            [*program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        answer, _ = process.communicate(timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        # A script that knows no options runs on, and what it started with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None
    return parse_version(answer.decode("ascii", "replace"))


def parse_version(text: str) -> int | None:
    match = _VERSION.search(text[:4096])
    return int(match[1]) if match else None


def build_command(
    program: Sequence[str], version: int | None, interval_seconds: float, *, per_core: bool
) -> list[str]:
    """The command line for this version; one that does not tell is taken for a new one."""
    options = [f"{interval_seconds:g}", "-csv", *([] if per_core else ["-nc"])]
    wrapper: list[str] = []
    # The kernel ends pcm when we die without a chance to.
    setpriv = shutil.which("setpriv")
    if setpriv:
        wrapper += [setpriv, "--pdeathsig", "TERM"]
    if version is None or version >= FLUSHING_VERSION:
        return [*wrapper, *program, *options, "-f"]
    stdbuf = shutil.which("stdbuf")
    return [*wrapper, *([stdbuf, "-o0"] if stdbuf else []), *program, *options]


@dataclass(slots=True)
class Remark:
    """What pcm said beside its data: the beginning and the end of it."""

    head: bytes = b""
    tail: bytes = b""

    def add(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self.head)
        self.head += data[: max(0, room)]
        self.tail = (self.tail + data[max(0, room) :])[-KEPT_BYTES:]

    def __str__(self) -> str:
        return (self.head + self.tail).decode("utf-8", "replace")


class PcmProcess:
    """One run of pcm, from start to end; SourceFailed when it cannot be started."""

    def __init__(self, command: Sequence[str], interval_seconds: float, clock: Clock | None = None) -> None:
        self.interval_seconds = interval_seconds
        self.stream = PcmStream()
        self.remark = Remark()
        self.has_rows = False
        self._clock = clock or SystemClock()
        self._process = start_process(command)
        self._out, self._errors = open_pipes(self._process)
        self._wake = [*os.pipe()]
        """Written to by `interrupt`; empty once it is closed."""
        self._selector = selectors.DefaultSelector()
        for file in (self._out, self._errors, self._wake[0]):
            self._selector.register(file, selectors.EVENT_READ)
        self._newest_mono_ns = self._clock.mono_ns()
        self._is_settled = True
        """No bytes came since the open line was last looked at."""
        self._is_stopping = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ignored(self) -> Counter[str]:
        return self.stream.ignored

    def interrupt(self) -> None:
        """From another thread: make `read` return at once."""
        self._is_stopping = True
        if self._wake:
            with contextlib.suppress(OSError):
                os.write(self._wake[1], b"x")

    def read(self) -> list[PcmRow] | int | None:
        """
        Wait for rows; the exit status when pcm has ended.

        None: it hangs, or we were interrupted.
        """
        while not self._is_stopping:
            left = self._patience_seconds() if self._is_settled else QUIET_SECONDS
            if left <= 0:
                return None
            got = self._drain(left)
            rows = self.stream.feed(got) if got else self.stream.settle()
            self._is_settled = not got
            if got is None:
                return self._end(rows)
            if rows:
                self.has_rows = True
                self._newest_mono_ns = self._clock.mono_ns()
                return rows
        return None

    def _patience_seconds(self) -> float:
        allowed = max(5.0, STALL_INTERVALS * self.interval_seconds)
        if not self.has_rows:
            allowed = FIRST_ROW_SECONDS + self.interval_seconds
        return allowed - (self._clock.mono_ns() - self._newest_mono_ns) / 1e9

    def _end(self, rows: list[PcmRow]) -> list[PcmRow] | int:
        """Its stdout is closed; rows first, the status when asked again."""
        rows += self.stream.finish()
        if rows:
            self.has_rows = True
            return rows
        self._drain_errors()
        return self._wait(STOP_SECONDS)

    def _drain(self, seconds: float) -> bytes | None:
        """Bytes of stdout within the time, b"" when there were none, None at its end."""
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._errors:
                self._drain_errors()
            elif key.fileobj is self._out:
                data = _read_some(key.fd)
                if data is not None and not data:
                    return None
                return data or b""
        return b""

    def _drain_errors(self) -> None:
        if self._errors.closed:
            return
        while data := _read_some(self._errors.fileno()):
            self.remark.add(data)
        if data == b"":
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._errors)

    def _wait(self, seconds: float) -> int:
        """The exit status; a process that closed its output and stays is ended."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.stop()

    def stop(self) -> int:
        """SIGTERM, patience, and only then SIGKILL."""
        status = self._process.poll()
        if status is None:
            self._signal(signal.SIGTERM)
            status = self._await_end()
        self._close()
        return status

    def _await_end(self) -> int:
        """Drains while it waits: pcm may sit in a write to a full pipe."""
        for _ in range(round(STOP_SECONDS / QUIET_SECONDS)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(QUIET_SECONDS)
            for pipe in (self._out, self._errors):
                if not pipe.closed:
                    _read_some(pipe.fileno())
        self._signal(signal.SIGKILL)
        return self._process.wait()

    def _signal(self, number: int) -> None:
        """To the whole session: a wrapper such as sudo may stand between."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _close(self) -> None:
        self._selector.close()
        for pipe in (self._out, self._errors):
            pipe.close()
        while self._wake:
            os.close(self._wake.pop())


def start_process(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - the operator's own command
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C in a terminal is for us; we stop pcm in order.
            start_new_session=True,
        )
    except OSError as error:
        raise SourceFailed(f"pcm cannot be started: {command[0]}: {error.strerror}") from error


def open_pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its output and its errors, neither of which ever blocks us."""
    pipes = cast("IO[bytes]", process.stdout), cast("IO[bytes]", process.stderr)
    for pipe in pipes:
        os.set_blocking(pipe.fileno(), False)
    return pipes


def _read_some(descriptor: int) -> bytes | None:
    """What is there now; b"" at the end, None when there is nothing yet."""
    try:
        return os.read(descriptor, READ_BYTES)
    except BlockingIOError:
        return None
