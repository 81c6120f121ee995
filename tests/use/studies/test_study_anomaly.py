"""Anomaly: since when, until when, against which history; what is calm raises no alarm."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bench import anomalies, nab
from bench import anomaly_sets as sets
from bench.studies_sets import autoregressive

from nodescope.use.studies import Series, StudyAnswer, anomaly
from nodescope.use.studies.anomalies.recording import Recording, record, walk_from
from nodescope.use.studies.anomalies.usual import UsualFigures, student_bound
from nodescope.use.studies.anomalies.walk import Mark
from nodescope.use.studies.maths.tail_probability import student_tail
from nodescope.use.studies.series import FloatArray

MakeSeries = Callable[..., Series]
MONDAY_AT = 1_699_833_600.0
HOUR, DAY, WEEK = 3600, 86_400, 604_800


@pytest.mark.parametrize("name", [name for name in sets.KINDS if "high" not in name])
def test_what_is_planted_is_found(name: str) -> None:
    """Nine in ten of every kind by measurement (bench/anomalies.py); two of three of these."""
    random = np.random.default_rng(31)
    errors = [anomalies.start_error(sets.unusual_case(random, name)) for _ in range(3)]
    assert sum(error is not None for error in errors) >= 2


def test_calm_series_raise_no_alarm() -> None:
    """1 % is stated; at most three of 240 calm windows."""
    random = np.random.default_rng(32)
    assert sum(bool(anomalies.ask(make(random, 1200))) for make in sets.CALM.values() for _ in range(20)) <= 3


def test_a_spike_that_is_over_is_told_with_its_end(series: MakeSeries) -> None:
    random = np.random.default_rng(33)
    values = random.standard_normal(3600)
    values[3260:3290] += 8
    finding = anomaly.study(series(values)).findings[0]
    assert finding.measures["state"] == "ended"
    assert finding.end_at == pytest.approx(1_700_003_289, abs=3)
    assert "was unusually high from" in finding.sentence
    assert "until" in finding.sentence
    assert "has been" not in finding.sentence


def test_what_goes_on_is_told_with_its_start_only(series: MakeSeries) -> None:
    random = np.random.default_rng(34)
    values = random.standard_normal(3600)
    values[3500:] += 8
    finding = anomaly.study(series(values)).findings[0]
    assert finding.measures["state"] == "ongoing"
    assert "has been unusually high since" in finding.sentence
    assert finding.start_at == pytest.approx(1_700_003_500, abs=3)


def test_an_alarm_does_not_become_its_own_past(series: MakeSeries) -> None:
    """An unusual stretch that began before the window is still unusual in it."""
    random = np.random.default_rng(35)
    values = random.standard_normal(3600)
    values[3100:3390] += 6
    finding = anomaly.study(series(values), window_seconds=300).findings[0]
    assert finding.start_at == pytest.approx(1_700_003_100, abs=5)


def test_a_level_that_holds_is_the_new_usual_after_a_tenth_of_the_history(series: MakeSeries) -> None:
    random = np.random.default_rng(36)
    values = random.standard_normal(3600)
    values[2000:] += 6
    assert anomaly.study(series(values)).status == "none"
    held = anomaly.study(series(values[:2250]), window_seconds=200).findings[0]
    assert held.measures["state"] == "new usual"
    assert "counts as the new usual" in held.sentence


def test_a_hung_process_is_told_as_one_that_does_not_vary(series: MakeSeries) -> None:
    random = np.random.default_rng(37)
    values = random.standard_normal(3600)
    values[3450:] = values[3449]
    finding = anomaly.study(series(values)).findings[0]
    assert finding.measures["what"] == "quiet"
    assert finding.measures["state"] == "ongoing"
    assert "not at all" in finding.sentence


def test_peaks_that_stop_are_told_since_the_last_one(series: MakeSeries) -> None:
    random = np.random.default_rng(38)
    values = random.standard_normal(3600) + 12 * (np.arange(3600) % 60 < 5)
    values[3245:] = random.standard_normal(355)
    finding = next(
        one for one in anomaly.study(series(values)).findings if one.measures["what"] == "no peaks"
    )
    assert finding.start_at == pytest.approx(1_700_003_245, abs=2)


def test_an_interpolated_gap_is_no_vanished_noise(series: MakeSeries) -> None:
    random = np.random.default_rng(39)
    values = random.standard_normal(3600)
    for start in (3300, 3400, 3500):
        values[start : start + 25] = np.nan
    assert anomaly.study(series(values)).status == "none"


def weekly_load(times_at: FloatArray, *, always_working: bool = False) -> FloatArray:
    hours = times_at % DAY / HOUR
    is_working = ((times_at // DAY).astype(np.int64) + 3) % 7 < 5
    bump = np.exp(-(((hours - 14) / 4) ** 2))
    return np.where(is_working | always_working, 5 + 4 * bump, 2 + 0.5 * bump)


@pytest.mark.parametrize(("is_working_day", "told"), [(False, 0), (True, 1)])
def test_a_weekend_with_the_load_of_a_working_day_is_unusual(is_working_day: bool, told: int) -> None:
    """Against rollups of four weeks; the three hours of seconds alone do not tell."""
    random = np.random.default_rng(40)
    past_at = MONDAY_AT + HOUR * np.arange(4 * 168 - 36, dtype=np.float64)
    history = Series(past_at, weekly_load(past_at) + 0.3 * random.standard_normal(len(past_at)), metric="cpu")
    times_at = np.asarray(past_at[-1] + HOUR + np.arange(3.0 * HOUR), dtype=np.float64)
    load = weekly_load(times_at, always_working=is_working_day) + 0.3 * random.standard_normal(len(times_at))
    newest = Series(times_at, load, metric="cpu")
    assert anomaly.study(newest).findings == ()
    findings = anomaly.study(newest, history=history).findings
    assert len(findings) == told
    assert all("hour of" in str(one.evidence["compared_with"]) for one in findings)


def test_the_unit_does_not_matter(series: MakeSeries) -> None:
    random = np.random.default_rng(41)
    values = random.standard_normal(1800)
    values[1700:1740] += 7
    small, large = (anomaly.study(series(values * factor)).findings for factor in (1e-9, 1e12))
    assert [one.start_at for one in small] == [one.start_at for one in large]
    assert small


def test_an_alarm_is_told_from_nothing_that_came_later(series: MakeSeries) -> None:
    """A watch over a part of the series raises the same alarms as over the whole, up to its end."""
    random = np.random.default_rng(42)
    values = random.standard_normal(2400)
    values[900:930] += 9
    values[1500:1560] = values[1499]
    whole, part = (record(series(values[:count])) for count in (2400, 1620))
    assert whole is not None
    assert part is not None
    early = [(alarm.start, alarm.seen) for alarm in walk_from(whole).alarms if alarm.seen < 1620]
    assert early == [(alarm.start, alarm.seen) for alarm in walk_from(part).alarms]
    assert all(any(abs(start - planted) <= 24 for start, _ in early) for planted in (900, 1500))


@pytest.mark.parametrize("kind", ["plateau", "step", "frozen", "spike"])
def test_asked_again_an_alarm_has_the_same_start(series: MakeSeries, kind: str) -> None:
    """Whoever asks every minute is told of one anomaly, not of several."""
    random = np.random.default_rng(51)
    values = 20 + autoregressive(random, 3600, 0.5)
    if kind == "frozen":
        values[3000:3200] = values[2999]
    else:
        values[3000 : {"plateau": 3100, "step": 3600, "spike": 3003}[kind]] += 9
    starts = [
        round(one.start_at - 1_700_000_000)
        for end in range(3010, 3300, 20)
        for one in anomaly.study(series(values[:end])).findings
    ]
    assert len(starts) >= 5
    # What stopped is seen in pieces of 64 samples, in views that differ a little.
    near = 24 if kind == "frozen" else 2
    assert max(starts) - min(starts) <= near
    assert starts[0] == pytest.approx(3000, abs=max(8, near))


def test_the_newest_piece_needs_less_to_be_told(series: MakeSeries) -> None:
    """Of the false alarms that are allowed, the newest pieces have the most: an alarm that is hardly one is told while it is new."""
    random = np.random.default_rng(52)
    values = random.standard_normal(3600)
    values[3500] += 5.5
    first, later = (anomaly.study(series(values[:end])) for end in (3501, 3600))
    assert [one.start_at for one in first.findings] == [1_700_003_500]
    assert later.status == "none"


def test_what_came_twice_may_come_again(series: MakeSeries) -> None:
    random = np.random.default_rng(43)
    values = random.standard_normal(3600)
    for start in (800, 1500, 2200, 2900):
        values[start : start + 5] += 9
    told = [alarm.start for alarm in walk_from(record_of(series(values))).alarms]
    assert [any(abs(start - planted) <= 3 for start in told) for planted in (800, 1500, 2900)] == [
        True,
        True,
        False,
    ]


def record_of(one: Series) -> Recording:
    recording = record(one)
    assert recording is not None
    return recording


def test_the_bound_of_student_is_the_inverse_of_its_tail() -> None:
    for freedom in (5, 30):
        assert student_tail(student_bound(1e-4, freedom), freedom) / 2 == pytest.approx(1e-4, rel=1e-3)


def test_the_chance_at_the_bound_is_the_one_asked_for() -> None:
    figures = np.random.default_rng(44).standard_t(3, 2000)
    usual = UsualFigures.fit(figures, 2000.0, 1, 0.0)
    assert usual.chance(usual.bound(1e-5)) == pytest.approx(1e-5, rel=0.01)


def test_an_older_piece_must_be_rarer_by_the_cube_of_its_age() -> None:
    """By the square, single samples of heavy tails were told in twice as many windows as stated (0228)."""
    mark = Mark(
        view="surprise",
        length=1,
        piece=100,
        seen=100,
        last=101,
        start=100,
        end=101,
        side=1.0,
        rare=((1e-5, 101),),
        fresh=10.0,
        middle=0.0,
        first=9.0,
        away=9.0,
        final=9.0,
        least=9.0,
        history=1000,
    )
    assert mark.chance_at(101) == pytest.approx(1e-5)
    assert mark.chance_at(191) == pytest.approx(1e-2)


# -- the score of NAB ---------------------------------------------------------------------


def test_no_alarm_scores_0_and_the_left_edge_of_every_window_100() -> None:
    windows, count = [(400, 499), (700, 799)], 1000
    nothing = nab.score_series([], windows, count)
    perfect = nab.score_series([400, 700], windows, count)
    assert nab.normalised(nothing, 2, nothing) == 0
    assert nab.normalised(perfect, 2, nothing) == pytest.approx(100)


def test_the_score_has_the_values_of_the_published_definition() -> None:
    """By hand: the middle of a window is worth 2 / (1 + e^-2.5) - 1 over 2 / (1 + e^-5) - 1."""
    windows, count = [(400, 499)], 1000
    assert nab.score_series([450], windows, count) == pytest.approx(0.84828 / 0.98661, abs=1e-4)
    assert nab.score_series([450, 460, 499], windows, count) == nab.score_series([450], windows, count)
    assert nab.score_series([300], windows, count) == pytest.approx(-1 - 0.11)
    assert nab.score_series([499 + 99], windows, count) == pytest.approx(-1 - 0.11 * 0.98661, abs=1e-5)
    assert nab.score_series([900], windows, count) == pytest.approx(-1 - 0.11)


def test_what_is_told_while_it_learns_counts_nothing() -> None:
    assert nab.learning_samples(1000) == 150
    assert nab.learning_samples(10_000) == 750
    assert nab.score_series([149], [(400, 499)], 1000) == nab.score_series([], [(400, 499)], 1000)


def test_a_labelled_folder_is_read_and_scored(tmp_path: Path) -> None:
    random = np.random.default_rng(45)
    values = random.standard_normal(1500)
    values[1000:1020] += 9
    times = [np.datetime64("2014-02-14T00:00:00") + np.timedelta64(300 * place, "s") for place in range(1500)]
    lines = [f"{str(at).replace('T', ' ')},{value}" for at, value in zip(times, values, strict=True)]
    (tmp_path / "one.csv").write_text("\n".join(["timestamp,value", *lines]))
    span = f'["{str(times[980]).replace("T", " ")}", "{str(times[1060]).replace("T", " ")}"]'
    (tmp_path / "windows.json").write_text(f'{{"one.csv": [{span}], "absent.csv": []}}')
    for detect in (anomalies.walked, anomalies.asked_hourly):
        score, (found, windows, _) = anomalies.score_nab(nab.read_folder(tmp_path), detect)
        assert (found, windows) == (1, 1)
        assert score > 80


# -- several metrics together -------------------------------------------------------------


def ask_together(rows: FloatArray) -> StudyAnswer:
    times_at = 1_700_000_000 + np.arange(rows.shape[1], dtype=np.float64)
    named = zip(sets.JOINT_METRICS, rows, strict=True)
    return anomaly.study_together([Series(times_at, values, metric=metric) for metric, values in named])


@pytest.mark.parametrize(("kind", "who"), [("closed", "cpu"), ("worn", "disk write"), ("parted", "network")])
def test_a_combination_is_unusual_that_no_metric_is_alone(kind: str, who: str) -> None:
    """With what contributed."""
    rows, start, _ = sets.joint_case(np.random.default_rng(46), kind)
    finding = ask_together(rows).findings[0]
    assert finding.start_at == pytest.approx(1_700_000_000 + start, abs=128)
    assert who in finding.sentence.lower().split("mostly by")[1]


def test_an_alarm_of_several_metrics_does_not_become_its_own_past() -> None:
    """What began before the window is compared with what was before it."""
    rows, start, end = sets.joint_case(np.random.default_rng(53), "closed")
    times_at = 1_700_000_000 + np.arange(end, dtype=np.float64)
    named = zip(sets.JOINT_METRICS, rows[:, :end], strict=True)
    several = [Series(times_at, values, metric=metric) for metric, values in named]
    finding = anomaly.study_together(several, window_seconds=40).findings[0]
    assert finding.start_at == pytest.approx(1_700_000_000 + start, abs=128)
    assert finding.measures["state"] == "ongoing"


def test_metrics_that_move_together_as_usual_raise_no_alarm() -> None:
    random = np.random.default_rng(47)
    assert sum(bool(ask_together(sets.container_metrics(random, 1200)).findings) for _ in range(20)) <= 1


def test_one_metric_is_not_several(series: MakeSeries) -> None:
    answer = anomaly.study_together([series(np.arange(200.0))])
    assert answer.status == "not_enough_data"


def test_an_alarm_of_the_first_half_is_no_history_either(series: MakeSeries) -> None:
    """The same rise came once, long before the window."""
    random = np.random.default_rng(50)
    values = random.standard_normal(3600)
    for start in (700, 3400):
        values[start : start + 60] += 5
    starts = [one.start_at - 1_700_000_000 for one in anomaly.study(series(values)).findings]
    assert any(abs(start - 3400) <= 5 for start in starts)


def test_a_spike_in_a_state_that_is_usual_by_now_is_told(series: MakeSeries) -> None:
    random = np.random.default_rng(51)
    values = random.standard_normal(3600)
    values[3000:] += 9
    values[3560:3562] += 9
    alarms = walk_from(record_of(series(values))).alarms
    assert any(abs(alarm.start - 3000) <= 3 for alarm in alarms)
    assert any(abs(alarm.start - 3560) <= 4 and alarm.end <= 3570 for alarm in alarms)
