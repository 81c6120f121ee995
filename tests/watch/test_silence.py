"""Silences: by label, with an end, kept over a restart; what they are about stays visible."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.watch.test_finding_store import LEAK

from nodescope.base.errors import RequestRejected
from nodescope.base.findings import describe_health
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.silence import LONGEST_SECONDS, SILENCES_MOST, parse_silences

SURE = replace(LEAK, is_sure=True)


def ask(seconds: float = 600.0, **labels: str) -> dict[str, Any]:
    return {"labels": labels, "seconds": seconds}


def test_a_silence_marks_what_is_there_and_what_comes_and_its_end_is_a_change() -> None:
    """The mark is told to listeners; when the silence is over, so is the mark, and the silence is gone."""
    store = FindingStore("node-a")
    store.see(SURE, 1000.0)
    silence = store.silence(ask(workload="catalog"), 1000.0)
    (finding,) = store.current()
    assert (finding.silenced, finding.is_page_worthy, finding.state) == (silence.id, False, "updated")
    other = store.see(replace(SURE, kind="oom_kill"), 1010.0)
    assert other is not None
    assert other.silenced == silence.id
    assert describe_health(store.recent(), "node-a").startswith("Nothing is wrong on node-a. 2 more to know")
    revision = store.revision
    store.apply_silences(1599.0)
    assert store.revision == revision
    store.apply_silences(1600.0)
    assert [one.is_page_worthy for one in store.current()] == [True, True]
    assert store.revision == revision + 2
    assert store.list_silences(1600.0) == []


def test_all_labels_must_match_and_a_star_stands_for_anything() -> None:
    store = FindingStore("node-a")
    store.see(SURE, 1000.0)
    for labels, is_silent in (
        ({"workload": "cat"}, False),
        ({"workload": "cat*", "kind": "oom_kill"}, False),
        ({"workload": "cat*", "kind": "memory_*"}, True),
    ):
        silence = store.silence({"labels": labels, "seconds": 600.0}, 1000.0)
        assert bool(store.current()[0].silenced) is is_silent, labels
        store.end_silence(silence.id, 1000.0)


def test_a_silence_outlives_the_agent(tmp_path: Path) -> None:
    """Also a file in which one of them is damaged."""
    path = tmp_path / "findings.json"
    store = FindingStore("node-a", path)
    kept = store.silence(ask(workload="catalog"), 1000.0)
    store.see(SURE, 1000.0)
    store.save(1000.0)
    content = json.loads(path.read_text())
    content["silences"] += [{"id": 3}, None, {**content["silences"][0], "until": "never"}]
    path.write_text(json.dumps(content))
    later = FindingStore("node-a", path)
    later.load()
    assert [one.id for one in later.list_silences(1001.0)] == [kept.id]
    assert later.current()[0].silenced == kept.id


def test_the_same_labels_again_are_the_same_silence_with_another_end() -> None:
    store = FindingStore("node-a")
    first = store.silence(ask(600.0, kind="waste"), 1000.0)
    second = store.silence(ask(60.0, kind="waste"), 1000.0)
    assert first.id == second.id
    assert [one.until for one in store.list_silences(1000.0)] == [1060.0]


def test_silences_are_bounded() -> None:
    store = FindingStore("node-a")
    for number in range(SILENCES_MOST):
        store.silence(ask(workload=f"w{number}"), 1000.0)
    with pytest.raises(RequestRejected, match="end one first"):
        store.silence(ask(workload="one-more"), 1000.0)
    # Those that are over make room.
    store.silence(ask(workload="one-more"), 2000.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "wants labels and seconds"),
        ({"labels": {}, "seconds": 60}, "a silence of everything"),
        ({"labels": {"worklod": "x"}, "seconds": 60}, 'did you mean "workload"'),
        ({"labels": {"kind": "memory_leek"}, "seconds": 60}, "memory_leak, oom_kill"),
        ({"labels": {"workload": 3}, "seconds": 60}, "wants a text"),
        ({"labels": {"workload": "x"}}, "seconds="),
        ({"labels": {"workload": "x"}, "seconds": True}, "seconds="),
        ({"labels": {"workload": "x"}, "seconds": LONGEST_SECONDS + 1}, "90 days"),
        ({"labels": {"workload": "x"}, "seconds": float("nan")}, "seconds="),
    ],
)
def test_what_is_no_silence_is_refused_with_what_is_accepted(given: object, said: str) -> None:
    with pytest.raises(RequestRejected, match=said):
        FindingStore("node-a").silence(given, 1000.0)


def test_what_is_no_list_of_silences_is_none() -> None:
    assert parse_silences({"a": 1}).kept == {}
