"""A mean over a span is divided by what was recorded of it: missing time is nobody's zero."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.use.mcp.asking import asking
from tests.use.viewer.archives import END_MS, write_demo
from tests.use.viewer.asking import Asker

from nodescope.base.time_range import TimeRange
from nodescope.read.files.catalog import read_catalog
from nodescope.read.files.derived_cache import DerivedCache
from nodescope.use.answers.ranked.recorded import (
    FileStretches,
    Recorded,
    join_stretches,
    list_stretches,
    make_recorded,
    record_whole,
    split_ticks,
)

SECONDS = 1000
# What a span of six hours of an agent of twenty minutes is divided by, in DuckDB: seconds with a sample.
RECORDED = "SELECT count(DISTINCT time) FROM samples"
USED = (
    "SELECT l_pod_name || '/' || l_container_name AS name, sum(value) FROM samples"
    " WHERE metric_name = 'cgroup.v2.memory.current' GROUP BY 1"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty minutes, in which the agent was down for six: half of what ran before that is gone after it."""
    folder = write_demo(tmp_path_factory.mktemp("young"))
    files = sorted(folder.glob("dt=*/identifier=*/metrics-*.parquet"))
    for path in files[3:7]:
        path.unlink()
        path.with_suffix(".containers").unlink()
    return folder


@pytest.fixture(scope="module")
def parquet(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        files = f"{folder}/dt=*/identifier=*/*.parquet"
        connection.execute(
            f"CREATE TABLE samples AS SELECT * FROM read_parquet('{files}', union_by_name = true)"
        )
        yield connection


def known_use(parquet: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By container: memory over the seconds that were recorded."""
    (recorded,) = parquet.execute(RECORDED).fetchone()  # type: ignore[misc]
    assert 800 < recorded < 900, "twenty minutes less six"
    rows = parquet.execute(USED).fetchall()
    return {name: used / recorded for name, used in rows if name}


def test_the_list_is_the_mean_of_what_was_recorded(folder: Path, parquet: duckdb.DuckDBPyConnection) -> None:
    known = known_use(parquet)
    with Asker(folder) as asker:
        span = {"from": (END_MS - 6 * 3600 * SECONDS) / SECONDS, "to": END_MS / SECONDS}
        answer = asker.json("/api/containers", metric="memory", lives="joined", **span)
    assert answer["recorded_seconds"] == pytest.approx(840, abs=10)
    rows = {row["name"]: row["over_span"] for row in answer["containers"] if row["over_span"] is not None}
    assert rows == pytest.approx(known, rel=0.01)


def test_workloads_say_how_much_was_recorded(folder: Path, parquet: duckdb.DuckDBPyConnection) -> None:
    known = known_use(parquet)
    with Asker(folder) as asker:
        span = {"from": (END_MS - 6 * 3600 * SECONDS) / SECONDS, "to": END_MS / SECONDS}
        answer = asker.json("/api/workloads", metric="memory", limit=100, **span)
    assert answer["total_over_span"] == pytest.approx(sum(known.values()), rel=0.01)
    assert all(row["recorded_seconds"] == pytest.approx(840, abs=10) for row in answer["workloads"])
    assert "over the 14 min of the span that were recorded" in answer["sentence"]


def test_agents_are_told_the_same_use(folder: Path, parquet: duckdb.DuckDBPyConnection) -> None:
    known = known_use(parquet)
    with asking(folder) as asker:
        answer = asker.ask("top_containers", by="memory", limit=12, group="container")
        listed = asker.ask("list_containers", sort="memory")
    told = [one["evidence"]["over_span"] for one in answer["findings"]]
    assert len(told) >= 4, "an answer has a bounded size"
    assert told == pytest.approx(sorted(known.values(), reverse=True)[: len(told)], rel=0.01)
    assert "that were recorded" in answer["headline"]
    assert listed["findings"]


def test_a_pause_of_the_agent_ends_a_stretch_and_a_restart_does_not() -> None:
    ticks = np.array([0, 1, 2, 6, 7, 60, 61]) * SECONDS
    assert split_ticks(ticks) == [TimeRange(0, 7 * SECONDS), TimeRange(60 * SECONDS, 61 * SECONDS)]
    slow = np.arange(0, 600, 30) * SECONDS
    assert split_ticks(slow) == [TimeRange(0, 570 * SECONDS)], "an agent that samples every 30 s"
    assert split_ticks(np.empty(0, np.int64)) == []


def test_what_is_not_known_to_be_missing_was_recorded() -> None:
    span = TimeRange(0, 9 * SECONDS)
    assert make_recorded(span, ()) == record_whole(span)
    assert record_whole(span).is_whole
    assert record_whole(span).share([TimeRange(0, 4 * SECONDS)]) == 0.5


SPANS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 60)).map(
        lambda one: TimeRange(one[0] * SECONDS, (one[0] + one[1]) * SECONDS)
    ),
    min_size=1,
    max_size=6,
)


@given(stretches=SPANS, lives=SPANS)
def test_the_share_is_that_of_single_seconds(stretches: list[TimeRange], lives: list[TimeRange]) -> None:
    """share == |seconds of any life and of any stretch| / |seconds of any stretch|"""
    joined = tuple(join_stretches(stretches))
    recorded = seconds_of(joined)
    found = Recorded(TimeRange(0, 400 * SECONDS), joined)
    assert found.total_ms == len(recorded) * SECONDS
    assert found.share(lives) == pytest.approx(len(recorded & seconds_of(lives)) / len(recorded))


def seconds_of(spans: list[TimeRange] | tuple[TimeRange, ...]) -> set[int]:
    return {second for one in spans for second in range(one.from_ms // SECONDS, one.to_ms // SECONDS + 1)}


def test_the_stretches_of_a_file_are_derived_once_for_each_version(folder: Path) -> None:
    """A day has 86,400 ticks, and every answer asks."""
    entry = read_catalog([folder]).entries[0]
    known: DerivedCache[FileStretches] = DerivedCache()
    first = list_stretches(entry, known)
    assert list(first) == split_ticks(entry.ticks().time_ms)  # type: ignore[union-attr]
    assert list_stretches(entry, known) is first
    assert list_stretches(replace(entry, mtime_ns=entry.mtime_ns + 1), known) is not first
    assert list_stretches(replace(entry, sidecar=None), known) == [TimeRange(entry.from_ms, entry.to_ms)]
