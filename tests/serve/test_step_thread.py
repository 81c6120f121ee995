"""Steps on a thread: the pause that a step asks for, and an end that waits for no server."""

from threading import Event

import pytest

from nodescope.base.clock import SystemClock
from nodescope.serve.step_thread import GrowingPause, StepThread

HUNG_SECONDS = 60.0


class Client:
    """A request that lasts until it is cut off."""

    def __init__(self) -> None:
        self.asked, self.cut, self.closed = Event(), Event(), Event()

    def request(self) -> None:
        self.asked.set()
        assert self.cut.wait(HUNG_SECONDS)

    def interrupt(self) -> None:
        self.cut.set()

    def close(self) -> None:
        self.closed.set()


def test_a_request_in_flight_is_cut_off_by_the_end() -> None:
    client, begun = Client(), Event()

    def step() -> float:
        assert begun.is_set()
        client.request()
        return 0.0

    thread = StepThread("trial", step, client, SystemClock(), begun.set)
    thread.start()
    assert client.asked.wait(HUNG_SECONDS)
    thread.stop()
    assert client.closed.wait(HUNG_SECONDS)


def test_a_pause_ends_with_the_thread() -> None:
    client, stepped = Client(), Event()

    def step() -> float:
        stepped.set()
        return 1e6

    thread = StepThread("trial", step, client, SystemClock())
    thread.start()
    assert stepped.wait(HUNG_SECONDS)
    thread.stop()
    assert client.closed.wait(HUNG_SECONDS)


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_pause_doubles_up_to_its_bound_and_begins_again(chance: float) -> None:
    pause = GrowingPause(1.0, lambda: chance)
    part = 0.5 + chance / 2
    assert [pause.grow(30.0) for _ in range(7)] == [part * seconds for seconds in (1, 2, 4, 8, 16, 30, 30)]
    pause.reset()
    assert pause.grow(30.0) == part


def test_a_server_that_is_away_for_a_year_overflows_nothing() -> None:
    pause = GrowingPause(0.5, lambda: 1.0)
    assert {pause.grow(30.0) for _ in range(5000)} == {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0}
