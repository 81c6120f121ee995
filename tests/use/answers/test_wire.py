"""The viewer's JSON, written and read back: an answer over HTTP is the answer itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.use.viewer.archives import END_MS, write_demo

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.use.answers import wire
from nodescope.use.answers.container_table import Filter, list_containers
from nodescope.use.answers.events import list_events
from nodescope.use.answers.findings import ALL, run_studies
from nodescope.use.answers.levels import derive_level
from nodescope.use.answers.metrics import list_metrics
from nodescope.use.answers.snapshots import NodeFolders, View
from nodescope.use.answers.timeseries import TimeseriesRequest, read_timeseries
from nodescope.use.studies import Finding, Series, StudyAnswer, correlation

SPAN = TimeRange(END_MS - 900_000, END_MS)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    folder: Path = write_demo(tmp_path_factory.mktemp("wire") / "demo")
    return NodeFolders([folder], SystemClock()).view()


def send(content: Any) -> Any:
    return json.loads(wire.render_json(content))


@pytest.mark.parametrize("metric", ["cpu", "memory", "cpu.load_1m"])
@pytest.mark.parametrize("points", [1, 100, 10_000])
def test_exact_curves_come_back_as_they_were(view: View, metric: str, points: int) -> None:
    """forall metrics, points: parse(render(answer, exact)) == answer, NaN included"""
    answer = read_timeseries(view, TimeseriesRequest(metric, SPAN, points))
    found = wire.EXACT_TIMESERIES.parse(send(wire.EXACT_TIMESERIES.render(answer)))
    assert answer.series
    for ours, theirs in zip(answer.series, found.series, strict=True):
        assert derive_level(ours) == derive_level(theirs)
        for name in ("mean", "low", "high"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        for name in ("id", "name", "node", "labels", "samples", "limit", "gaps"):
            assert getattr(ours, name) == getattr(theirs, name)
    np.testing.assert_array_equal(answer.time_ms, found.time_ms)
    for name in ("metric", "unit", "kind", "scope", "is_rate", "from_ms", "to_ms", "width_ms", "missing"):
        assert getattr(answer, name) == getattr(found, name)


def test_a_chart_has_seven_figures_and_null_for_nothing(view: View) -> None:
    answer = read_timeseries(view, TimeseriesRequest("cpu", SPAN, 100))
    found = wire.TIMESERIES.parse(send(wire.TIMESERIES.render(answer)))
    for ours, theirs in zip(answer.series, found.series, strict=True):
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=0, atol=1e-7 * np.nanmax(np.abs(ours.mean)))
    assert wire.numbers(np.array([np.nan, np.inf, 0.123456789])) == [None, None, 0.12345679]
    assert wire.numbers(np.array([0.123456789]), exact=True) == [0.123456789]


@pytest.mark.parametrize("metric", ["memory", "none", "disk_read"])
def test_a_table_of_containers_comes_back(view: View, metric: str) -> None:
    """forall tables: render(parse(render(table))) == render(table)"""
    table = list_containers(view, metric, SPAN, Filter(), "value", 5)
    content = send(wire.render_containers(table))
    found = wire.parse_containers(content)
    assert send(wire.render_containers(found)) == content
    assert [row.life.id for row in found.rows] == [row.life.id for row in table.rows]
    assert (found.total, found.unit, found.span) == (table.total, table.unit, table.span)


def test_metrics_and_events_come_back(view: View) -> None:
    rows = list_metrics(view.nodes)
    assert wire.parse_metrics(send(wire.render_metrics(rows))) == rows
    events = list_events(view, SPAN)
    assert events.events
    assert wire.EVENTS.parse(send(wire.EVENTS.render(events))) == events


def test_exact_findings_come_back_as_they_were(view: View) -> None:
    """Of every study, with the measures that only its findings have."""
    answers = run_studies(view, ALL, "memory", None, SPAN)
    assert any(answer.findings for answer in answers)
    assert wire.parse_studies(send(wire.render_studies(ALL, answers, exact=True))) == answers


@pytest.mark.parametrize("width_seconds", [0, 300])
def test_a_lag_and_its_absence_come_back(width_seconds: int) -> None:
    """A step has a lag with an interval; a wide hump, of which no order can be told, has no field for it."""
    index, random = np.arange(3600.0), np.random.default_rng(1)
    shape = np.exp(-0.5 * ((index - 1700) / width_seconds) ** 2) if width_seconds else 1.0 * (index > 1700)
    one, other = (Series(index, 8 * shape + random.standard_normal(3600), metric="cpu") for _ in range(2))
    answers = [correlation.study(one, [other])]
    assert ("lag_low_seconds" in answers[0].findings[0].measures) is not bool(width_seconds)
    assert wire.parse_studies(send(wire.render_studies(correlation.NAME, answers, exact=True))) == answers


def test_findings_are_rounded_where_they_are_shown_only(view: View) -> None:
    answers = run_studies(view, ALL, "memory", None, SPAN)
    shown = wire.parse_studies(send(wire.render_studies(ALL, answers)))
    pairs = [
        (ours.confidence, theirs.confidence)
        for answer, other in zip(answers, shown, strict=True)
        for ours, theirs in zip(answer.findings, other.findings, strict=True)
    ]
    assert any(ours != theirs for ours, theirs in pairs)
    assert all(round(ours, 4) == theirs for ours, theirs in pairs)


def test_a_number_that_json_cannot_carry_is_none_on_both_sides() -> None:
    finding = Finding("trend", 0.0, 1.0, 0.5, float("inf"), "", "x", measures={"high": float("nan")})
    answer = StudyAnswer("trend", {}, 0.0, 1.0, 9, 0.1 + 0.2, "found", "x", findings=(finding,))
    assert wire.parse_studies(send(wire.render_studies("trend", [answer], exact=True))) == [answer]
