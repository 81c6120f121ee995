"""The watch: what it does when the server forgets, refuses, is busy or is away."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.kube.client import parse_retry_after
from nodescope.kube.watch import LONGEST_PAUSE_SECONDS, ObjectWatch


def pod(uid: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


def listed(version: str, *uids: str, more: str = "") -> dict[str, Any]:
    about = {"resourceVersion": version, **({"continue": more} if more else {})}
    return {"metadata": about, "items": [pod(uid) for uid in uids]}


class Script:
    """Stands in for the client: answers in turn, and keeps what was asked."""

    def __init__(self, clock: TurnableClock, *answers: Any) -> None:
        self.asked: list[Mapping[str, str]] = []
        self._answers = list(answers)
        self._clock = clock

    def read(self, path: str, query: Mapping[str, str]) -> Any:
        return self._next(query)

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> Iterator[Any]:
        events = self._next(query)
        self._clock.advance(2_000_000_000)
        return iter(events)

    def _next(self, query: Mapping[str, str]) -> Any:
        self.asked.append(dict(query))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Known:
    """A listener that remembers the uids."""

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
        self.uids = {item["metadata"]["uid"] for item in items}

    def change(self, item: Mapping[str, Any]) -> None:
        self.uids.add(item["metadata"]["uid"])

    def remove(self, item: Mapping[str, Any]) -> None:
        self.uids.discard(item["metadata"]["uid"])


def make(*answers: Any) -> tuple[ObjectWatch, Script, Known]:
    clock = TurnableClock()
    script, known = Script(clock, *answers), Known()
    client: Any = script
    return (
        ObjectWatch(client, "/api/v1/pods", {"fieldSelector": "x"}, known, clock, lambda: 0.5),
        script,
        known,
    )


def test_a_list_is_read_page_by_page_and_watched_from_its_version() -> None:
    watch, script, known = make(listed("", "a", more="next"), listed("7", "b"), [])
    assert watch.step() == 0
    assert known.uids == {"a", "b"}
    assert script.asked[1]["continue"] == "next"
    assert (script.asked[2]["resourceVersion"], script.asked[2]["allowWatchBookmarks"]) == ("7", "true")
    assert all(query["fieldSelector"] == "x" for query in script.asked)


def test_events_and_bookmarks_move_the_version_on() -> None:
    """A watch that the server ends on time goes on from the newest version, without a list."""
    events = [
        {"type": "ADDED", "object": pod("b", "8")},
        {"type": "DELETED", "object": pod("a", "9")},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}},
    ]
    watch, script, known = make(listed("7", "a"), events, [])
    assert [watch.step(), watch.step()] == [0, 0]
    assert known.uids == {"b"}
    assert script.asked[2]["resourceVersion"] == "20"


@pytest.mark.parametrize(
    "gone", [KubernetesRefused("410 too old", 410), [{"type": "ERROR", "object": {"code": 410}}]]
)
def test_a_forgotten_version_is_listed_anew(gone: Any) -> None:
    """Told by status or by event; what is not in the new list is gone."""
    watch, script, known = make(listed("7", "a", "b"), gone, listed("30", "b"), [])
    assert 0 < watch.step() <= 1
    assert known.uids == {"a", "b"}
    watch.step()
    assert known.uids == {"b"}
    assert "resourceVersion" not in script.asked[2]


def test_while_the_server_is_away_what_is_known_stays_and_the_pause_grows() -> None:
    away = [KubernetesAway("no answer")] * 12
    watch, script, known = make(listed("7", "a"), *away, [])
    pauses = [watch.step() for _ in away]
    assert known.uids == {"a"}
    assert pauses == sorted(pauses)
    assert pauses[-1] <= LONGEST_PAUSE_SECONDS
    assert watch.state.status == "away"
    watch.step()
    assert watch.state.status == "current"
    assert script.asked[-1]["resourceVersion"] == "7"


def test_a_busy_server_is_given_the_time_it_asks_for() -> None:
    watch, _, _ = make(KubernetesAway("429 too many requests", 17.0))
    assert watch.step() >= 17


@pytest.mark.parametrize(
    ("text", "seconds"), [("3", 3.0), ("99999", 60.0), ("", None), ("-1", None), ("soon", None)]
)
def test_the_time_to_wait_is_seconds_and_never_more_than_a_minute(text: str, seconds: float | None) -> None:
    assert parse_retry_after(text) == seconds


def test_without_the_right_it_asks_seldom_and_says_so() -> None:
    refused = [KubernetesRefused("403 pods is forbidden", 403)] * 9
    watch, _, _ = make(*refused)
    pauses = [watch.step() for _ in refused]
    assert pauses[0] < 1
    assert pauses[-1] > 30
    assert (watch.state.status, watch.state.http_status) == ("refused", 403)


def test_watches_of_many_nodes_do_not_end_together() -> None:
    """Between 240 and 360 s, by chance."""
    lengths = set()
    for chance in (0.0, 0.3, 1.0):
        watch, script, _ = make(listed("7"), [])
        watch.chance = lambda chance=chance: chance  # type: ignore[misc]
        watch.step()
        lengths.add(script.asked[1]["timeoutSeconds"])
    assert lengths == {"240", "276", "360"}


def test_a_page_is_taken_before_the_next_is_asked_for() -> None:
    """So that a list of 50,000 pods is in memory one page at a time."""
    watch, script, _ = make(listed("", "a", "b", more="next"), listed("7", "c"), [])
    asked_at: list[tuple[str, int]] = []

    class Counting(Known):
        def replace(self, items: Iterable[Mapping[str, Any]]) -> None:
            asked_at.extend((item["metadata"]["uid"], len(script.asked)) for item in items)

    watch.listener = Counting()
    watch.step()
    assert asked_at == [("a", 1), ("b", 1), ("c", 2)]


def test_a_list_that_breaks_off_leaves_what_was_known() -> None:
    """forall listeners: a page that cannot be read raises inside replace, and nothing is forgotten."""
    watch, script, known = make(
        listed("7", "a"),
        KubernetesRefused("410 too old", 410),
        listed("", "b", more="next"),
        KubernetesAway("gone"),
    )
    watch.step()
    watch.step()
    assert known.uids == {"a"}
    assert script.asked[-1]["continue"] == "next"
    assert watch.state.status == "away"
