"""
SIGKILL at random instants: every tick that /live said is on disk is in the archive exactly once.

Twenty kills here, two hundred in `make soak`; converters and the consolidator
are killed as well, whatever they are doing.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.integration.archive_agent import ArchiveAgent, sample_times

from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog

METRIC = "cgroup.v2.memory.current"
PATIENCE_SECONDS = 120.0


def start_consolidator(data: Path) -> subprocess.Popen[bytes]:
    words = [
        sys.executable,
        "-m",
        "nodescope",
        "consolidate",
        "--data",
        str(data),
        "--once",
        "--no-retention",
    ]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def live_until_killed(data: Path, dice: random.Random) -> set[int]:
    """One life of an agent; the times it said were on disk before it was killed."""
    agent = ArchiveAgent(data)
    seen: set[int] = set()
    cursor = "all--1"
    try:
        agent.wait_ready()
        consolidator = start_consolidator(data) if dice.random() < 0.3 else None
        end = time.monotonic() + dice.uniform(0.1, 3.5)
        while time.monotonic() < end:
            frames, cursor = agent.written_frames(cursor)
            seen |= sample_times(frames)
            time.sleep(0.02)
        children = agent.children()
    finally:
        agent.kill()
    if consolidator:
        consolidator.kill()
        consolidator.wait()
    for child in children:
        if dice.random() < 0.5:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    return seen


def archived(data: Path) -> Counter[int]:
    """How often each time is served for one container of the node."""
    found: Counter[int] = Counter()
    for entry in read_catalog([data]).entries:
        rows = duckdb.execute(
            f"SELECT epoch_ms(time), count(*) FROM read_parquet('{entry.path}') WHERE metric_name = '{METRIC}' "
            f"AND l_container_id = (SELECT min(l_container_id) FROM read_parquet('{entry.path}') "
            f"WHERE metric_name = '{METRIC}') GROUP BY 1"
        ).fetchall()
        for time_ms, count in rows:
            found[time_ms] += count
    return found


def finish(data: Path) -> None:
    """
    What an agent's next start would do.

    A converter whose agent was killed goes on, and on a busy machine outlives
    the last agent's stop: until it has gone, a log may wait.
    """
    words = [sys.executable, "-m", "nodescope.keep.convert", str(data)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while list(DataFolder(data).wal.glob("*.log")):
        assert time.monotonic() < deadline, "a log was never converted"
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def check_killed(tmp_path: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    data = tmp_path / "data"
    seen: set[int] = set()
    for _ in range(kills):
        seen |= live_until_killed(data, dice)
    last = ArchiveAgent(data)
    last.wait_ready()
    last.stop()
    finish(data)
    found = archived(data)
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
