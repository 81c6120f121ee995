"""/live: whole frames behind a cursor, and the truth about what was lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.block import Block, Table
from nodescope.base.codec import Decoder
from nodescope.base.entity import NODE, Entity
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import Frame
from nodescope.base.metric import Metric
from nodescope.hold.ring import Ring
from nodescope.publish.live import FRAMES, TAIL_BYTES, Live, LiveBody

TABLE = Table("t", "t", ("node",), (Metric("m", "gauge", "A number."),))
SECOND = 10**9


def make_live(count: int, ring_seconds: float = 1000.0) -> Live:
    ring = Ring(ring_seconds, 10**9, 1.0)
    live = Live(ring, "run1", "n")
    append(live, 0, count)
    return live


def append(live: Live, first: int, count: int) -> None:
    for number in range(first, first + count):
        block = Block(TABLE, (NODE,), np.array([[float(number)]]), number * SECOND)
        live.ring.accept(Frame(number, 0, number * SECOND, (block,), {}))


def sequences(tail: LiveBody) -> list[int]:
    return [frame.sequence for frame in Decoder().decode(tail.body)]


def test_an_empty_cursor_means_the_newest_only() -> None:
    tail = make_live(5).read("")
    assert sequences(tail) == [4]
    assert (tail.cursor, tail.complete) == ("run1-4", True)


@given(st.lists(st.integers(0, 200), min_size=1, max_size=4))
@examples(60)
def test_a_reader_that_comes_back_misses_nothing(batches: list[int]) -> None:
    """forall ways to ask: the tails joined are all frames, once each, in order."""
    live = make_live(1)
    tail = live.read("")
    seen = sequences(tail)
    total = 1
    for count in batches:
        append(live, total, count)
        total += count
        while True:
            tail = live.read(tail.cursor)
            assert tail.complete
            found = sequences(tail)
            assert len(found) <= FRAMES
            seen += found
            if not found:
                break
    assert seen == list(range(total))


def test_a_tail_has_a_bounded_number_of_bytes_and_says_that_there_is_more() -> None:
    """One frame is the least, however large; the next question brings the next."""
    ring = Ring(1000.0, 10**9, 1.0)
    live = Live(ring, "run1", "n")
    table = Table("t", "t", ("node",), (Metric("m", "gauge", "A number."),))
    entities = tuple(Entity("node", (f"{number}",), ()) for number in range(TAIL_BYTES // 16))
    for number in range(4):
        block = Block(table, entities, np.full((len(entities), 1), float(number)), number * SECOND)
        ring.accept(Frame(number, 0, number * SECOND, (block,), {}))
    seen: list[int] = []
    cursor, more = "run1--1", True
    while more:
        tail = live.read(cursor)
        found = sequences(tail)
        assert len(found) <= 2
        seen, cursor, more = seen + found, tail.cursor, tail.more
    assert seen == [0, 1, 2, 3]


def test_a_cursor_that_fell_out_of_the_ring_says_so() -> None:
    tail = make_live(50, ring_seconds=5.0).read("run1-3")
    assert not tail.complete
    assert sequences(tail)[0] > 4


def test_a_cursor_of_an_earlier_run_starts_with_the_oldest_frame() -> None:
    tail = make_live(3).read("other-77")
    assert not tail.complete
    assert sequences(tail) == [0, 1, 2]


def test_a_reader_that_came_before_the_first_tick_misses_nothing() -> None:
    live = make_live(0)
    early = live.read("")
    append(live, 0, 2)
    tail = live.read(early.cursor)
    assert tail.complete
    assert sequences(tail) == [0, 1]


@pytest.mark.parametrize(
    "cursor", ["run1", "run1-", "run1-x", "run1-\u00b2", "run1-1.5", "-", "run1-" + "9" * 19]
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(RequestRejected, match="is not a cursor"):
        make_live(1).read(cursor)


@given(st.text(max_size=12))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    live = make_live(1)
    for cursor in (text, f"run1-{text}"):
        try:
            live.read(cursor)
        except RequestRejected:
            pass
