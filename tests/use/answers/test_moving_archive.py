"""Advice about moving pods from generated nodes: command and MCP say the same, and nothing is touched."""

import json
from pathlib import Path

import pytest
from tests.stories.generate.archive import write_archive
from tests.stories.generate.cluster import MIB, Workload
from tests.stories.generate.machine import StoryNode
from tests.stories.story import END_MS
from tests.use.mcp.asking import asking

from nodescope.cli import main

SECONDS = 1800


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half an hour: on one node nine cores are wanted of eight, on the other one is in use."""
    made = tmp_path_factory.mktemp("moving")
    full = StoryNode("node-full", 5, SECONDS, END_MS, cores=8)
    full.run(Workload("report", "Deployment", "shop"), cpu=3.0, anon=300 * MIB)
    full.run(Workload("web", "Deployment", "shop"), 2, cpu=2.0, anon=300 * MIB)
    full.run(Workload("collector", "DaemonSet", "kube-system"), cpu=2.0, anon=60 * MIB)
    idle = StoryNode("node-idle", 6, SECONDS, END_MS, cores=8)
    idle.run(Workload("cache", "StatefulSet", "shop"), cpu=1.0, anon=300 * MIB)
    for node in (full, idle):
        write_archive(made / node.name, node, is_short=True)
    return made


def test_the_command_says_what_to_move_and_what_it_does_not_know(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file())
    assert main(["advise", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "Move shop/report from node-full to node-idle: it uses" in told
    assert "kube-system/collector" not in told
    assert "Not known: volumes, affinity and disruption budgets are not looked at" in told
    assert main(["advise", str(folder), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    (move, *_) = content["moves"]
    assert (move["pod"]["workload"], move["source"], move["target"]) == ("report", "node-full", "node-idle")
    assert move["target_after"] <= 0.7
    after = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file())
    assert after == before


def test_an_agent_is_told_the_same(folder: Path) -> None:
    with asking(folder) as asker:
        answer = asker.ask("rightsize", what="moves")
    assert answer["status"] == "found"
    assert "Move shop/report from node-full to node-idle" in answer["findings"][0]["sentence"]
    assert "nothing is moved" in answer["looked_at"]


def test_one_node_alone_has_nowhere_to_move_to(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(folder / "node-full")]) == 0
    assert "only where there are two" in capsys.readouterr().out


def test_without_data_folders_and_cluster_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(key, raising=False)
    assert main(["advise"]) == 2
    assert "or name data folders of several nodes" in capsys.readouterr().err
