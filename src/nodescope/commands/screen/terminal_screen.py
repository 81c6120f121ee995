"""
A terminal taken over for a while: a page of its own, keys as they are pressed, everything put back at the end.

Plain escape sequences and the standard library; why no library is in decision 1207.
"""

import codecs
import contextlib
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

from nodescope.commands.screen.keys import split_keys

# Another page, so that what was on the terminal comes back; no cursor.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
# Cleared before it is written: a line that fills the screen to its edge would lose its last letter.
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
READ_BYTES = 4096
# Escape alone is a key; what comes within this time belongs to it.
SEQUENCE_SECONDS = 0.05
# What a shell says of a program that was ended by this signal.
ENDED = 128 + signal.SIGTERM


class TerminalScreen:
    """As a context; whoever writes a byte to `waker`, and a change of the size, end a wait for keys."""

    def __init__(self) -> None:
        self.waker = -1
        self._woken = -1
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else -1
        self._modes: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._letters = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        self._woken, self.waker = os.pipe()
        for end in (self._woken, self.waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        given = {signal.SIGWINCH: pass_by, signal.SIGTERM: end_now, signal.SIGTSTP: self._pause}
        self._handlers = {number: signal.signal(number, handler) for number, handler in given.items()}
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _take(self) -> None:
        if self._keys >= 0:
            self._modes = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        self._write(ENTER)

    def _give_back(self) -> None:
        self._write(LEAVE)
        if self._modes:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, self._modes)

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: the terminal is as it was until the program goes on."""
        del number, frame
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    @property
    def size(self) -> os.terminal_size:
        """Of the terminal itself: COLUMNS in the environment would not know of a change."""
        try:
            return os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return shutil.get_terminal_size()

    def draw(self, lines: Sequence[str]) -> None:
        """As many as the screen has, at most; the rest of it is cleared."""
        self._write(HOME + "\n".join(CLEAR_LINE + line for line in lines[: self.size.lines]) + CLEAR_REST)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def wake(self) -> None:
        """From another thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self.waker, b"\0")

    def wait_keys(self) -> Iterator[str]:
        """Keys that were pressed; none where something else ended the wait."""
        watched = [self._woken, *([self._keys] if self._keys >= 0 else [])]
        ready, _, _ = select.select(watched, [], [])
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, READ_BYTES)
        if self._keys in ready:
            pressed = self._read_pressed()
            # Nobody types any more: the terminal was closed.
            yield from split_keys(self._letters.decode(pressed)) if pressed else ("q",)

    def _read_pressed(self) -> bytes:
        pressed = os.read(self._keys, READ_BYTES)
        if pressed.endswith(b"\x1b") and select.select([self._keys], [], [], SEQUENCE_SECONDS)[0]:
            pressed += os.read(self._keys, READ_BYTES)
        return pressed


def pass_by(number: int, frame: FrameType | None) -> None:
    """The wake-up descriptor has told of it."""
    del number, frame


def end_now(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(ENDED)
