"""Summary: its figures, and one word and clause for what a person sees in the picture."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from bench import studies_sets as sets
from tests.use.studies.pictures import PICTURES, Seen

from nodescope.use.studies import STUDIES, Series, changepoint, run_study, summary
from nodescope.use.studies.finding import Finding, StudyAnswer, found
from nodescope.use.studies.glance import sight
from nodescope.use.studies.series import FloatArray

MakeSeries = Callable[..., Series]


def test_the_figures_are_those_of_the_measured_values(series: MakeSeries) -> None:
    values = np.array([1.0, 2.0, np.nan, 3.0, 4.0])
    measures = summary.study(series(values)).findings[0].measures
    assert (measures["average"], measures["min"], measures["max"]) == (2.5, 1.0, 4.0)
    assert measures["p95"] == pytest.approx(3.85)
    assert measures["stddev"] == pytest.approx(np.std([1, 2, 3, 4], ddof=1))
    assert measures["trend"] == "unknown"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.linspace(1, 2, 300), "increasing"),
        (np.linspace(2, 1, 300), "decreasing"),
        (1 + 0.01 * np.random.default_rng(1).standard_normal(300), "stable"),
        (1 + 0.9 * np.random.default_rng(1).standard_normal(300), "volatile"),
    ],
)
def test_the_trend_class_is_one_word(series: MakeSeries, values: FloatArray, word: str) -> None:
    assert summary.study(series(values)).findings[0].measures["trend"] == word


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_the_words_are_what_a_person_would_say_of_the_picture(picture: Seen) -> None:
    answer = summary.study(picture.series())
    assert (answer.findings[0].measures["trend"], picture.says in answer.sentence) == (picture.word, True), (
        answer.sentence
    )


def test_the_figures_in_the_words_are_of_samples(series: MakeSeries) -> None:
    """Levels are read from the values, so a step is told from where it was to where it is."""
    values = np.where(np.arange(1200) < 500, 40.0, 55.0) + 0.1 * np.random.default_rng(3).standard_normal(
        1200
    )
    assert "rose from 40 to 55 at 2023-11-14 22:21:40 UTC" in summary.study(series(values)).sentence


def level_of(values: FloatArray) -> FloatArray:
    """Far from zero, so that the spread alone does not make it volatile."""
    return np.asarray(values + 100 * max(float(np.nanstd(values)), np.finfo(np.float64).tiny))


def generated() -> Iterator[tuple[str, FloatArray]]:
    """One series of every generator."""
    random = np.random.default_rng(21)
    for kind in sets.APERIODIC:
        yield kind, sets.aperiodic_case(random, kind, 1200).values
    for impairment in sets.IMPAIRMENTS:
        yield f"period, {impairment}", sets.periodic_case(random, impairment, 1200).values
    for background in sets.BACKGROUNDS:
        yield f"changes in {background}", sets.change_case(random, background).values
    yield "leak", sets.leak_case(random).values
    yield "cache", sets.filling_cache(random)
    yield "effect", sets.cause_case(random).target


GENERATED = dict(generated())


@pytest.mark.parametrize("name", GENERATED)
def test_stable_is_never_said_where_another_study_found_something(series: MakeSeries, name: str) -> None:
    one = series(level_of(GENERATED[name]))
    word = summary.study(one).findings[0].measures["trend"]
    others = ("trend", "changepoint", "periodicity", "anomaly")
    found_by = [other for other in others if STUDIES[other].run(one).findings]
    assert word != "stable" or not found_by


def test_stable_is_said_of_plain_noise(series: MakeSeries) -> None:
    """The test above would hold for a summary that never says it."""
    random = np.random.default_rng(22)
    plain = [series(level_of(random.standard_normal(900))) for _ in range(10)]
    words = [summary.study(one).findings[0].measures["trend"] for one in plain]
    assert words.count("stable") >= 8


def test_one_doubtful_finding_keeps_it_from_being_stable(
    series: MakeSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = series(100 + np.random.default_rng(1).standard_normal(900))
    assert summary.study(one).findings[0].measures["trend"] == "stable"

    def doubtful(asked: Series) -> StudyAnswer:
        finding = Finding("changepoint", asked.times_at[9], asked.times_at[9], 0.1, 1.0, "", "It changed.")
        return found("changepoint", asked, [finding], "")

    monkeypatch.setattr(changepoint, "study", doubtful)
    assert summary.study(one).findings[0].measures["trend"] == "wandering"


def test_a_level_that_differs_across_a_gap_is_not_stable(series: MakeSeries) -> None:
    values = 100 + np.random.default_rng(5).standard_normal(1200)
    values[600:] += 8
    one = series(values)
    times_at = one.times_at + np.where(np.arange(1200) < 600, 0, 400)
    assert summary.study(replace(one, times_at=times_at)).findings[0].measures["trend"] != "stable"


def test_a_counter_that_stands_still_has_stopped(series: MakeSeries) -> None:
    random = np.random.default_rng(6)
    counted = np.cumsum(np.where(np.arange(1800) < 1500, 50 + 5 * random.standard_normal(1800), 0.0))
    assert "hardly moves since" in summary.study(series(counted, kind="counter")).sentence


def test_calm_parts_that_come_again_and_again_are_no_stop() -> None:
    busy = np.random.default_rng(7).standard_normal(1000)
    quiet = np.where(np.arange(1000) % 200 < 120, busy, 0.0)
    assert sight.calm_since(np.append(busy[:900], np.zeros(100))) == pytest.approx(900, abs=1)
    assert sight.calm_since(quiet) is None


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        (lambda time: 0.3 * np.sin(2 * np.pi * time / 7), "repeats every 7 s"),
        (lambda time: 2.0 * (time > 15_000), "rose from 100 to 102"),
        (lambda time: 0.0 * time, "stable"),
    ],
)
def test_what_is_fast_in_a_long_series_is_seen_though_it_is_thinned(
    series: MakeSeries, shape: Callable[[FloatArray], FloatArray], says: str
) -> None:
    time = np.arange(30_000.0)
    values = 100 + 0.5 * np.random.default_rng(8).standard_normal(30_000) + shape(time)
    assert says in summary.study(series(values)).sentence


def test_being_near_the_limit_is_said(series: MakeSeries) -> None:
    values = np.where(np.arange(100) < 75, 10.0, 95.0)
    assert "for 25 % of the time" in summary.study(series(values, limit=100.0)).sentence


def test_throttling_is_saturation_without_a_limit() -> None:
    throttled = Series(
        np.arange(100.0),
        np.where(np.arange(100) < 50, 0.0, 0.4),
        unit="share of periods",
        metric="cpu_throttled",
    )
    assert "above 10 %" in summary.study(throttled).sentence


def test_figures_are_those_of_the_summary_without_its_picture() -> None:
    """Who compares two windows needs no picture, which is most of the work."""
    times_at = np.arange(600.0)
    for values in (np.random.default_rng(5).normal(10.0, 1.0, 600), np.linspace(0.0, 50.0, 600)):
        series = Series(times_at, values, unit="cores", limit=60.0, metric="cpu", container="web", node="n1")
        (whole,), (light,) = (run_study(name, series, [series]).findings for name in ("summary", "figures"))
        assert {**light.measures, "trend": whole.measures["trend"]} == whole.measures
        assert "trend" not in light.measures
        assert whole.sentence.startswith(light.sentence.rstrip("."))
    assert run_study("figures", Series(times_at[:0], times_at[:0]), []).status == "not_enough_data"
