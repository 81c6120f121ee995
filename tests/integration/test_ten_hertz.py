"""Ten samples a second: from the agent's ring and log to Parquet, a chart and a study."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.agents import run_nodescope, running_agent, wait_for
from tests.use.viewer.asking import Asker

from nodescope.base.clock import SystemClock

pytestmark = pytest.mark.real

SLOW_SECONDS = 120.0
TICKS = 120
# The budget would slow the costly tables of a busy machine: here every tick is wanted.
WORDS = ("--interval", "0.1s", "--budget-ratio", "1", "--no-kubernetes", "--node", "fast")


@dataclass
class Recorded:
    status: Any
    window: Any
    data: Path


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    with tempfile.TemporaryDirectory(prefix="nodescope-ten-") as name:
        data = Path(name, "data")
        with running_agent("--data", str(data), *WORDS) as agent:
            wait_for(
                lambda: agent.get("/status").json()["ring"]["frames"] >= TICKS, "enough ticks", SLOW_SECONDS
            )
            status = agent.get("/status").json()
            window = agent.get("/metrics?window_seconds=5").raise_for_status().json()
        yield Recorded(status, window, data)


def test_the_slow_tables_keep_their_seconds(recorded: Recorded) -> None:
    """/status: a table of every fifth second is read every fiftieth tick."""
    periods = {table["every_ticks"] for table in recorded.status["tables"].values()}
    assert 1 in periods
    assert periods - {1} <= {50, 300}
    assert recorded.status["budget"]["slowed"] == {}


def test_a_window_expects_ten_samples_a_second(recorded: Recorded) -> None:
    """A busy machine misses some, which is told: completeness is below 1 then."""
    window = recorded.window
    assert window["samples_expected"] == 50
    assert window["completeness"] == pytest.approx(min(1.0, window["samples_count"] / 50))


@pytest.mark.parametrize("converted", [False, True])
def test_charts_and_studies_have_tenths_of_seconds(recorded: Recorded, converted: bool) -> None:
    """From the log alone, and from Parquet."""
    if converted:
        done = run_nodescope("consolidate", "--once", "--data", str(recorded.data), seconds=SLOW_SECONDS)
        assert done.returncode == 0, done.stderr
        assert list(recorded.data.rglob("metrics-*.parquet")) or list(
            recorded.data.rglob("consolidated-*.parquet")
        )
    with Asker(recorded.data, clock=SystemClock()) as viewer:
        found = viewer.json("/api/timeseries", metric="cpu", scope="node", range="all", max_points=2000)
        times = np.asarray(found["time"])
        assert len(times) >= TICKS - 1
        # Nothing was put into buckets of a second; late ticks leave larger steps.
        assert np.quantile(np.diff(times), 0.1) < 0.5
        studied = viewer.json("/api/study/summary", metric="cpu", scope="node", range="all")
        assert studied["results"][0]["samples"] >= TICKS - 1
