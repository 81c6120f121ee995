"""The same question has the same sentence in the viewer, on the command line and over MCP."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.stories.catalogue import STORIES
from tests.stories.story import build_scene
from tests.use.mcp.asking import asking
from tests.use.played_node import END_MS, Played, write_played
from tests.use.viewer.asking import Asker as Viewer

from nodescope.cli import main
from nodescope.commands.shared.comparing import build_compare
from nodescope.use.answers.scanning.scan import MOST_STUDIED
from nodescope.use.mcp.tools import TOOLS

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


def test_who_is_there_is_said_in_the_same_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with asking(folder) as asker:
        told = asker.ask("list_containers")["headline"]
    with Viewer(folder) as viewer:
        shown = viewer.json("/api/containers", metric="none", range="all")["sentence"]
    assert main(["containers", str(folder)]) == 0
    printed = capsys.readouterr().out.splitlines()[-1]
    assert printed == shown == told == "13 containers on node n1, 3 of them running."


@pytest.mark.parametrize("container", ["", "catalog"])
def test_a_comparison_is_said_in_the_same_words(
    folder: Path, container: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two spans that were named, and around the last deploy where none was."""
    named = {"container": container} if container else {}
    middle, end = END_MS - 300_000, END_MS - 1000
    windows = {"a_from": 2 * middle - end, "a_to": middle, "b_from": middle, "b_to": end}
    with asking(folder) as asker:
        told = asker.ask("compare_windows", **named, **{name: str(at) for name, at in windows.items()})
        usual = asker.ask("compare_windows", **named)
    with comparing(folder) as viewer:
        shown = viewer.json("/api/compare", **named, **{"from": middle / 1000, "to": end / 1000})
        plain = viewer.json("/api/compare", **named)
    question = (
        f"did the deploy of {container} make it worse" if container else "what changed after the deploy"
    )
    assert main(["ask", question, str(folder)]) == 0
    printed = capsys.readouterr().out.splitlines()[0]
    assert shown["sentence"] == told["headline"]
    assert [one["sentence"] for one in shown["differences"]] == [one["sentence"] for one in told["findings"]]
    assert printed == plain["sentence"] == usual["headline"]


def comparing(folder: Path) -> Viewer:
    """A viewer as the command starts it."""
    viewer = Viewer(folder)
    viewer.viewer.compare = build_compare(viewer.viewer.folders)
    return viewer


def test_a_comparison_of_nothing_is_refused_with_what_there_is(folder: Path) -> None:
    with comparing(folder) as viewer:
        refused = viewer.get("/api/compare?container=catalogue")
        early = viewer.get("/api/compare?from=100&to=200")
    with Viewer(folder) as bare:
        assert bare.get("/api/compare").status_code == 404
    assert refused.status_code == early.status_code == 400
    assert "catalog" in refused.json()["detail"]
    assert "has no data from" in early.json()["detail"]


def test_a_machine_without_containers_has_a_calm_answer(tmp_path: Path) -> None:
    """And a name that no machine has is refused with the nearest one."""
    write_played(tmp_path, [], 600)
    with Viewer(tmp_path) as viewer:
        ranked = viewer.json("/api/workloads", metric="cpu", range="1h")
        listed = viewer.json("/api/containers", metric="none", range="1h")
        refused = viewer.get("/api/workloads?metric=cpux&range=1h")
    assert (ranked["workloads"], ranked["sentence"]) == ([], "No workload has a sample of cpu in this span.")
    assert (listed["total"], listed["sentence"]) == (0, "No container was seen on node n1.")
    assert refused.status_code == 404
    assert refused.json()["hint"] == 'did you mean "cpu"?'


def test_services_without_a_metric_are_no_error(folder: Path) -> None:
    """Who is there has no GPU: a ranking by it is empty, not refused."""
    with Viewer(folder) as viewer:
        ranked = viewer.json("/api/workloads", metric="network_receive", range="1h")
    assert (ranked["ranked"], ranked["workloads"]) == (0, [])


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


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node on which one container's CPU bursts and fades, and one was deployed anew."""
    where = tmp_path_factory.mktemp("story")
    build_scene(STORIES["no-impossible-figures"], 1, where, is_small=True)
    return where / "node-a"


