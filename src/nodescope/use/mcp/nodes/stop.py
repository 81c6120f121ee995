"""
Work that nobody waits for any more ends at its next step.

A thread cannot be ended from outside. Each question that runs on one carries a
mark in its context (threads inherit it), and looks at the mark between two steps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

from nodescope.base.errors import NodescopeError

_mark: ContextVar[Event | None] = ContextVar("stop", default=None)


class CallStopped(NodescopeError):
    """The call was cancelled, or its deadline has passed."""


@contextmanager
def stopping_work() -> Iterator[None]:
    """What is started within stops when this is left, however it is left."""
    mark = Event()
    token = _mark.set(mark)
    try:
        yield
    finally:
        mark.set()
        _mark.reset(token)


def check_stopped() -> None:
    mark = _mark.get()
    if mark is not None and mark.is_set():
        raise CallStopped("nobody waits for this answer any more")
