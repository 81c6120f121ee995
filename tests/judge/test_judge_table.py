"""What the judge calls right, wrong, met and not met."""

from dataclasses import replace

import numpy as np
import pytest
from bench.judge import runner
from bench.judge.make.leaks import GrowthCase
from bench.judge.make.periods import PeriodCase
from bench.judge.score import changes, forecasts, labelled, periods, summary
from bench.judge.section import balanced
from bench.judge.table import confidence_rows, interval, number_row, rate_row, render, share_row
from tools import eval_studies

from nodescope.use.studies import Finding, Series

FLAT = np.zeros(10)
LEAK = GrowthCase(FLAT, is_leak=True, passage_seconds=100.0, oracle_seconds=40.0)
LEVELS_OFF = GrowthCase(FLAT, must_say="level")
FLANK = GrowthCase(FLAT, must_say="day")


def told(sentence: str = "It rises.", low: float = 80.0, high: float | None = 140.0) -> Finding:
    measures = {"time_to_limit_seconds": 100.0, "low": low, "high": high, "verdict": "leak", "caution": None}
    return Finding("trend", 0, 9, 0.9, 1.0, "bytes", sentence, measures=measures)


def test_a_forecast_holds_when_the_passage_is_inside_its_interval() -> None:
    assert forecasts.compare(LEAK, told()).is_inside
    assert forecasts.compare(LEAK, told()).relative_width == 1.5
    assert not forecasts.compare(LEAK, told(low=101.0)).is_inside
    assert forecasts.compare(LEAK, told(low=101.0)).is_late
    assert not forecasts.compare(LEAK, told(high=99.0)).is_inside


def test_an_interval_without_an_end_holds_and_is_endlessly_wide() -> None:
    assert forecasts.compare(LEAK, told(high=None)).is_inside
    assert forecasts.compare(LEAK, told(high=None)).relative_width == np.inf


def test_a_time_for_what_levels_off_is_false_unless_the_answer_says_so() -> None:
    assert forecasts.is_false(forecasts.compare(LEVELS_OFF, told()))
    assert forecasts.is_false(forecasts.compare(LEVELS_OFF, told("A daily rise is not excluded.")))
    assert not forecasts.is_false(forecasts.compare(LEVELS_OFF, told("It may level off.")))
    assert not forecasts.is_false(forecasts.compare(FLANK, told("A daily rise is not excluded.")))
    assert not forecasts.is_false(forecasts.compare(LEVELS_OFF, None))


def test_no_doubt_excuses_a_time_for_noise() -> None:
    assert forecasts.is_false(forecasts.compare(GrowthCase(FLAT), told("It may level off, or be a day.")))


def test_half_a_period_is_wrong_and_a_multiple_beside_the_truth_is_nothing() -> None:
    case = PeriodCase(FLAT, periods=(60.0,))
    assert periods.is_right(case, 60.3, (True,)) is True
    assert periods.is_right(case, 30.0, (True,)) is False
    assert periods.is_right(case, 120.0, (True,)) is None
    assert periods.is_right(case, 120.0, (False,)) is False


def test_only_sure_findings_away_from_the_change_are_false_changes() -> None:
    one = changes.Told(((0.9, False), (0.4, False), (0.9, True)))
    assert changes.false_ones(one) == 1
    assert changes.is_found(one)
    assert not changes.is_found(changes.Told(((0.4, True),)))


def test_unstable_is_not_stable() -> None:
    assert summary.STABLE_WORD.search("Memory is 3 MiB on average, stable.")
    assert not summary.STABLE_WORD.search("Memory is unstable.")


def test_a_share_is_met_missed_or_missed_within_chance() -> None:
    assert share_row("", "", [True] * 9 + [False], 0.85, 0.95).is_met
    few = share_row("", "", [True] * 10, 0.85, 0.95)
    assert (few.is_met, few.is_close) == (False, True)
    many = share_row("", "", [True] * 1000, 0.85, 0.95)
    assert (many.is_met, many.is_close) == (False, False)
    assert share_row("", "", [True]).is_met is None
    assert share_row("", "", [], 0.9).is_met is False


