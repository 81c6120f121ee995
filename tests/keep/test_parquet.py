"""Arrow's memory as numpy's, both ways."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.keep.parquet import unwrap

KINDS = [
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.float64(),
    pa.timestamp("ms", tz="UTC"),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(
    values=st.lists(st.none() | st.integers(0, 100), max_size=40),
    start=st.integers(0, 40),
    end=st.integers(0, 40),
)
def test_what_is_unwrapped_is_what_arrow_would_say(
    kind: pa.DataType, values: list[int | None], start: int, end: int
) -> None:
    """forall values, slices: unwrap(array[a:b], -1) == array[a:b] with -1 for null"""
    whole = pa.array(values, pa.int64()).cast(kind)
    expected = [-1 if value is None else value for value in values[start:end]]
    assert unwrap(whole[start:end], -1).tolist() == expected
