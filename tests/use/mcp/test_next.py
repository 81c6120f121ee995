"""Going on: every `next` is a call that can be made, another one than before, about the same span."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.mcp.calls import CALLS
from tests.use.mcp.asking import END_MS, Asker

from nodescope.base.time_range import TimeRange, parse_moment
from nodescope.use.mcp.tools import TOOLS

Call = tuple[str, dict[str, Any]]
# The newest sample of the archive is a second before its end.
NEWEST_MS = END_MS - 1000
API = {"container": "api", "node": "demo-1"}
TEN_MINUTES = {"from": "-14m", "to": "-4m"}
STUDIES = ("changepoint", "periodicity", "trend", "anomaly", "correlation", "summary")
STARTS: list[Call] = [
    *CALLS.items(),
    *(("analyze_container", {**API, "study": study, "metric": "cpu", **TEN_MINUTES}) for study in STUDIES),
    *(("analyze_container", {**API, "study": study, "metric": "memory"}) for study in STUDIES),
    ("analyze_container", {**API, "study": "trend", "metric": "cpu", "from": "-20s"}),
    ("top_containers", {"by": "memory", "node": "demo-1", **TEN_MINUTES}),
    ("top_containers", {"by": "gpu", "node": "demo-1", **TEN_MINUTES}),
    ("summarize_container", {**API, **TEN_MINUTES}),
    ("explain_incident", {"at": "-10m", "minutes": 1, "node": "demo-1", "container": "api"}),
    ("explain_incident", {"at": "-10m", "minutes": 180, "node": "demo-2"}),
    ("compare_windows", {"node": "demo-1", "a_from": "-20m", "a_to": "-12m", "b_from": "-7m", "b_to": "now"}),
    ("compare_windows", {**API, "a_from": "-9m", "a_to": "-6m", "b_from": "-6m", "b_to": "-3m"}),
    ("find_metrics", {"question": "who leaks?"}),
]
MOST_STEPS = 4


def span_of(tool: str, given: Mapping[str, Any]) -> TimeRange | None:
    """The span that a call names; None where it leaves the choice to the tool."""

    def moment(name: str) -> int:
        return parse_moment(str(given[name]), NEWEST_MS)

    if tool == "compare_windows":
        return TimeRange(min(moment("a_from"), moment("b_from")), max(moment("a_to"), moment("b_to")))
    if tool == "explain_incident":
        reach_ms = int(given.get("minutes") or 15) * 60_000
        return TimeRange(moment("at") - reach_ms, moment("at") + reach_ms)
    if "from" not in given:
        return None
    return TimeRange(moment("from"), moment("to") if "to" in given else NEWEST_MS)


def walk(asker: Asker, start: Call) -> Iterator[tuple[Call, dict[str, Any], Call | None]]:
    """Each call with its answer and the call that the answer suggests."""
    call: Call | None = start
    for _ in range(MOST_STEPS):
        if call is None:
            return
        tool, given = call
        answer = asker.ask(tool, **given)
        suggested = answer.get("next")
        after = (suggested["tool"], suggested["arguments"]) if suggested else None
        yield call, answer, after
        call = after


@pytest.mark.parametrize("start", STARTS, ids=lambda one: f"{one[0]}-{one[1].get('study', '')}")
def test_every_next_is_a_valid_call_about_the_same_span(asker: Asker, start: Call) -> None:
    """
    forall calls c with an answer a: next(a) != c, next(a) is accepted, and its span is c's or within it.

    A No may lengthen the span, with the same end. `asker.ask` fails on a call that is refused.
    """
    for (tool, given), answer, after in walk(asker, start):
        if after is None:
            continue
        assert after[0] in TOOLS
        assert after != (tool, given)
        assert None not in after[1].values()
        before, span = span_of(tool, given), span_of(*after)
        takes_span = {"from", "at"} & {one.name for one in TOOLS[after[0]].arguments}
        if before is None or not takes_span:
            continue
        assert span is not None, f"{after} drops the span of {given}"
        says_no = answer["status"] in ("none", "not_enough_data")
        if tool == "explain_incident" and says_no:
            continue
        middle_ms = (span.from_ms + span.to_ms) // 2 if after[0] == "explain_incident" else None
        if middle_ms is not None:
            assert before.from_ms - 1000 <= middle_ms <= before.to_ms + 1000
            continue
        assert span.to_ms <= before.to_ms + 1000
        assert says_no or span.from_ms >= before.from_ms - 1000


@pytest.mark.parametrize(
    "study", ["changepoint", "periodicity", "trend", "anomaly", "correlation", "summary"]
)
def test_a_study_is_followed_up_on_its_own_metric(asker: Asker, study: str) -> None:
    answer = asker.ask("analyze_container", **API, study=study, metric="threads", from_="-14m", to="-4m")
    assert answer["next"]["arguments"].get("metric", "threads") == "threads"


def test_a_no_leads_to_the_longer_span_while_there_is_one(asker: Asker) -> None:
    """And at the end of the data to another question."""
    call = {**API, "study": "trend", "metric": "cpu", "from": "-5m", "to": "-2m"}
    spans = []
    for _ in range(4):
        answer = asker.ask("analyze_container", **call)
        spans.append(span_of("analyze_container", call))
        following = answer["next"]
        if answer["status"] == "found" or following["tool"] != "analyze_container":
            break
        assert (following["arguments"]["study"], following["arguments"]["metric"]) == ("trend", "cpu")
        call = following["arguments"]
    starts = [one.from_ms for one in spans if one]
    assert starts == sorted(starts, reverse=True)
    assert len(set(starts)) == len(starts) >= 2
