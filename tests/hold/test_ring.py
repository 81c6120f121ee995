"""The ring against an obvious model, under any sequence of frames, within its bytes."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.strategies import examples

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.frame import Frame, Outcome
from nodescope.base.metric import Metric
from nodescope.hold.ring import BLOCK_BYTES, ENTITY_BYTES, SHRUNK_BYTES, Moment, Ring

SECOND = 10**9
METRICS = (Metric("m", "gauge", "A number."), Metric("n", "counter", "A count."))
TABLES = (
    Table("node", "node", ("node",), METRICS),
    Table("container", "container", ("container",), METRICS),
    Table("slow", "container", ("container",), METRICS[:1]),
)
SETS = tuple(
    tuple(Entity("container", (f"{letter}{number}",)) for number in range(count))
    for letter, count in (("a", 0), ("b", 1), ("c", 3), ("d", 12))
)
RING_SECONDS = 5.0
KEPT_NS = round((RING_SECONDS + 1.5) * SECOND)


def make_block(table: Table, entities: tuple[Entity, ...], mono_ns: int, value: float = 0.0) -> Block:
    return Block(table, entities, np.full((len(entities), len(table.metrics)), value), mono_ns)


def cost_of(moments: list[Moment]) -> int:
    """The stated price: numbers, a fixed part per block, labels once per run of one set."""
    total = 0
    before: object = None
    for moment in moments:
        total += moment.block.values.nbytes + BLOCK_BYTES
        if moment.block.entities is not before:
            total += len(moment.block.entities) * ENTITY_BYTES
        before = moment.block.entities
    return total


class RingMachine(RuleBasedStateMachine):
    """Appends and questions in any order; the model keeps everything and looks at it naively."""

    ring_bytes = 10**9

    def __init__(self) -> None:
        super().__init__()
        self.ring = Ring(RING_SECONDS, self.ring_bytes, 1.0)
        self.frames: deque[Frame] = deque()
        self.mono_ns = 0

    @rule(
        gap_ns=st.integers(1, 3 * SECOND),
        picks=st.lists(st.tuples(st.sampled_from(TABLES), st.sampled_from(SETS)), max_size=3),
    )
    def append(self, gap_ns: int, picks: list[tuple[Table, tuple[Entity, ...]]]) -> None:
        self.mono_ns += gap_ns
        number = len(self.frames)
        chosen = {table.name: make_block(table, entities, self.mono_ns, number) for table, entities in picks}
        frame = Frame(number, number * 7, self.mono_ns, tuple(chosen.values()), {"x": Outcome("ok")})
        self.ring.accept(frame)
        self.frames.append(frame)

    def model(self, table: str) -> list[Block]:
        """Everything young enough; the newest stays whatever its age."""
        held = [(f, b) for f in self.frames for b in f.blocks if b.table.name == table]
        young = [b for f, b in held if f.mono_ns >= self.mono_ns - KEPT_NS]
        return young or [b for _, b in held[-1:]]

    @precondition(lambda self: self.frames)
    @rule(table=st.sampled_from(TABLES), start=st.integers(0, 10**10), length=st.integers(0, 10**10))
    def window(self, table: Table, start: int, length: int) -> None:
        after_ns = self.mono_ns - start
        before, inside = self.ring.moments(table.name, after_ns, after_ns + length)
        held = self.model(table.name)
        self.check_window(held, before, inside, after_ns, after_ns + length)

    def check_window(
        self, held: list[Block], before: Moment | None, inside: list[Moment], after_ns: int, until_ns: int
    ) -> None:
        assert [m.block for m in inside] == [b for b in held if after_ns < b.mono_ns <= until_ns]
        earlier = [b for b in held if b.mono_ns <= after_ns]
        assert (before.block if before else None) is (earlier[-1] if earlier else None)

    @invariant()
    def the_newest_of_every_table_is_known(self) -> None:
        newest = {b.table.name: b for f in self.frames for b in f.blocks}
        assert {name: moment.block for name, moment in self.ring.latest().items()} == newest

    @invariant()
    def headers_are_the_young_frames(self) -> None:
        young = [f.sequence for f in self.frames if f.mono_ns >= self.mono_ns - KEPT_NS]
        assert [f.sequence for f in self.ring.headers(-1, self.mono_ns)] == young
        assert self.ring.frame_count == len(young)
        newest = self.ring.newest()
        assert (newest.sequence if newest else None) == (self.frames[-1].sequence if self.frames else None)

    @invariant()
    def used_bytes_is_what_the_moments_cost(self) -> None:
        tracks = [self.ring.moments(table.name, -1, self.mono_ns)[1] for table in TABLES]
        assert self.ring.used_bytes == sum(map(cost_of, tracks))


class SmallRingMachine(RingMachine):
    """The same with so few bytes that they, not age, decide."""

    ring_bytes = 20_000

    def check_window(
        self, held: list[Block], before: Moment | None, inside: list[Moment], after_ns: int, until_ns: int
    ) -> None:
        """What is there is the newest part of what a larger ring would have."""
        wanted = [b for b in held if after_ns < b.mono_ns <= until_ns]
        found = [m.block for m in inside]
        assert found == wanted[len(wanted) - len(found) :]

    @invariant()
    def bytes_are_bounded(self) -> None:
        """used <= ring_bytes, unless only the newest of each table is left."""
        counts = [len(self.ring.moments(table.name, -1, self.mono_ns)[1]) for table in TABLES]
        assert self.ring.used_bytes <= self.ring_bytes or max(counts) <= 1


TestRing = RingMachine.TestCase
TestRing.settings = examples(120)
TestSmallRing = SmallRingMachine.TestCase
TestSmallRing.settings = examples(120)


def fill(ring: Ring, count: int, table: Table = TABLES[0], entities: tuple[Entity, ...] = SETS[1]) -> None:
    for number in range(count):
        block = make_block(table, entities, number * SECOND)
        ring.accept(Frame(number, number, number * SECOND, (block,), {}))


@given(
    st.integers(1, 40), st.integers(0, 40 * SECOND), st.integers(0, 40 * SECOND), st.integers(0, 40 * SECOND)
)
def test_a_window_is_the_sum_of_its_parts(count: int, a: int, b: int, c: int) -> None:
    """window(a, c) == window(a, b) + window(b, c) for a <= b <= c: the start is out, the end is in."""
    ring = Ring(60.0, 10**9, 1.0)
    fill(ring, count)
    a, b, c = sorted((a, b, c))
    whole, first, second = (ring.moments("node", *span)[1] for span in ((a, c), (a, b), (b, c)))
    assert whole == first + second
    assert ring.headers(a, c) == ring.headers(a, b) + ring.headers(b, c)


def test_many_containers_never_shorten_the_window_of_the_node() -> None:
    ring = Ring(100.0, 200_000, 1.0)
    many = tuple(Entity("container", (str(number),)) for number in range(100))
    for number in range(50):
        blocks = (make_block(TABLES[0], SETS[1], number), make_block(TABLES[1], tuple(many), number))
        # A fresh tuple each tick: containers come and go all the time.
        many = (*tuple(many)[1:], Entity("container", (f"new{number}",)))
        ring.accept(Frame(number, number, number * SECOND, blocks, {}))
    assert ring.used_bytes <= 200_000
    assert len(ring.moments("node", -1, 100 * SECOND)[1]) == 50
    assert len(ring.moments("container", -1, 100 * SECOND)[1]) < 10
    assert ring.accepted_seconds("node") == 100.0
    assert ring.accepted_seconds("container") < 10.0


def test_what_bytes_have_shortened_is_not_kept_for_longer_once_there_is_room() -> None:
    """Thousands of containers that are gone leave as soon as they would have, had they stayed."""
    ring = Ring(100.0, 200_000, 1.0)
    many = tuple(Entity("container", (str(number),)) for number in range(100))
    small = SETS[1]
    for number in range(60):
        entities = many if number < 40 else small
        if number < 40:
            # A fresh set each tick, so that bytes run out.
            many = (*many[1:], Entity("container", (f"new{number}",)))
        ring.accept(
            Frame(number, number, number * SECOND, (make_block(TABLES[1], entities, number * SECOND),), {})
        )
    held = ring.moments("container", -1, 100 * SECOND)[1]
    assert {len(moment.block.entities) for moment in held} == {1}
    assert len(held) == 20
    assert ring.used_bytes < 10_000


def test_a_table_that_lost_most_of_its_rows_gives_them_back_before_the_ring_is_through() -> None:
    """The accepted window says so; a table that lost a few of them stays whole."""
    ring = Ring(100.0, 10**9, 1.0)
    many = tuple(Entity("container", (str(number),)) for number in range(SHRUNK_BYTES // ENTITY_BYTES + 1))
    for number in range(100):
        # Few, many, and few again.
        entities = many if 10 <= number < 50 else many[:5]
        rest = many if number < 50 else many[10:]
        at_ns = number * SECOND
        blocks = (make_block(TABLES[1], entities, at_ns), make_block(TABLES[0], rest, at_ns))
        ring.accept(Frame(number, number, at_ns, blocks, {}))
    held = [len(moment.block.entities) for moment in ring.moments("container", -1, 100 * SECOND)[1]]
    assert held == [5] * 50
    assert ring.accepted_seconds("container") < 100
    assert len(ring.moments("node", -1, 100 * SECOND)[1]) == 100


def test_a_ring_that_may_hold_less_does_so_from_the_next_frame_on() -> None:
    ring = Ring(100.0, 10**9, 1.0)
    fill(ring, 50)
    before = ring.used_bytes
    ring.allow(before // 2)
    fill(ring, 1)
    assert ring.used_bytes <= before // 2


def test_the_accepted_window_is_capacity_not_fill() -> None:
    ring = Ring(120.0, 10**9, 1.0)
    assert ring.accepted_seconds("node") == 120.0
    fill(ring, 3)
    assert ring.accepted_seconds("node") == 120.0


def test_the_tail_is_whole_frames_and_says_when_some_have_left() -> None:
    ring = Ring(5.0, 10**9, 1.0)
    fill(ring, 20)
    complete, frames = ring.since(17)
    assert complete
    assert [frame.sequence for frame in frames] == [18, 19]
    assert all(len(frame.blocks) == 1 for frame in frames)
    complete, frames = ring.since(2)
    assert not complete
    assert frames[0].sequence > 3


def test_a_source_that_opened_anew_starts_a_new_history() -> None:
    """Another schema under the same name: rows of the two cannot be joined."""
    ring = Ring(60.0, 10**9, 1.0)
    fill(ring, 3)
    other = Table("node", "node", ("node",), METRICS[:1])
    ring.accept(Frame(3, 3, 3 * SECOND, (make_block(other, SETS[1], 3 * SECOND),), {}))
    assert len(ring.moments("node", -1, 10 * SECOND)[1]) == 1


def test_a_block_is_immutable_and_checked() -> None:
    block = make_block(TABLES[0], SETS[1], 0)
    with pytest.raises(ValueError, match="read-only"):
        block.values[0, 0] = 1.0
    with pytest.raises(ValueError, match="expected"):
        Block(TABLES[0], SETS[2], np.zeros((1, 1)), 0)
