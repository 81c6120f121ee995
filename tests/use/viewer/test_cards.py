"""The cards of a page, as server-sent events: findings of the watcher joined with incidents, sent when they are new."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import FixtureNode, TurnableClock
from tests.use.mcp.test_what_is_wrong import LEAK

from nodescope.base.clock import SystemClock
from nodescope.base.errors import RequestRejected
from nodescope.use.answers.refusal import Refused
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.viewer.incident_stream import CardWatch, stream_cards
from nodescope.use.viewer.live import LISTENERS_MOST
from nodescope.use.viewer.request import Viewer
from nodescope.use.viewer.routes_streams import open_cards
from nodescope.wiring import connect_archive


@pytest.fixture
def viewer(tmp_path: Path) -> Viewer:
    """Of a node whose watcher has told of a leak, through its log."""
    return make_viewer(tmp_path, told=True)


@pytest.fixture
def quiet(tmp_path: Path) -> Viewer:
    return make_viewer(tmp_path, told=False)


def make_viewer(tmp_path: Path, *, told: bool) -> Viewer:
    (tmp_path / "node").mkdir()
    node = FixtureNode("cgroup2-systemd", tmp_path / "node")
    parts, data = node.parts, tmp_path / "data"
    parts.loaded = replace(parts.loaded, settings=replace(parts.loaded.settings, data=data))
    connect_archive(parts, {})
    assert parts.archiver is not None
    assert parts.watcher is not None
    parts.archiver.start()
    try:
        node.tick()
        if told:
            parts.watcher.store.see(LEAK, node.clock.wall_ns() / 1e9)
            parts.watcher._tell_changes()
        node.clock.advance(1_000_000_000)
        node.tick()
    finally:
        parts.archiver.stop()
    return Viewer(NodeFolders([data], SystemClock()))


def parse(event: bytes) -> dict[str, Any]:
    head, data = event.decode().split("\n", 1)
    assert head == "event: cards"
    content: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return content


def test_a_card_has_everything_and_is_sent_once(viewer: Viewer) -> None:
    """Sentence, severity, cause, victims and time to the limit; what has not changed is not sent again."""
    watch = CardWatch("", 5, TurnableClock())
    event = watch.look(viewer.view())
    assert event is not None
    (node,) = parse(event)["nodes"]
    assert node["sentence"].startswith("1 thing is wrong on cgroup2-systemd: shop/catalog reaches")
    (card,) = node["findings"]
    assert (card["severity"], card["cause"], card["victims"]) == ("kill", "a deploy", ["shop/web"])
    assert card["time_to_limit_seconds"] == 3000.0
    assert watch.look(viewer.view()) is None


def test_incidents_are_looked_for_once_a_minute_also_where_no_watcher_spoke(quiet: Viewer) -> None:
    """A look comes every five seconds and for every open page; an hour of samples must not be read each time."""
    clock = TurnableClock()
    watch = CardWatch("", 5, clock)
    event = watch.look(quiet.view())
    assert event is not None
    (node,) = parse(event)["nodes"]
    assert (node["watched"], node["findings"]) == (False, [])
    assert node["sentence"].startswith("No: nothing unusual was seen")
    first = dict(watch._incidents)
    clock.advance(59_000_000_000)
    assert watch.look(quiet.view()) is None
    assert all(watch._incidents[name] is one for name, one in first.items())
    clock.advance(1_000_000_000)
    watch.look(quiet.view())
    assert all(watch._incidents[name] is not one for name, one in first.items())


def test_the_stream_begins_with_what_is_and_ends_with_the_server(viewer: Viewer) -> None:
    async def hear() -> list[bytes]:
        events = stream_cards(viewer, CardWatch("", 5, TurnableClock()), lambda: False)
        heard = [await anext(events), await anext(events)]
        await events.aclose()  # type: ignore[attr-defined]
        stopped = stream_cards(viewer, CardWatch("", 5, TurnableClock()), lambda: True)
        return [*heard, *[event async for event in stopped]]

    retry, cards, *end = asyncio.run(hear())
    assert retry == b"retry: 2000\n\n"
    assert parse(cards)["nodes"]
    assert end == [retry]


def test_pages_that_listen_are_counted_and_a_wrong_node_is_refused(viewer: Viewer) -> None:
    with pytest.raises((Refused, RequestRejected), match="nobody"):
        open_cards(viewer, "nobody", 5)
    assert viewer.listeners == 0
    viewer.listeners = LISTENERS_MOST
    assert open_cards(viewer, "", 5).status_code == 503
