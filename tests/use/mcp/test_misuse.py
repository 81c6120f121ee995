"""Wrong calls: each is a tool error that says what was wrong and how to put it right."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from tests.use.mcp.asking import Asker, check_result

from nodescope.use.mcp.tools import TOOLS

API = {"container": "api", "node": "demo-1"}
WINDOWS = {"a_from": "-20m", "a_to": "-12m", "b_from": "-10m", "b_to": "now"}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("top_containers", {"node": "demo-9"}, ['no node "demo-9"', "did you mean", "demo-1, demo-2"]),
        (
            "analyze_container",
            {"container": "apii", "study": "trend", "node": "demo-1"},
            ["no container", '"api"'],
        ),
        ("analyze_container", {**API, "study": "trendy"}, ['did you mean "trend"', "periodicity"]),
        ("analyze_container", {**API, "study": "trend", "metric": "memori"}, ['"memory"', "find_metrics"]),
        ("analyze_container", {**API, "study": "trend", "metric": "gpu_power"}, ["per gpu", "find_metrics"]),
        ("analyze_container", {"study": "trend"}, ['needs "container"', "list_containers"]),
        (
            "analyze_container",
            {**API, "study": "trend", "from": "noon"},
            ['"from"', "-1h30m", "2026-01-31T12:00:00Z"],
        ),
        (
            "analyze_container",
            {**API, "study": "trend", "from": "-5m", "to": "-10m"},
            ["ends before it begins"],
        ),
        ("analyze_container", {**API, "study": "trend", "to": "2020-01-01"}, ["has no data", "2026-03-01"]),
        ("summarize_container", {"container": ["api"]}, ['"container" must be text, not a list']),
        ("summarize_container", {"container": 7}, ["must be text, not a number"]),
        ("summarize_container", {"container": "   "}, ['"container" is empty']),
        ("summarize_container", {"contaner": "api"}, ['did you mean "container"?']),
        ("top_containers", {"limit": 0}, ["a whole number from 1 to 12"]),
        ("top_containers", {"limit": True}, ["a whole number from 1 to 12"]),
        ("top_containers", {"namespace": "shopp"}, ['no container of namespace "shopp"', "shop"]),
        ("list_containers", {"namespace": "nowhere"}, ["no container with", "shop"]),
        ("list_containers", {"sort": "size"}, ["accepted: last_seen"]),
        ("explain_incident", {"at": "2020-01-01T00:00:00Z"}, ["has no data at 2020-01-01", "choose a time"]),
        ("explain_incident", {"at": "soon"}, ['"at"']),
        ("compare_windows", {**API, **WINDOWS, "a_to": "-21m"}, ["window a ends before it begins"]),
        ("compare_windows", {**API, **WINDOWS, "a_from": "noon"}, ['"a_from"', "-1h30m"]),
        ("find_metrics", {}, ['needs "question"']),
        ("list_metrics", {"node": "x"}, ['no node "x"', "demo-1"]),
    ],
)
def test_a_wrong_call_is_told_how_to_be_right(
    asker: Asker, tool: str, arguments: dict[str, Any], words: list[str]
) -> None:
    """Node, container, metric, study, time, type: what was wrong, what is accepted, the nearest name."""
    text = asker.error(tool, **arguments)
    for word in words:
        assert word in text


def test_a_tool_that_does_not_exist_is_a_protocol_error_with_the_nearest(asker: Asker) -> None:
    with pytest.raises(MCPError, match='did you mean "top_containers"'):
        asker.raw("top_container", {})


def test_a_metric_that_was_not_collected_is_neither_an_error_nor_a_no(asker: Asker) -> None:
    """Absent, failed and zero are three things, and a No is a fourth."""
    answer = asker.ask("analyze_container", **API, study="changepoint", metric="memory_pss")
    assert answer["status"] == "not_collected"
    assert "smaps_rollup.pss" in answer["headline"]


def test_too_short_a_span_is_not_a_no(asker: Asker) -> None:
    answer = asker.ask("analyze_container", **API, study="changepoint", from_="-5s")
    assert answer["status"] == "not_enough_data"
    assert answer["headline"].startswith("Cannot tell")
    # The whole archive, which is shorter than the hour that would be looked at.
    assert answer["next"]["arguments"]["from"] == "2026-03-01T11:36:00Z"


names = st.sampled_from(
    ["api", "cache", "migrator", "report-cron", "", "no such", "\x00\x1b[31m", "a" * 3000]
)
moments = st.sampled_from(
    ["-5m", "-20m", "now", "-1s", "2026-03-01T11:50:00Z", "yesterday", 1772366000.5, "-9y", None]
)
anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=30), st.lists(st.integers(), max_size=3)
)
values = {
    "container": names,
    "node": st.sampled_from([None, "demo-1", "demo-2", "demo-3"]),
    "study": st.sampled_from(
        ["periodicity", "changepoint", "trend", "summary", "anomaly", "correlation", "x"]
    ),
    "metric": st.sampled_from([None, "cpu", "memory", "cpu_throttled", "cgroup.v2.pids.current", "zzz"]),
    "by": st.sampled_from(
        [None, "cpu", "memory", "throttled", "pressure", "oom_kills", "gpu", "cpu.load_1m", "nothing"]
    ),
    "limit": st.integers(-2, 70),
    "minutes": st.integers(0, 200),
    "question": st.text(max_size=60),
    "search": st.sampled_from([None, "memory", "cpu", "qqq"]),
    **dict.fromkeys(("from", "to", "at", "a_from", "a_to", "b_from", "b_to"), moments),
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    tool = draw(st.sampled_from(sorted(TOOLS)))
    arguments = {}
    for one in TOOLS[tool].arguments:
        if one.required or draw(st.booleans()):
            usual = values.get(one.name, st.text(max_size=20))
            arguments[one.name] = draw(anything if draw(st.integers(0, 9)) == 0 else usual)
    if draw(st.integers(0, 19)) == 0:
        arguments[draw(st.text(max_size=10))] = draw(anything)
    return tool, arguments


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=calls())
def test_any_call_is_answered_within_the_limits(asker: Asker, call: tuple[str, dict[str, Any]]) -> None:
    """
    forall calls: bytes(answer) <= 8000, no list of more than 12 numbers, no control character,
    as the schema says; and never a failure of the server itself.
    """
    check_result(asker.raw(*call))
