"""On other people's labelled data the default setting beats every published default."""

from pathlib import Path

import numpy as np
import pytest
from bench.studies_baselines import BASELINES
from bench.studies_scores import Labelled, covering, f1, read_labelled

from nodescope.use.studies import Series, changepoint, periodicity
from nodescope.use.studies.csv_series import read_series


def scores(labelled: list[Labelled], name: str) -> tuple[float, float]:
    rows = [
        (f1(one.marks, found(one, name)), covering(one.marks, found(one, name), len(one.values)))
        for one in labelled
    ]
    means = np.mean(rows, axis=0)
    return float(means[0]), float(means[1])


def found(one: Labelled, name: str) -> list[int]:
    if name == "nodescope":
        times_at = np.arange(len(one.values), dtype=np.float64)
        places = [
            int(finding.at or 0) for finding in changepoint.study(Series(times_at, one.values)).findings
        ]
    else:
        places = BASELINES[name](one.values)
    return [place for place in places if 1 <= place < len(one.values) - 1]


def test_change_points_beat_every_published_default(samples: Path) -> None:
    """The best published default on these series has 0.738 / 0.749; the goal is 0.80 / 0.78."""
    labelled = read_labelled(samples / "tcpd")
    assert list(scores(labelled, "none")) == pytest.approx([0.676, 0.584], abs=0.001)
    ours = scores(labelled, "nodescope")
    assert ours[0] >= 0.80
    assert ours[1] >= 0.78
    assert ours > scores(labelled, "plain BOCPD")
    assert ours > scores(labelled, "PELT")


def test_the_daily_period_of_a_load_balancer_is_found(samples: Path) -> None:
    series = read_series(samples / "nab" / "realAWSCloudwatch" / "elb_request_count_8c0756.csv")
    found_periods = [float(one.measures["period_seconds"] or 0) for one in periodicity.study(series).findings]
    assert any(period == pytest.approx(86400, rel=0.05) for period in found_periods)


def test_the_scores_are_those_of_the_published_examples() -> None:
    """Covering and F1 as the definitions give them by hand."""
    marks = ((3,), (5, 8))
    assert covering(((5,),), [5], 10) == 1.0
    assert covering(((5,),), [], 10) == 0.5
    assert f1(marks, []) == pytest.approx(2 * 1 * (1 / 2 + 1 / 3) / 2 / (1 + (1 / 2 + 1 / 3) / 2))
