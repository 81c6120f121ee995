"""Two questions of a call at a time: in order, with the call's mark, and the first error is told."""

from contextvars import copy_context

import pytest

from nodescope.base.errors import RequestRejected
from nodescope.read.query.row_reader import ask_pairwise
from nodescope.use.mcp.nodes.stop import CallStopped, check_stopped, stopping_work


def test_answers_come_in_order() -> None:
    assert ask_pairwise(lambda number: number * number, range(9)) == [n * n for n in range(9)]
    assert ask_pairwise(str, []) == []


def test_an_error_of_one_is_the_error_of_all() -> None:
    def ask(number: int) -> int:
        if number == 4:
            raise RequestRejected("four")
        return number

    with pytest.raises(RequestRejected, match="four"):
        ask_pairwise(ask, range(8))


def test_a_call_that_was_stopped_stops_what_it_asks() -> None:
    asked: list[int] = []

    def ask(number: int) -> None:
        check_stopped()
        asked.append(number)

    def ask_all() -> None:
        ask_pairwise(ask, range(3))

    with stopping_work():
        context = copy_context()
    with pytest.raises(CallStopped):
        context.run(ask_all)
    assert asked == []
