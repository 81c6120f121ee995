"""Log lines are limited: each event, and all together; what is left out is counted and said."""

import io
import logging

from hypothesis import given
from hypothesis import strategies as st

from nodescope.base.log import (
    LOG_BYTES,
    LOG_BYTES_A_SECOND,
    REPEATED_LINES,
    REPEATED_SECONDS,
    LimitedHandler,
    LogLimit,
)


class Now:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_line_that_repeats_is_left_out_and_counted() -> None:
    now = Now()
    limit = LogLimit(now)
    admitted = [limit.admit(("server", "not accepted"), "line") for _ in range(REPEATED_LINES + 70)]
    assert admitted.count("line") == REPEATED_LINES
    assert limit.left_out == 70
    assert limit.admit(("server", "another event"), "other") == "other"
    now.seconds += REPEATED_SECONDS
    assert limit.admit(("server", "not accepted"), "line") == "line (left out before this: 70 such lines)"
    assert limit.admit(("server", "not accepted"), "line") is None


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(0, 400), st.integers(1, 30_000)), max_size=200))
def test_all_lines_together_are_bounded(lines: list[tuple[float, int, int]]) -> None:
    """forall lines, whatever their events: bytes <= LOG_BYTES + seconds * LOG_BYTES_A_SECOND."""
    now = Now()
    limit = LogLimit(now)
    written = 0
    for pause, event, length in lines:
        now.seconds += pause
        if limit.admit(("asyncio", str(event)), "x" * length):
            written += length
    assert written <= LOG_BYTES + now.seconds * LOG_BYTES_A_SECOND + 1


def test_a_storm_of_tracebacks_stays_small() -> None:
    """What asyncio writes when it cannot accept: each with another address in it."""
    stream = io.StringIO()
    handler = LimitedHandler(stream, LogLimit(Now()))
    error = OSError(24, "Too many open files")
    message = "socket.accept() out of system resource\nsocket: <socket fd=%d>"
    for number in range(2000):
        cause = (OSError, error, None)
        handler.emit(logging.LogRecord("asyncio", logging.ERROR, "", 0, message, (number,), cause))
    assert stream.getvalue().count("out of system resource") == REPEATED_LINES
    assert len(stream.getvalue()) <= LOG_BYTES


def test_a_stream_that_is_gone_is_no_reason_to_fail(capsys: object) -> None:
    del capsys
    stream = io.StringIO()
    stream.close()
    record = logging.LogRecord("nodescope", logging.INFO, "", 0, "a line", None, None)
    LimitedHandler(stream, LogLimit()).emit(record)
    assert stream.closed
