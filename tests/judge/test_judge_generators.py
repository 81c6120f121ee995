"""The judge's series are what they say they are."""

import ast
from pathlib import Path

import numpy as np
import pytest
from bench.judge.make.alarms import COUNT, UNUSUAL
from bench.judge.make.calm import CALM
from bench.judge.make.case import MIB, Case, random_of
from bench.judge.make.changes import CHANGES, QUIET
from bench.judge.make.leaks import LEAKS, Collector, crest_passage
from bench.judge.make.noise import STATIONARY
from bench.judge.make.oracle import passage, width_of_crossing
from bench.judge.make.pairs import PAIRS
from bench.judge.make.periods import PERIODIC
from bench.judge.score.summary import GROUPS

JUDGE = Path(__file__).parents[2] / "bench" / "judge"
# What the studies are made of, and what they were tuned on.
FORBIDDEN = ("nodescope.use.studies.", "bench.growth", "bench.studies_sets", "bench.anomaly_sets")


def made(group: str, name: str, index: int = 0, seed: int = 5) -> Case:
    return GROUPS[group][name](random_of(seed, group, name, index))


@pytest.mark.parametrize("group", GROUPS)
def test_a_seed_gives_the_same_series_and_another_index_another(group: str) -> None:
    for name in GROUPS[group]:
        first, again, other = made(group, name), made(group, name), made(group, name, index=1)
        assert np.array_equal(first.values, again.values), name
        assert not np.array_equal(first.values[:600], other.values[:600]), name
        assert np.isfinite(first.values).all(), name


def test_the_judge_imports_neither_the_studies_parts_nor_their_tuning_sets() -> None:
    named = {
        f"{path.name}: {word}"
        for path in JUDGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for word in imported(node)
        if f"{word}.".startswith(FORBIDDEN) and word != "nodescope.use.studies"
    }
    assert not named


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_below_its_limit_and_gets_there_later(name: str) -> None:
    for index in range(3):
        case = LEAKS[name](random_of(3, "leaks", name, index))
        assert case.limit is not None
        assert case.oracle_seconds is not None
        # Noise of the meter may cross the limit, the middle of the last minute may not.
        assert np.median(case.values[-60:]) < case.limit
        assert 0 < case.passage_seconds < 4 * len(case.values) * case.step_seconds
        assert 0 < case.oracle_seconds < 4 * len(case.values) * case.step_seconds


def test_a_straight_leak_reaches_its_limit_when_its_line_does() -> None:
    case = LEAKS["white"](random_of(3, "leaks", "white", 0))
    assert case.limit is not None
    slope, level = np.polyfit(np.arange(len(case.values)), case.values, 1)
    told = (case.limit - level) / slope - (len(case.values) - 1)
    assert case.oracle_seconds is not None
    assert abs(told - case.passage_seconds) < 2 * case.oracle_seconds


@pytest.mark.parametrize("name", CALM)
def test_what_does_not_leak_is_below_its_limit_for_long(name: str) -> None:
    case = CALM[name](random_of(3, "calm", name, 0))
    assert case.limit is not None
    assert case.values.max() < case.limit
    assert case.passage_seconds > 3 * len(case.values) * case.step_seconds


def test_the_crest_touches_the_limit_before_what_is_alive_does() -> None:
    """200 MiB alive, 100 MiB of garbage each 60 s: a limit of 320 MiB is 20 MiB of leak away."""
    random = np.random.default_rng(1)
    seconds = crest_passage(random, Collector(100.0, 60.0), 200.0, 0.01, 0.0, 100 / 60, 320.0, 20_000)
    assert 500 < seconds < 2600


def test_first_passage_is_the_first_sample_at_the_limit() -> None:
    assert passage(np.array([1.0, 3.0, 2.0, 5.0]), 3.0, 10.0) == 20.0
    assert passage(np.array([1.0]), 3.0) == np.inf


