"""No TLS state is made before the client's hello is whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.torture.hostile import make_hello

from nodescope.serve.bounds.small_tls import RECORD_BYTES, RECORD_HEAD_BYTES, count_missing

HELLO = make_hello()


@given(st.integers(0, len(HELLO)))
def test_a_hello_lacks_what_has_not_come(received: int) -> None:
    """forall cuts of a real hello: nothing is missing exactly when all of it is there."""
    missing = count_missing(HELLO[:received][:RECORD_HEAD_BYTES], received)
    assert missing == (
        len(HELLO) - received if received >= RECORD_HEAD_BYTES else RECORD_HEAD_BYTES - received
    )


@pytest.mark.parametrize(
    "head",
    [
        b"GET /",
        b"G",
        b"\x17\x03\x03\x00\x10",
        b"\x16\x02\x00\x00\x10",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
    ],
)
def test_what_is_no_hello_is_closed_at_once(head: bytes) -> None:
    assert count_missing(head, len(head)) is None


@given(st.binary(max_size=RECORD_HEAD_BYTES), st.integers(0, 2 * RECORD_BYTES))
def test_any_bytes_have_an_answer_within_a_record(head: bytes, more: int) -> None:
    missing = count_missing(head, len(head) + more)
    assert missing is None or 0 <= missing <= RECORD_HEAD_BYTES + RECORD_BYTES