@pytest.mark.parametrize("study", ["changepoint", "periodicity", "trend", "anomaly", "summary"])
def test_a_study_is_said_in_the_same_words(
    story: Path, study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """MCP leaves out slight and doubtful changes, and tells the others in the viewer's words."""
    with Viewer(story) as viewer:
        (answer,) = viewer.json(f"/api/study/{study}", metric="cpu", containers="spindown", range="1h")[
            "results"
        ]
    options = ["--container", "spindown", "--metric", "cpu", "--from", "-1h", "--json"]
    assert main(["study", study, str(story), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    shown = [one["sentence"] for one in answer["findings"]]
    assert (printed["sentence"], [one["sentence"] for one in printed["findings"]]) == (
        answer["sentence"],
        shown,
    )
    with asking(story) as asker:
        content = asker.ask("analyze_container", container="spindown", study=study, metric="cpu", from_="-1h")
    told = [one["sentence"] for one in content["findings"] if one["kind"] == study]
    assert set(told) <= set(shown)
    sure = [one for one in answer["findings"] if one["confidence"] >= 0.5]
    assert bool(told) == bool(sure)


def test_a_trend_over_many_hours_is_of_the_same_minutes_whoever_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """More than half a day is read in minutes; the answer tells how many there were."""
    seconds = 13 * 3600
    write_played(tmp_path, [Played("db-0", "postgres", 0, seconds, 0.2)], seconds)
    start, end = str(END_MS // 1000 - seconds), str(END_MS // 1000 - 1)
    with Viewer(tmp_path) as viewer:
        given = {"metric": "memory", "containers": "db-0", "from": start, "to": end}
        (shown,) = viewer.json("/api/study/trend", **given)["results"]
    options = ["--container", "db-0", "--metric", "memory", "--from", start, "--to", end, "--json"]
    assert main(["study", "trend", str(tmp_path), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    with asking(tmp_path) as asker:
        told = asker.ask("analyze_container", container="db-0", study="trend", from_=start, to=end)
    assert shown["samples"] == printed["samples"] == seconds // 60
    assert f"; {seconds // 60} samples" in told["headline"]


# What a scan says of itself on a machine whose processors others have.
RAN_OUT = "because the time was over"


def scan_patiently(story: Path, study: str, metric: str) -> dict[str, Any]:
    """On a busy machine the time may be over before all are studied; what was studied is known the next time."""
    with asking(story) as asker:
        for _ in range(MOST_STUDIED):
            content = asker.ask("scan", study=study, metric=metric, from_="-1h")
            if not any("the time was over" in line for line in content["not_looked_at"]):
                break
    return content


@pytest.mark.parametrize(
    ("study", "metric"), [("trend", "memory"), ("changepoint", "cpu"), ("summary", "cpu")]
)
def test_a_scan_is_said_in_the_same_words(
    story: Path, study: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = scan_patiently(story, study, metric)
    with Viewer(story) as viewer:
        shown = viewer.json(f"/api/scan/{study}", metric=metric, range="1h")
    assert main(["study", study, str(story), "--all", "--metric", metric, "--from", "-1h"]) == 0
    printed = capsys.readouterr().out.splitlines()
    if RAN_OUT in f"{printed} {shown} {content}":
        pytest.skip("this machine is too busy for a whole scan")
    assert printed[0] == shown["sentence"] == content["headline"]
    rows = [row["told"] for node in shown["nodes"] for row in node["rows"]]
    assert [one["sentence"] for one in content["findings"]] == rows[: len(content["findings"])]


@pytest.mark.parametrize(
    ("question", "tool", "arguments"),
    [
        ("did the deploy of catalog make it worse", "compare_windows", {"container": "catalog"}),
        ("who used the most cpu", "top_containers", {"by": "cpu"}),
        ("which pods restarted", "list_containers", {"sort": "restarts"}),
        ("list all pods", "list_containers", {}),
        ("is the node full", "summarize_node", {}),
        ("how is db doing", "summarize_container", {"container": "db"}),
        ("does db leak", "analyze_container", {"container": "db", "study": "trend", "metric": "memory"}),
        ("right-size everything", "rightsize", {}),
        ("who is the noisy neighbour", "explain_incident", {"at": "now", "minutes": 60}),
        ("does anything leak", "scan", {"study": "trend", "metric": "memory"}),
        ("which nodes are there", "list_nodes", {}),
        ("which metrics are collected", "list_metrics", {}),
    ],
)
def test_every_tool_can_be_had_from_the_command_line(
    folder: Path, question: str, tool: str, arguments: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """nodescope ask prints the headline of the tool that it asks, and says which that was."""
    with asking(folder) as asker:
        text = asker.raw(tool, arguments).content[0].text
    assert main(["ask", question, str(folder)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == text.splitlines()[0]
    assert f"\nAsked: {tool}(" in printed


# Where the viewer answers the question of a tool. Its sentence is compared with those of the tool and of the command
# line above, for incidents in tests/use/answers/incidents, and for sizes in tests/use/answers/rightsizing.
SAID_BY_VIEWER = {
    "top_containers": "/api/workloads",
    "list_containers": "/api/containers",
    "compare_windows": "/api/compare",
    "analyze_container": "/api/study/{study}",
    "scan": "/api/scan/{study}",
    "explain_incident": "/api/incidents",
    "rightsize": "/api/rightsize",
    "summarize_node": "/api/node",
    "what_is_wrong": "/api/wrong",
}
# What the page shows without a sentence: as lists, and of a container as one study for each metric.
SHOWN_BY_VIEWER = {
    "list_nodes": "/api/instance",
    "list_metrics": "/api/metrics",
    "find_metrics": "/api/metrics",
    "summarize_container": "/api/study/{study}",
}


def test_no_tool_is_forgotten_in_the_viewer(folder: Path) -> None:
    """A new tool has its sentence in the viewer, or its reason here."""
    with Viewer(folder) as viewer:
        paths = viewer.json("/openapi.json")["paths"]
    assert not SAID_BY_VIEWER.keys() & SHOWN_BY_VIEWER.keys()
    assert TOOLS.keys() == SAID_BY_VIEWER.keys() | SHOWN_BY_VIEWER.keys()
    assert {*SAID_BY_VIEWER.values(), *SHOWN_BY_VIEWER.values()} <= paths.keys()


def test_how_a_node_is_doing_is_said_in_the_same_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with asking(folder) as asker:
        told = asker.ask("summarize_node")
    with Viewer(folder) as viewer:
        (shown,) = viewer.json("/api/node", range="1h")["nodes"]
    assert main(["ask", "is the node full", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == shown["sentence"] == told["headline"]
    assert [one["sentence"] for one in told["findings"]] == shown["lines"]


def test_figures_of_a_container_are_those_of_its_studies(folder: Path) -> None:
    """The drawer asks for each metric what a summary puts into one answer."""
    with asking(folder) as asker:
        told = asker.ask("summarize_container", container="db")
    with Viewer(folder) as viewer:
        (shown,) = viewer.json("/api/study/summary", metric="cpu", containers="db-0", range="1h")["results"]
    (cpu,) = (one["evidence"] for one in told["findings"] if one.get("metric") == "cpu")
    assert cpu["avg"] == pytest.approx(shown["findings"][0]["magnitude"], rel=1e-3)


def test_what_is_wrong_is_said_in_the_same_words(folder: Path) -> None:
    with asking(folder) as asker:
        told = asker.ask("what_is_wrong")["headline"]
    with Viewer(folder) as viewer:
        (shown,) = viewer.json("/api/wrong")["nodes"]
    assert shown["sentence"] == told
