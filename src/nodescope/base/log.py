"""
Log lines as events with facts: `source failed source=disk error="no such file"`.

The standard library's logging underneath; structlog reads nicer and costs
13 MiB of resident memory, which the agent does not have to spare. What somebody
outside can make us write is limited: a line that repeats, and all lines together.
"""

import json
import logging
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any, TextIO

from nodescope.base.clock import stopwatch_seconds

# Lines of one event at once, and seconds until there is room for one more.
REPEATED_LINES = 30
REPEATED_SECONDS = 2.0
# Bytes of all lines at once, and how many more each second: 664 KiB in ten minutes.
LOG_BYTES = 64 * 1024
LOG_BYTES_A_SECOND = 1024
# Different events that are told apart.
EVENTS = 256
EVENT_CHARACTERS = 60
# Loggers of libraries that write about connections.
LIBRARIES = ("asyncio", "uvicorn")


def _render_fact(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if text and text.isascii() and text.isprintable() and not any(letter in text for letter in ' "='):
        return text
    return json.dumps(text)


class Log:
    """A named logger whose messages are fixed words and whose facts are keys."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"nodescope.{name}")

    def _write(self, level: int, with_traceback: bool, event: str, /, **facts: Any) -> None:
        if not self._logger.isEnabledFor(level):
            return
        line = " ".join([event, *(f"{key}={_render_fact(value)}" for key, value in facts.items())])
        self._logger.log(level, "%s", line, exc_info=with_traceback, extra={"event": event})

    info = partialmethod(_write, logging.INFO, False)
    warning = partialmethod(_write, logging.WARNING, False)
    error = partialmethod(_write, logging.ERROR, False)
    # For programming errors that the runner caught.
    exception = partialmethod(_write, logging.ERROR, True)


@dataclass(slots=True)
class Allowance:
    """An amount that is used up and comes back with time."""

    most: float
    a_second: float
    left: float
    at_seconds: float

    def take(self, amount: float, now_seconds: float) -> bool:
        self.left = min(self.most, self.left + (now_seconds - self.at_seconds) * self.a_second)
        self.at_seconds = now_seconds
        if self.left < amount:
            return False
        self.left -= amount
        return True


@dataclass(slots=True)
class LogLimit:
    """
    Lets a line through while its event, and all lines together, are within their allowance.

    How many were left out is said with the next line of the same event.
    """

    now_seconds: Callable[[], float] = stopwatch_seconds
    left_out: int = 0
    """Since the start."""
    _unsaid: Counter[tuple[str, str]] = field(default_factory=Counter)
    _events: "OrderedDict[tuple[str, str], Allowance]" = field(default_factory=OrderedDict)
    _bytes: Allowance | None = None

    def admit(self, event: tuple[str, str], line: str) -> str | None:
        """The line to write, or None."""
        now = self.now_seconds()
        if self._bytes is None:
            self._bytes = Allowance(LOG_BYTES, LOG_BYTES_A_SECOND, LOG_BYTES, now)
        if not self._find(event, now).take(1, now) or not self._bytes.take(len(line), now):
            self.left_out += 1
            self._unsaid[event] += 1
            return None
        unsaid = self._unsaid.pop(event, 0)
        return f"{line} (left out before this: {unsaid} such lines)" if unsaid else line

    def _find(self, event: tuple[str, str], now: float) -> Allowance:
        found = self._events.get(event)
        if found is None:
            found = Allowance(REPEATED_LINES, 1 / REPEATED_SECONDS, REPEATED_LINES, now)
            self._events[event] = found
            if len(self._events) > EVENTS:
                oldest, _ = self._events.popitem(last=False)
                self._unsaid.pop(oldest, None)
        return found


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream what the limit lets through."""

    def __init__(self, stream: TextIO, limit: LogLimit) -> None:
        super().__init__(stream)
        self._limit = limit

    def emit(self, record: logging.LogRecord) -> None:
        # Libraries write what they know of a connection below their first line.
        event = getattr(record, "event", None) or str(record.msg).partition("\n")[0][:EVENT_CHARACTERS]
        try:
            line = self._limit.admit((record.name, event), self.format(record))
            if line is not None:
                self.stream.write(f"{line}{self.terminator}")
                self.flush()
        except (OSError, ValueError):
            self.handleError(record)


LIMIT = LogLimit()


def set_up_logging(level: str, stream: TextIO | None = None) -> None:
    """One handler on stderr; the level is a word such as info."""
    handler = LimitedHandler(stream or sys.stderr, LIMIT)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    attach(logging.getLogger("nodescope"), handler, level.upper())
    for name in LIBRARIES:
        attach(logging.getLogger(name), handler, "WARNING")


def attach(logger: logging.Logger, handler: logging.Handler, level: str) -> None:
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
