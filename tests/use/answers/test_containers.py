"""Which container is meant: one resolver for the page, the command line and agents."""

import pytest
from tests.use.answers.lives import make_named

from nodescope.base.text import clean_path
from nodescope.use.answers.containers import (
    ContainerAmbiguous,
    ContainerUnknown,
    find_container,
    find_life,
    group_lives,
    match_lives,
)

API = [make_named(letter * 64, "n1", "shop", "api-7f9", "api", place) for place, letter in enumerate("xyz")]
DATABASE = make_named("db" * 32, "n1", "shop", "db-0", "main")
CACHE = make_named("ca" * 32, "n1", "media", "cache-0", "main")
NAMELESS = make_named("fe" * 32, "n1", "", "", "")
EVERYBODY = [*API, DATABASE, CACHE, NAMELESS]


@pytest.mark.parametrize(
    "text", ["api", "api-7f9", "api-7f9/api", "shop/api", "shop/api-7f9", "shop/api-7f9/api", "api-7"]
)
def test_a_name_means_all_lives_of_its_container(text: str) -> None:
    """Container, pod, both, each in its namespace, or how the pod's name begins."""
    assert find_container(EVERYBODY, text).lives == tuple(API)


def test_an_id_or_its_beginning_means_one_life() -> None:
    assert find_container(EVERYBODY, "yy").lives == (API[1],)
    assert find_life(EVERYBODY, "y" * 64) is API[1]
    assert find_life(EVERYBODY, "fe") is NAMELESS


def test_a_name_goes_before_the_beginning_of_an_id() -> None:
    """A pod may be called as another's id begins; a caller who mostly names is not answered by a short id."""
    beside = make_named("db0" + "1" * 61, "n1", "shop", "web-0", "web")
    named = make_named("aa" * 32, "n1", "shop", "db0", "postgres")
    assert match_lives([beside, named], "db0") == [named]
    assert match_lives([beside], "db0", shortest_id=4) == []


@pytest.mark.parametrize("pod", ["p" * 253, 'a"b', "line\nfeed"])
def test_a_name_as_a_sentence_tells_it_means_its_container(pod: str) -> None:
    """It is told cut, without quotation marks and control characters; a card of the page asks with that."""
    named = make_named("aa" * 32, "n1", "shop", pod, "postgres")
    told = clean_path(named.name)
    assert told != named.name
    assert match_lives([*EVERYBODY, named], told) == [named]


def test_what_is_ambiguous_carries_its_candidates() -> None:
    with pytest.raises(ContainerAmbiguous) as caught:
        find_container(EVERYBODY, "main")
    assert (caught.value.text, caught.value.candidates) == ("main", (DATABASE, CACHE))
    with pytest.raises(ContainerAmbiguous) as caught:
        find_life(EVERYBODY, "api")
    assert caught.value.candidates == tuple(API)


@pytest.mark.parametrize("text", ["ap1", "", "/"])
def test_what_is_unknown_carries_the_nearest_name(text: str) -> None:
    with pytest.raises(ContainerUnknown) as caught:
        find_container(EVERYBODY, text)
    assert len(caught.value.lives) == len(EVERYBODY)
    if text:
        assert caught.value.nearest() in ("api", None)


def test_lives_of_one_name_in_one_pod_are_one_container() -> None:
    """On two nodes they are two; without a name each stands alone."""
    elsewhere = make_named("e" * 64, "n2", "shop", "api-7f9", "api")
    found = group_lives([*reversed(EVERYBODY), elsewhere])
    assert [len(one.lives) for one in found if one.name == "api-7f9/api"] == [3, 1]
    first = next(one for one in found if one.name == "api-7f9/api")
    assert (first.node, first.lives, first.restarts, first.full_name) == (
        "n1",
        tuple(API),
        2,
        "shop/api-7f9/api",
    )


def test_lives_without_a_name_that_follow_one_another_in_a_pod_are_restarts_of_one() -> None:
    """Two that were there together are two containers."""
    first, second = (
        make_named(letter * 64, "n1", "ml", "cache-7f9", "", at_ms, at_ms + 50)
        for letter, at_ms in (("1", 0), ("2", 60))
    )
    beside = make_named("3" * 64, "n1", "ml", "cache-7f9", "", 20, 90)
    (one,) = group_lives([second, first])
    assert (one.lives, one.restarts) == ((first, second), 1)
    assert [found.restarts for found in group_lives([first, second, beside])] == [0, 0, 0]
