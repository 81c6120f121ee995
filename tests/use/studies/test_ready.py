"""Tables of the first study: made once, beforehand, and those that a study takes."""

import numpy as np

from nodescope.use.studies import run_study
from nodescope.use.studies.forecast.evidence import prepared_days, prepared_shapes
from nodescope.use.studies.forecast.wave import bases
from nodescope.use.studies.ready import start_making_ready
from nodescope.use.studies.series import Series


def test_a_study_makes_no_table_that_was_to_be_ready() -> None:
    for table in (prepared_shapes, bases, prepared_days):
        table.cache_clear()
    start_making_ready().join()
    made = [table.cache_info().misses for table in (prepared_shapes, bases)]
    answers = [run_study("trend", make_series(seed), []) for seed in (1, 2)]
    assert made == [table.cache_info().misses for table in (prepared_shapes, bases)] == [1, 1]
    # Of one span they are made once.
    assert prepared_days.cache_info().misses == 1
    assert [answer.status for answer in answers] == ["found", "found"]


def make_series(seed: int) -> Series:
    """Two hours, so that a part of a day's course is among what may explain it."""
    times_at = np.arange(7200.0)
    noise = np.random.default_rng(seed).normal(0.0, 1.0, len(times_at))
    return Series(times_at, 1000.0 + 0.01 * times_at + noise, unit="bytes", metric="memory")
