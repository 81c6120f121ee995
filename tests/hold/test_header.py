"""A frame's header gives back what it was made of, however many events there were, and a wave is few objects."""

import gc

import pytest

from nodescope.base.frame import Event, Frame, Outcome
from nodescope.hold.header import WAVE_EVENTS, pack_header
from nodescope.hold.ring import Ring


def make_events(count: int) -> tuple[Event, ...]:
    return tuple(
        Event(
            "exit" if number % 2 else "start",
            10**18 + number,
            "container",
            (f"{number:064x}",),
            (("namespace", ""), ("id", f'/kubepods/"{number}"')),
            {"cpu_seconds": number / 7, "reason": "ä"},
        )
        for number in range(count)
    )


def make_frame(count: int) -> Frame:
    return Frame(3, 5, 7, (), {"x": Outcome("failed", "gone")}, make_events(count))


@pytest.mark.parametrize("count", [0, 1, WAVE_EVENTS - 1, WAVE_EVENTS, 400])
def test_a_header_gives_back_its_frame(count: int) -> None:
    frame = make_frame(count)
    assert pack_header(frame).unpack() == frame


def test_the_events_of_a_wave_are_not_kept_as_objects() -> None:
    ring = Ring(60.0, 10**9, 1.0)
    ring.accept(make_frame(5000))
    ring.accept(Frame(4, 6, 8, (), {}))
    gc.collect()
    assert sum(isinstance(one, Event) for one in gc.get_objects()) < WAVE_EVENTS
    assert [len(frame.events) for frame in ring.headers(0, 100)] == [5000, 0]
    assert ring.since(2)[1][0] == make_frame(5000)


def make_outcomes(cost_seconds: float, reason: str = "") -> dict[str, Outcome]:
    return {"x": Outcome("ok", reason, cost_seconds), "y": Outcome("absent", "no such file")}


def test_outcomes_are_kept_once_while_only_their_cost_changes() -> None:
    ring = Ring(60.0, 10**9, 1.0)
    for number in range(5):
        ring.accept(Frame(number, number, number, (), make_outcomes(number / 1000)))
    assert len({id(frame.outcomes) for frame in ring.headers(-1, 100)}) == 1
    newest = ring.newest()
    assert newest
    assert newest.outcomes["x"].cost_seconds == 0.004


@pytest.mark.parametrize(
    "other",
    [
        make_outcomes(0.1, "slow"),
        {"x": Outcome("failed")},
        {**make_outcomes(0.1), "z": Outcome("ok")},
        {**make_outcomes(0.1), "y": Outcome("absent", "no such file", note="v2")},
        {**make_outcomes(0.1), "y": Outcome("absent", "no such file", detail="gone")},
    ],
)
def test_an_outcome_that_says_something_else_is_kept(other: dict[str, Outcome]) -> None:
    ring = Ring(60.0, 10**9, 1.0)
    told = [make_outcomes(0.1), other, make_outcomes(0.1)]
    for number, outcomes in enumerate(told):
        ring.accept(Frame(number, number, number, (), outcomes))
    assert [frame.outcomes for frame in ring.headers(-1, 100)] == told
