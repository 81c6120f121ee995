"""Who ended is known for two minutes, whatever else ends, and a wave of ends is two arrays."""

import gc
import random

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.frame import EXIT, START, Event, Frame
from nodescope.base.metric import Metric
from nodescope.hold.ended import ENDED_SECONDS, Ended, hash_keys
from nodescope.hold.ring import Ring

SECOND = 10**9
TABLE = Table("slow", "slow", ("container",), (Metric("m", "gauge", "A number."),))


def make_entities(numbers: range) -> tuple[Entity, ...]:
    return tuple(Entity("container", (f"{number:064x}", "77")) for number in numbers)


def end(entities: tuple[Entity, ...], kind: str = EXIT) -> list[Event]:
    return [Event(kind, 5, entity.scope, entity.ids) for entity in entities]


def find(ended: Ended, entities: tuple[Entity, ...]) -> list[int] | None:
    living = ended.find_living(hash_keys(entities))
    return None if living is None else living.tolist()


def test_nobody_ended() -> None:
    ended = Ended()
    assert not ended
    assert not ended.note(end(make_entities(range(3)), START), SECOND)
    assert find(ended, make_entities(range(3))) is None


def test_rows_of_those_that_ended_are_left_out() -> None:
    ended = Ended()
    assert ended.note(end(make_entities(range(2, 4))), SECOND)
    assert find(ended, make_entities(range(6))) == [0, 1, 4, 5]
    assert find(ended, make_entities(range(2, 4))) == []
    assert find(ended, make_entities(range(10, 12))) is None
    assert find(ended, ()) is None


def test_it_says_what_a_set_of_keys_would_say() -> None:
    chance = random.Random(1)
    ended, truth = Ended(), {}
    for second in range(300):
        ends = tuple(chance.choice(make_entities(range(400))) for _ in range(chance.randrange(4)))
        ended.note(end(ends), second * SECOND)
        ended.expire(second * SECOND)
        truth.update({entity.key: second for entity in ends})
        known = {key for key, at in truth.items() if at >= second - ENDED_SECONDS}
        asked = make_entities(range(0, 400, 3))
        living = [row for row, entity in enumerate(asked) if entity.key not in known]
        assert find(ended, asked) == (living if len(living) < len(asked) else None)


def test_the_same_ids_of_another_scope_did_not_end() -> None:
    ended = Ended()
    ended.note(end((Entity("service", ("a",)),)), SECOND)
    assert find(ended, (Entity("container", ("a",)),)) is None


def test_a_wave_of_ends_leaves_no_objects() -> None:
    """A table that is read less often shows them no more, and nothing is kept of each."""
    ring = Ring(60.0, 10**9, 1.0)
    entities = make_entities(range(3000))
    block = Block(TABLE, entities, np.zeros((3000, 1)), SECOND)
    ring.accept(Frame(1, 1, SECOND, (block,), {}))
    del block
    gc.collect()
    before = len(gc.get_objects())
    ring.accept(Frame(2, 2, 2 * SECOND, (), {}, tuple(end(entities[5:]))))
    ring.accept(Frame(3, 3, 3 * SECOND, (), {}))
    gc.collect()
    assert [entity.ids for entity in ring.latest()["slow"].block.entities] == [
        entity.ids for entity in entities[:5]
    ]
    assert len(gc.get_objects()) < before + 100


def test_a_late_block_of_an_unchanged_set_is_looked_at_again_after_each_end() -> None:
    ring = Ring(60.0, 10**9, 1.0)
    entities = make_entities(range(4))
    for second, ends in enumerate([(), entities[:1], (), entities[3:], ()], 1):
        block = Block(TABLE, entities, np.zeros((4, 1)), second * SECOND)
        ring.accept(Frame(second, second, second * SECOND, (block,), {}, tuple(end(ends))))
    assert ring.latest()["slow"].block.entities == entities[1:3]
