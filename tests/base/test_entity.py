"""Series identity: one name for one series, and no two series under one name."""

from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.entity import LIMITS, SCOPES, Entity, series_id

PART = st.text("ab|\\/", max_size=4)
SERIES = st.tuples(PART, st.sampled_from(SCOPES), st.lists(PART, max_size=3).map(tuple), PART)


def name(series: tuple[str, str, tuple[str, ...], str]) -> str:
    node, scope, ids, metric = series
    return series_id(node, Entity(scope, ids), metric)


@given(SERIES, SERIES)
@examples(600)
@example(("a|b", "cpu", (), "m"), ("a", "cpu", ("b",), "m"))
@example(("a\\", "cpu", ("|",), ""), ("a", "cpu", ("\\|",), ""))
def test_two_series_have_one_name_only_when_they_are_one(
    a: tuple[str, str, tuple[str, ...], str], b: tuple[str, str, tuple[str, ...], str]
) -> None:
    """forall a, b: series_id(a) == series_id(b) iff a == b"""
    assert (name(a) == name(b)) == (a == b)


def test_labels_that_arrive_later_do_not_change_the_name() -> None:
    before = Entity("container", ("abc", "12"))
    after = Entity("container", ("abc", "12"), (("pod", "web-0"),))
    assert before.key == after.key
    assert series_id("n", before, "m") == series_id("n", after, "m")


def test_an_attribute_is_a_label_or_a_detail() -> None:
    entity = Entity("container", ("abc",), (("pod", "web-0"),), (("qos", "Burstable"),))
    assert (entity.attribute("pod"), entity.attribute("qos")) == ("web-0", "Burstable")
    assert entity.attribute("image") is None


def test_every_scope_of_the_contract_has_a_limit() -> None:
    words = "node cpu disk filesystem network pressure process service pod container gpu fpga pcm"
    assert set(words.split()) <= set(LIMITS)
    assert all(limit > 0 for limit in LIMITS.values())
