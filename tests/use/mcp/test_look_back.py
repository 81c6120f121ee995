"""How far a study looks back when nobody says: as far as the question needs, and it says how far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import numpy as np
import pytest
from tests.use.answers.lives import make_named

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange, parse_moment
from nodescope.use.answers.containers import Life
from nodescope.use.answers.findings import study_each
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.overview import About
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet, NodeEntry, StaticDirectory
from nodescope.use.mcp.protocol.answer import ToolAnswer
from nodescope.use.mcp.protocol.argument import check_arguments
from nodescope.use.mcp.tools import TOOLS
from nodescope.use.mcp.tools.analyze_container import rank_growth
from nodescope.use.studies import Finding, Series, StudyAnswer
from nodescope.use.studies.series import FloatArray

MIB, HOUR = 2.0**20, 3600.0
# Long enough for every span that is looked at; a sample each five seconds keeps the test quick.
HOURS, STEP = 26.0, 5.0
END = 1_772_366_400.0
Curve = Callable[[FloatArray], FloatArray]


def noise_of(times: FloatArray, size: float) -> FloatArray:
    return np.random.default_rng(7).normal(0, size, len(times))


@dataclass(frozen=True)
class OneContainer:
    """A node with one container, whose memory and CPU follow a curve; hours count from the end."""

    curve: Curve
    unit: str = "bytes"

    def read_about(self) -> About:
        return About("a", "0", round((END - HOURS * HOUR) * 1000), round(END * 1000), 1)

    def read_metrics(self) -> list[MetricRow]:
        return [MetricRow(name, "container", True, "gauge", self.unit, "") for name in ("memory", "cpu")]

    def read_lives(self, span: TimeRange | None) -> list[Life]:
        about = self.read_about()
        return [make_named("c" * 64, "a", "shop", "web-0", "web", about.from_ms or 0, about.to_ms or 0)]

    def read_events(self, span: TimeRange) -> list[Any]:
        return []

    def run_studies(self, study: str, metric: str, ids: Sequence[str], span: TimeRange) -> list[StudyAnswer]:
        times_at = np.arange(END - HOURS * HOUR, END, STEP)
        values = self.curve((times_at - END) / HOUR) + noise_of(times_at, 1.0)
        inside = (times_at * 1000 >= span.from_ms) & (times_at * 1000 <= span.to_ms)
        series = Series(
            times_at[inside], values[inside] * MIB, unit=self.unit, metric=metric, container="web", node="a"
        )
        return [answer for answer, _ in study_each(study, [(ids[0], series)])]


def analyze(curve: Curve, **given: Any) -> ToolAnswer:
    backend = cast("Backend", OneContainer(curve))
    fleet = Fleet(StaticDirectory({"a": NodeEntry("a", backend, "here")}), SystemClock(), 120)
    tool = TOOLS["analyze_container"]
    values = check_arguments(tool.name, tool.arguments, {"container": "web", **given})
    return anyio.run(partial(tool.run, fleet, values))


def flat(hours: FloatArray) -> FloatArray:
    return np.full(len(hours), 300.0)


def test_a_slow_leak_is_seen_over_the_day_it_takes() -> None:
    """A quarter of a MiB an hour drowns in an hour's noise of 1 MiB."""
    answer = analyze(lambda hours: 300 + 0.25 * (hours + HOURS), study="trend", metric="memory")
    assert answer.status == "found"
    assert answer.findings[0].evidence["slope_per_second"] == pytest.approx(0.25 * MIB / HOUR, rel=0.1)
    assert "the last 24 h of data" in answer.looked_at
    short = analyze(
        lambda hours: 300 + 0.25 * (hours + HOURS), study="trend", metric="memory", **{"from": "-1h"}
    )
    assert short.status == "none"


def test_a_late_leak_is_seen_though_the_day_as_a_whole_is_flat() -> None:
    answer = analyze(lambda hours: 300 + 60 * np.clip(hours + 0.9, 0, None), study="trend", metric="memory")
    assert answer.status == "found"
    assert (answer.findings[0].start_at or 0) >= END - 6 * HOUR - STEP
    assert answer.findings[0].evidence["verdict"] == "leak"


def test_a_wave_that_rises_just_now_is_no_leak() -> None:
    """It was as high before: every evening's rise would be called a leak."""
    answer = analyze(
        lambda hours: 300 + 40 * np.sin(2 * np.pi * (hours + 0.75) / 3), study="trend", metric="memory"
    )
    assert answer.status == "none"
    assert "would have been found" in answer.headline


def test_a_no_states_its_power_and_goes_on_with_the_longer_span() -> None:
    answer = analyze(flat, study="trend", metric="memory", **{"from": "-20m"})
    assert answer.status == "none"
    assert "a steady rise of" in answer.headline
    assert "or more would have been found" in answer.headline
    assert answer.next_call is not None
    start = parse_moment(str(answer.next_call.arguments["from"]), round(END * 1000))
    assert start == round((END - 2 * HOUR) * 1000)


@pytest.mark.parametrize(
    ("minutes", "span"), [(2, "the last 60 min"), (45, "the last 6 h"), (300, "the last 24 h")]
)
def test_a_period_is_looked_for_where_it_can_be_seen(minutes: float, span: str) -> None:
    answer = analyze(
        lambda hours: 300 + 20 * np.sin(2 * np.pi * hours * 60 / minutes), study="periodicity", metric="cpu"
    )
    assert answer.status == "found"
    assert answer.findings[0].evidence["period_seconds"] == pytest.approx(minutes * 60, rel=0.03)
    assert span in answer.looked_at


def test_no_period_says_how_long_one_could_have_been() -> None:
    answer = analyze(flat, study="periodicity", metric="cpu")
    assert answer.status == "none"
    assert "no period longer than 8 h could be seen" in answer.headline


def test_a_change_of_some_hours_ago_is_found_without_a_span() -> None:
    answer = analyze(lambda hours: np.where(hours > -4, 400.0, 300.0), study="changepoint", metric="memory")
    assert answer.status == "found"
    assert answer.findings[0].at == pytest.approx(END - 4 * HOUR, abs=2 * STEP)


def test_of_several_pods_the_one_that_grows_goes_first() -> None:
    """A pod that was higher before goes below, however sure its rise is; of those that grow, the one that grows by more."""
    answers = []
    for verdict, confidence, magnitude in (
        ("below its former peak", 0.99, -2 * MIB),
        ("leak", 0.99, 40 * MIB),
        ("leak", 0.98, 600 * MIB),
    ):
        found = Finding(
            "trend", 0.0, 1.0, confidence, magnitude, "bytes", verdict, measures={"verdict": verdict}
        )
        answers.append(found)
    order = [(one.measures["verdict"], one.magnitude) for one in sorted(answers, key=rank_growth)]
    assert order == [("leak", 600 * MIB), ("leak", 40 * MIB), ("below its former peak", -2 * MIB)]
