"""A change is looked for in a short span with the time before it in view."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.use.viewer.archives import END_MS, write_demo

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.use.answers.findings import (
    LONGEST_WITH_HISTORY_SECONDS,
    bound_request,
    read_histories,
    read_series,
    run_studies,
)
from nodescope.use.answers.snapshots import NodeFolders, View
from nodescope.use.studies import changepoint

SPAN = TimeRange(END_MS - 300_000, END_MS)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    folder: Path = write_demo(tmp_path_factory.mktemp("history") / "demo")
    return NodeFolders([folder], SystemClock()).view()


def test_the_history_ends_where_the_span_begins_and_is_as_fine(view: View) -> None:
    request = bound_request(view, changepoint.NAME, "memory", None, SPAN, "", 1)
    histories = read_histories(view, request)
    shown = dict(read_series(view, request))
    assert histories
    assert histories.keys() <= shown.keys()
    for its_id, history in histories.items():
        newest_at, first_at = history.times_at[-1], shown[its_id].times_at[0]
        assert 0 < first_at - newest_at <= 5
    assert min(one.times_at[0] for one in histories.values()) < SPAN.from_ms / 1000 - 300


def test_a_long_span_needs_none(view: View) -> None:
    request = bound_request(view, changepoint.NAME, "memory", None, SPAN, "", 1)
    long_ms = round(LONGEST_WITH_HISTORY_SECONDS * 1000) + 1
    assert read_histories(view, replace(request, span=TimeRange(END_MS - long_ms, END_MS))) == {}


def test_the_study_of_a_short_span_knows_its_history(view: View) -> None:
    """Each answer is that of the study with the history, found by itself."""
    request = bound_request(view, changepoint.NAME, "cpu", None, SPAN, "", 1)
    histories = read_histories(view, request)
    answers = {str(one.series["id"]): one for one in run_studies(view, changepoint.NAME, "cpu", None, SPAN)}
    for its_id, series in read_series(view, request):
        expected = changepoint.study(series, histories.get(its_id))
        assert answers[its_id].findings == expected.findings