def test_the_oracle_s_width_is_the_spread_of_fitted_lines() -> None:
    random, count = np.random.default_rng(2), 400
    columns = np.stack([np.ones(count), np.arange(count, dtype=np.float64)], axis=1)
    width = width_of_crossing(columns, np.array([1.0, 600.0]), 0.1, 2.0, 0.0)
    crossed = []
    for _ in range(400):
        level, slope = np.linalg.lstsq(columns, columns @ [0, 0.1] + random.normal(0, 2, count))[0]
        crossed.append((60 - level) / slope)
    assert width == pytest.approx(np.subtract(*np.quantile(crossed, [0.95, 0.05])), rel=0.15)


@pytest.mark.parametrize("name", ["white", "AR(0.5)", "AR(0.9)", "Poisson"])
def test_noise_has_mean_0_and_a_deviation_of_1(name: str) -> None:
    values = STATIONARY[name](np.random.default_rng(4), 50_000)
    assert abs(values.mean()) < 0.1
    assert values.std() == pytest.approx(1, abs=0.1)


def test_a_level_changes_where_it_is_said_and_nowhere_in_quiet_series() -> None:
    case = CHANGES["level 5 sd"](np.random.default_rng(6), 1200)
    assert case.change_at is not None
    cut = int(case.change_at)
    assert abs(case.values[cut:].mean() - case.values[:cut].mean()) == pytest.approx(5, abs=0.3)
    assert all(make(np.random.default_rng(6), 1200).change_at is None for make in QUIET.values())


def test_a_job_that_stops_is_seen_before_and_not_after() -> None:
    case = CHANGES["cron stops"](np.random.default_rng(7), 1200)
    assert case.change_at is not None
    high = np.flatnonzero(case.values > 14.5)
    assert len(high) >= 5
    assert high.max() < case.change_at + 10


def test_spikes_come_every_sixty_seconds() -> None:
    case = PERIODIC["1 s spikes every 60 s"](np.random.default_rng(8))
    high = np.flatnonzero(case.values > 10 + 5.5)
    assert case.periods == (60.0,)
    # Starts are rounded to seconds of their own: a gap may be one second short or long.
    assert len(high) > 10
    assert {int(gap) for gap in np.diff(high) % 60} <= {0, 1, 59}


def test_the_other_series_is_earlier_by_the_lag() -> None:
    for index in range(5):
        case = PAIRS["AR(0.5) driven, 0-30 s"](random_of(1, "pairs", "driven", index))
        mine, other = case.values - case.values.mean(), case.others[0] - case.others[0].mean()
        alike = [float(mine[lag:] @ other[: len(other) - lag]) / (len(mine) - lag) for lag in range(60)]
        assert int(np.argmax(alike)) == case.lag_seconds


def test_what_is_unusual_is_where_it_is_said() -> None:
    raised = UNUSUAL["+5 sd for 60 s"](np.random.default_rng(9))
    assert raised.unusual == (COUNT - 60, COUNT)
    assert raised.values[-60:].mean() - raised.values[:-60].mean() == pytest.approx(5, abs=0.6)
    hung = UNUSUAL["vanished noise"](np.random.default_rng(9))
    assert hung.unusual is not None
    assert hung.values[hung.unusual[0] :].std() < 0.05 * hung.values[: hung.unusual[0]].std()


def test_the_busy_saturday_is_the_only_one() -> None:
    case = UNUSUAL["weekend with a weekday's load"](np.random.default_rng(9))
    day = ((case.times_at - case.times_at[0]) // 86_400).astype(int)
    busy = {int(one) for one in set(day) if case.values[day == one].max() > 6}
    assert {one for one in busy if one % 7 >= 5} == {26}
    assert day[-1] == 26


def test_a_heap_of_mebibytes_is_told_in_bytes() -> None:
    assert LEAKS["GC sawtooth"](np.random.default_rng(1)).values.min() > 50 * MIB
