"""
The one place that catches everything: a source's bug is an outcome, not the end.

Programming errors are logged with their traceback and shown in /status; the
other sources, and the tick, go on.
"""

import typing
from collections.abc import Callable, Iterable
from typing import TypeVar

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.frame import OK, Outcome
from nodescope.base.log import Log

log = Log("source")
Result = TypeVar("Result")


def check_all(kind: type[Result], answer: Iterable[object]) -> tuple[Result, ...]:
    """What a source gave, once all of it is of the promised kind."""
    given = tuple(answer)
    for item in given:
        if not isinstance(item, kind):
            raise SourceFailed(f"gave {type(item).__name__} where {kind.__name__} belongs")
    return typing.cast("tuple[Result, ...]", given)


def run_guarded(source: str, action: Callable[[], Result], otherwise: Result) -> tuple[Result, Outcome]:
    """The action's result and ok, or the stand-in and what went wrong."""
    try:
        return action(), OK
    except SourceAbsent as error:
        return otherwise, Outcome("absent", str(error), detail="absent")
    except SourceFailed as error:
        return otherwise, Outcome("failed", str(error), detail="failed")
    except Exception as error:
        log.exception("source raised", source=source)
        return otherwise, Outcome("failed", f"{type(error).__name__}: {error}", detail="raised")
