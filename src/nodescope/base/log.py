"""
Log lines as events with facts: `source failed source=disk error="no such file"`.

The standard library's logging underneath; structlog reads nicer and costs
13 MiB of resident memory, which the agent does not have to spare.
"""

import json
import logging
import sys
from functools import partialmethod
from typing import Any, TextIO


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
        self._logger.log(level, "%s", line, exc_info=with_traceback)

    info = partialmethod(_write, logging.INFO, False)
    warning = partialmethod(_write, logging.WARNING, False)
    error = partialmethod(_write, logging.ERROR, False)
    # For programming errors that the runner caught.
    exception = partialmethod(_write, logging.ERROR, True)


def set_up_logging(level: str, stream: TextIO | None = None) -> None:
    """One handler on stderr; the level is a word such as info."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("nodescope")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
