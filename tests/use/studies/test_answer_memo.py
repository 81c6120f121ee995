"""The same series has the same answer, which is found once; another limit or value is another series."""

from dataclasses import replace
from itertools import count

import numpy as np

from nodescope.use.answers.power import LatePower
from nodescope.use.studies.answer_memo import AnswerMemo
from nodescope.use.studies.series import Series

SERIES = Series(np.arange(5.0), np.arange(5.0), unit="bytes", metric="memory", container="a")


def test_a_series_is_studied_once_and_any_difference_is_another_series() -> None:
    memo: AnswerMemo[int] = AnswerMemo()
    runs = count(1)

    def ask(study: str, series: Series) -> int:
        return memo.get(study, series, lambda: next(runs))

    assert ask("trend", SERIES) == ask("trend", replace(SERIES, values=SERIES.values.copy())) == 1
    others = (
        replace(SERIES, limit=7.0),
        replace(SERIES, container="b"),
        replace(SERIES, values=SERIES.values + 1),
        replace(SERIES, times_at=SERIES.times_at + 1),
        replace(SERIES, restarts_at=(2.0,)),
    )
    assert [ask("trend", one) for one in others] == [2, 3, 4, 5, 6]
    assert ask("summary", SERIES) == 7


def test_the_oldest_answers_are_given_up() -> None:
    memo: AnswerMemo[int] = AnswerMemo(2)
    runs = count(1)
    asked = [memo.get("trend", replace(SERIES, limit=limit), lambda: next(runs)) for limit in (1.0, 2.0, 3.0)]
    assert asked == [1, 2, 3]
    assert memo.get("trend", replace(SERIES, limit=3.0), lambda: next(runs)) == 3
    assert memo.get("trend", replace(SERIES, limit=1.0), lambda: next(runs)) == 4


def test_what_a_no_could_have_seen_is_found_when_it_is_read() -> None:
    runs = count(1)
    power = LatePower(lambda: {"slope_per_second": float(next(runs))})
    assert next(runs) == 1
    assert dict(power) == {"slope_per_second": 2.0}
    assert bool(power)
    assert next(runs) == 3
