"""Arrow's memory as numpy's, both ways; and what times cost in a file."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.keep.frames import CURRENT, container

from nodescope.keep.disk import Disk
from nodescope.keep.label_columns import describe_entity
from nodescope.keep.parquet import SampleRows, create_archive, unwrap

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


def test_the_same_times_of_many_series_are_stored_once_a_row_group(tmp_path: Path) -> None:
    """An hour of fifty containers: 3,600 times of two bytes each, not as many again for every 65,536 rows."""
    dice = np.random.default_rng(1)
    times = 1_772_366_400_000 + np.arange(3600, dtype=np.int64) * 1000 + dice.integers(0, 4, 3600)
    subjects = [describe_entity(container(f"{number:02x}" * 32), "n1", int(times[0])) for number in range(50)]
    with create_archive(Disk(), tmp_path / "hour.parquet", subjects, {}) as writer:
        rank = np.repeat(np.arange(50), 3600)
        writer.add(SampleRows(CURRENT, rank, np.tile(times, 50), np.zeros(180_000)))
    (group,) = [pq.read_metadata(tmp_path / "hour.parquet").row_group(0)]
    assert group.column(0).path_in_schema == "time"
    assert group.column(0).total_compressed_size < 1.5 * 2 * 3600
