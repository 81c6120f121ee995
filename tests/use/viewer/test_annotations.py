"""Notes through the viewer and the agent: kept in the data folder, shown as events, known to incidents."""

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support import FixtureNode
from tests.use.mcp.asking import END_MS, write_demo

from nodescope.base.clock import SystemClock
from nodescope.base.time_range import TimeRange
from nodescope.cli import main
from nodescope.keep.annotation_file import read_annotations
from nodescope.use.answers.events import list_events
from nodescope.use.answers.incidents.answer import list_incidents
from nodescope.use.answers.incidents.sentence import render_incident
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.viewer.app import build_app
from nodescope.use.viewer.request import Viewer
from nodescope.wiring import build_agent_app, connect_archive


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    write_demo(folder, seed=5, nodes=1, hours=0.4)
    return folder / "demo-1"


@pytest.fixture
def demo(written: Path, tmp_path: Path) -> Path:
    """One that the test may write notes into."""
    return shutil.copytree(written, tmp_path / "demo-1")


def request(app: Any, method: str, path: str, **more: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **more)

    return asyncio.run(ask())


def test_a_note_is_kept_listed_and_among_the_events(demo: Path) -> None:
    """As the page asks for them; its text stays text."""
    app = build_app(Viewer(NodeFolders([demo], SystemClock())))
    at = END_MS / 1000 - 300
    said = request(app, "POST", "/api/annotations", json={"text": "<b>deployed 2.1</b> here", "at": at})
    assert said.status_code == 200
    assert [one.text for one in read_annotations(demo)] == ["<b>deployed 2.1</b> here"]
    app = build_app(Viewer(NodeFolders([demo], SystemClock())))
    listed = request(app, "GET", "/api/annotations").json()["annotations"]
    assert [(one["text"], one["at"]) for one in listed] == [("<b>deployed 2.1</b> here", at)]
    events = request(app, "GET", "/api/events?range=all").json()["events"]
    (note,) = [one for one in events if one["kind"] == "note"]
    assert (note["at"], note["name"], note["container"]) == (at, "<b>deployed 2.1</b> here", "")
    page = request(app, "GET", "/api/export?format=html&range=15m").text
    assert "deployed 2.1" in page
    assert "<b>deployed" not in page
    for body, status in ((b"{", 400), (b'{"text": ""}', 400), (b"x" * 10_000, 413)):
        assert request(app, "POST", "/api/annotations", content=body).status_code == status
    refused = request(app, "PUT", "/api/annotations")
    assert refused.headers["allow"] == "GET, POST"


def test_where_a_token_is_set_a_note_needs_it(demo: Path) -> None:
    app = build_app(Viewer(NodeFolders([demo], SystemClock())), lambda text: text == "Bearer right")
    before = len(read_annotations(demo))
    assert request(app, "POST", "/api/annotations", json={"text": "x"}).status_code == 401
    assert len(read_annotations(demo)) == before
    right = {"Authorization": "Bearer right"}
    assert request(app, "POST", "/api/annotations", json={"text": "x"}, headers=right).status_code == 200


def test_a_note_shortly_before_an_incident_is_its_evidence(demo: Path) -> None:
    """In the sentence that everybody shows."""
    view = NodeFolders([demo], SystemClock()).view()
    span = TimeRange(END_MS - 1_400_000, END_MS)
    (found,) = list_incidents(view, span)
    assert found.incidents
    first = found.incidents[0]
    assert (
        main(["annotate", "deployed 9.9 here", "--at", str(first.from_ms / 1000 - 60), "--to", str(demo)])
        == 0
    )
    (found,) = list_incidents(NodeFolders([demo], SystemClock()).view(), span)
    (told,) = [one for one in found.incidents if one.from_ms == first.from_ms and one.kind == first.kind]
    assert any("deployed 9.9 here" in line for line in told.notes)
    assert "Noted at" in render_incident(told)


def test_an_agent_keeps_notes_for_those_who_may_not_write(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    node = FixtureNode("cgroup2-systemd", tmp_path / "node")
    assert request(build_agent_app(node.parts), "POST", "/annotations", json={"text": "x"}).status_code == 400
    data = tmp_path / "data"
    data.mkdir()
    node.parts.loaded = replace(node.parts.loaded, settings=replace(node.parts.loaded.settings, data=data))
    connect_archive(node.parts, {})
    said = request(
        build_agent_app(node.parts), "POST", "/annotations", content=json.dumps({"text": "deployed"})
    )
    assert said.status_code == 200
    assert [one.text for one in read_annotations(data)] == ["deployed"]


def test_a_command_says_where_it_could_not_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", "x", "--to", str(tmp_path / "nothing")]) != 0
    assert "is no data folder" in capsys.readouterr().err
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        assert main(["annotate", "x", "--to", str(tmp_path)]) != 0
    assert list_events(NodeFolders([tmp_path], SystemClock()).view(), TimeRange(0, 2**60)).events == ()
