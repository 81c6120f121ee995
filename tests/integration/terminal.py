"""A program on a terminal of its own (a pty), whose screen is read as a person would."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

import pyte
from tests.integration.agents import clean_environment

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1


class OwnTerminal:
    """Runs a command; `press` types, `await_text` reads until the screen has it."""

    def __init__(
        self, words: Sequence[str], columns: int, lines: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self._words = words
        self._environment = {"TERM": "xterm-256color", **clean_environment(environment)}
        # The size is the terminal's own; some who run tests set these.
        for name in ("COLUMNS", "LINES"):
            self._environment.pop(name, None)
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""

    def __enter__(self) -> Self:
        self._here, there = pty.openpty()
        self._set_size()
        self.process = subprocess.Popen(
            self._words,
            stdin=there,
            stdout=there,
            stderr=there,
            env=self._environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 -- Ctrl-C needs it
        )
        os.close(there)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self._here)

    def _set_size(self) -> None:
        size = struct.pack("HHHH", self.screen.lines, self.screen.columns, 0, 0)
        fcntl.ioctl(self._here, termios.TIOCSWINSZ, size)

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._set_size()
        os.killpg(self.process.pid, signal.SIGWINCH)

    def press(self, keys: str) -> None:
        os.write(self._here, keys.encode())

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def look(self) -> bool:
        """Takes what was written meanwhile; False where the program is gone and all was read."""
        if not select.select([self._here], [], [], LOOK_SECONDS)[0]:
            return self.process.poll() is None
        try:
            piece = os.read(self._here, 65536)
        except OSError:
            return False
        self.sent += piece
        self._stream.feed(piece)
        return bool(piece)

    def await_text(self, *words: str) -> str:
        return self.await_screen(lambda text: all(word in text for word in words), " and ".join(words))

    def await_screen(self, is_there: Callable[[str], bool], what: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_there(self.text):
            assert self.look() or is_there(self.text), f"ended without {what}:\n{self.text}"
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_SECONDS:g} s:\n{self.text}"
        return self.text

    def await_end(self) -> int:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.look():
            assert time.monotonic() < deadline, f"it goes on:\n{self.text}"
        return self.process.wait(30)

    def is_echoing(self) -> bool:
        """Whether a person sees what is typed, as in a shell."""
        return bool(termios.tcgetattr(self._here)[3] & termios.ECHO)
