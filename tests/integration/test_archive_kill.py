"""
SIGKILL at random instants: every tick that /live said is on disk is in the archive exactly once.

Twenty kills here, a thousand in `make torture` (tests/torture/kills.py), two hundred in `make soak`.
"""

import random
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.torture.kills import finish, live_until_killed, read_archived

from nodescope.keep.folder import DataFolder


def check_killed(tmp_path: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    data = tmp_path / "data"
    seen: set[int] = set()
    for _ in range(kills):
        seen |= live_until_killed(data, dice, longest=3.5)
    finish(data)
    found = read_archived(data)
    assert len(seen) > kills
    missing = sorted(seen - set(found))
    assert not missing, f"{len(missing)} of {len(seen)} ticks lost"
    assert max(found.values()) == 1
    for file in DataFolder(data).files():
        rows = pq.ParquetFile(file.path).metadata.num_rows
        assert rows == len(pl.read_parquet(file.path, hive_partitioning=False))
        assert rows == len(pd.read_parquet(file.path, partitioning=None))


@pytest.mark.real
def test_twenty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    check_killed(tmp_path, 20, seed=4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_two_hundred_kills_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    """Fifty each, in four folders."""
    check_killed(tmp_path, 50, seed)
