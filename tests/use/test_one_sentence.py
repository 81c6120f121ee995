"""The same question has the same sentence in the viewer, on the command line and over MCP."""

import json
from pathlib import Path

import pytest
from tests.use.mcp.asking import asking
from tests.use.played_node import Played, write_played
from tests.use.viewer.asking import Asker as Viewer

from nodescope.cli import main

CONTAINERS = [
    Played("catalog-66b6c48dd5-bcdf2", "app", 0, 600, 0.4),
    Played("catalog-66b6c48dd5-x2k4p", "app", 0, 600, 0.5),
    *(Played(f"etl-{29_384_000 + n}-x2k4p", "etl", 60 * n, 60 * n + 10, 2.0) for n in range(10)),
    Played("db-0", "postgres", 0, 600, 0.2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_played(tmp_path_factory.mktemp("played"), CONTAINERS, 600)


@pytest.mark.parametrize("metric", ["cpu", "memory"])
def test_who_used_the_most_is_said_in_the_same_words(
    folder: Path, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with asking(folder) as asker:
        told = [one["sentence"] for one in asker.ask("top_containers", by=metric)["findings"]]
    with Viewer(folder) as viewer:
        shown = viewer.json("/api/workloads", metric=metric, range="1h")["workloads"]
    assert main(["top", str(folder), "--by-workload", "--sort", metric, "--range", "1h"]) == 0
    printed = capsys.readouterr().out.splitlines()
    numbered = [f"{place}. {row['sentence']}" for place, row in enumerate(shown, 1)]
    assert printed == numbered == told
    assert len(told) == 3


def test_the_command_line_has_the_same_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(folder), "--by-workload", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["kind"], row["pods"]) for row in rows] == [
        ("catalog", "Deployment", 2),
        ("etl", "CronJob", 10),
        ("db", "StatefulSet", 1),
    ]
    assert main(["top", str(folder), "--by-workload", "--range", "soon"]) == 1
    assert "--range soon is not accepted" in capsys.readouterr().err


def test_a_workload_is_drawn_and_studied_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Viewer(folder) as viewer:
        drawn = viewer.json("/api/timeseries", metric="cpu", containers="catalog", range="all")["series"]
        assert len(drawn) == 2
        assert viewer.get("/api/timeseries?metric=cpu&containers=catalogue").status_code == 404
    assert main(["containers", str(folder)]) == 0
    assert "Deployment catalog" in capsys.readouterr().out
