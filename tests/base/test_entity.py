"""Series identity: one key for one entity, and no two entities under one key."""

from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.entity import LIMITS, SCOPES, Entity

PART = st.text("ab|\\/", max_size=4)
NAMED = st.tuples(st.sampled_from(SCOPES), st.lists(PART, max_size=3).map(tuple))


@given(NAMED, NAMED)
@examples(600)
@example(("service", ("a/b", "c")), ("service", ("a", "b/c")))
@example(("cpu", ()), ("cpu", ("",)))
def test_two_entities_have_one_key_only_when_they_are_one(
    a: tuple[str, tuple[str, ...]], b: tuple[str, tuple[str, ...]]
) -> None:
    """forall a, b: a.key == b.key iff scope and ids are equal"""
    assert (Entity(*a).key == Entity(*b).key) == (a == b)


def test_labels_that_arrive_later_do_not_change_the_key() -> None:
    before = Entity("container", ("abc", "12"))
    after = Entity("container", ("abc", "12"), (("pod", "web-0"),))
    assert before.key == after.key


def test_an_attribute_is_a_label_or_a_detail() -> None:
    entity = Entity("container", ("abc",), (("pod", "web-0"),), (("qos", "Burstable"),))
    assert (entity.attribute("pod"), entity.attribute("qos")) == ("web-0", "Burstable")
    assert entity.attribute("image") is None


def test_every_scope_of_the_contract_has_a_limit() -> None:
    words = "node cpu disk filesystem network pressure process service pod container gpu fpga pcm"
    assert set(words.split()) <= set(LIMITS)
    assert all(limit > 0 for limit in LIMITS.values())
