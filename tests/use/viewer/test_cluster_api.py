"""The cluster's answers over real archives: cells equal to the files, shapes as documented, answered from memory."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from bench.cluster_nodes import NodePlan, name_node, write_node
from tests.integration.agents import TurnableClock
from tests.use.cluster.fake_nodes import AtOnce
from tests.use.viewer.asking import Asker

from nodescope.use.cluster.folder_directory import FolderDirectory
from nodescope.use.cluster.gatherer import Gatherer
from nodescope.use.viewer.many import cluster_shapes as shapes

END_MS = 1_772_366_400_000
# Of the generated nodes: the first has a kill, the second is well, the third waits for memory.
NUMBERS = (0, 1, 3)
MINUTES = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    for number in NUMBERS:
        write_node(NodePlan(folder / name_node(number), number, 3, END_MS - MINUTES * 60_000, END_MS))
    return folder


@pytest.fixture
def asker(folder: Path) -> Iterator[Asker]:
    clock = TurnableClock(wall=END_MS * 1_000_000)
    with Asker(folder, clock=clock) as asker:
        gatherer = Gatherer(FolderDirectory(asker.viewer.folders), clock, 5.0, AtOnce(), AtOnce())
        asker.viewer.cluster = (gatherer, clock)
        yield asker


def test_a_cell_is_the_mean_of_its_minute_in_the_files(asker: Asker, folder: Path) -> None:
    """Memory in use in the fifth minute, from the Parquet file itself."""
    [node] = asker.json("/api/minutes", node="worker-001", range="all")["nodes"]
    shapes.NodeMinutesJson.model_validate(node)
    from_ms = (END_MS // 60_000 - MINUTES + 5) * 60_000
    place = round((from_ms / 1000 - node["from"]) / 60)
    files = str(folder / "worker-001" / "dt=*" / "*" / "*.parquet")
    read = "select avg(value) from read_parquet(?) where metric_name = ? and epoch_ms(time) between ? and ?"
    rows = [
        duckdb.execute(read, [files, f"memory.{name}", from_ms, from_ms + 59_999]).fetchall()
        for name in ("MemTotal", "MemAvailable")
    ]
    total, left = (row[0][0] for row in rows)
    assert node["memory"][place] == pytest.approx(total - left, rel=1e-3)
    assert node["cores"] == 8
    assert node["memory_bytes"] == total


def test_the_wall_has_every_node_worst_first(asker: Asker) -> None:
    content = asker.json("/api/cluster/wall", measure="memory")
    wall = shapes.WallJson.model_validate(content)
    assert [row.node for row in wall.nodes] == ["worker-000", "worker-003", "worker-001"]
    assert wall.nodes[0].kills == 1
    assert wall.nodes[0].why.startswith('OOM kill of "web-')
    assert wall.nodes[1].why.startswith("Tasks waited for memory")
    assert not wall.nodes[2].hurt
    assert wall.asking == 0


def test_the_same_question_is_answered_from_memory(asker: Asker) -> None:
    first = asker.get("/api/cluster/wall", params={"measure": "cpu"})
    second = asker.get("/api/cluster/wall", params={"measure": "cpu"})
    assert second.content == first.content
    assert asker.viewer.memory.find(second.headers["etag"]) == second.content
    again = asker.get(
        "/api/cluster/wall", params={"measure": "cpu"}, headers={"If-None-Match": second.headers["etag"]}
    )
    assert again.status_code == 304
    other = asker.get("/api/cluster/wall", params={"measure": "memory"})
    assert other.headers["etag"] != second.headers["etag"]


def test_workloads_are_joined_over_nodes(asker: Asker) -> None:
    asker.json("/api/cluster/wall")
    content = asker.json("/api/cluster/workloads", metric="memory")
    found = shapes.ClusterWorkloadsJson.model_validate(content)
    assert found.unit == "bytes"
    assert found.answered == 3
    assert {row.name for row in found.workloads} == {"api", "web", "cache"}
    for row in content["workloads"]:
        assert row["nodes"] == 3
        assert row["least"] <= row["median"] <= row["most"]
    [cache] = asker.json("/api/cluster/workloads", metric="memory", search="cache")["workloads"]
    assert cache["name"] == "cache"


def test_two_nodes_are_compared(asker: Asker) -> None:
    asker.json("/api/cluster/wall")
    content = asker.json("/api/cluster/compare", left="worker-001", right="worker-003")
    found = shapes.ClusterComparisonJson.model_validate(content)
    pressure = next(row for row in found.measures if row.what == "pressure")
    assert pressure.left is not None
    assert pressure.right is not None
    assert pressure.right > 5 * pressure.left
    assert {row.what for row in found.rows} == {"shop/api", "media/web", "infra/cache"}


@pytest.mark.parametrize(
    ("path", "parameters", "status", "said"),
    [
        ("/api/cluster/wall", {"measure": "cpux"}, 400, 'no measure "cpux"; did you mean "cpu"'),
        ("/api/cluster/wall", {"range": "soon"}, 400, "accepted: 15m, 1h"),
        ("/api/cluster/wall", {"columns": 100000}, 422, "less than or equal to 360"),
        ("/api/cluster/compare", {"left": "worker-01"}, 400, 'did you mean "worker-0'),
        ("/api/minutes", {"step": 61}, 400, "accepted: 60, 600, 3600"),
    ],
)
def test_what_is_refused_says_what_is_accepted(
    asker: Asker, path: str, parameters: dict[str, object], status: int, said: str
) -> None:
    asker.json("/api/cluster/wall")
    answer = asker.get(path, params=parameters)
    assert answer.status_code == status
    assert said in answer.json()["detail"]


def test_without_other_nodes_there_is_no_cluster(folder: Path) -> None:
    with Asker(folder / "worker-000") as asker:
        answer = asker.get("/api/cluster/wall")
        assert answer.status_code == 404
        assert "--kubernetes" in answer.json()["hint"]
        assert asker.json("/api/instance")["cluster"] is False


def test_the_pages_have_their_addresses(asker: Asker) -> None:
    page, node = asker.get("/cluster"), asker.get("/node")
    assert "cluster - nodescope" in page.text
    assert node.text == asker.get("/").text
    assert asker.get("/cluster.html").status_code == 200


def test_the_copy_of_a_fleet_is_a_wall_of_its_nodes(folder: Path, tmp_path: Path) -> None:
    """All nodes copy their days to one place, without rollups: each is a node of the page, with the same cells."""
    for number in NUMBERS:
        for day in (folder / name_node(number)).glob("dt=*"):
            shutil.copytree(day, tmp_path / day.name, dirs_exist_ok=True)
    assert not (tmp_path / "rollup").exists()
    clock = TurnableClock(wall=END_MS * 1_000_000)
    with Asker(tmp_path, clock=clock) as asker:
        gatherer = Gatherer(FolderDirectory(asker.viewer.folders), clock, 5.0, AtOnce(), AtOnce())
        asker.viewer.cluster = (gatherer, clock)
        copied = asker.json("/api/cluster/wall", measure="memory")
    with Asker(folder, clock=clock) as asker:
        gatherer = Gatherer(FolderDirectory(asker.viewer.folders), clock, 5.0, AtOnce(), AtOnce())
        asker.viewer.cluster = (gatherer, clock)
        own = asker.json("/api/cluster/wall", measure="memory")
    assert [row["node"] for row in copied["nodes"]] == ["worker-000", "worker-003", "worker-001"]
    for mine, other in zip(own["nodes"], copied["nodes"], strict=True):
        assert mine["cells"] == pytest.approx(other["cells"], abs=2e-3, nan_ok=True)