def test_chance_is_bounded_by_wilson_s_interval() -> None:
    assert interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-3)
    assert interval(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-3)


def test_rates_and_figures_have_their_bounds() -> None:
    assert rate_row("", "", [0, 1, 0, 0], 1200, 0.3).is_met
    assert not rate_row("", "", [1, 1, 1, 1], 1200, 0.3).is_met
    assert not number_row("", "", 1.6, 1.5, 9).is_met
    assert not number_row("", "", np.inf, 1.5, 9).is_met


def test_confidence_is_judged_bin_by_bin_where_there_is_enough() -> None:
    honest = [(0.92, place % 10 > 0) for place in range(50)]
    boasting = [(0.97, place % 2 > 0) for place in range(50)]
    rows = confidence_rows("", [*honest, *boasting, (0.6, False)])
    assert [row.is_met for row in rows] == [None, True, False]


def test_confidence_is_judged_on_as_many_cases_with_something_to_find_as_without() -> None:
    outcomes = {"real": [1, 2, 3], "calm": [4, 5, 6, 7, 8], "noise": [9, 10, 11, 12]}
    assert balanced(outcomes, ["real"], ["calm", "noise"]) == [1, 2, 3, 4, 5, 9]


def test_the_table_counts_what_is_met() -> None:
    rows = [share_row("Part", "first", [True], 0.9), share_row("Part", "second", [False] * 30, 0.9)]
    head, first, second, _, last = render(rows).splitlines()
    assert head.startswith("Part ")
    assert first.split()[:6] == ["first", ">=", "90", "%", "100.0%", "ok"]
    assert second.split()[:7] == ["second", ">=", "90", "%", "0.0%", "not", "30"]
    assert last.startswith("1 of 2 met")


@pytest.mark.parametrize("section", [name for name in runner.SECTIONS if name != "cost"])
def test_one_case_of_every_part_is_judged(section: str) -> None:
    name = list(runner.SECTIONS[section].counts(1))[-1]
    _, outcome, error = runner.run_task(runner.Task(section, name, 1, 0))
    assert error is None
    assert runner.rows_of(section, {name: [outcome]}, 1)


def test_a_study_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, random: np.random.Generator) -> None:
        raise ValueError("no such thing")

    broken = replace(runner.SECTIONS["lag"], judge=fail)
    monkeypatch.setitem(runner.SECTIONS, "lag", broken)
    task = runner.Task("lag", "p:common hump", 1, 0)
    _, outcome, error = runner.run_task(task)
    assert outcome is None
    assert error == "ValueError: no such thing"
    assert runner.failure_rows([(task, error)])[0].is_met is False


def test_every_seed_has_its_own_cases_and_their_order_is_fixed() -> None:
    tasks = runner.tasks_of(["lag"], [1, 2], 1)
    assert tasks == runner.tasks_of(["lag"], [1, 2], 1)
    assert len(set(tasks)) == len(tasks)
    assert {task.seed for task in tasks} == {1, 2}


def test_without_a_folder_labelled_rows_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODESCOPE_SAMPLES", raising=False)
    assert {row.measured for row in labelled.rows([])} == {"not measured"}


@pytest.mark.parametrize(
    ("option", "text"), [(eval_studies.read_parts, "lags"), (eval_studies.read_seeds, "1,x")]
)
def test_a_wrong_option_is_one_clear_line(option: object, text: str) -> None:
    with pytest.raises(SystemExit, match=r"separated by commas|there are forecasts"):
        option(text)  # type: ignore[operator]


def test_an_alarm_on_labelled_data_knows_nothing_of_what_comes_later() -> None:
    random = np.random.default_rng(3)
    values = random.normal(10, 1, 900)
    values[600:660] += 9
    times_at = np.arange(0.0, 900 * 300.0, 300.0, dtype=np.float64)
    whole = labelled.alarms_of(Series(times_at, values, metric="load"))
    early = labelled.alarms_of(Series(times_at[:720], values[:720], metric="load"))
    assert early == [alarm for alarm in whole if alarm < 720]
    assert any(600 <= alarm < 720 for alarm in early)
