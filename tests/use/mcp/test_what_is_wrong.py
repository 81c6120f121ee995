"""The first tool: what is wrong now, worst first, in the sentence that everybody says."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import pytest
from tests.support import FixtureNode
from tests.use.mcp.asking import Asker, connected

from nodescope.base.clock import SystemClock
from nodescope.base.findings import NodeFinding, describe_health
from nodescope.keep.archiver import Archiver
from nodescope.use.answers.incidents.incident import Change, Incident, IncidentList
from nodescope.use.answers.node_summary.wrongs import NodeWrongs, parse_wrongs, render_wrongs
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet, NodeEntry, StaticDirectory
from nodescope.use.mcp.nodes.local import LocalFolders
from nodescope.use.mcp.protocol.answer import READ_BYTES, ToolAnswer, fit
from nodescope.use.mcp.protocol.server import build_server
from nodescope.use.mcp.tools import TOOLS
from nodescope.use.mcp.tools.what_is_wrong import run
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.sighting import FindingSubject, Sighting
from nodescope.wiring import connect_archive

AT = 1_690_000_000.0
LEAK = Sighting(
    "memory_leak",
    "kill",
    FindingSubject("shop", "catalog", "catalog-1", "app", "4841cfc03d50"),
    AT - 600,
    "shop/catalog reaches its limit of 512 MiB in 50 min.",
    is_sure=True,
    cause="a deploy",
    victims=("shop/web",),
    time_to_limit_seconds=3000.0,
)


def wrongs(node: str, *sightings: Sighting) -> NodeWrongs:
    store = FindingStore(node)
    for sighting in sightings:
        store.see(sighting, AT)
    return NodeWrongs(node, round(AT * 1000), tuple(store.recent()), is_watched=True)


class Told:
    """A backend that has one answer."""

    def __init__(self, answer: NodeWrongs) -> None:
        self.answer = answer

    def read_wrongs(self) -> NodeWrongs:
        return self.answer


def ask(*parts: NodeWrongs) -> ToolAnswer:
    entries = {one.node: NodeEntry(one.node, cast("Backend", Told(one)), "here") for one in parts}
    fleet = Fleet(StaticDirectory(entries), SystemClock(), 60.0)
    return anyio.run(partial(run, fleet, {"node": None}))


def test_it_is_the_first_of_the_tools() -> None:
    assert next(iter(TOOLS)) == "what_is_wrong"


def test_a_healthy_node_says_so_in_one_line() -> None:
    answer = ask(wrongs("node-a"))
    text, _ = fit(answer)
    assert (answer.status, answer.headline) == ("none", "Nothing is wrong on node-a.")
    assert len(text.splitlines()) == 2
    assert ask(wrongs("a"), wrongs("b")).headline == "Nothing is wrong on 2 nodes."


def test_the_worst_comes_first_with_cause_victims_and_the_time_that_is_left() -> None:
    """Of all nodes; a suspicion is not told, and what is silenced comes last."""
    waste = replace(
        LEAK, kind="waste", severity="waste", sentence="Half is not used.", time_to_limit_seconds=None
    )
    doubt = replace(LEAK, kind="disk_full", is_sure=False)
    answer = ask(wrongs("node-a", waste, doubt), wrongs("node-b", LEAK))
    assert [(one.kind, one.node) for one in answer.findings] == [
        ("memory_leak", "node-b"),
        ("waste", "node-a"),
    ]
    facts = answer.findings[0].evidence
    assert (facts["severity"], facts["cause"], facts["time_to_limit_seconds"]) == ("kill", "a deploy", 3000)
    assert facts["victims_most"] == "shop/web"
    assert answer.headline == (
        f"Something is wrong on 1 of 2 nodes. {describe_health(wrongs('node-b', LEAK).findings, 'node-b')}"
    )
    assert answer.next_call is not None
    assert answer.next_call.arguments == {"container": "catalog", "node": "node-b"}


def test_what_grew_until_it_was_killed_is_asked_about_at_its_kill() -> None:
    """At its onset, an hour before, nothing was to be seen, and the next answer would be a No."""
    at_ms = round(AT * 1000)
    cause = Change("shop/cache", "cache", "memory_anon", "bytes", 3e8, 4e8, at_ms - 3_600_000, at_ms)
    killed = Incident(
        "oom_kill",
        "node-a",
        "memory",
        (cause,),
        (),
        0,
        at_ms - 3_600_000,
        at_ms,
        True,
        0.9,
        1.0,
        killed_ms=at_ms - 60_000,
    )
    found = IncidentList("node-a", at_ms - 3_600_000, at_ms, 0, (killed,), 1, 1, "", (), ())
    answer = ask(NodeWrongs("node-a", at_ms, (), is_watched=False, incidents=found))
    assert answer.next_call is not None
    assert answer.next_call.arguments == {"at": "2023-07-22T04:25:40Z", "node": "node-a"}


def test_two_hundred_findings_fit_into_fifteen_hundred_tokens() -> None:
    many = [
        replace(LEAK, subject=replace(LEAK.subject, workload=f"{number}-" + "x" * 200), sentence="w " * 300)
        for number in range(200)
    ]
    text, content = fit(ask(wrongs("node-a", *many)))
    assert len(text.encode()) + len(str(content).encode()) <= READ_BYTES * 1.1
    assert content["left_out"] >= 188


def test_a_viewer_s_answer_is_the_same_and_what_is_no_finding_is_left_out() -> None:
    one = wrongs("node-a", LEAK)
    content = render_wrongs([one])
    assert parse_wrongs(content, "node-a") == one
    assert content["nodes"][0]["sentence"] == describe_health(one.findings, "node-a")
    content["nodes"][0]["findings"] += [3, {"id": "x"}]
    assert parse_wrongs(content, "node-a") == one
    assert parse_wrongs({}, "node-a") is None
    assert parse_wrongs({"nodes": [3]}, "node-a") is None


def test_a_data_folder_tells_what_its_watcher_found(tmp_path: Path) -> None:
    """Through the log: what was told a moment ago is in the answer, and what is over is not."""
    (tmp_path / "node").mkdir()
    node = FixtureNode("cgroup2-systemd", tmp_path / "node")
    data = tmp_path / "data"
    node.parts.loaded = replace(
        node.parts.loaded, settings=replace(node.parts.loaded.settings, data=data, archive=True)
    )
    connect_archive(node.parts, {})
    archiver, watcher = node.parts.archiver, node.parts.watcher
    assert isinstance(archiver, Archiver)
    assert watcher is not None
    archiver.start()
    try:
        node.tick()
        now = node.clock.wall_ns() / 1e9
        watcher.store.see(LEAK, now)
        watcher.store.see(replace(LEAK, kind="oom_kill"), now)
        watcher.store.resolve(replace(LEAK, kind="oom_kill").key, now)
        watcher._tell_changes()
        node.clock.advance(1_000_000_000)
        node.tick()
    finally:
        archiver.stop()
    with connected(build_server(Fleet(LocalFolders([data], SystemClock()), SystemClock(), 60.0))) as asker:
        answer = asker.ask("what_is_wrong")
    (finding,) = answer["findings"]
    assert (finding["kind"], finding["evidence"]["time_to_limit_seconds"]) == ("memory_leak", 3000)
    assert answer["headline"].startswith("1 thing is wrong on cgroup2-systemd: shop/catalog reaches")


def test_where_no_watcher_ran_incidents_answer(asker: Asker) -> None:
    """The demo is written without an agent."""
    answer = asker.ask("what_is_wrong", node="demo-1")
    assert "no watcher has told of any" in answer["looked_at"]
    assert answer["status"] in ("found", "none")


@pytest.mark.parametrize("state", ["confirmed", "updated"])
def test_every_state_that_was_told_is_told(state: str) -> None:
    one = wrongs("node-a", LEAK)
    found: list[NodeFinding] = [replace(finding, state=state) for finding in one.findings]
    assert len(ask(replace(one, findings=tuple(found))).findings) == 1
