"""A finding has one life and one identity, also over restarts, flapping and feedback."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nodescope.base.codec import Decoder, Encoder
from nodescope.base.errors import RequestRejected
from nodescope.base.findings import describe_health, parse_finding, rank_findings
from nodescope.base.findings.event_form import make_event, read_event
from nodescope.base.frame import Frame
from nodescope.watch.finding_store import (
    OPEN_MOST,
    REOPEN_SECONDS,
    UPDATE_SECONDS,
    FindingStore,
)
from nodescope.watch.sighting import FindingSubject, Sighting

LEAK = Sighting(
    "memory_leak",
    "kill",
    FindingSubject("shop", "catalog", "catalog-1", "app", "4841cfc03d50"),
    900.0,
    "shop/catalog reaches its limit in 50 min.",
    is_sure=False,
    time_to_limit_seconds=3000.0,
)


def test_a_finding_is_born_confirmed_updated_and_resolved_with_one_id() -> None:
    """Four moments, four revisions, one identity; its beginning is fixed once somebody was told."""
    store = FindingStore("node-a")
    born = store.see(LEAK, 1000.0)
    confirmed = store.see(replace(LEAK, is_sure=True, onset=950.0), 1010.0)
    updated = store.see(
        replace(LEAK, is_sure=True, onset=990.0, time_to_limit_seconds=600.0), 1010.0 + UPDATE_SECONDS
    )
    resolved = store.resolve(LEAK.key, 2000.0)
    told = [born, confirmed, updated, resolved]
    assert [one.state for one in told if one] == ["born", "confirmed", "updated", "resolved"]
    assert len({one.id for one in told if one}) == 1
    assert [one.revision for one in store.changes(0)] == [1, 2, 3, 4]
    assert resolved is not None
    assert (resolved.onset, resolved.confirmed, resolved.ended) == (950.0, 1010.0, 2000.0)
    assert store.current() == []


def test_what_is_seen_again_unchanged_is_no_news() -> None:
    """A limit that comes nearer by the clock alone is what was told; the number itself is of now."""
    store = FindingStore("node-a")
    sure = replace(LEAK, is_sure=True)
    store.see(sure, 1000.0)
    later = replace(sure, time_to_limit_seconds=2600.0)
    assert store.see(later, 1400.0) is None
    assert store.current()[0].time_to_limit_seconds == 2600.0
    assert store.revision == 1


def test_a_higher_severity_or_another_kill_is_told_at_once() -> None:
    store = FindingStore("node-a")
    store.see(replace(LEAK, severity="curious", is_sure=True), 1000.0)
    worse = store.see(replace(LEAK, is_sure=True), 1001.0)
    assert worse is not None
    assert worse.state == "updated"
    kill = replace(LEAK, kind="oom_kill", is_sure=True, count=1)
    store.see(kill, 1002.0)
    assert store.see(kill, 1003.0) is None
    again = store.see(replace(kill, count=2), 1004.0)
    assert again is not None
    assert again.state == "updated"


def test_what_flaps_is_one_finding() -> None:
    """Ten times on and off within the hour have one id; a day later it is another one."""
    store = FindingStore("node-a")
    ids = set()
    for turn in range(10):
        seen = store.see(replace(LEAK, is_sure=True), 1000.0 + 100 * turn)
        assert seen is not None
        ids.add(seen.id)
        store.resolve(LEAK.key, 1050.0 + 100 * turn)
    assert len(ids) == 1
    assert store.recent()[0].times == 10
    other = store.see(replace(LEAK, is_sure=True), 1950.0 + REOPEN_SECONDS + 1)
    assert other is not None
    assert other.id not in ids
    assert other.times == 1


def test_a_restart_neither_forgets_nor_repeats(tmp_path: Path) -> None:
    """The open finding, its id, revision, changes and feedback are there again; seeing it again is no news."""
    store = FindingStore("node-a", tmp_path / "findings.json")
    store.see(replace(LEAK, is_sure=True), 1000.0)
    store.see(replace(LEAK, kind="oom_kill", is_sure=True), 1001.0)
    store.resolve(LEAK.key, 1002.0)
    store.judge(store.current()[0].id, "not_a_problem", 1003.0)
    store.extra["hours"] = {"a": 1}
    store.save(1004.0)
    again = FindingStore("node-a", tmp_path / "findings.json")
    again.load()
    assert again.recent() == store.recent()
    assert again.changes(0) == store.changes(0)
    assert (again.revision, again.feedback, again.extra) == (store.revision, store.feedback, store.extra)
    assert again.see(replace(LEAK, kind="oom_kill", is_sure=True), 1005.0) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"findings": [1, {"id": 3}], "changes": {}, "feedback": [], "revision": "x", "learned": 4}',
        '{"findings": [{"id": "a"}], "feedback": {"k": 1, "l": {"verdict": "x", "at": 0}}}',
    ],
)
def test_a_damaged_file_is_no_reason_to_fail(tmp_path: Path, text: str) -> None:
    (tmp_path / "findings.json").write_text(text)
    store = FindingStore("node-a", tmp_path / "findings.json")
    store.load()
    assert (store.recent(), store.feedback, store.revision) == ([], {}, 0)
    assert store.see(LEAK, 1.0) is not None


def test_one_damaged_finding_costs_only_itself(tmp_path: Path) -> None:
    store = FindingStore("node-a", tmp_path / "findings.json")
    store.see(LEAK, 1000.0)
    store.save(1000.0)
    content = json.loads((tmp_path / "findings.json").read_text())
    content["findings"].append({**content["findings"][0], "severity": "terrible", "id": "x", "key": "y"})
    content["findings"].append({**content["findings"][0], "onset": "early", "id": "z", "key": "z"})
    (tmp_path / "findings.json").write_text(json.dumps(content))
    again = FindingStore("node-a", tmp_path / "findings.json")
    again.load()
    assert [one.id for one in again.current()] == [store.current()[0].id]


def test_a_full_disk_is_tried_again(tmp_path: Path) -> None:
    """What could not be saved is saved with the next look."""
    store = FindingStore("node-a", tmp_path / "gone" / "findings.json")
    store.see(LEAK, 1000.0)
    store.save(1000.0)
    (tmp_path / "gone").mkdir()
    store.save(1001.0)
    assert json.loads((tmp_path / "gone" / "findings.json").read_text())["revision"] == 1


def test_not_a_problem_is_kept_and_respected() -> None:
    """Now, and when it comes back another day; taking it back restores the severity."""
    store = FindingStore("node-a")
    sure = replace(LEAK, is_sure=True)
    seen = store.see(sure, 1000.0)
    assert seen is not None
    assert seen.is_page_worthy
    assert not store.judge(seen.id, "not_a_problem", 1001.0).is_page_worthy
    store.resolve(LEAK.key, 1002.0)
    later = store.see(sure, 1002.0 + 2 * REOPEN_SECONDS)
    assert later is not None
    assert (later.severity, later.feedback, later.is_page_worthy) == ("curious", "not_a_problem", False)
    store.judge(later.id, "a_problem", 9000.0)
    back = store.see(sure, 9001.0)
    assert back is not None
    assert back.severity == "kill"


def test_a_wrong_verdict_and_a_wrong_id_are_refused_by_name() -> None:
    store = FindingStore("node-a")
    seen = store.see(LEAK, 1000.0)
    assert seen is not None
    with pytest.raises(RequestRejected, match="accepted: not_a_problem, a_problem"):
        store.judge(seen.id, "fine", 1.0)
    with pytest.raises(RequestRejected, match="no finding") as refused:
        store.judge("0000000000", "not_a_problem", 1.0)
    assert refused.value.status == 404


def test_findings_are_bounded() -> None:
    """The one too many is counted, not kept."""
    store = FindingStore("node-a")
    for number in range(OPEN_MOST + 3):
        subject = FindingSubject("shop", f"w{number}")
        store.see(replace(LEAK, subject=subject), 1000.0)
    assert (len(store.current()), store.refused) == (OPEN_MOST, 3)


def test_who_waits_is_told_of_a_change() -> None:
    store = FindingStore("node-a")
    assert store.wait(0, 0.01) == []
    store.see(LEAK, 1000.0)
    assert [one.state for one in store.wait(0, 5.0)] == ["born"]


def test_an_event_of_the_archive_carries_the_whole_finding() -> None:
    """Through the codec of log and /live, and back; what is no finding is passed over."""
    store = FindingStore("node-a")
    seen = store.see(replace(LEAK, evidence={"rise_bytes_per_second": float("nan")}), 1000.0)
    assert seen is not None
    frame = Frame(0, 1, 1, (), {}, (make_event(seen),))
    encoder = Encoder()
    data = encoder.hello(run="r", node="n") + encoder.encode(frame)
    (event,) = next(iter(Decoder().decode(data))).events
    back = read_event(event.kind, event.facts)
    assert back == replace(seen, evidence={"rise_bytes_per_second": None})
    assert read_event("start", event.facts) is None
    assert read_event("finding", {"finding": "[" * 100_000}) is None
    assert parse_finding({"id": "a"}) is None


def test_the_most_urgent_is_first_and_a_healthy_node_says_so() -> None:
    store = FindingStore("node-a")
    store.see(replace(LEAK, kind="waste", severity="waste", is_sure=True), 1000.0)
    assert describe_health(store.current(), "node-a", 84) == (
        "Nothing is wrong on node-a (84 containers). 1 more to know, none urgent."
    )
    store.see(replace(LEAK, kind="cpu_throttling", severity="hurt", is_sure=True), 1000.0)
    store.see(replace(LEAK, is_sure=True), 1000.0)
    assert [one.kind for one in rank_findings(store.current())] == ["memory_leak", "cpu_throttling", "waste"]
    assert describe_health(store.current(), "node-a").startswith(
        "2 things are wrong on node-a: shop/catalog reaches its limit"
    )
