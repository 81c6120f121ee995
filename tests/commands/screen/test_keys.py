"""Keys as terminals send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.commands.screen.keys import split_keys


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("\x1bOA", ["up"]),
        ("\x1b", ["escape"]),
        ("\r", ["enter"]),
        ("/\u5f00", ["/", "\u5f00"]),
        # Control and an arrow: nothing here, and no letters either.
        ("\x1b[1;5Cx", ["x"]),
        ("\x00\x01", []),
    ],
)
def test_a_sequence_is_one_key(sent: str, keys: list[str]) -> None:
    assert list(split_keys(sent)) == keys


@given(st.text())
def test_nothing_breaks_it(sent: str) -> None:
    """forall text: every key is a name, or a letter that can be printed"""
    assert all(len(key) > 1 or key.isprintable() for key in split_keys(sent))
