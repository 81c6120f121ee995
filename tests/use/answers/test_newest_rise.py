"""A leak that begins late in a span, or creeps below the noise of an hour, is told; a wave and a start are not."""

import numpy as np
import pytest

from nodescope.use.answers.findings import study_each
from nodescope.use.studies import Series, StudyAnswer
from nodescope.use.studies.series import FloatArray

MIB = 2.0**20
HOUR = 3600
SEEDS = range(4)


def wander(seed: int, hours: int) -> FloatArray:
    """Ten MiB up and down within ten minutes, on a smooth way, and a hiss of two."""
    random = np.random.default_rng(seed)
    count = hours * HOUR // 10
    knots = random.standard_normal(hours * 6 + 2) * 10
    smooth = np.interp(np.arange(count), np.arange(len(knots)) * 60.0, knots)
    return np.asarray(400 + smooth + 2 * random.standard_normal(count), np.float64)


def study(mib: FloatArray) -> StudyAnswer:
    times_at = 1.7e9 + 10.0 * np.arange(len(mib), dtype=np.float64)
    series = Series(
        times_at, np.asarray(mib * MIB, np.float64), unit="bytes", metric="memory", limit=4096 * MIB
    )
    ((answer, _),) = study_each("trend", [("x", series)])
    return answer


def pace(answer: StudyAnswer) -> float:
    """MiB an hour."""
    return float(answer.findings[0].measures["slope_per_second"] or 0) * HOUR / MIB


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("minutes", [45, 65])
def test_a_leak_of_the_last_hour_is_told_over_six(seed: int, minutes: int) -> None:
    values = wander(seed, 6)
    late = np.maximum(0.0, np.arange(len(values)) - (len(values) - 6 * minutes))
    answer = study(values + late * 300 / 360)
    measures = answer.findings[0].measures
    assert measures["verdict"] == "leak"
    low, high = (float(measures[name] or 0) * HOUR / MIB for name in ("slope_low", "slope_high"))
    assert 0.85 * low <= 300 <= 1.15 * high


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_leak_below_the_noise_of_an_hour_is_told_over_eight(seed: int) -> None:
    values = wander(seed, 8)
    answer = study(values + np.arange(len(values)) * 12 / 360)
    assert pace(answer) == pytest.approx(12, rel=0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_level_that_only_wanders_is_a_no(seed: int) -> None:
    assert study(wander(seed, 6)).status == "none"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rise_back_to_a_former_height_is_no_news(seed: int) -> None:
    """The last hour of a wave rises, too."""
    values = wander(seed, 6)
    turns = np.arange(len(values)) / len(values) * 3
    wave = 150 * np.sin(2 * np.pi * (turns - 0.2))
    assert not [one for one in study(values + wave).findings if one.measures["verdict"] == "leak"]
