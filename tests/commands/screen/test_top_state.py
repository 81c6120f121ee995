"""What each key of `nodescope top` changes."""

from dataclasses import replace

import pytest

from nodescope.commands.screen.top_state import SORT_KEYS, SPANS, TopState, press

KEYS = ["a", "b", "c"]
START = TopState("cpu")


def after(*pressed: str, state: TopState = START) -> TopState:
    for key in pressed:
        state = press(state, key, KEYS)
    return state


def test_q_ends_it_in_the_list_and_in_curves() -> None:
    assert after("q").is_ended
    assert after("enter", "q").is_ended


def test_q_is_a_letter_of_a_filter() -> None:
    assert after("/", "q", "x") == replace(START, is_typing=True, wanted="qx")


@pytest.mark.parametrize(("key", "sort"), [(key, metric) for key, (metric, _) in SORT_KEYS.items()])
def test_every_sort_key_sorts(key: str, sort: str) -> None:
    assert after(key).sort == sort


def test_a_filter_is_kept_by_enter_and_cleared_by_escape() -> None:
    assert after("/", "d", "b", "enter") == replace(START, wanted="db")
    assert after("/", "d", "b", "backspace", "enter").wanted == "d"
    assert after("/", "d", "escape") == START
    assert after("/", "d", "enter", "escape") == START


def test_the_chosen_one_moves_and_stays_within_the_list() -> None:
    assert after("down").chosen == "b"
    assert after("down", "down", "down").chosen == "c"
    assert after("up").chosen == "a"
    assert after("end", "home").chosen == "a"
    assert after("end").chosen == "c"


def test_the_chosen_one_is_followed_when_the_order_changes() -> None:
    state = after("down")
    assert press(state, "down", ["c", "b", "a"]).chosen == "a"


def test_enter_opens_the_chosen_one_and_escape_closes_it() -> None:
    assert after("down", "enter").opened == "b"
    assert after("down", "enter", "escape") == replace(START, chosen="b")
    assert press(START, "enter", []).opened == ""


def test_curves_go_to_the_next_container_and_to_other_spans() -> None:
    assert after("enter", "down").opened == "b"
    assert after("enter", "-").span == SPANS[2]
    assert after("enter", *"----").span == SPANS[-1]
    assert after("enter", *"++++").span == SPANS[0]
    # A sort key has nothing to sort there.
    assert after("enter", "m").sort == "cpu"
